"""A policy that moves the hand to and fro; `make_seeing` looks at a camera before each chunk."""

from __future__ import annotations

import math

import numpy as np

from zetta.runtime.core import ActionChunk, CameraSpec, Observation, PolicySpec
from zetta.runtime.policies.random_actions import ONE_ARM

HORIZON = 4


class Swaying:
    def __init__(self, cameras: tuple[CameraSpec, ...] = ()) -> None:
        self.spec = PolicySpec(
            name="swaying", action=ONE_ARM, cameras=cameras, replan_steps=HORIZON, horizon=HORIZON,
            sensing="vision" if cameras else "proprio", digest="0" * 64,
        )  # fmt: skip

    def reset(self, instruction: str, seed: int) -> None:
        del instruction, seed

    def infer(self, observation: Observation) -> ActionChunk:
        t = observation.proprio.t
        rows = np.zeros((HORIZON, 7))
        rows[:, 1] = 0.4 * math.copysign(1.0, math.sin(2.0 * t))
        rows[:, 6] = -1.0
        return ActionChunk(rows, t)

    def close(self) -> None:
        pass


def make() -> Swaying:
    return Swaying()


def make_seeing() -> Swaying:
    return Swaying((CameraSpec("front", 24, 32),))
