"""A LeKiwi, or an SO-100 or SO-101 behind such a host, as the arm server takes it: joints in.

The wire tells joints and no pose of the hand, so the pose of a reading is not a number here;
`KinematicSide` fills it in. The host has a watchdog for its base only: when commands cease the arm
goes on to its last goal. No goal therefore lies further than a step from where the arm is.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmMode, ArmReading, ArmTarget, JointTarget
from zetta.hw_drivers.lekiwi.messages import JOINTS, LekiwiRow
from zetta.hw_drivers.lekiwi.session import LekiwiReading, LekiwiSession
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, SpecMismatch

AGAIN_S: Final = 1.0 / 30.0
"""Between two of the same commands: the host takes no more."""


@dataclass(frozen=True, slots=True)
class LekiwiArm:
    """What the wire does not tell."""

    robot: str = "lekiwi"
    gripper_max_m: float = 0.07
    """Opening of the open gripper, metres; the wire knows its share only. Measure yours."""
    max_step_deg: float = 10.0
    """No joint is sent further than this from where it is."""

    def __post_init__(self) -> None:
        if not 0.0 < self.gripper_max_m <= 0.5:
            raise ConfigError(f"a gripper opens 0 to 0.5 m, got {self.gripper_max_m:g}")
        if not 0.0 < self.max_step_deg <= 45.0:
            raise ConfigError(f"max_step_deg lies above 0 and up to 45, got {self.max_step_deg:g}")


class LekiwiSide:
    """A `RobotSide` of a connected session; its clock is `time.monotonic`. The base stands still.

    Joints are degrees on the wire; a host that sends anything else cannot be told from it.
    """

    def __init__(self, session: LekiwiSession, arm: LekiwiArm) -> None:
        """Take what the host sent last; nothing moves.

        Raises:
            Timeout: it sends nothing.
        """
        self._session, self._arm = session, arm
        self._seen = self._before = session.state()
        self._mode: ArmMode = "idle"
        self._place: LekiwiRow | None = None
        self._told_at = -math.inf
        self._facts = ArmFacts(
            robot=arm.robot,
            model="LeKiwi host",
            joints=JOINTS,
            joint_low=(),  # calibrations differ, and the wire tells none
            joint_high=(),
            gripper_max=arm.gripper_max_m,
            accepts=("joints",),
            versions={"wire": "lekiwi"},
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the latest reading; where the hand is, is not known.

        Raises:
            Timeout: the host does not report.
        """
        seen = self._session.state()
        if seen.at > self._seen.at:  # it is looked at more often than it comes
            self._before, self._seen = self._seen, seen
        before = self._before
        passed = seen.at - before.at
        opening = self._opening(seen)
        return ArmReading(
            seen.at,
            read_only(seen.observation.row.joints),
            read_only([math.nan] * 3),
            read_only([math.nan] * 4),
            opening,
            (opening - self._opening(before)) / passed if passed > 0.0 else 0.0,
            self._mode,
        )

    def send(self, target: ArmTarget) -> None:
        """Go at most a step towards `target`.

        Raises:
            SpecMismatch: it is no joint target.
            InfraError: the host does not report, or takes nothing.
        """
        if not isinstance(target, JointTarget):
            raise SpecMismatch("a LeKiwi takes joint targets; declare its kinematics for poses")
        if self._mode == "stopped":
            return
        now = np.array(self._session.state().observation.row.joints)
        step = math.radians(self._arm.max_step_deg)
        joints = now + np.clip(target.joint_pos - now, -step, step)
        self._session.send(
            LekiwiRow(tuple(joints.tolist()), target.gripper_opening / self._arm.gripper_max_m)
        )
        self._mode, self._place = "moving", None

    def hold(self) -> None:
        """Keep the place at which it was first told to; an arm that was never moved is left alone.

        Raises:
            InfraError: the host takes nothing; it stops its base by itself after 0.5 s.
        """
        if self._mode == "moving":
            self._mode = "holding"
        if self._mode == "holding":
            self._keep()

    def stop(self) -> None:
        """Keep the present place until `clear`, whatever else is asked.

        Raises:
            InfraError: the host takes nothing.
        """
        if self._mode != "stopped":
            self._mode, self._place = "stopped", None
        self._keep()

    def clear(self) -> None:
        """Take targets again."""
        self._mode = "holding"

    def close(self) -> None:
        """Free the sockets; the arm stays at its last goal. Calling it again does nothing."""
        self._session.close()

    def _keep(self) -> None:
        """Send the place again and again, the one that was seen first: a sagging arm drifts."""
        now = time.monotonic()
        if self._place is None:
            seen = self._session.state(math.inf).observation.row
            self._place = LekiwiRow(seen.joints, min(1.0, max(0.0, seen.gripper)))
            self._told_at = -math.inf
        if now - self._told_at >= AGAIN_S:
            self._session.keep(self._place)
            self._told_at = now

    def _opening(self, seen: LekiwiReading) -> float:
        share = min(1.0, max(0.0, seen.observation.row.gripper))  # calibrations are not exact
        return share * self._arm.gripper_max_m
