"""The first policies of an arm: `nod` goes 3 cm up and comes back, `rise` asks for 1 cm, once.

Everybody can see whether the hand does that. They look at nothing but the hand itself and leave the
gripper open, so take out what it holds.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zetta.runtime.core import ActionChunk, ActionSpec, Observation, PolicySpec

HEIGHT_M = 0.03
RISE_M = 0.01
PERIOD_S = 4.0
SCALE_M = 0.05
ROWS = 4
MOST = 0.3
"""Of the largest displacement that can be asked for."""

SPEC = PolicySpec(
    name="nod",
    action=ActionSpec(
        "delta_pose",
        ("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
        low=(-1.0,) * 7,
        high=(1.0,) * 7,
        scale=(SCALE_M,) * 3 + (0.5,) * 3 + (1.0,),
    ),
    cameras=(),
    replan_steps=ROWS,
    horizon=ROWS,
    control_hz=20.0,
    sensing="proprio",
    digest="nod/1",
)


class Nod:
    """Goes to the height that belongs to the time, as far as one step allows."""

    spec = SPEC

    def reset(self, instruction: str, seed: int) -> None:
        """Forget where the last episode began."""
        del instruction, seed
        self._began: tuple[float, float] | None = None

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows: upwards or downwards, and nothing else."""
        t, z = observation.proprio.t, float(observation.proprio.arms[0].ee_pos[2])
        if self._began is None:
            self._began = (t, z)
        t0, z0 = self._began
        height = 0.5 * HEIGHT_M * (1.0 - math.cos(2.0 * math.pi * (t - t0) / PERIOD_S))
        rows = np.zeros((ROWS, 7))
        rows[:, 2] = np.clip((z0 + height - z) / SCALE_M, -MOST, MOST)
        rows[:, 6] = -1.0
        return ActionChunk(rows, t_obs=t)

    def close(self) -> None:
        """Nothing is open."""


class Rise(Nod):
    """Asks for the same place until it is there, as long as nobody lets it go."""

    spec = replace(SPEC, name="rise", digest="rise/1")

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows: up to 1 cm above where it began."""
        t, z = observation.proprio.t, float(observation.proprio.arms[0].ee_pos[2])
        if self._began is None:
            self._began = (t, z)
        rows = np.zeros((ROWS, 7))
        rows[:, 2] = np.clip((self._began[1] + RISE_M - z) / SCALE_M, -MOST, MOST)
        rows[:, 6] = -1.0
        return ActionChunk(rows, t_obs=t)


def make() -> Nod:
    """Return the policy that nods."""
    return Nod()


def rise() -> Rise:
    """Return the policy that asks for 1 cm."""
    return Rise()
