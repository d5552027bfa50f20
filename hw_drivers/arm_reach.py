"""How far a declared arm reaches in the world: the box of its limits, the chain of its set-up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.frames import matrix
from zetta.hw_drivers.kinematic_chain import KinematicChain
from zetta.runtime.arm_model import ArmModel
from zetta.runtime.errors import ConfigError
from zetta.runtime.workspace import Box

SQUARE: Final = 1e-6
"""How far the axes of a base may be from those of the world and count as the same."""


def workspace_of(setup: ArmSetup) -> Box | None:
    """Return the box that the limits leave to the grip site, in the world.

    None without limits, and where the base stands askew: a box of the world is then either too
    large or too small, and the safety kernel keeps the right one anyway.

    Raises:
        ConfigError: the limits cannot be read.
    """
    if not setup.limits:
        return None
    R = matrix(setup.T_world_base.quat)
    if np.abs(np.abs(R) - np.round(np.abs(R))).max() > SQUARE:
        return None
    box = load_limits(setup.limits).workspace
    corners = [np.round(R, 6) @ np.array(c) + setup.base_pos for c in (box.low, box.high)]
    low, high = np.min(corners, axis=0).tolist(), np.max(corners, axis=0).tolist()
    return Box(tuple(low), tuple(high))


def model_of(setup: ArmSetup) -> ArmModel | None:
    """Return the kinematics that the set-up declares; None where it declares none.

    Raises:
        ConfigError: MuJoCo is not installed, the model is wrong, or its joints count otherwise
            than the arm's, which the dry run cannot follow.
    """
    declared = setup.chain
    if declared is None:
        return None
    if declared.base or any(sign != 1.0 for sign in declared.signs) or any(declared.offsets_rad):
        raise ConfigError(
            "the chain of a set-up has the arm's base as its world and counts joints as the arm "
            "does; leave out base, signs and offsets_rad, or leave out [chain]"
        )
    chain = KinematicChain(declared)
    return ArmModel(
        Path(declared.mjcf).expanduser().read_text(encoding="utf-8"),
        declared.joints,
        declared.site,
        chain.low,
        chain.high,
        setup.T_world_base.transform(),
    )
