"""A robot of LeRobot, such as an SO-101 on a serial line, as the arm server takes it: joints in.

LeRobot's calls wait for the serial line, and `RobotSide` may never wait. One thread therefore owns
the robot: it reads, takes the newest target and sends the next bit of the way there, at a rate of
its own. What the server calls looks at the newest reading only. A line that hangs or fails shows as
a reading that grows old, which is an error after `max_age_s`, never as an old reading.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmMode, ArmReading, ArmTarget, JointTarget
from zetta.hw_drivers.cameras import Frame, NewestFrame
from zetta.hw_drivers.lerobot_rows import LerobotArm, LerobotRobot, LerobotRow, Rows
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch

SERVER_GONE_S: Final = 0.5
"""When nobody has called for so long, nobody watches over the arm any more, and it holds."""
CLOSE_WITHIN_S: Final = 2.0


class LerobotSide:
    """A `RobotSide` of one robot of LeRobot."""

    def __init__(
        self,
        robot: LerobotRobot,
        arm: LerobotArm,
        versions: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect in the thread that owns the robot from now on, and wait for the first reading.

        LeRobot switches the torque off for a moment when it connects: support the arm.

        Args:
            robot: made and not connected.
            arm: what the robot does not tell.
            versions: written into every result.
            clock: stamps the readings.

        Raises:
            ConfigError: it is driven by more than positions, or was not calibrated.
            InfraError: it cannot be reached, or does not report.
        """
        self._robot, self._arm, self._clock = robot, arm, clock
        self._rows = Rows(robot, arm)
        self._lock = threading.Lock()
        self._seen: LerobotRow | None = None
        self._before: LerobotRow | None = None
        self._mode: ArmMode = "idle"
        self._goal: LerobotRow | None = None
        self._sent: LerobotRow | None = None
        self._trouble = ""
        self._called_at = clock()
        self._over, self._ready = threading.Event(), threading.Event()
        self._refused: ConfigError | None = None
        self.failed = 0
        """Turns in which the robot did not do what it was asked."""
        self.clamped = 0
        """Commands that LeRobot shortened (`max_relative_target`)."""
        self.pictures: Mapping[str, NewestFrame] = {
            camera: NewestFrame(camera, clock) for camera in self._rows.cameras
        }
        """The newest picture of each of its cameras; its `latest` refuses old ones."""
        self._thread = threading.Thread(target=self._run, name="lerobot arm", daemon=True)
        self._thread.start()
        self._await_first()
        self._facts = ArmFacts(
            robot=arm.robot,
            model=f"LeRobot {robot.name}",
            joints=self._rows.joints,
            joint_low=(),
            joint_high=(),
            gripper_max=arm.gripper_max_m,
            accepts=("joints",),
            versions=dict(versions or {}),
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the latest reading; where the hand is, is not known.

        Raises:
            InfraError: it is older than `max_age_s`; the message says what the robot said.
        """
        with self._lock:
            self._called_at = self._clock()
            seen, before, mode = self._fresh(), self._before, self._mode
        passed = seen.t - before.t if before is not None else 0.0
        travel = seen.share - before.share if before is not None else 0.0
        return ArmReading(
            seen.t,
            read_only(seen.joints),
            read_only([math.nan] * 3),
            read_only([math.nan] * 4),
            min(1.0, max(0.0, seen.share)) * self._arm.gripper_max_m,
            travel * self._arm.gripper_max_m / passed if passed > 0.0 else 0.0,
            mode,
        )

    def send(self, target: ArmTarget) -> None:
        """Begin to go to `target`, at most `max_speed_deg_s` fast.

        Raises:
            SpecMismatch: it is no joint target.
            InfraError: the robot does not report; nothing is moved blindly.
        """
        if not isinstance(target, JointTarget):
            raise SpecMismatch("this arm takes joint targets; declare its kinematics for poses")
        with self._lock:
            now = self._called_at = self._clock()
            self._fresh()
            if self._mode == "stopped":
                return
            share = target.gripper_opening / self._arm.gripper_max_m
            self._goal = LerobotRow(now, np.array(target.joint_pos), share)
            self._mode = "moving"

    def hold(self) -> None:
        """Keep the place that was sent last; an arm that was never moved is left alone."""
        with self._lock:
            self._called_at = self._clock()
            self._keep()

    def stop(self) -> None:
        """Stay where the arm is seen, until `clear`."""
        with self._lock:
            self._called_at = self._clock()
            if self._mode != "stopped":
                moved = self._sent is not None or self._goal is not None
                self._mode, self._goal = "stopped", None
                # A servo stops at once where it is, not where it was sent.
                self._sent = self._seen if moved else None

    def clear(self) -> None:
        """Take targets again."""
        with self._lock:
            self._mode = "holding"

    def close(self) -> None:
        """End the thread, which lets go of the robot last; calling it again does nothing."""
        self._over.set()
        self._thread.join(CLOSE_WITHIN_S)  # a line that hangs must not hang whoever closes

    # ------------------------------------------------------------------------ our thread

    def _fresh(self) -> LerobotRow:
        age = math.inf if self._seen is None else self._clock() - self._seen.t
        if self._seen is None or age > self._arm.max_age_s:
            why = f"; it says: {self._trouble}" if self._trouble else "; does its line hang?"
            raise InfraError(
                f"the last reading of {self._arm.robot} is {age:.2f} s old, at most "
                f"{self._arm.max_age_s:g} s is allowed{why}"
            )
        return self._seen

    def _keep(self) -> None:
        if self._mode == "moving":
            self._mode, self._goal = "holding", None

    def _await_first(self) -> None:
        self._ready.wait(self._arm.connect_s)
        if self._seen is not None:
            return
        self._over.set()
        if self._refused is not None:
            raise self._refused
        said = self._trouble or f"nothing came within {self._arm.connect_s:g} s"
        raise InfraError(f"the arm {self._arm.robot} does not report: {said}")

    # ----------------------------------------------------------------- the robot's thread

    def _run(self) -> None:
        try:
            self._robot.connect(calibrate=False)  # calibrating moves it and asks a person
            if not self._robot.is_calibrated:
                self._refused = ConfigError(
                    f"the arm {self._arm.robot} was not calibrated; run lerobot-calibrate with the "
                    "same id, and look at the arm afterwards"
                )
            due = self._clock()
            while self._refused is None and not self._over.wait(max(0.0, due - self._clock())):
                due = max(due + 1.0 / self._arm.read_hz, self._clock())
                self._try_turn()
        except Exception as error:  # boundary: their code, at its connection
            self._fail(error)
        finally:
            self._ready.set()
            with contextlib.suppress(Exception):  # boundary: it may be gone already
                self._robot.disconnect()

    def _try_turn(self) -> None:
        try:
            self._turn()
        except Exception as error:  # boundary: their code; said by the reading that grows old
            self._fail(error)
        else:
            self._ready.set()

    def _fail(self, error: Exception) -> None:
        said = str(error) if isinstance(error, SpecMismatch) else f"{type(error).__name__}: {error}"
        with self._lock:
            self._trouble, self.failed = said, self.failed + 1
        for picture in self.pictures.values():
            picture.fail(said)

    def _turn(self) -> None:
        began = self._clock()
        raw = self._robot.get_observation()
        row = self._rows.row(raw, began)
        for camera, picture in self.pictures.items():
            picture.put(Frame(self._rows.image(raw, camera), began))
        with self._lock:
            self._before, self._seen, self._trouble = self._seen, row, ""
            if began - self._called_at > SERVER_GONE_S:
                self._keep()
            wanted = self._next(row)
        if wanted is None:
            return
        action = self._rows.action(wanted)
        taken = self._robot.send_action(action)
        self.clamped += any(abs(taken.get(key, at) - at) > 1e-3 for key, at in action.items())

    def _next(self, seen: LerobotRow) -> LerobotRow | None:
        """Return what is sent in this turn: a bit of the way, never far from where the arm is."""
        if self._mode == "idle":
            return None
        sent = self._sent or (seen if self._goal is not None else None)
        if self._goal is not None and sent is not None:
            reach = math.radians(self._arm.max_speed_deg_s) / self._arm.read_hz
            lead = math.radians(self._arm.max_step_deg)
            joints = sent.joints + np.clip(self._goal.joints - sent.joints, -reach, reach)
            joints = seen.joints + np.clip(joints - seen.joints, -lead, lead)
            sent = LerobotRow(seen.t, joints, self._goal.share)
        self._sent = sent
        return sent
