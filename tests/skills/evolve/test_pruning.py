"""Leave-one-out pruning: what goes, what stays, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from zetta.runtime.cli.evolve_toy import PARENT, SHARE, Runner
from zetta.runtime.errors import GateError
from zetta.skills.evolve.evidence import Tally
from zetta.skills.evolve.gate_run import Trial, TrialOutcome
from zetta.skills.evolve.pruning import (
    PruneLimits,
    first_to_go,
    judge_leaving_out,
    leave_one_out,
    loss_p,
)
from zetta.skills.evolve.significance import tango

TRIALS = tuple(Trial(scene, scene) for scene in range(120))

SHIFTED = {"toy_faults": "camera_shift_y=0.026"}
"""The policy grasps beside things, and skills look with another eye."""


def outcome(trial: Trial, success: bool | None, ticks: int, actions: str = "a") -> TrialOutcome:
    return TrialOutcome(success, True, str(trial.scene), actions, ticks)


class Written:
    """Outcomes by rule: `needed` solves half of the scenes, `slow` costs ticks, `idle` nothing."""

    def run_skills(self, skills: Sequence[str], trials: Sequence[Trial]) -> Sequence[TrialOutcome]:
        return [
            outcome(
                trial,
                success="needed" in skills or trial.scene % 2 == 0,
                ticks=100 + 40 * ("slow" in skills) + trial.scene % 7,
                actions="+".join(s for s in skills if s != "idle"),
            )
            for trial in trials
        ]


def test_needed_skills_stay_and_idle_and_slow_ones_can_go_one_at_a_time() -> None:
    pruned = leave_one_out(("needed", "slow", "idle"), TRIALS, Written())
    decisions = {each.without.skill: each.decision for each in pruned}

    assert decisions == {"needed": "KEEP", "slow": "SIMPLIFY", "idle": "SIMPLIFY"}
    assert first_to_go(pruned) == "slow"
    reasons = {each.without.skill: each.reason for each in pruned}
    assert "60 scenes need it" in reasons["needed"]
    assert "changed no action" in reasons["idle"]


def test_what_is_no_worse_and_no_cheaper_stays() -> None:
    whole = [outcome(t, True, 100 + t.scene % 5, "whole") for t in TRIALS]
    less = [outcome(t, True, 100 + (t.scene + 1) % 5, "less") for t in TRIALS]
    (kept,) = judge_leaving_out(TRIALS, whole, {"even": less}, PruneLimits())
    assert kept.decision == "KEEP"
    assert "not surely cheaper" in kept.reason


def test_more_skills_need_more_scenes() -> None:
    trials = TRIALS[:60]  # 0 of 60 is just enough for one skill, not for eight
    same = [outcome(t, True, 100) for t in trials]
    alone = judge_leaving_out(trials, same, {"a": same}, PruneLimits())
    eight = judge_leaving_out(trials, same, dict.fromkeys("abcdefgh", same), PruneLimits())
    assert first_to_go(alone) == "a"
    assert first_to_go(eight) is None


def test_errors_of_machinery_keep_a_skill() -> None:
    whole = [outcome(t, True, 100) for t in TRIALS]
    broken = [outcome(t, None if t.scene < 20 else True, 90) for t in TRIALS]
    (kept,) = judge_leaving_out(TRIALS, whole, {"a": broken}, PruneLimits())
    assert kept.decision == "KEEP"
    nothing = [outcome(t, None, 0) for t in TRIALS]
    assert first_to_go(judge_leaving_out(TRIALS, nothing, {"a": nothing}, PruneLimits())) is None


def test_few_pairs_are_judged_exactly_and_many_by_tango() -> None:
    assert loss_p(Tally(pairs=58, both=58), 0.05) > 0.05 > loss_p(Tally(pairs=59, both=59), 0.05)
    many = Tally(pairs=200, both=184, wins=8, harms=8)
    assert loss_p(many, 0.05) == tango(8, 8, 200, 0.05).p
    assert loss_p(Tally(), 0.05) == 1.0


def test_one_scene_twice_or_two_scenes_in_a_pair_are_refused() -> None:
    with pytest.raises(GateError, match="comes twice"):
        leave_one_out(("a",), (Trial(1, 1), Trial(1, 2)), Written())
    other = [replace(outcome(t, True, 9), scene_digest="x") for t in TRIALS]
    with pytest.raises(GateError, match="a pair needs one scene"):
        judge_leaving_out(TRIALS, [outcome(t, True, 9) for t in TRIALS], {"a": other},
                          PruneLimits())  # fmt: skip


class Toy:
    """Bundles of library skills on the toy with a camera that looks beside."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def run_skills(self, skills: Sequence[str], trials: Sequence[Trial]) -> Sequence[TrialOutcome]:
        spec = replace(PARENT, bundle="+".join(skills) or "none", options=SHIFTED | SHARE)
        return [self.runner.run(spec, trial) for trial in trials]


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


def test_on_the_toy_the_skill_that_mends_the_fault_stays(runner: Runner) -> None:
    trials = tuple(Trial(7_000 + k, 9_000 + k) for k in range(24))
    limits = PruneLimits(margin=0.2)
    pruned = leave_one_out(("regrasp", "turn-knob"), trials, Toy(runner), limits)
    verdicts = {each.without.skill: each for each in pruned}

    assert verdicts["regrasp"].decision == "KEEP"
    assert verdicts["regrasp"].without.counts.harms > 3
    assert verdicts["turn-knob"].decision == "SIMPLIFY"
    assert verdicts["turn-knob"].without.intervened == 0
