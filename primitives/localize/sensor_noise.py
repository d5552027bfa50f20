"""The depth of a real camera from exact depth: noise that grows with range, and holes at edges.

A stereo depth camera of the size that is mounted on robots errs by some millimetres within a metre,
more with distance, and gives no value where one surface hides part of the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Observation, read_only

Depth: TypeAlias = npt.NDArray[np.float32]
FIXED_M = 0.002
"""Standard deviation that every value has, metres."""
PER_METRE = 0.005
"""Standard deviation that is added for each metre of range."""
STEP_M = 0.03
"""Neighbouring pixels that differ by more than this, metres, have an edge between them."""


def as_sensed(observation: Observation) -> Observation:
    """Return the observation as a real depth camera would have given it.

    The same observation gets the same noise: it is drawn from the time of sensing.
    """
    rng = np.random.default_rng(round(1000.0 * observation.proprio.t))
    depth = {
        name: read_only(noisy_depth(metres, rng), np.float32)
        for name, metres in observation.depth.items()
    }
    return replace(observation, depth=depth)


def noisy_depth(
    depth: npt.NDArray[np.float32], rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Return metres with noise of standard deviation 2 mm + 0.5 % of range, NaN along edges.

    Args:
        depth: exact metres along the optical axis. Shape (H, W).
        rng: where the noise is drawn from.
    """
    noise = rng.standard_normal(depth.shape) * (FIXED_M + PER_METRE * depth)
    return np.where(_edges(depth), np.nan, depth + noise).astype(np.float32)


def _edges(depth: Depth) -> npt.NDArray[np.bool_]:
    """Return the pixels on the far side of a step, where the near surface hides the pattern."""
    found = np.zeros(depth.shape, dtype=bool)
    down, right = np.diff(depth, axis=0), np.diff(depth, axis=1)
    found[1:] |= down > STEP_M
    found[:-1] |= down < -STEP_M
    found[:, 1:] |= right > STEP_M
    found[:, :-1] |= right < -STEP_M
    return found
