"""A policy that answers what it saw, and a small engine that runs it in one thread."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from zetta.runtime.core import (
    ActionChunk,
    ActionSpec,
    ArmState,
    CameraSpec,
    Observation,
    PolicySpec,
    Proprio,
    read_only,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.foreign.robots import GR00T_LIBERO, OPENPI_LIBERO

HORIZON, REPLAN = 10, 5
CAMERAS = (CameraSpec("agentview", 256, 256), CameraSpec("wrist", 256, 256, "wrist"))


def spec(action: ActionSpec = OPENPI_LIBERO.action, cameras: tuple[CameraSpec, ...] = CAMERAS,
         depth: bool = False, control_hz: float = 20.0) -> PolicySpec:  # fmt: skip
    return PolicySpec(
        "test/mirror", action, cameras, REPLAN, HORIZON, control_hz, depth, digest="d" * 64
    )


class TellingPolicy:
    """Its rows tell what it saw: place, brightness left and right, opening, instruction length."""

    def __init__(self, told: PolicySpec | None = None) -> None:
        self.spec = told or spec()
        self.resets: list[tuple[str, int]] = []
        self.times: list[float] = []

    def reset(self, instruction: str, seed: int) -> None:
        if "nonsense" in instruction:
            raise ConfigError("the instruction is nonsense")
        self.resets.append((instruction, seed))

    def close(self) -> None:
        """Nothing is held."""

    def infer(self, observation: Observation) -> ActionChunk:
        if not self.resets:
            raise SpecMismatch("reset comes first")
        self.times.append(observation.proprio.t)
        arm = observation.proprio.arms[0]
        seen = observation.images["agentview"].astype(np.float64)
        row = np.array(
            [
                *np.clip(arm.ee_pos, -1, 1),
                seen[:, :128].mean() / 255,
                seen[:, 128:].mean() / 255,
                arm.gripper_opening * 10,
                1.0 if arm.gripper_opening < 0.04 else -1.0,
            ]
        )
        return ActionChunk(np.tile(row, (HORIZON, 1)), observation.proprio.t)


class SmallEngine:
    """One policy for all sessions, asked in a thread of its own."""

    def __init__(self, policy: Any = None) -> None:
        self.policy = policy or TellingPolicy()
        self.opened: set[int] = set()
        self.most = 0
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._thread = ThreadPoolExecutor(1)

    @property
    def spec(self) -> PolicySpec:
        return self.policy.spec

    def open(self, robot: str, priority: int = 0) -> int:
        session = next(self._numbers)
        self.opened.add(session)
        self.most = max(self.most, len(self.opened))
        return session

    def reset(self, session: int, instruction: str, seed: int) -> Future[None]:
        return self._thread.submit(self.policy.reset, instruction, seed)

    def infer(
        self, session: int, observation: Observation, deadline_s: float | None
    ) -> Future[ActionChunk]:
        return self._thread.submit(self.policy.infer, observation)

    def close(self, session: int) -> None:
        with self._changed:
            self.opened.discard(session)
            self._changed.notify_all()

    def left_alone(self) -> bool:
        """Wait until every session was closed."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.opened, timeout=5)

    def stop(self) -> None:
        self._thread.shutdown(wait=True)


def sensed(bright: str = "left", opening: float = 0.06) -> Observation:
    """Return an upright view that is bright on one side only."""
    image = np.zeros((256, 256, 3), np.uint8)
    image[:, :128] = 255 if bright == "left" else 0
    image[:, 128:] = 0 if bright == "left" else 255
    quat = np.array([0.9996, -0.0009, -0.0279, -0.0003])
    arm = ArmState(
        read_only([0.1, -0.2, 0.3]),
        read_only(quat / np.linalg.norm(quat)),
        read_only(np.zeros(7)),
        opening,
    )
    seen = read_only(image, np.uint8)
    return Observation(Proprio(0.25, (arm,)), "", {"agentview": seen, "wrist": seen})


LIBERO = {"openpi": OPENPI_LIBERO, "gr00t": GR00T_LIBERO}
