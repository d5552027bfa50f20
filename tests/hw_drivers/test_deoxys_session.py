"""Whole sessions over real sockets, against the robot's side that is part of the product."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pytest
import zmq

from zetta.hw_drivers.deoxys import session as session_module
from zetta.hw_drivers.deoxys.conventions import delta_goal, gripper_of, joint_goal
from zetta.hw_drivers.deoxys.endpoints import DeoxysEndpoints, deoxys_endpoints
from zetta.hw_drivers.deoxys.messages import (
    Controller,
    Grasp,
    Homing,
    JointImpedance,
    Move,
    Osc,
    RobotMode,
    Stop,
)
from zetta.hw_drivers.deoxys.point_franka import PointFranka
from zetta.hw_drivers.deoxys.reading import DeoxysReading
from zetta.hw_drivers.deoxys.robot_side import DeoxysRobotSide
from zetta.hw_drivers.deoxys.session import DeoxysSession
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
    Timeout,
)

TICK_S = 0.005
"""Ten times as quick as in reality, so that a second of silence is a tenth."""
WITHIN_S = 10.0
FORWARD = delta_goal((0.5, 0, 0, 0, 0, 0))
Rig: TypeAlias = tuple[DeoxysSession, DeoxysRobotSide, PointFranka]


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, f"waited {WITHIN_S} s for {what}"
        time.sleep(0.002)


def open_session(side: DeoxysRobotSide, command: str = "", gripper: str = "") -> DeoxysSession:
    endpoints = DeoxysEndpoints(
        command or "tcp://127.0.0.1:*",
        side.state_endpoint,
        gripper or "tcp://127.0.0.1:*",
        side.gripper_state_endpoint,
    )
    # A loaded machine may be late; what is old is tested with its own session.
    return DeoxysSession(endpoints, max_age_s=5.0, tick_s=TICK_S)


@pytest.fixture
def rig() -> Iterator[Rig]:
    body = PointFranka()
    side = DeoxysRobotSide(body, tick_s=TICK_S)
    session = open_session(side)
    side.follow(session.command_endpoint, session.gripper_endpoint)
    side.start()
    try:
        session.connect(WITHIN_S)
        yield session, side, body
    finally:
        session.close()
        side.close()


def drive_until(session: DeoxysSession, there: Callable[[DeoxysReading], bool]) -> None:
    """Command at every tick, as a loop does."""

    def moved() -> bool:
        session.move(Osc(FORWARD))
        return there(session.state())

    until(moved, "the arm to arrive")


def test_a_whole_session_connects_moves_grips_and_stops(rig: Rig) -> None:
    session, side, body = rig
    start = session.state()
    assert start.mode == "idle"
    assert start.reason == ""
    assert np.allclose(start.ee_pos, (0.4, 0.0, 0.4))
    assert np.allclose(np.abs(start.ee_quat), (1, 0, 0, 0))
    assert start.gripper_opening == pytest.approx(0.08)
    session.use(Controller.OSC_POSE)
    drive_until(session, lambda seen: seen.ee_pos[0] > 0.42 and seen.mode == "moving")
    assert side.begun
    session.gripper(gripper_of(1.0))
    until(lambda: session.state().gripper_opening == 0.0, "the fingers to close")
    assert not session.state().holding
    session.stop("enough")
    until(lambda: not side.running, "the control to end")
    until(lambda: session.state().mode == "idle", "the arm to report it")
    assert session.state().reason == "enough"
    with pytest.raises(SafetyStop, match="enough"):
        session.move(Osc(FORWARD))
    session.recovered_by("Ada")
    session.use(Controller.OSC_POSE)
    before = side.begun
    session.move(Osc(FORWARD))
    until(lambda: side.begun > before, "the control to begin again")
    assert not side.refused
    assert session.refused == 0
    assert isinstance(body.fingers[-1], Grasp)


def test_rates_and_ages_are_measured_not_assumed(rig: Rig) -> None:
    session, _, _ = rig
    until(lambda: session.state().rate_hz > 0.0, "two states")
    seen = session.state()
    assert 0.0 <= seen.age_s <= 5.0
    assert seen.at <= time.monotonic()


def test_silence_ends_the_control_and_a_command_begins_it_again(rig: Rig) -> None:
    session, side, body = rig
    session.use(Controller.OSC_POSE)
    assert session.silent
    session.move(Osc(FORWARD))
    assert not session.silent
    until(lambda: side.begun == 1, "the control to begin")
    until(lambda: side.ended == 1, "the robot side to notice the silence")
    where = body.position.copy()
    until(lambda: session.state().mode == "idle", "the arm to report it")
    assert np.array_equal(body.position, where)
    session.move(Osc(FORWARD))
    until(lambda: side.begun == 2, "the control to begin again")


def test_a_reflex_stops_the_session_until_a_person_has_looked(rig: Rig) -> None:
    session, _, body = rig
    session.use(Controller.OSC_POSE)
    session.move(Osc(FORWARD))
    body.reflex("joint_reflex")
    until(lambda: bool(session.stopped), "the reflex to be reported")
    with pytest.raises(SafetyStop, match=r"joint reflex .*recovered_by"):
        session.move(Osc(FORWARD))
    with pytest.raises(SafetyStop):
        session.gripper(Grasp())
    with pytest.raises(SafetyStop, match="still reports"):
        session.recovered_by("Ada")
    body.recover()
    until(lambda: session.state().mode == "idle", "the arm to be recovered")
    # The published robot side recovers by itself when it is restarted; that clears nothing here.
    with pytest.raises(SafetyStop):
        session.use(Controller.JOINT_IMPEDANCE)
    with pytest.raises(ConfigError, match="say who"):
        session.recovered_by(" ")
    session.recovered_by("Ada")
    session.use(Controller.OSC_POSE)
    drive_until(session, lambda seen: seen.mode == "moving")


def test_a_second_after_a_stop_a_controller_is_chosen_without_a_pause(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, side, _ = rig
    session.use(Controller.OSC_POSE)
    session.move(Osc(FORWARD))
    until(lambda: side.begun == 1, "the control to begin")
    session.stop("enough")
    until(lambda: side.ended == 1, "the control to end")
    session.recovered_by("Ada")
    monkeypatch.setattr(session_module, "SILENCE_S", 0.0)
    monkeypatch.setattr(session, "_pause", None)  # nothing is waited for
    session.use(Controller.JOINT_IMPEDANCE)
    before = side.begun
    session.move(JointImpedance(joint_goal([0.0] * 7)))
    until(lambda: side.begun > before, "the control to begin again")


def test_the_stop_button_stops_the_session(rig: Rig) -> None:
    session, _, body = rig
    body.press_stop()
    until(lambda: "stop button" in session.stopped, "the stop button to be reported")
    with pytest.raises(SafetyStop, match="stop button"):
        session.use(Controller.OSC_POSE)


def test_a_change_of_controller_is_refused_while_something_is_held(rig: Rig) -> None:
    session, side, body = rig
    body.thing_m = 0.03
    session.use(Controller.OSC_POSE)
    session.gripper(gripper_of(1.0))
    until(lambda: session.state().holding, "the grasp")
    assert session.gripper_arrived
    with pytest.raises(SafetyStop, match="put it down first"):
        session.use(Controller.JOINT_IMPEDANCE)
    assert session.controller is Controller.OSC_POSE
    for dropping in (Stop(), Homing()):
        with pytest.raises(SafetyStop, match="by opening"):
            session.gripper(dropping)
    until(lambda: not session_rests(session), "the gripper's rest")
    session.gripper(Move(0.08))
    until(lambda: not session.state().holding and not session.held, "the release")
    session.use(Controller.JOINT_IMPEDANCE)
    before = side.begun
    target = body.q + 0.1
    session.move(JointImpedance(joint_goal(target.tolist())))
    until(lambda: side.begun > before, "the other controller")
    # What the published client sends here by itself, this one never does.
    assert body.fingers == [gripper_of(1.0), Move(0.08)]


def session_rests(session: DeoxysSession) -> bool:
    return time.monotonic() - session._fingers_at < session_module.GRIPPER_REST_S


def test_a_repeated_gripper_command_is_sent_once_and_a_quick_change_is_not_lost(
    rig: Rig,
) -> None:
    session, _, body = rig
    session.use(Controller.OSC_POSE)
    for _ in range(5):
        session.gripper(Move(0.02))
    session.gripper(Move(0.05))  # too soon: it goes out with a later command
    assert not session.gripper_arrived
    drive_until(session, lambda _: session.gripper_arrived)
    assert body.fingers == [Move(0.02), Move(0.05)]


def test_nothing_is_sent_without_a_controller_or_to_the_wrong_one(rig: Rig) -> None:
    session, _, body = rig
    with pytest.raises(ConfigError, match="call use"):
        session.move(Osc(FORWARD))
    with pytest.raises(ConfigError, match="TORQUE"):
        session.use(Controller.TORQUE)
    session.use(Controller.OSC_YAW)
    with pytest.raises(SpecMismatch, match="Osc"):
        session.move(JointImpedance(joint_goal([0.0] * 7)))
    assert body.commands == []


def test_another_client_can_take_over_where_the_first_one_was(rig: Rig) -> None:
    session, side, _ = rig
    command, gripper = session.command_endpoint, session.gripper_endpoint
    session.use(Controller.OSC_POSE)
    session.move(Osc(FORWARD))
    with pytest.raises(InfraError, match="another client"):
        open_session(side, command, gripper)
    session.close()
    session.close()
    second = open_session(side, command, gripper)
    try:
        second.connect(WITHIN_S)
        second.use(Controller.OSC_POSE)
        drive_until(second, lambda seen: seen.mode == "moving")
    finally:
        second.close()


def test_a_robot_side_that_went_away_is_noticed_before_anything_is_sent(rig: Rig) -> None:
    session, side, _ = rig
    session.use(Controller.OSC_POSE)
    side.close()
    until(lambda: not session._out.heard, "the subscription to end")
    with pytest.raises(ConnectionLost, match="nobody listens to the arm commands at tcp://"):
        session.move(Osc(FORWARD))
    with pytest.raises(Timeout, match="s old"):
        session.state(max_age_s=0.0)


def test_nothing_is_moved_on_an_old_state() -> None:
    body = PointFranka()
    side = DeoxysRobotSide(body, tick_s=TICK_S)
    session = DeoxysSession(
        DeoxysEndpoints(
            "tcp://127.0.0.1:*", side.state_endpoint, "tcp://127.0.0.1:*",
            side.gripper_state_endpoint,
        ),
        max_age_s=1e-9,
        tick_s=TICK_S,
    )  # fmt: skip
    try:
        side.follow(session.command_endpoint, session.gripper_endpoint)
        side.start()
        with pytest.raises(Timeout, match="s old"):
            session.connect(WITHIN_S)
        session.use(Controller.OSC_POSE)
        with pytest.raises(Timeout, match="s old"):
            session.move(Osc(FORWARD))
        assert body.commands == []
    finally:
        session.close()
        side.close()


def test_an_arm_that_never_reports_is_named_with_its_endpoint() -> None:
    session = DeoxysSession(deoxys_endpoints("127.0.0.1", "127.0.0.1", (0, 1, 0, 1)))
    try:
        with pytest.raises(Timeout, match=r"tcp://127\.0\.0\.1:1 within"):
            session.connect(0.05)
        with pytest.raises(Timeout, match="nothing has come"):
            session.state()
        assert session.held  # nobody knows, so it counts
    finally:
        session.close()


def test_a_robot_side_that_does_not_listen_is_told_apart_from_one_that_is_silent() -> None:
    side = DeoxysRobotSide(PointFranka())
    session = open_session(side)
    side.start()
    try:
        with pytest.raises(Timeout, match="nobody listens to the arm commands"):
            session.connect(1.0)
    finally:
        session.close()
        side.close()


def test_hostile_frames_change_nothing_and_are_counted(rig: Rig) -> None:
    session, side, body = rig
    session.use(Controller.OSC_POSE)
    for raw in (b"\xff" * 20, b"", b"\x12\x02hi"):
        before = len(side.refused)
        session._out.send(raw)
        until(lambda: len(side.refused) > before, "the refusal")  # noqa: B023
    assert body.commands == []
    bad = DeoxysEndpoints(
        "tcp://127.0.0.1:*", "ipc://@zetta-hostile", "tcp://127.0.0.1:*", "ipc://@zetta-none"
    )
    publisher = zmq.Context.instance().socket(zmq.XPUB)
    publisher.bind(bad.state)
    other = DeoxysSession(bad)
    try:
        publisher.recv()  # its subscription
        publisher.send_multipart([b"\x0a\xff", b"two frames"])
        publisher.send(b"\x0a\xff\xff\xff\xff\xff\xff")
        until(lambda: other.refused == 2, "both refusals")
        with pytest.raises(Timeout, match=r"2 messages were refused, the last: got 7 bytes"):
            other.state()
    finally:
        other.close()
        publisher.close(0)


@pytest.mark.parametrize(
    ("pc", "private", "said"),
    [
        ("0.0.0.0", True, "every network"),
        ("*", True, "every network"),
        ("8.8.8.8", True, "no private address"),
        ("172.16.0.1", False, "private_network=True"),
        ("robot.example", True, "no private address"),
    ],
)
def test_command_sockets_are_not_opened_where_strangers_are(
    pc: str, private: bool, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        DeoxysSession(deoxys_endpoints(pc, "127.0.0.1"), private_network=private)


def test_the_published_ports_are_defaults_of_that_wire_only() -> None:
    assert deoxys_endpoints("172.16.0.1", "172.16.0.3") == DeoxysEndpoints(
        "tcp://172.16.0.1:5555",
        "tcp://172.16.0.3:5556",
        "tcp://172.16.0.1:5557",
        "tcp://172.16.0.3:5558",
    )


def test_the_robot_side_counts_silent_ticks_by_its_own_clock() -> None:
    body = PointFranka()
    tick_s = 2.0**-4  # exact in binary, so that no tick falls short of one
    side = DeoxysRobotSide(body, tick_s=tick_s)
    try:
        side.running = True
        for tick in range(20):
            assert side.ended == 0
            side.turn(tick_s * tick + 1.0)
        assert side.ended == 1
        assert not side.running
        assert body.state().mode is RobotMode.IDLE
    finally:
        side.close()
