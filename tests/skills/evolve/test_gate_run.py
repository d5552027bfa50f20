"""Candidates through the gate with episodes asked for stage by stage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from zetta.runtime.errors import GateError
from zetta.skills.evolve.gate_run import Arm, ArmTrial, Scenes, Trial, TrialOutcome, run_gate
from zetta.skills.evolve.ledger import Ledger
from zetta.skills.evolve.plans import plan_gate

PLAN = plan_gate()


def block(first: int, count: int) -> tuple[Trial, ...]:
    return tuple(Trial(scene=first + k, policy_seed=k) for k in range(count))


SCENES = Scenes(block(0, 20), block(1000, 59), block(2000, 31))


@dataclass
class Model:
    """Episodes whose outcome depends on arm and trial alone."""

    rates: dict[Arm, float]
    fires: bool = True
    asked: list[tuple[Arm, int]] = field(default_factory=list)
    broken: frozenset[int] = frozenset()

    def run(self, wanted: Sequence[ArmTrial]) -> Sequence[TrialOutcome]:
        for arm in dict.fromkeys(arm for arm, _ in wanted):
            self.asked.append((arm, sum(each == arm for each, _ in wanted)))
        return [self._one(arm, trial) for arm, trial in wanted]

    def critic_p99_s(self) -> float:
        return 0.0005

    def _one(self, arm: Arm, trial: Trial) -> TrialOutcome:
        own = arm if self.fires else "parent"
        # Scenes of the regression block are easy: the parent solves them under every arm.
        rate = 1.0 if 1000 <= trial.scene < 2000 else self.rates[own]
        good = random.Random(f"{own}/{trial.scene}/{trial.policy_seed}").random() < rate
        success = None if trial.scene in self.broken and arm == "candidate" else good
        fired = self.fires and arm != "parent"
        return TrialOutcome(success, fired, f"s{trial.scene}", f"{own}", 100)


BETTER: dict[Arm, float] = {"parent": 0.2, "candidate": 0.95, "sham": 0.2, "random": 0.2}


def gate(model: Model, ledger: Ledger | None = None, batch: int = 8, scenes: Scenes = SCENES):  # type: ignore[no-untyped-def]
    return run_gate(PLAN, ledger or Ledger("a test"), "c1", scenes, model, 0.05, batch)


def test_a_much_better_candidate_is_promoted_with_fewer_episodes_than_planned() -> None:
    ran = gate(Model(BETTER))

    assert ran.verdict.decision == "PROMOTE"
    assert [s.stage for s in ran.verdict.stages] == [
        "same_scene", "no_harm", "parent", "sham", "random", "cost",
    ]  # fmt: skip
    assert ran.rollouts < 2 * 20 + 2 * 59 + 4 * 31
    assert ran.ledger.entries[0].decision == "PROMOTE"
    assert len(ran.ledger.burned) == 31


def test_the_verdict_does_not_depend_on_how_much_is_run_at_once() -> None:
    one, many = gate(Model(BETTER), batch=1), gate(Model(BETTER), batch=31)

    assert one.verdict == many.verdict
    assert one.rollouts <= many.rollouts


def test_a_candidate_that_intervenes_in_vain_is_rejected_and_opens_nothing() -> None:
    same: dict[Arm, float] = dict.fromkeys(BETTER, 0.2)  # type: ignore[arg-type]
    model = Model(same)
    ran = gate(model)

    assert ran.verdict.decision == "REJECT"
    assert ran.ledger.alpha_spent == 0.0
    assert ran.rollouts == 40


def test_a_candidate_no_better_than_the_sham_is_stopped_there() -> None:
    ran = gate(Model({**BETTER, "sham": 0.95}))

    assert ran.verdict.decision != "PROMOTE"
    assert ran.verdict.stages[-1].stage == "sham"
    assert ran.ledger.alpha_spent > 0.0


def test_a_candidate_that_never_intervenes_never_gets_further() -> None:
    ran = gate(Model(BETTER, fires=False))

    assert ran.verdict.reason == "same_scene: the candidate never intervened"


def test_a_quiet_candidate_that_changes_something_is_an_error() -> None:
    class Haunted(Model):
        def _one(self, arm: Arm, trial: Trial) -> TrialOutcome:
            return replace(super()._one(arm, trial), fired=False)

    with pytest.raises(GateError, match="differs although the candidate stayed quiet"):
        gate(Haunted(BETTER))


def test_a_candidate_whose_runs_alone_fail_by_machinery_is_not_judged() -> None:
    ran = gate(Model(BETTER, broken=frozenset(range(1000, 1012))))

    assert ran.verdict.decision == "INCONCLUSIVE"
    assert "errors of machinery" in ran.verdict.reason


def test_blocks_that_are_short_or_share_scenes_are_refused() -> None:
    with pytest.raises(GateError, match="the sealed block holds 30 trials; the plan needs 31"):
        gate(Model(BETTER), scenes=replace(SCENES, sealed=block(2000, 30)))
    with pytest.raises(GateError, match="11 scenes of the sealed block are in another block"):
        gate(Model(BETTER), scenes=replace(SCENES, sealed=block(1048, 31)))


def test_a_candidate_gets_one_try() -> None:
    first = gate(Model(BETTER))

    with pytest.raises(GateError):
        gate(Model(BETTER), first.ledger, scenes=replace(SCENES, sealed=block(3000, 31)))
