"""Observations that tests of policy servers send."""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import ArmState, Observation, PolicySpec, Proprio, read_only


def observed(spec: PolicySpec, t: float = 0.0, seed: int = 0) -> Observation:
    """Return noise that fits `spec`."""
    rng = np.random.default_rng(seed)
    arm = ArmState(
        read_only(rng.uniform(-0.2, 0.9, 3)),
        read_only([0.0, 0.0, 0.0, 1.0]),
        read_only(rng.uniform(-1.0, 1.0, 7)),
        0.06,
    )
    images = {
        c.name: read_only(rng.integers(0, 256, (c.height, c.width, 3)), np.uint8)
        for c in spec.cameras
    }
    return Observation(Proprio(t, (arm,)), "lift the cube", images)
