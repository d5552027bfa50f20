"""An arm of pure numpy on the robot's side: it follows poses as a first-order system does.

Its joints are the pose itself: three slides and the axis-angle of the hand. No geometry, no weight,
no contact: it is there to try the link, a guard or an environment without an engine.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmMode, ArmReading, ArmTarget, PoseTarget
from zetta.hw_drivers.frames import product, rotation, rotation_vector
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import SpecMismatch

HOME: Final = (0.4, 0.0, 0.3)
LOW: Final = (0.1, -0.5, 0.0)
HIGH: Final = (0.7, 0.5, 0.7)
GRIPPER_MAX: Final = 0.08
LAG_S: Final = 0.08
"""Time constant of all motions."""
TOP_SPEED: Final = 0.5
"""Metres a second."""
ARRIVED_M: Final = 1e-3

Told: TypeAlias = Literal["send", "hold", "stop", "clear", "close"]


@dataclass(frozen=True, slots=True)
class Heard:
    """What the side was told, and when by its clock."""

    t: float
    told: Told


class SimpleSide:
    """A `RobotSide` without a robot."""

    def __init__(
        self, robot: str = "simple", clock: Callable[[], float] = time.monotonic, kept: int = 10_000
    ) -> None:
        """Stand at `HOME`, hand down, gripper open; `heard` keeps the last `kept` entries."""
        self.heard: deque[Heard] = deque(maxlen=kept)
        self.targets: deque[PoseTarget] = deque(maxlen=kept)
        self._clock, self._t = clock, clock()
        self._pos = np.array(HOME)
        self._quat: Array = np.array([1.0, 0.0, 0.0, 0.0])
        self._opening, self._closing = GRIPPER_MAX, 0.0
        self._target: PoseTarget | None = None
        self._mode: ArmMode = "idle"
        self._facts = ArmFacts(
            robot=robot,
            model="simple",
            joints=("x", "y", "z", "rx", "ry", "rz"),
            joint_low=(*LOW, -math.pi, -math.pi, -math.pi),
            joint_high=(*HIGH, math.pi, math.pi, math.pi),
            gripper_max=GRIPPER_MAX,
            workspace_low=LOW,
            workspace_high=HIGH,
            versions={"simple": "1"},
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the present reading."""
        self._advance()
        return ArmReading(
            t=self._t,
            joint_pos=read_only([*self._pos, *rotation_vector(self._quat)]),
            ee_pos=read_only(self._pos),
            ee_quat=read_only(self._quat),
            gripper_opening=self._opening,
            gripper_velocity=self._closing,
            mode=self._mode,
        )

    def send(self, target: ArmTarget) -> None:
        """Begin to go to `target`.

        Raises:
            SpecMismatch: it is no pose.
        """
        if not isinstance(target, PoseTarget):
            raise SpecMismatch("the simple arm takes pose targets")
        self._advance()
        self._heard("send")
        if self._mode != "stopped":
            self.targets.append(target)
            self._target, self._mode = target, "moving"

    def hold(self) -> None:
        """Keep the present place."""
        self._still("hold", "holding")

    def stop(self) -> None:
        """Keep the present place until `clear`."""
        self._still("stop", "stopped")

    def clear(self) -> None:
        """Take targets again."""
        self._heard("clear")
        self._mode = "holding"

    def close(self) -> None:
        """Keep the present place."""
        self._still("close", self._mode)

    def _still(self, told: Told, mode: ArmMode) -> None:
        self._advance()
        if self._target is not None or self._mode != mode:
            self._heard(told)  # once for each change: holding is said in every turn
        self._target = None
        self._mode = mode if self._mode != "stopped" else "stopped"

    def _heard(self, told: Told) -> None:
        self.heard.append(Heard(self._clock(), told))

    def _advance(self) -> None:
        now = self._clock()
        dt, self._t = max(0.0, now - self._t), now
        target, before = self._target, self._opening
        if target is None or dt == 0.0:
            self._closing = 0.0 if target is None else self._closing
            return
        share = 1.0 - math.exp(-dt / LAG_S)
        way: Array = (target.ee_pos - self._pos) * share
        length = float(np.linalg.norm(way))
        way *= min(1.0, TOP_SPEED * dt / max(length, 1e-12))
        self._pos = self._pos + way
        left = product(target.ee_quat, self._quat * np.array([-1.0, -1.0, -1.0, 1.0]))
        self._quat = product(rotation(share * rotation_vector(left)), self._quat)
        self._opening += share * (target.gripper_opening - self._opening)
        self._closing = (self._opening - before) / dt
