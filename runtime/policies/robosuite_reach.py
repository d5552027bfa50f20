"""The scripted stand-in of the twin, at robosuite's table.

It does what `twin_reach.py` says. Three things are other here: the one world camera looks along
the arm, so that the hand hides what it carries things to; the arm has coloured spots of its own;
and fingers that hold something creep, at a millimetre a second.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import numpy as np

from zetta.runtime.core import ActionChunk, ArmState, Array, Observation
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.policies.toy_sight import blobs, points
from zetta.runtime.policies.twin_reach import CAMERA, HORIZON, SPEED, TwinReach

MISSES: Final = {"robosuite/reach": 0.0, "robosuite/reach-clumsy": 0.5}
"""Chance that an episode's grasp goes beside the thing, by the name a policy is loaded under."""
CEILING_M: Final = 0.12
"""Nothing on the table is as high above it; what is belongs to the arm, or hangs in the hand."""
CREEP: Final = 0.005
"""Fingers that hold something move by less, m/s."""
RISES_M: Final = 0.30
"""As far above the table it carries a thing up to see where it goes."""


class RobosuiteReach(TwinReach):
    """The policy. Same camera, rows, seeds and misses as the twin's."""

    def __init__(self, name: str, miss_chance: float) -> None:
        super().__init__(name, miss_chance)
        text = f"robosuite {self._spec.digest} {CEILING_M} {RISES_M} {CREEP}"
        self._spec = replace(self._spec, digest=hashlib.sha256(text.encode()).hexdigest())

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next eight rows.

        Raises:
            SpecMismatch: as the twin's.
        """
        chunk = super().infer(_without_arm(observation))
        arm = observation.proprio.arms[0]
        if self._aims is None and self._holds(arm):
            return ActionChunk(self._rising(observation), chunk.t_obs)
        return chunk

    def _holds(self, arm: ArmState) -> bool:
        return 0.01 < arm.gripper_opening < 0.07 and abs(arm.gripper_velocity) < CREEP

    def _rising(self, observation: Observation) -> Array:
        """Keep hold and rise, so that the hand hides nothing. Shape (H, 7)."""
        rows = np.zeros((HORIZON, 7))
        rows[:, 6] = 1.0
        table = _table(observation)
        if np.isnan(table) or observation.proprio.arms[0].ee_pos[2] < table + RISES_M:
            rows[:, 2] = SPEED
        rows.flags.writeable = False
        return rows


def _table(observation: Observation) -> float:
    name = CAMERA.name
    return blobs(observation.images[name], observation.depth[name], observation.cameras[name])[0]


def _without_arm(observation: Observation) -> Observation:
    """Return what is seen without all that is high above the table."""
    name = CAMERA.name
    if name not in observation.images or name not in observation.depth:
        return observation  # refused in one sentence by who needs it
    table = _table(observation)
    if np.isnan(table):
        return observation
    depth = np.array(observation.depth[name])
    depth[points(depth, observation.cameras[name])[..., 2] > table + CEILING_M] = 0.0
    return replace(observation, depth={**observation.depth, name: depth})


def load(name: str) -> RobosuiteReach:
    """Return the policy with the misses that belong to `name`.

    Raises:
        ConfigError: unknown name.
    """
    if name not in MISSES:
        raise ConfigError(f"unknown policy {name!r}; {suggest(name, MISSES)}")
    return RobosuiteReach(name, MISSES[name])
