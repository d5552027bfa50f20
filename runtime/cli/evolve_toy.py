"""The gate measured with episodes of the toy: nulls that are the parent, and a planted fix.

A null's arms all run the bare policy, each with policy seeds of its own, and claim to have
intervened: every difference between them is noise of the policy. The planted fault and its known
fix are those of `planted_fix`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from zetta.runtime.action_digest import ActionDigest
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.deploy import OWN_TRIGGERS
from zetta.runtime.cli.planted_fix import FAULT, POLICY, write_fix
from zetta.runtime.core import EpisodeResult, RunSpec, Sampled
from zetta.runtime.errors import ConfigError, GateError
from zetta.skills.evolve.evidence import PairedOutcome
from zetta.skills.evolve.gate_run import (
    Arm,
    ArmTrial,
    GateRun,
    Scenes,
    Trial,
    TrialOutcome,
    run_gate,
)
from zetta.skills.evolve.ledger import Ledger
from zetta.skills.evolve.nulls import openings_sustained
from zetta.skills.evolve.plans import GatePlan
from zetta.skills.random_triggers import Episode, Trigger, triggers_text

PARENT: Final = RunSpec("toy", "toy_pick", 0, Sampled(), policy="toy/reach", sensing="oracle")
"""Succeeds in about three of four sampled scenes, by the luck of its policy seed."""
FAULTY: Final = replace(PARENT, policy=POLICY, options={"toy_faults": FAULT})
"""The parent of the planted fix: solves about a third."""
SHARE: Final = {"recovery_share": "0.7"}
PERIOD_S: Final = 0.05
CRITIC_P99_S: Final = 0.0005
"""What the stage `cost` is told that critics take: an assumption, not measured in these runs."""
MOST_TRIES: Final = 400
"""Scenes that are tried for the failed ones; a policy that hardly fails needs no skill."""
DEVELOPMENT: Final = 40
"""Episodes from which the moments of the control `random` are drawn."""


@dataclass(frozen=True, slots=True)
class ToyNull:
    """What the gate did to toy candidates whose truth is known."""

    candidates: int
    reached_gate: int
    pairs: int
    """Pairs of nulls that were run in any stage."""
    discordant: int
    promoted: int
    alpha_spent: float
    planted: int
    planted_reached: int
    planted_promoted: int
    rollouts: int


class NullArena:
    """Every arm is the parent; arms differ in the seeds of the policy."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def run(self, wanted: Sequence[ArmTrial]) -> Sequence[TrialOutcome]:
        """Run episodes with the arms' own policy seeds."""
        return [
            replace(self._runner.run(PARENT, replace(t, policy_seed=_seed(arm, t))), fired=True)
            for arm, t in wanted
        ]

    def critic_p99_s(self) -> float:
        """Return what critics are assumed to take."""
        return CRITIC_P99_S


class FixArena:
    """The arms of a bundle against a parent with the planted fault."""

    def __init__(self, runner: Runner, bundle: Path) -> None:
        self._runner = runner
        self._bundles: Mapping[Arm, str] = {
            "parent": "none",
            "candidate": str(bundle),
            "sham": f"sham:{bundle}",
            "random": f"random:{bundle}",
        }

    def run(self, wanted: Sequence[ArmTrial]) -> Sequence[TrialOutcome]:
        """Run episodes, each with the same policy seed in every arm."""
        return [self._runner.run(self._spec(arm), trial) for arm, trial in wanted]

    def _spec(self, arm: Arm) -> RunSpec:
        bundle = self._bundles[arm]
        options = FAULTY.options if bundle == "none" else {**FAULTY.options, **SHARE}
        return replace(FAULTY, bundle=bundle, options=options)

    def critic_p99_s(self) -> float:
        """Return what critics are assumed to take."""
        return CRITIC_P99_S


class Runner:
    """Runs toy episodes one after the other in this process, and counts them."""

    def __init__(self) -> None:
        self.rollouts = 0
        self._assembler = Assembler()

    def close(self) -> None:
        """Let go of the environments."""
        self._assembler.close()

    def run(self, spec: RunSpec, trial: Trial) -> TrialOutcome:
        """Run one episode."""
        result, actions = self.episode(spec, trial)
        return TrialOutcome(
            success=result.success,
            fired=bool(result.recoveries),
            scene_digest=result.scene_digest,
            actions=actions,
            ticks=result.ticks,
            late_ticks=result.late_ticks,
        )

    def episode(self, spec: RunSpec, trial: Trial) -> tuple[EpisodeResult, str]:
        """Run one episode and return it with a digest of its actions."""
        placed = replace(spec, task=trial.task, seed=trial.scene, policy_seed=trial.policy_seed)
        actions = ActionDigest()
        result = self._assembler.assemble(placed, sinks=[actions]).episode.run()
        self.rollouts += 1
        return result, actions.text


def planted_among(candidates: int) -> int:
    """Return how many planted fixes go with so many nulls: a fifth."""
    return max(1, candidates // 5)


def toy_null(
    candidates: int, seed: int, plan: GatePlan, advance: Callable[[int, str], None]
) -> ToyNull:
    """Send nulls, and a fifth as many planted fixes, through the gate on the toy.

    Args:
        candidates: nulls.
        seed: of every scene and policy seed.
        plan: of every campaign.
        advance: told how many candidates are through, and in words how many episodes that took.

    Raises:
        ConfigError: there is no candidate.
        GateError: the parent hardly fails, or the plan does not even open once.
    """
    if candidates < 1:
        raise ConfigError(f"a null run needs at least one candidate, got {candidates}")
    runner = Runner()
    nulls, fixes = list[GateRun](), list[GateRun]()

    def through(runs: list[GateRun], found: Iterator[GateRun]) -> None:
        for run in found:
            runs.append(run)
            advance(len(nulls) + len(fixes), f"{runner.rollouts} episodes")

    try:
        through(nulls, _through(candidates, plan, lambda k: _null(runner, plan, seed, k)))
        with fix_bundle(runner, seed) as bundle:
            count = planted_among(candidates)
            through(fixes, _through(count, plan, lambda k: _fix(runner, bundle, plan, seed, k)))
    finally:
        runner.close()
    pairs = [p for run in nulls for p in _pairs(run)]
    return ToyNull(
        candidates=candidates,
        reached_gate=sum(_reached(run) for run in nulls),
        pairs=len(pairs),
        discordant=sum(p.baseline != p.candidate for p in pairs),
        promoted=sum(run.verdict.decision == "PROMOTE" for run in nulls),
        alpha_spent=sum(run.ledger.entries[-1].opening.alpha for run in nulls if _reached(run)),
        planted=len(fixes),
        planted_reached=sum(_reached(run) for run in fixes),
        planted_promoted=sum(run.verdict.decision == "PROMOTE" for run in fixes),
        rollouts=runner.rollouts,
    )


def _through(
    count: int, plan: GatePlan, one: Callable[[int], Callable[[Ledger], GateRun]]
) -> Iterator[GateRun]:
    """Send candidates through, one after the other; a campaign ends when no gate opens any more."""
    ledger, campaigns = Ledger("campaign 0"), 0
    for k in range(count):
        if len(ledger.entries) >= openings_sustained(plan):
            campaigns += 1
            ledger = Ledger(f"campaign {campaigns}")
        run = one(k)(ledger)
        yield run
        ledger = run.ledger


def _null(runner: Runner, plan: GatePlan, seed: int, place: int) -> Callable[[Ledger], GateRun]:
    def through(ledger: Ledger) -> GateRun:
        scenes = _scenes(runner, PARENT, plan, f"null/{seed}/{place}")
        return run_gate(plan, ledger, f"null {place}", scenes, NullArena(runner), PERIOD_S)

    return through


def _fix(
    runner: Runner, bundle: Path, plan: GatePlan, seed: int, place: int
) -> Callable[[Ledger], GateRun]:
    def through(ledger: Ledger) -> GateRun:
        scenes = _scenes(runner, FAULTY, plan, f"fix/{seed}/{place}")
        return run_gate(plan, ledger, f"fix {place}", scenes, FixArena(runner, bundle), PERIOD_S)

    return through


def _scenes(runner: Runner, parent: RunSpec, plan: GatePlan, name: str) -> Scenes:
    """Draw the blocks of a gate; failed scenes are those on which the parent fails once.

    Raises:
        GateError: it hardly fails.
    """
    budget, failed = plan.budget, list[Trial]()
    for trial in _trials(f"{name}/development", MOST_TRIES):
        if not runner.run(parent, trial).success:
            again = _trials(f"{name}/again/{len(failed)}", 1)[0]
            failed.append(replace(trial, policy_seed=again.policy_seed))
        if len(failed) == budget.same_scene:
            break
    else:
        raise GateError(f"{parent.policy} failed on {len(failed)} of {MOST_TRIES} scenes only")
    return Scenes(
        failed=tuple(failed),
        regression=_trials(f"{name}/regression", budget.no_harm),
        sealed=_trials(f"{name}/sealed", budget.confirmation),
    )


def _trials(name: str, count: int) -> tuple[Trial, ...]:
    return tuple(
        Trial(_number(f"{name}/scene/{k}"), _number(f"{name}/seed/{k}")) for k in range(count)
    )


def _seed(arm: Arm, trial: Trial) -> int:
    return _number(f"{arm}/{trial.scene}/{trial.policy_seed}")


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


@contextmanager
def fix_bundle(runner: Runner, seed: int) -> Iterator[Path]:
    """Make a folder with the planted fix and the moments at which it intervenes."""
    with tempfile.TemporaryDirectory(prefix="zetta-") as folder:
        bundle = Path(folder) / "fix"
        write_fix(bundle)
        spec = replace(FAULTY, bundle=str(bundle), options={**FAULTY.options, **SHARE})
        trials = _trials(f"moments/{seed}", DEVELOPMENT)
        past = [_moments(runner.episode(spec, trial)[0]) for trial in trials]
        (bundle / OWN_TRIGGERS).write_text(triggers_text(past), encoding="utf-8")
        yield bundle


def _moments(result: EpisodeResult) -> Episode:
    most = result.scene.task.max_steps
    return tuple(Trigger(r.tick / most, r.skill) for r in result.recoveries)


def _reached(run: GateRun) -> bool:
    return any(stage.stage == "parent" for stage in run.verdict.stages)


def _pairs(run: GateRun) -> tuple[PairedOutcome, ...]:
    evidence = run.evidence
    return evidence.same_scene + evidence.no_harm + evidence.parent
