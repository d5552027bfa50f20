"""The client's end of deoxys: commands out, states in, and a stop that only a person ends.

What the published client does and this one does not:

- It opens the gripper whenever the controller changes. We never send that; and because a change
  leaves the arm uncontrolled for a second, it is refused while something is held.
- It sends a gripper command at every tick. We send changes only, `GRIPPER_REST_S` apart.
- It does not look at errors. Here a reflex, a user stop or hand guiding stops the session until
  `recovered_by`, even when the robot side has meanwhile recovered by itself.

Never sent while something is held: `Stop` and `Homing`. The published gripper program answers a
stop with a homing, and a homing opens the fingers.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import zmq

from zetta.hw_drivers.deoxys.arm_codec import command_bytes
from zetta.hw_drivers.deoxys.commands_out import CommandsOut
from zetta.hw_drivers.deoxys.conventions import INTERPOLATORS, mode_of, pose_of, stop_reason
from zetta.hw_drivers.deoxys.endpoints import DeoxysEndpoints
from zetta.hw_drivers.deoxys.gripper_codec import gripper_bytes, read_gripper_state
from zetta.hw_drivers.deoxys.messages import (
    ArmCommand,
    Controller,
    Grasp,
    GripperCommand,
    GripperControl,
    GripperState,
    Homing,
    Motion,
    Move,
    NoControl,
    RobotState,
    Smoothing,
    Stop,
)
from zetta.hw_drivers.deoxys.parsing import MAX_BYTES
from zetta.hw_drivers.deoxys.reading import DeoxysReading
from zetta.hw_drivers.deoxys.state_codec import read_state
from zetta.hw_drivers.links import Frames, Inbox, Socket, open_socket
from zetta.runtime.core import read_only
from zetta.runtime.errors import ConfigError, SafetyStop, SpecMismatch, Timeout
from zetta.runtime.transport import check_destination

POLICY_HZ: Final = 20.0
IDLE_TICKS: Final = 20
"""Ticks without control between two controllers: 1 s."""
SILENCE_S: Final = 1.0
"""The robot side ends its control after 20 ticks without a command."""
GRIPPER_REST_S: Final = 0.2
"""Between two changes of the gripper; a change that comes sooner is sent when this has passed."""
ARRIVED_M: Final = 0.003
EMPTY_M: Final = 0.002
"""Fingers that closed to this hold nothing."""


class DeoxysSession:
    """Drives one Franka arm; used by one thread."""

    def __init__(
        self,
        endpoints: DeoxysEndpoints,
        *,
        private_network: bool = False,
        max_age_s: float = 0.1,
        tick_s: float = 1.0 / POLICY_HZ,
    ) -> None:
        """Bind the command sockets and begin to listen.

        Args:
            endpoints: where the four sockets are.
            private_network: only the robot is on the network of the bound addresses.
            max_age_s: a state older than this is no state, and nothing is commanded on it.
            tick_s: one tick of the robot side's loop.

        Raises:
            ConfigError: an address that may not be bound, or is none.
            InfraError: an address is taken.
        """
        check_destination(endpoints.state)
        check_destination(endpoints.gripper_state)
        self._max_age_s, self._tick_s = max_age_s, tick_s
        self._stopped = ""
        self._controller = Controller.NO_CONTROL
        self._last_sent: float | None = None
        self._ended_at: float | None = None
        self._fingers: GripperCommand | None = None
        self._wanted: GripperCommand | None = None
        self._fingers_at = -GRIPPER_REST_S
        self._pause = threading.Event()  # never set: a wait that can be ended by nobody but time
        self._context: zmq.Context[Socket] = zmq.Context()
        try:
            given = (endpoints.command, "arm", private_network)
            self._out = CommandsOut(self._context, *given)
            given = (endpoints.gripper_command, "gripper", private_network)
            self._fingers_out = CommandsOut(self._context, *given)
        except BaseException:
            self._context.destroy(0)
            raise
        self._states = Inbox(
            self._subscribe(endpoints.state), f"the arm at {endpoints.state}", self._read_state
        )
        self._gripper_states = Inbox(
            self._subscribe(endpoints.gripper_state),
            f"the gripper at {endpoints.gripper_state}",
            _read_gripper_state,
        )

    # ------------------------------------------------------------------ facts

    @property
    def command_endpoint(self) -> str:
        """Where the robot side has to subscribe for arm commands."""
        return self._out.endpoint

    @property
    def gripper_endpoint(self) -> str:
        """Where the robot side has to subscribe for gripper commands."""
        return self._fingers_out.endpoint

    @property
    def stopped(self) -> str:
        """Why the session is stopped; empty while it can be driven."""
        return self._stopped

    @property
    def controller(self) -> Controller:
        """The controller that was chosen with `use`."""
        return self._controller

    @property
    def silent(self) -> bool:
        """Whether the robot side has ended its control, because nothing was sent for a second."""
        return self._last_sent is None or time.monotonic() - self._last_sent > SILENCE_S

    @property
    def refused(self) -> int:
        """Messages of the robot side that could not be read."""
        return self._states.refused[0] + self._gripper_states.refused[0]

    @property
    def held(self) -> bool:
        """Whether something is, or may be, between the fingers."""
        fingers = self._gripper_states.newest
        if fingers is None:
            return True  # nobody knows
        grasping = isinstance(self._fingers, Grasp) and fingers.value.width > EMPTY_M
        return fingers.value.is_grasped or grasping

    # ------------------------------------------------------------------ the session

    def connect(self, within_s: float = 5.0) -> DeoxysReading:
        """Wait until both programs of the robot side listen and report.

        Raises:
            Timeout: one of them did not; the message names its endpoint.
        """
        deadline = time.monotonic() + within_s

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        self._states.wait(bool, left())  # any at all
        self._gripper_states.wait(bool, left())
        self._out.await_listener(left())
        self._fingers_out.await_listener(left())
        return self.state()

    def state(self, max_age_s: float | None = None) -> DeoxysReading:
        """Return the last reading.

        Raises:
            Timeout: it is older than `max_age_s`, or there is none.
        """
        arm = self._states.fresh(self._max_age_s if max_age_s is None else max_age_s)
        # The gripper reports more slowly, and its loop rests while a command is carried out.
        fingers = self._gripper_states.fresh(float("inf"))
        position, quat = pose_of(arm.value.O_T_EE)
        return DeoxysReading(
            position,
            quat,
            read_only(arm.value.q),
            read_only(arm.value.dq),
            max(0.0, fingers.value.width),
            fingers.value.max_width,
            fingers.value.is_grasped,
            mode_of(arm.value.mode),
            self._stopped,
            arm.at,
            time.monotonic() - arm.at,
            arm.rate_hz,
            arm.value.success_rate,
        )

    def use(self, controller: Controller) -> None:
        """Choose the controller of the next commands; a change takes 1 s without control.

        A second after `stop` nothing is controlled any more, and the choice takes no time.

        Raises:
            SafetyStop: something is held, or the session is stopped.
            ConfigError: a controller that the robot side does not have.
            Timeout: there is no fresh state.
            ConnectionLost: nobody listens.
        """
        if controller not in INTERPOLATORS:
            raise ConfigError(f"the robot side has no {controller.name}; use JOINT_IMPEDANCE")
        if controller is self._controller:
            return
        self._check_drivable()
        # The first choice changes nothing that is running; a session may begin with a full hand.
        if self._controller is not Controller.NO_CONTROL and self.held:
            raise SafetyStop(
                f"the gripper holds something and a change from {self._controller.name} to "
                f"{controller.name} leaves the arm a second without control; put it down first"
            )
        idle = command_bytes(ArmCommand(Controller.NO_CONTROL, NoControl()))
        ended = self._ended_at is not None and time.monotonic() - self._ended_at > SILENCE_S
        for _ in range(0 if ended else IDLE_TICKS):
            self._check_drivable()
            self._out.send(idle)
            self._pause.wait(self._tick_s)
        self._controller, self._last_sent, self._ended_at = controller, None, None

    def move(self, motion: Motion, time_fraction: float = 0.3) -> None:
        """Send one command to the chosen controller and return at once.

        Raises:
            SafetyStop: the session is stopped.
            ConfigError: no controller was chosen.
            SpecMismatch: the chosen controller is not moved by that.
            Timeout: there is no fresh state, and nothing is moved blindly.
            ConnectionLost: nobody listens.
        """
        self._check_drivable()
        if self._controller is Controller.NO_CONTROL:
            raise ConfigError("no controller was chosen; call use(Controller.OSC_POSE) first")
        raw = command_bytes(
            ArmCommand(
                self._controller,
                motion,
                INTERPOLATORS[self._controller],
                time_fraction,
                smoothing=Smoothing(),
            )
        )
        self._states.fresh(self._max_age_s)
        self._out.send(raw)
        self._last_sent = time.monotonic()
        self._send_fingers()

    def gripper(self, command: GripperCommand) -> None:
        """Command the fingers; the same command again sends nothing.

        Raises:
            SafetyStop: the session is stopped, or the command would drop what is held.
            ConnectionLost: nobody listens.
        """
        gripper_bytes(GripperControl(command))  # refuse what cannot be sent before anything changes
        self._check_drivable()
        if isinstance(command, Stop | Homing) and self.held:
            raise SafetyStop(
                f"the gripper may hold something and answers {type(command).__name__} by opening; "
                "put it down first"
            )
        self._wanted = None if command == self._fingers else command
        self._send_fingers()

    @property
    def gripper_arrived(self) -> bool:
        """Whether the fingers are where the last command wanted them, as far as they report."""
        newest = self._gripper_states.newest
        if newest is None or self._wanted is not None:
            return False
        match self._fingers:
            case Move(width):
                return abs(newest.value.width - width) <= ARRIVED_M
            case Grasp():
                return newest.value.is_grasped
        return newest.at > self._fingers_at

    def stop(self, reason: str) -> None:
        """End the arm's control, which then holds itself; the fingers keep what they hold.

        The session stays stopped until `recovered_by`.

        Raises:
            ConnectionLost: nobody listens; the robot side ends its control by itself after 1 s.
        """
        self._stopped = self._stopped or reason or "no reason was given"
        self._wanted = None
        self._controller = Controller.NO_CONTROL
        self._out.send(
            command_bytes(ArmCommand(Controller.NO_CONTROL, NoControl(), termination=True))
        )
        self._last_sent, self._ended_at = None, time.monotonic()

    def recovered_by(self, operator: str) -> None:
        """Take note that a person has looked at the arm and cleared what stopped it.

        Raises:
            ConfigError: nobody is named.
            SafetyStop: the arm still reports what stopped it.
            Timeout: there is no fresh state.
        """
        if not operator.strip():
            raise ConfigError("a stop is cleared by a person; say who")
        before, self._stopped = self._stopped, ""
        self._controller = Controller.NO_CONTROL
        try:
            arm = self._states.fresh(self._max_age_s)
        except Timeout:
            self._stopped = before
            raise
        still = stop_reason(arm.value.mode, arm.value.errors)
        if still:
            self._stopped = before or still
            raise SafetyStop(f"the arm still reports {still}; recover it at the robot first")

    def close(self) -> None:
        """Stop listening and free the sockets; the arm's control ends by silence. Idempotent."""
        self._states.close()
        self._gripper_states.close()
        self._out.close()
        self._fingers_out.close()
        if not self._context.closed:
            self._context.term()

    # ------------------------------------------------------------------ inside

    def _check_drivable(self) -> None:
        if self._stopped:
            raise SafetyStop(
                f"the arm is stopped: {self._stopped}; a person has to look at it and then call "
                "recovered_by(NAME)"
            )

    def _send_fingers(self) -> None:
        """Send what is wanted of the fingers, unless the last change was a moment ago."""
        now = time.monotonic()
        if self._wanted is None or now - self._fingers_at < GRIPPER_REST_S:
            return
        self._fingers_out.send(gripper_bytes(GripperControl(self._wanted)))
        self._fingers, self._wanted, self._fingers_at = self._wanted, None, now

    def _subscribe(self, endpoint: str) -> Socket:
        socket = open_socket(self._context, zmq.SUB, MAX_BYTES, 8)
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 1000
        socket.subscribe(b"")
        socket.connect(endpoint)
        return socket

    def _read_state(self, frames: Frames) -> RobotState:
        """Read a state in the receiving thread, where no reflex is missed between two calls."""
        state = read_state(_only(frames))
        pose_of(state.O_T_EE)
        reason = stop_reason(state.mode, state.errors)
        if reason:
            self._stopped = self._stopped or reason
        return state


def _read_gripper_state(frames: Frames) -> GripperState:
    return read_gripper_state(_only(frames))


def _only(frames: Frames) -> bytes:
    if len(frames) != 1:
        raise SpecMismatch(f"got {len(frames)} frames, expected one")
    return frames[0]
