"""The safety kernel in the link: at the robot by the server's clock, and in the program."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import Served, kernel_for, pose, served, told, until
from zetta.hw_drivers.arm import PoseTarget, driver_of
from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.arm_guard import KernelGuard, check_fit, with_tick
from zetta.hw_drivers.arm_guarded import GuardedArm
from zetta.hw_drivers.arm_lead import Asked
from zetta.hw_drivers.arm_limits import Limits, load_limits
from zetta.hw_drivers.arm_messages import Endpoints
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.arm_serving import GuardSettings, guarded_server
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.audit import AuditLog, verify
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm, approve_waiting, clear_stop, what_waits
from zetta.runtime.core import DrivenEnv, Init, Scene, Task
from zetta.runtime.errors import ConfigError, SafetyStop, SpecMismatch
from zetta.runtime.workspace import Box

LIMITS = load_limits("simple")
PATIENT = replace(LIMITS, timing=replace(LIMITS.timing, stale=10.0))
"""For a machine that is busy with other things."""


@pytest.fixture
def side() -> SimpleSide:
    return SimpleSide()


@pytest.fixture
def running(side: SimpleSide) -> Iterator[Served]:
    with served(side, guard=KernelGuard(PATIENT, side.facts)) as started:
        yield started


@pytest.fixture
def arm(running: Served) -> Iterator[ZmqArm]:
    connected = ZmqArm(running.url, owner="tests")
    connected.connect()
    yield connected
    connected.close()


def drive(arm: ZmqArm | GuardedArm, target: PoseTarget, driver: str = "policy") -> None:
    """Ask for one target at 20 Hz until the arm is there."""
    deadline = time.monotonic() + 20.0
    while np.abs(arm.state(10.0).ee_pos - target.ee_pos).max() > 1e-3:
        assert time.monotonic() < deadline, arm.state(10.0)
        arm.command(target, 0.9, driver)
        time.sleep(0.05)


def test_far_target_is_reached_in_steps_that_keep_the_limits(arm: ZmqArm, side: SimpleSide) -> None:
    drive(arm, pose(y=0.09))
    places = np.array([target.ee_pos for target in side.targets])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    fastest = LIMITS.translation.velocity[0] * LIMITS.drivers["policy"] * LIMITS.timing.tick
    assert steps.max() <= fastest * (1.0 + 1e-6)
    assert len(places) > 8
    assert arm.counts()["changed"] > 3


def test_slower_driver_is_led_more_slowly(arm: ZmqArm, side: SimpleSide) -> None:
    drive(arm, pose(y=0.09), "agent:a")
    places = np.array([target.ee_pos for target in side.targets])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    fastest = LIMITS.translation.velocity[0] * LIMITS.drivers["agent"] * LIMITS.timing.tick
    assert steps.max() <= fastest * (1.0 + 1e-6)


def test_target_that_leaps_is_declined_and_the_arm_says_why(arm: ZmqArm, side: SimpleSide) -> None:
    def declined() -> bool:
        arm.command(pose(y=0.3), 0.9)
        return "jump" in arm.state(10.0).reason

    until(declined, "the state says why")
    assert arm.state(10.0).mode == "holding"
    assert "send" not in told(side)
    assert arm.counts()["declined"] > 0
    assert arm.counts()["sent"] == 0


def test_arm_that_does_not_follow_is_a_latched_stop_until_a_person_clears_both(
    side: SimpleSide,
) -> None:
    class Stuck(SimpleSide):
        stuck = True

        def _advance(self) -> None:
            if not self.stuck:
                super()._advance()
            else:
                self._t = self._clock()

    stuck = Stuck()
    guard = KernelGuard(PATIENT, stuck.facts)
    with served(stuck, guard=guard) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        with pytest.raises(SafetyStop, match="does not follow"):
            drive(arm, pose(y=0.095), "person")
        assert "stop" in told(stuck)
        until(lambda: guard.rests, "what was sent comes to rest")
        with pytest.raises(ConfigError, match="only a person"):
            clear_stop(running.url, "policy")
        assert guard.stopped
        assert "does not follow" in clear_stop(running.url, "Ada")
        assert not guard.stopped
        stuck.stuck = False
        arm.connect()
        drive(arm, pose(y=0.05))


def test_stop_by_hand_reaches_arm_and_kernel(arm: ZmqArm, running: Served) -> None:
    arm.command(pose(y=0.05), 0.9)
    arm.stop("lunch")
    guard = running.server._guard
    assert "lunch" in guard.stopped
    assert "stop" in told(running.side)  # type: ignore[arg-type]
    until(lambda: guard.rests, "it comes to rest")
    clear_stop(running.url, "Ada")
    assert not guard.stopped


def test_stream_that_ends_is_led_to_rest_and_then_held(arm: ZmqArm, side: SimpleSide) -> None:
    for k in range(12):
        arm.command(pose(y=0.01 * k), 0.9)
        time.sleep(0.05)
    until(lambda: told(side)[-1] == "hold", "the arm holds")
    sent = told(side).count("send")
    until(lambda: arm.state(10.0).mode == "holding", "the state says so")
    assert told(side).count("send") == sent
    drive(arm, pose(y=0.05))  # it begins anew where it stands


def test_next_target_after_a_hold_begins_where_the_arm_stands(
    arm: ZmqArm, side: SimpleSide
) -> None:
    for k in range(10):
        arm.command(pose(y=0.015 * k), 0.9)
        time.sleep(0.05)
    until(lambda: told(side)[-1] == "hold", "the arm holds")
    stands = side.read().ee_pos
    before = len(side.targets)
    arm.command(pose(y=float(stands[1])), 0.9)
    until(lambda: len(side.targets) > before, "it is led on")
    np.testing.assert_allclose(side.targets[before].ee_pos, stands, atol=2e-3)


def test_unknown_driver_is_refused_at_both_ends(arm: ZmqArm, running: Served) -> None:
    for driver in ("", "oracle", "skill", "skill: ", "policy:x", "agent:" + "x" * 99, "agent:\n"):
        with pytest.raises(SpecMismatch, match="a driver is person"):
            arm.command(pose(), 0.9, driver)
    assert running.server.counts["sent"] == 0


def test_sources_of_the_loop_become_drivers() -> None:
    named = {
        "policy": "policy",
        "skill:regrasp": "skill:regrasp",
        "agent:human": "person",
        "agent:gpt-5": "agent:gpt-5",
        "oracle:expert": "skill:oracle-expert",
        "skill:": "skill:skill-",
        "": "skill:unnamed",
    }
    assert {source: driver_of(source) for source in named} == named


def test_target_waits_for_a_person_where_approval_is_wanted(side: SimpleSide) -> None:
    guard = KernelGuard(PATIENT, side.facts, needs_approval=True)
    with served(side, guard=guard) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        with pytest.raises(ConfigError, match="nothing waits"):
            approve_waiting(running.url, "Ada")

        def waits() -> bool:
            arm.command(pose(y=0.01), 0.9, "agent:a")
            return arm.waiting() != ""

        until(waits, "the state carries the token")
        waiting = what_waits(running.url)
        assert waiting is not None
        assert waiting.said.startswith("agent:a asks for the hand at 40.0, 1.0, 30.0 cm")
        assert "send" not in told(side)
        for token, by, said in (
            ("0" * 16, "Ada", "no command waits"),
            ("", "agent:a", "only a person"),
            ("", " ", "say who"),
        ):
            arm.command(pose(y=0.01), 0.9, "agent:a")
            with pytest.raises(ConfigError, match=said):
                approve_waiting(running.url, by, token=token)
        arm.command(pose(y=0.01), 0.9, "agent:a")
        assert approve_waiting(running.url, "Ada") == waiting
        drive(arm, pose(y=0.01), "agent:a")
        assert arm.waiting() == ""


# --------------------------------------------------------------------------- the near end


def test_program_has_a_kernel_of_its_own(running: Served, side: SimpleSide) -> None:
    arm = GuardedArm(ZmqArm(running.url), PATIENT, 0.05)
    with contextlib.closing(arm):
        arm.connect()
        drive(arm, pose(y=0.09))
        assert arm.decided["changed"] > 3
        sent = len(side.targets)
        for _ in range(5):
            arm.command(pose(y=0.4), 0.9)
            time.sleep(0.06)
        assert arm.decided["refused"] >= 1
        np.testing.assert_allclose(
            [t.ee_pos[1] for t in list(side.targets)[sent:]], 0.09, atol=0.01
        )


def test_stop_of_the_near_kernel_stops_the_arm(running: Served, side: SimpleSide) -> None:
    narrow = replace(PATIENT, workspace=Box((0.5, -0.4, 0.05), (0.65, 0.4, 0.6)))
    arm = GuardedArm(ZmqArm(running.url), narrow, 0.05)
    with contextlib.closing(arm):
        arm.connect()
        with pytest.raises(SafetyStop, match="outside the workspace"):
            arm.command(pose(), 0.9)
        assert told(side) == ["stop"]
        until(lambda: arm.state(10.0).mode == "stopped", "the state says so")


def test_env_tells_who_drives_and_keeps_the_limits_of_its_setup(
    running: Served, side: SimpleSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.hw_drivers.arm_env.load_limits", lambda name: PATIENT)
    setup = ArmSetup("bench", limits="simple", max_state_age_s=10.0, command_ttl_s=0.9)
    env = ArmEnv(ZmqArm(running.url), setup)
    assert isinstance(env, DrivenEnv)
    heard: list[str] = []
    ask = running.server._lead.ask

    def listening(asked: Asked, now: float) -> None:
        heard.append(asked.driver)
        ask(asked, now)

    monkeypatch.setattr(running.server._lead, "ask", listening)
    env.reset(Scene(Task("arm", 0, "go", 1000), Init(0)))
    for source in ("policy", "skill:regrasp", "agent:gpt", "agent:human"):
        env.driven_by(source)
        for _ in range(4):
            env.step(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0]))
            time.sleep(0.05)
    env.close()
    named = ["policy", "skill:regrasp", "agent:gpt", "person"]
    assert [name for name, _ in groupby(heard)] == named
    steps = np.diff([target.ee_pos[1] for target in side.targets])
    assert steps.max() < 0.25 * 1.7 * 0.05 * 1.001


def test_homing_goes_by_poses_where_a_kernel_leads(
    running: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.hw_drivers.arm_env.load_limits", lambda name: PATIENT)
    setup = ArmSetup(
        "bench", limits="simple", max_state_age_s=10.0, command_ttl_s=0.9,
        home_pos=(0.42, 0.02, 0.31), home_quat=(1.0, 0.0, 0.0, 0.0),
    )  # fmt: skip
    env = ArmEnv(ZmqArm(running.url), setup)
    env.go_home()
    np.testing.assert_allclose(env.observe().proprio.arms[0].ee_pos, setup.home_pos, atol=4e-3)
    env.close()


def test_robot_side_is_put_together_with_its_log(tmp_path: Path, side: SimpleSide) -> None:
    settings, given = ServerSettings(Endpoints.on(port=0)), GuardSettings(audit=tmp_path)
    with guarded_server(side, PATIENT, settings, given) as server:
        over = threading.Event()
        thread = threading.Thread(target=server.serve, args=(over.is_set,))
        thread.start()
        with contextlib.closing(ZmqArm(server.endpoints.command)) as arm:
            arm.connect()
            drive(arm, pose(y=0.09), "skill:regrasp")
            arm.stop("enough")
        over.set()
        thread.join()
        with pytest.raises(ConfigError, match="another audit log writes"):
            AuditLog(tmp_path)
    assert verify(tmp_path).dropped == 0
    lines = [json.loads(line) for line in next(tmp_path.glob("audit-*")).read_text().splitlines()]
    assert {line["driver"] for line in lines} >= {"skill:regrasp"}
    assert sum(line["verdict"] == "changed" for line in lines) > 3
    assert any(line["event"] == "stop" and "enough" in line["reasons"][0] for line in lines)


# ------------------------------------------------------------------------ limits that fit


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(LIMITS, joints=("a",) * 7), "are of 7 joints, the arm has 6"),
        (replace(LIMITS, joint_high=LIMITS.joint_high + 0.2), "x may go 0.2 rad farther"),
        (replace(LIMITS, workspace=Box((0.25, -0.4, 0.05), (0.85, 0.4, 0.6))), "15 cm beyond"),
        (replace(LIMITS, gripper=replace(LIMITS.gripper, opening=0.2)), "gripper opens 0.2 m"),
    ],
)
def test_limits_of_another_arm_are_refused_in_one_sentence(changed: Limits, said: str) -> None:
    facts = SimpleSide().facts
    check_fit(LIMITS, facts)
    with pytest.raises(ConfigError, match=said) as refused:
        KernelGuard(changed, facts)
    assert "'simple' do not fit simple (simple)" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_arm_that_takes_no_poses_needs_forward_kinematics() -> None:
    facts = replace(SimpleSide().facts, accepts=("joints",))
    with pytest.raises(ConfigError, match="the forward kinematics of the arm decide"):
        KernelGuard(LIMITS, facts)


def test_tick_must_fit_the_watchdog(side: SimpleSide) -> None:
    settings = ServerSettings(Endpoints.on(port=0), watchdog_s=0.05)
    with pytest.raises(ConfigError, match=r"ticks every 0\.05 s, the watchdog waits 0\.05 s"):
        ArmServer(side, kernel_for(side), settings)
    with pytest.raises(ConfigError, match="a tick lasts"):
        with_tick(LIMITS, 0.0)
