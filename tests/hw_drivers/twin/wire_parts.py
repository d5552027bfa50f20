"""Both wires with the twin at their end, in time that passes when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.hw_drivers.arm_parts import until
from tests.hw_drivers.test_deoxys_session import open_session
from zetta.hw_drivers.arm import ArmReading
from zetta.hw_drivers.deoxys.messages import Controller
from zetta.hw_drivers.deoxys.robot_side import DeoxysRobotSide
from zetta.hw_drivers.deoxys.session import DeoxysSession
from zetta.hw_drivers.frames import product, rotation_vector
from zetta.hw_drivers.lekiwi.host import HOST_HZ, LekiwiHost
from zetta.hw_drivers.lekiwi.session import LekiwiSession
from zetta.hw_drivers.twin.franka_body import TwinFranka
from zetta.hw_drivers.twin.lekiwi_body import TwinLekiwi
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.core import Array

TURN_S = 2.0**-7
TICK_S = 2.0**-4
"""Exact in binary, so that every tick has as many turns."""
WAIT_MS = 20_000


@dataclass
class FrankaWire:
    """A session of ours, the robot's side of deoxys, the twin."""

    world: TwinWorld

    def __post_init__(self) -> None:
        self.body = TwinFranka(self.world)
        self.robot = DeoxysRobotSide(self.body, tick_s=TICK_S)
        self.session: DeoxysSession = open_session(self.robot)
        self.session._tick_s = 0.001  # what it waits between two controllers
        self.robot.follow(self.session.command_endpoint, self.session.gripper_endpoint)
        self.now = 1.0
        out, fingers = self.session._out, self.session._fingers_out
        self.passes(
            lambda: (
                self.session._states.newest is not None
                and self.session._gripper_states.newest is not None
                and out.heard
                and fingers.heard
            ),
            "both ends to know each other",
        )
        self.session.connect(10.0)

    def lets(self, seconds: float) -> ArmReading:
        """Let time pass, and the session see how it is then."""
        for _ in range(round(seconds / TURN_S)):
            self.now += TURN_S
            self.robot.turn(self.now)
        frame = self.body.state().frame
        self.session._states.wait(lambda seen: seen.value.frame >= frame - 2, 20.0)
        return self.world.reading(0.0)

    def use(self, controller: Controller) -> None:
        """Choose a controller, and let everything that was sent for it arrive."""
        self.session.use(controller)
        refused = len(self.robot.refused)

        def last_one_came() -> bool:
            self.session._out.send(b"\xff")  # a queue that is full drops it
            return len(self.robot.refused) > refused

        self.passes(last_one_came, "the last of the idle commands")
        self.lets(4 * TICK_S)
        self.robot.refused = []

    def passes(self, true: Callable[[], bool], what: str) -> None:
        def again() -> bool:
            self.now += TURN_S
            self.robot.turn(self.now)
            return true()

        until(again, what)

    def ticks(
        self,
        send: Callable[[], None],
        count: int = 1,
        there: Callable[[ArmReading], bool] = lambda _: False,
    ) -> ArmReading:
        """Send at each of so many ticks of the robot's side, as a loop does, or until `there`."""
        for _ in range(count):
            send()
            assert self.robot._commands is not None
            assert self.robot._commands.poll(WAIT_MS)
            seen = self.lets(TICK_S)
            if there(seen):
                break
        return seen

    def grips(self, seconds: float = 1.5) -> ArmReading:
        """Let the fingers do what they were just told."""
        assert self.robot._gripper_commands is not None
        assert self.robot._gripper_commands.poll(WAIT_MS)
        seen = self.lets(seconds)
        self.session._fingers_at = -1.0  # in this time the gripper has rested
        return seen

    def close(self) -> None:
        self.session.close()
        self.robot.close()


@dataclass
class LekiwiWire:
    """A session of ours, LeRobot's host, the twin."""

    world: TwinWorld

    def __post_init__(self) -> None:
        self.body = TwinLekiwi(self.world)
        self.host = LekiwiHost(self.body)
        self.session = LekiwiSession(
            self.host.command_endpoint, self.host.observation_endpoint, max_age_s=20.0
        )
        self.now = 1.0
        until(self._known, "both ends to know each other")
        self.session.connect(10.0)

    def lets(self, seconds: float) -> ArmReading:
        """Let time pass, and the session see how it is then."""
        for _ in range(max(1, round(seconds * HOST_HZ))):
            self.now += 1.0 / HOST_HZ
            self.host.turn(self.now)
        here = self.body.row()

        def seen() -> bool:
            newest = self.session._inbox.newest
            return newest is not None and bool(
                np.allclose(newest.value.row.joints, here.joints, atol=1e-9)
            )

        until(seen, "the last observation")
        return self.world.reading(0.0)

    def ticks(self, send: Callable[[], None], count: int = 1) -> ArmReading:
        """Send before each of so many turns of the host."""
        for _ in range(count):
            send()
            assert self.host._commands.poll(WAIT_MS)
            seen = self.lets(0.0)
        return seen

    def close(self) -> None:
        self.session.close()
        self.host.close()

    def _known(self) -> bool:
        self.now += 1.0 / HOST_HZ
        self.host.turn(self.now)
        return self.session._inbox.newest is not None and bool(self.session._out.poll(0, 2))


def apart(seen: ArmReading, pos: Array, quat: Array) -> tuple[float, float]:
    """Return how far the hand is from a pose, metres and radians."""
    back = seen.ee_quat * np.array((-1.0, -1.0, -1.0, 1.0))
    turn = rotation_vector(product(np.asarray(quat), back))
    return float(np.linalg.norm(seen.ee_pos - pos)), float(np.linalg.norm(turn))
