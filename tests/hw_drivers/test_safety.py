"""What the kernel answers, case by case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safe_runs import DOWN, HAND, PANDA, READY, FollowingArm, assert_safe, pose, sent

from zetta.hw_drivers.decisions import AuditEntry, Command, Decision, Grip, Reading
from zetta.hw_drivers.safety import SafetyKernel
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError, SafetyStop
from zetta.runtime.workspace import Box

TICK = 0.05
STILL = np.array([*HAND, *DOWN])


class Bench:
    """A kernel, an arm that follows, and a clock."""

    def __init__(self, needs_approval: bool = False) -> None:
        self.entries: list[AuditEntry] = []
        self.kernel = SafetyKernel(PANDA, needs_approval=needs_approval, audit=self.entries.append)
        self.arm = FollowingArm(STILL)
        self.now = 10.0

    def ask(
        self,
        command: Command | None,
        driver: str = "policy",
        reading: Reading | None = None,
        wait: float = TICK,
    ) -> Decision:
        self.now += wait
        state = self.arm.reading(self.now) if reading is None else reading
        decision = self.kernel.admit(command, state, self.now, driver)
        self.arm.take(decision)
        return decision

    def move(self, ticks: int = 6) -> list[Decision]:
        """Get going along y."""
        return [self.ask(self.ahead()) for _ in range(ticks)]

    def ahead(self, way: float = 0.05) -> Command:
        return pose((HAND[0], self.arm.now[1] + way, HAND[2]))

    def rest(self) -> None:
        for _ in range(60):
            self.ask(None)
        assert self.kernel.rests


def test_a_small_step_is_sent_as_it_was_asked() -> None:
    command = pose(HAND + np.array([0.0, 0.002, 0.0]))
    decision = Bench().ask(replace(command, grip=Grip(0.04, 0.05, 20.0)))
    assert (decision.verdict, decision.reasons, decision.anew) == ("as asked", (), True)
    assert decision.sent is not None
    assert np.array_equal(sent(decision), command.values)
    assert decision.sent.grip == Grip(0.04, 0.05, 20.0)


def test_a_repeated_target_is_reached_without_passing_it() -> None:
    bench = Bench()
    target = pose(HAND + np.array([0.0, 0.08, 0.0]), DOWN + np.array([0.0, 0.3, 0.0]))
    decisions = [bench.ask(target) for _ in range(40)]
    assert np.array_equal(sent(decisions[-1]), target.values)
    assert max(sent(d)[1] for d in decisions) <= 0.08 + 1e-9
    assert decisions[3].verdict == "changed"
    assert decisions[-1].verdict == "as asked"
    assert_safe(decisions)


def test_a_smooth_stream_passes_untouched() -> None:
    bench = Bench()
    phases = 0.02 * np.arange(80)
    stream = [pose(HAND + np.array([0.05 * (1.0 - np.cos(p)), 0.0, 0.0])) for p in phases]
    assert {bench.ask(command).verdict for command in stream} == {"as asked"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.full(6, np.nan), "finite"),
        (np.zeros(7), "nothing is padded"),
        (np.zeros(()), "nothing is padded"),
        (["a"] * 6, "no numbers"),
        (None, "got"),
        (np.array([*HAND + 0.2, *DOWN]), "jump"),
        (np.array([*HAND, 0.0, 0.0, 0.0]), "jump: the target is turned"),
        (np.array([*HAND, 9.0, 0.0, 0.0]), "full turn"),
        (np.full(6, 1e308), "full turn"),
    ],
)
def test_what_is_no_command_or_a_jump_is_refused_not_clipped(values: Array, says: str) -> None:
    bench = Bench()
    bench.ask(pose())
    decision = bench.ask(Command("target_pose", values))
    assert decision.verdict == "refused"
    assert says in decision.reasons[0]
    assert np.allclose(sent(decision), STILL)


def test_another_kind_or_no_command_at_all_is_refused() -> None:
    bench = Bench()
    bench.ask(pose())
    assert bench.ask(Command("joint_position", READY)).verdict == "refused"
    assert bench.ask("go left").verdict == "refused"  # type: ignore[arg-type]


def test_a_target_inside_a_keep_out_box_is_refused() -> None:
    near_base = np.array([0.30, 0.0, 0.3])
    bench = Bench()
    bench.arm.now[:3] = near_base
    limits = replace(PANDA, workspace=Box((0.1, -0.4, 0.0), (0.75, 0.4, 0.7)))
    bench.kernel = SafetyKernel(limits)
    decision = bench.ask(pose(near_base - np.array([0.08, 0.0, 0.0])))
    assert decision.verdict == "refused"
    assert "the arm's own base" in decision.reasons[0]


@pytest.mark.parametrize(
    ("grip", "sent_grip"),
    [
        (Grip(0.2, 0.05, 20.0), Grip(0.08, 0.05, 20.0)),
        (Grip(-0.01, 0.5, 300.0), Grip(0.0, 0.1, 40.0)),
    ],
)
def test_the_gripper_is_kept_within_opening_speed_and_force(grip: Grip, sent_grip: Grip) -> None:
    decision = Bench().ask(replace(pose(), grip=grip))
    assert decision.verdict == "changed"
    assert decision.sent is not None
    assert decision.sent.grip == sent_grip


@pytest.mark.parametrize(
    "grip", [Grip(float("nan"), 0.1, 1.0), Grip(0.0, 0.0, 1.0), Grip(0.0, 0.1, -1.0), "close"]
)
def test_a_grip_that_is_none_is_refused(grip: Grip) -> None:
    assert Bench().ask(replace(pose(), grip=grip)).verdict == "refused"


def test_the_gripper_keeps_what_it_was_told_while_the_arm_is_held() -> None:
    bench = Bench()
    held = Grip(0.0, 0.05, 20.0)
    bench.ask(replace(pose(), grip=held))
    for command in (None, pose(), Command("target_pose", np.zeros(2))):
        decision = bench.ask(command)
        assert decision.sent is not None
        assert decision.sent.grip == held


@pytest.mark.parametrize("driver", ["", "nobody", "oracle:toy", "Policy", None])
def test_a_driver_that_is_not_known_is_refused(driver: str) -> None:
    decision = Bench().ask(pose(), driver)
    assert decision.verdict == "refused"
    assert "driver" in decision.reasons[0]


def test_skills_and_agents_drive_more_slowly_and_slow_down_at_a_handover() -> None:
    def fastest(driver: str) -> float:
        bench = Bench()
        rows = np.array([sent(bench.ask(bench.ahead(0.06), driver))[:3] for _ in range(12)])
        return float(np.linalg.norm(np.diff(rows, axis=0), axis=1).max()) / TICK

    for driver in ("person", "policy", "skill:regrasp", "agent:a"):
        limit = 1.7 * PANDA.drivers[driver.partition(":")[0]]
        assert 0.6 * limit < fastest(driver) <= limit * (1.0 + 1e-6)
    bench = Bench()
    decisions = bench.move(8)
    decisions += [bench.ask(bench.ahead(), "agent:a") for _ in range(20)]
    steps = [
        float(np.linalg.norm(b - a))
        for a, b in zip(
            [sent(d)[:3] for d in decisions[:-1]], [sent(d)[:3] for d in decisions[1:]], strict=True
        )
    ]
    assert max(steps) > 0.17 * TICK * 1.2
    assert max(steps[14:]) <= 0.17 * TICK * (1.0 + 1e-6)
    assert_safe(decisions)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"t": 9.0}, "ms old"),
        ({"t": 99.0}, "not one clock"),
        ({"t": float("nan")}, "not one clock"),
        ({"ee_pos": np.full(3, np.nan)}, "position"),
        ({"ee_pos": np.zeros(2)}, "position"),
        ({"ee_quat": np.zeros(4)}, "rotation"),
        ({"joint_pos": np.zeros(6)}, "7 finite"),
    ],
)
def test_a_reading_that_cannot_be_relied_on_leads_to_rest(
    change: dict[str, float | Array], says: str
) -> None:
    bench = Bench()
    decisions = bench.move()
    for _ in range(30):
        reading = replace(bench.arm.reading(bench.now + TICK), **change)  # type: ignore[arg-type]
        decisions.append(bench.ask(bench.ahead(), reading=reading))
    assert decisions[-1].verdict == "held"
    assert says in decisions[-1].reasons[0]
    assert bench.kernel.rests
    assert_safe(decisions)


def test_nothing_is_sent_before_the_arm_has_reported() -> None:
    kernel = SafetyKernel(PANDA)
    decision = kernel.admit(pose(), None, 0.0, "policy")
    assert (decision.sent, decision.verdict) == (None, "held")


def test_a_stop_is_latched_until_a_person_clears_it() -> None:
    bench = Bench()
    decisions = bench.move()
    bench.kernel.stop("the button", bench.now)
    bench.kernel.stop("a later reason", bench.now)
    decisions.append(bench.ask(bench.ahead()))
    with pytest.raises(SafetyStop, match="led to rest"):
        bench.kernel.clear("Ada", bench.now)
    decisions += [bench.ask(bench.ahead()) for _ in range(30)]
    old = replace(bench.arm.reading(bench.now), t=0.0)
    decisions.append(bench.ask(bench.ahead(), reading=old))
    assert {d.verdict for d in decisions[6:]} == {"stopped"}
    assert decisions[-1].reasons == ("the button",)
    assert_safe(decisions)
    for nobody in ("", "  ", "agent:a", "Policy", "kernel", "x" * 200, "a\nb", None):
        with pytest.raises(ConfigError, match="only a person"):
            bench.kernel.clear(nobody, bench.now)  # type: ignore[arg-type]
    bench.kernel.clear("Ada", bench.now)
    assert bench.kernel.stopped == ""
    again = bench.ask(bench.ahead(0.001))
    assert (again.verdict, again.anew) == ("as asked", True)
    events = [(e.event, e.driver) for e in bench.entries if e.event != "decision"]
    assert events == [("stop", "kernel"), ("stop", "kernel"), ("clear", "Ada")]
    with pytest.raises(ConfigError, match="not stopped"):
        bench.kernel.clear("Ada", bench.now)


def test_an_arm_that_does_not_follow_is_stopped() -> None:
    bench = Bench()
    bench.arm.share = 0.0
    decisions = [bench.ask(pose(HAND + np.array([0.0, 0.09, 0.0]))) for _ in range(30)]
    assert decisions[-1].verdict == "stopped"
    assert "does not follow" in bench.kernel.stopped
    assert_safe(decisions)


def test_a_joint_beyond_its_range_or_too_fast_stops_the_arm() -> None:
    bench = Bench()
    bench.ask(pose())
    bench.arm.joints = READY + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0])
    assert "published speed" in bench.ask(pose()).reasons[0]
    bench = Bench()
    bench.arm.joints = READY + np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    decision = bench.ask(pose())
    assert (decision.verdict, decision.sent) == ("stopped", None)
    assert "panda_joint1 is 0.103 rad beyond its range" in decision.reasons[0]


def test_a_hand_outside_the_workspace_is_stopped_and_a_little_outside_may_come_in() -> None:
    bench = Bench()
    bench.arm.now[1] = 0.5
    assert "outside the workspace" in bench.ask(pose()).reasons[0]
    bench = Bench()
    bench.arm.now[1] = 0.405
    decisions = [bench.ask(pose((HAND[0], 0.38, HAND[2]))) for _ in range(30)]
    assert decisions[-1].verdict == "as asked"
    assert sent(decisions[-1])[1] == 0.38


def test_an_early_call_repeats_its_tick_and_a_late_one_begins_from_rest() -> None:
    bench = Bench()
    moving = bench.move()[-1]
    early = bench.ask(bench.ahead(), wait=0.3 * TICK)
    assert (early.tick, early.verdict) == (moving.tick, "held")
    assert np.array_equal(sent(early), sent(moving))
    back = bench.ask(bench.ahead(), wait=-5.0)
    assert np.array_equal(sent(back), sent(moving))
    bench.now += 5.0
    late = bench.ask(bench.ahead(), wait=4 * TICK)
    assert late.anew
    assert late.tick == moving.tick + 4
    first_step = float(np.linalg.norm(sent(late)[:3] - sent(moving)[:3]))
    assert first_step <= PANDA.translation.jerk[0] * TICK**3 * (1.0 + 1e-6)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), None, "soon"])
def test_a_clock_that_tells_no_time_moves_nothing(now: float) -> None:
    bench = Bench()
    moving = bench.move()[-1]
    decision = bench.kernel.admit(bench.ahead(), bench.arm.reading(bench.now), now, "policy")
    assert decision.verdict == "held"
    assert np.array_equal(sent(decision), sent(moving))


def test_a_command_waits_for_approval_and_only_that_one_is_approved() -> None:
    bench = Bench(needs_approval=True)
    near, other = pose(HAND + np.array([0.0, 0.03, 0.0])), pose(HAND + np.array([0.0, 0.04, 0.0]))
    waiting = bench.ask(near)
    assert waiting.verdict == "held"
    assert np.allclose(sent(waiting), STILL)
    with pytest.raises(ConfigError, match="no command waits"):
        bench.kernel.approve("something else", "Ada", bench.now)
    with pytest.raises(ConfigError, match="only a person"):
        bench.kernel.approve(waiting.approval, "agent:a", bench.now)
    bench.kernel.approve(waiting.approval, "Ada", bench.now)
    done = [bench.ask(near) for _ in range(30)][-1]
    assert np.array_equal(sent(done), near.values)
    assert bench.ask(other).verdict == "held"
    assert bench.ask(near).verdict == "held"  # the approval is spent
    assert [e.driver for e in bench.entries if e.event == "approve"] == ["Ada"]


def test_an_error_inside_leads_to_rest_on_the_way_that_was_proven() -> None:
    bench = Bench()
    decisions = bench.move()

    def fail(entry: AuditEntry) -> None:
        raise RuntimeError("the record cannot be kept")

    bench.kernel._audit = fail
    decisions += [bench.ask(bench.ahead()) for _ in range(30)]
    assert decisions[-1].verdict == "held"
    assert "RuntimeError: the record cannot be kept" in decisions[-1].reasons[0]
    assert bench.kernel.rests
    assert_safe(decisions)
