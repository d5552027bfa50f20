"""The arbiter: who may drive, for how long, and how the policy gets the robot back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from tests.runtime.scripted_parts import Notebook
from zetta.runtime.core import (
    Array,
    EpisodeResult,
    Init,
    Motion,
    Outcome,
    Scene,
    Start,
    Verdict,
    Window,
)
from zetta.runtime.errors import ConfigError
from zetta.runtime.loop import Episode
from zetta.runtime.registry import policy
from zetta.runtime.skill_arbiter import Budgets, SkillArbiter
from zetta.sims.toy import ToySimulator

HOLD = np.array([0.0] * 6 + [-1.0])


class NoPast:
    """The window of an episode without signals."""

    control_hz = 20.0

    def last(self, name: str, ticks: int) -> Array:
        raise KeyError(name)

    def valid_for(self, name: str) -> int:
        return 0


class Script:
    """A monitor that says what is written down for each tick."""

    def __init__(self, said: Mapping[int, Sequence[Verdict]]) -> None:
        self.said, self.tick, self.drivers = said, -1, [""]

    def begin(self) -> None:
        self.tick, self.drivers = -1, []

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        self.tick += 1
        self.drivers.append(driving)
        return tuple(self.said.get(self.tick, ()))

    def state(self) -> int:
        return self.tick

    def restore(self, state: int) -> None:
        self.tick = state


class Wait:
    """A skill that holds still for `ticks` ticks."""

    def __init__(
        self,
        name: str = "wait",
        ticks: int = 4,
        max_ticks: int = 50,
        ready: bool = True,
        reentry: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name, self.max_ticks = name, max_ticks
        self._ticks, self._ready, self._reentry = ticks, ready, reentry
        self.runs = 0

    def precondition(self, window: Window) -> bool:
        return self._ready

    def recover(self, window: Window) -> Motion:
        self.runs += 1
        for _ in range(self._ticks):
            yield HOLD
        return Outcome(True, "waited")

    def reentry(self, window: Window) -> bool:
        return self._reentry()


def recover(skill: str = "wait", critic: str = "c") -> Verdict:
    return Verdict("recover", f"{skill} is needed", critic, skill)


def run(
    said: Mapping[int, Sequence[Verdict]],
    *skills: Wait,
    budgets: Budgets | None = None,
    shadow: bool = False,
    sham: bool = False,
) -> tuple[EpisodeResult, Notebook, Script]:
    simulator = ToySimulator()
    env, scene = simulator.make("toy_pick", 0), Scene(simulator.task("toy_pick", 0), Init(0))
    monitor, notebook = Script(said), Notebook()
    arbiter = SkillArbiter(
        monitor,
        {s.name: s for s in skills},
        NoPast(),
        budgets or Budgets(share=0.5, pause_s=0.0),
        shadow=shadow,
        sham=sham,
    )
    result = Episode(env, scene, arbiter, policy("toy/reach"), sinks=[notebook]).run()
    return result, notebook, monitor


def sources(notebook: Notebook) -> list[str]:
    return [tick.source for tick in notebook.ticks]


def test_a_recover_verdict_starts_its_skill_and_the_policy_gets_the_robot_back() -> None:
    result, notebook, _ = run({10: [recover()]}, Wait(ticks=4))
    assert sources(notebook)[9:16] == ["policy", *["skill:wait"] * 4, "policy", "policy"]
    (done,) = result.recoveries
    assert (done.tick, done.ticks, done.completed) == (10, 4, True)
    assert (done.skill, done.critic, done.reason) == ("wait", "c", "wait is needed")
    assert done.ending == "waited"
    assert result.interventions == 1
    assert result.sources["skill:wait"] == 4


def test_an_abort_beats_a_recover_and_ends_the_episode() -> None:
    result, notebook, _ = run({5: [recover(), Verdict("abort", "it fell", "reach")]}, Wait())
    assert (result.reason, result.detail) == ("abort", "reach: it fell")
    assert len(notebook.ticks) == 5
    assert result.recoveries == ()


def test_an_abort_interrupts_a_recovery() -> None:
    result, _, _ = run({5: [recover()], 7: [Verdict("abort", "it fell", "reach")]}, Wait(ticks=20))
    assert result.reason == "abort"
    (done,) = result.recoveries
    assert (done.ticks, done.completed) == (2, False)
    assert "it fell" in done.ending


def test_ties_are_decided_by_bundle_order() -> None:
    result, _, _ = run({5: [recover("a"), recover("b")]}, Wait("b"), Wait("a"))
    assert [r.skill for r in result.recoveries] == ["a"]


def test_a_skill_whose_precondition_fails_is_passed_over_for_the_next() -> None:
    result, _, _ = run({5: [recover("a"), recover("b")]}, Wait("a", ready=False), Wait("b"))
    assert [r.skill for r in result.recoveries] == ["b"]


def test_a_recovery_is_not_interrupted_by_another_one() -> None:
    result, _, _ = run({5: [recover("a")], 7: [recover("b")]}, Wait("a", ticks=6), Wait("b"))
    assert [(r.skill, r.ticks) for r in result.recoveries] == [("a", 6)]


def test_a_recovery_runs_again_while_its_reentry_condition_does_not_hold() -> None:
    answers = iter([False, True])
    skill = Wait(ticks=3, reentry=lambda: next(answers))
    result, _, _ = run({5: [recover()]}, skill)
    assert skill.runs == 2
    assert (result.recoveries[0].ticks, result.recoveries[0].completed) == (6, True)


def test_a_recovery_whose_reentry_never_holds_hands_back_and_says_so() -> None:
    skill = Wait(ticks=3, reentry=lambda: False)
    result, notebook, _ = run({5: [recover()]}, skill)
    assert skill.runs == Budgets().attempts
    assert not result.recoveries[0].completed
    assert "re-entry" in result.recoveries[0].ending
    assert sources(notebook)[11] == "policy"


def test_a_recovery_is_interrupted_when_its_own_ticks_are_spent() -> None:
    result, notebook, _ = run({5: [recover()]}, Wait(ticks=30, max_ticks=8))
    assert sources(notebook).count("skill:wait") == 8
    assert "8 ticks" in result.recoveries[0].ending


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
def test_recoveries_never_use_more_than_their_share_of_the_budget(share: float) -> None:
    said = {tick: [recover()] for tick in range(160)}
    result, notebook, _ = run(
        said, Wait(ticks=30), budgets=Budgets(share=share, per_skill=99, interventions=99)
    )
    assert sources(notebook).count("skill:wait") == min(int(share * 160), result.ticks)


def test_the_number_of_interventions_is_bounded_in_all_and_by_skill() -> None:
    said = {tick: [recover("a"), recover("b")] for tick in range(160)}
    budgets = Budgets(interventions=5, per_skill=3, share=1.0, pause_s=0.0)
    result, _, _ = run(said, Wait("a", ticks=1), Wait("b", ticks=1), budgets=budgets)
    assert [r.skill for r in result.recoveries] == ["a", "a", "a", "b", "b"]
    assert result.interventions == 5


def test_the_policy_drives_at_least_the_pause_between_two_interventions() -> None:
    said = {tick: [recover()] for tick in range(160)}
    result, _, _ = run(said, Wait(ticks=2), budgets=Budgets(pause_s=0.5, share=1.0))
    ends = [r.tick + r.ticks for r in result.recoveries]
    gaps = [after.tick - end for after, end in zip(result.recoveries[1:], ends, strict=False)]
    assert gaps
    assert min(gaps) >= 10


def test_shadow_mode_records_what_would_have_happened_and_changes_no_action() -> None:
    bare, untouched, _ = run({}, Wait())
    said = {10: [recover()], 11: [recover()]}
    shadowed, notebook, _ = run(said, Wait(), shadow=True, budgets=Budgets())
    assert [t.action.tolist() for t in notebook.ticks] == [
        t.action.tolist() for t in untouched.ticks
    ]
    assert [(r.tick, r.ending) for r in shadowed.recoveries] == [(10, "shadow")]
    assert notebook.ticks[11].verdicts == tuple(said[11])
    assert shadowed.interventions == bare.interventions == 0


def test_a_sham_interrupts_the_policy_and_drives_no_tick() -> None:
    said = {10: [recover()]}
    result, notebook, monitor = run(said, Wait(ticks=20), sham=True)
    assert set(sources(notebook)) == {"policy"}
    assert result.interventions == 1
    assert [(r.tick, r.ticks, r.ending) for r in result.recoveries] == [(10, 0, "sham")]
    # For the critics the skill has driven, so they stay as quiet as after a real one.
    assert monitor.drivers[10:13] == ["policy", "skill:wait", "policy"]


def test_a_verdict_that_names_an_unknown_skill_changes_nothing() -> None:
    result, _, _ = run({10: [recover("nobody")]}, Wait())
    assert result.recoveries == ()


def arbiter_of(
    said: Mapping[int, Sequence[Verdict]], *, sham: bool = False
) -> tuple[SkillArbiter, Script]:
    monitor = Script(said)
    budgets = Budgets(interventions=3, per_skill=2, share=0.2, pause_s=0.5)
    skills = {name: Wait(name) for name in ("a", "b")}
    arbiter = SkillArbiter(monitor, skills, NoPast(), budgets, sham=sham)
    arbiter.begin(Scene(ToySimulator().task("toy_pick", 0), Init(0)))
    return arbiter, monitor


def ruled(arbiter: SkillArbiter, ticks: range, lasts: int = 4) -> list[str]:
    """Rule so many ticks, recoveries lasting `lasts` of them; return what was ruled."""
    proprio = (
        ToySimulator()
        .make("toy_pick", 0)
        .reset(Scene(ToySimulator().task("toy_pick", 0), Init(0)))
        .proprio
    )
    driving, since, rulings = "policy", 0, []
    for index in ticks:
        if driving != "policy" and index - since >= lasts:
            arbiter.rule(index, proprio, {}, driving)
            arbiter.motion_ended(driving, Outcome(True, "waited"))
            driving = "policy"
            continue
        ruling, _ = arbiter.rule(index, proprio, {}, driving)
        rulings.append(f"{index} {type(ruling).__name__}")
        if isinstance(ruling, Start):
            driving, since = ruling.source, index
            ruling.motion.close()
    return rulings


@pytest.mark.parametrize("at", [0, 4, 9, 15, 29, 60])
def test_a_restored_arbiter_rules_as_the_one_that_went_on(at: int) -> None:
    said = {tick: [recover("a"), recover("b")] for tick in range(4, 120)}
    went_on, monitor = arbiter_of(said)
    ruled(went_on, range(at))
    restored, its_monitor = arbiter_of(said)
    restored.restore(went_on.state())
    assert its_monitor.tick == monitor.tick
    rulings = ruled(went_on, range(at, 120))
    assert ruled(restored, range(at, 120)) == rulings
    assert restored.state() == went_on.state()
    assert restored.recoveries() == went_on.recoveries()
    assert [r.skill for r in went_on.recoveries()] == ["a", "a", "b"]


def test_the_state_is_refused_while_a_recovery_runs() -> None:
    arbiter, _ = arbiter_of({2: [recover("a")]})
    ruled(arbiter, range(4))
    with pytest.raises(ConfigError, match="'a' is running"):
        arbiter.state()


def test_a_state_between_a_sham_and_the_next_tick_still_quiets_its_critic() -> None:
    arbiter, _ = arbiter_of({2: [recover("a")]}, sham=True)
    ruled(arbiter, range(3))
    arbiter.motion_ended("skill:a", Outcome(True, "sham"))
    restored, monitor = arbiter_of({}, sham=True)
    restored.restore(arbiter.state())
    ruled(restored, range(3, 5))
    assert monitor.drivers[-2:] == ["skill:a", "policy"]


# --------------------------------------------------------------------------- orders


class Late(Wait):
    """A skill that may start from a tick on."""

    def __init__(self, monitor: Script, ready_at: int) -> None:
        super().__init__("late")
        self._monitor, self._ready_at = monitor, ready_at

    def precondition(self, window: Window) -> bool:
        return self._monitor.tick >= self._ready_at


def rulings_of(arbiter: SkillArbiter, ticks: int) -> list[str]:
    return [line for line in ruled(arbiter, range(ticks)) if "Start" in line]


def test_an_ordered_skill_starts_once_though_no_critic_asks() -> None:
    arbiter, _ = arbiter_of({})
    arbiter.order("b")
    assert rulings_of(arbiter, 100) == ["0 Start"]
    assert [(r.skill, r.critic) for r in arbiter.recoveries()] == [("b", "branch")]


def test_an_order_waits_for_the_precondition_and_not_for_ever() -> None:
    for ready_at, starts in ((7, ["7 Start"]), (30, [])):
        monitor = Script({})
        arbiter = SkillArbiter(monitor, {"late": Late(monitor, ready_at)}, NoPast())
        arbiter.begin(Scene(ToySimulator().task("toy_pick", 0), Init(0)))
        arbiter.order("late", patience_s=1.0)
        assert rulings_of(arbiter, 60) == starts


def test_an_order_keeps_to_the_budgets_and_gives_way_to_an_abort() -> None:
    spent, _ = arbiter_of({tick: [recover("a")] for tick in range(60)})
    rulings_of(spent, 60)
    spent.order("a", patience_s=0.5)
    before = len(spent.recoveries())
    ruled(spent, range(60, 100))
    assert len(spent.recoveries()) == before == 2
    arbiter, _ = arbiter_of({0: [Verdict("abort", "stop", "c")]})
    arbiter.order("a")
    assert ruled(arbiter, range(1)) == ["0 Abort"]


def test_an_order_is_of_a_known_skill_and_is_not_copied() -> None:
    arbiter, _ = arbiter_of({})
    with pytest.raises(ConfigError, match="'c' cannot be ordered here"):
        arbiter.order("c")
    arbiter.order("a")
    with pytest.raises(ConfigError, match="an order waits"):
        arbiter.state()
