"""The world of a campaign: episodes of a simulator, with bundles, through the journal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from zetta.critics.shadow import replay_verdicts
from zetta.runtime.cli.assemble import find_scene, find_simulator
from zetta.runtime.cli.deploy import OWN_TRIGGERS
from zetta.runtime.cli.evolve_episodes import RECOVERY, Errand, snapshot_before
from zetta.runtime.cli.evolve_rollouts import Rollouts, Wanted
from zetta.runtime.cli.replay_critics import monitor_of
from zetta.runtime.core import Monitor, RunSpec, Sensing, Verdict, Window
from zetta.runtime.episode_log import HEADER, LoggedEpisode, read_episode
from zetta.runtime.errors import InfraError
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.skill_arbiter import SKILL_PREFIX
from zetta.runtime.success_rates import wilson
from zetta.skills.bundles import NO_BUNDLE, load_bundle
from zetta.skills.evolve.branches import Continuation
from zetta.skills.evolve.gate_run import Arm, ArmTrial, Trial, TrialOutcome
from zetta.skills.evolve.generation_records import ArmReport, Developed, SkillUse
from zetta.skills.evolve.worlds import BranchWish, is_checked
from zetta.skills.random_triggers import Trigger, triggers_text

ARMS: Final[tuple[Arm, ...]] = ("parent", "candidate", "sham", "random")
SHOWN: Final = {"signals": "yes"}
HELD_BACK: Final = {"shadow": "yes"}
FOR_SKILLS: Final = ("recovery_share", "localizer", "depth_noise", "critic_isolation")
"""Options that say something only where a bundle is deployed."""
SPARED: Final[tuple[Arm, ...]] = ("parent", "sham")
"""Arms that differ from the candidate only where it intervenes."""
TIMED: Final = 4
"""Logged episodes on which critics are timed."""


class SimWorld:
    """Runs everything that a campaign wants of one suite."""

    def __init__(self, base: RunSpec, root: Path, rollouts: Rollouts, control_hz: float) -> None:
        """`base` says simulator, suite, policy, sensing and options; `root` is the campaign's."""
        self._base, self._root, self._rollouts = base, root, rollouts
        self.sensing: Sensing = base.sensing
        self.control_hz = control_hz
        self._read: dict[str, LoggedEpisode] = {}
        self._parent, self._logs = NO_BUNDLE, root

    def begin(self, parent: str, logs: Path) -> None:
        """Say who is developed on, and where its logs go; see `World`."""
        self._parent, self._logs = parent, logs

    def develop(self, trials: Sequence[Trial]) -> tuple[Developed, ...]:
        """Run the parent with every signal; see `World`."""
        logs = self._logs
        names = [f"{k:03d}" for k in range(len(trials))]
        records = self._rollouts.run(
            [
                (self._logged(trial), Errand(log=str((logs / name).resolve())))
                for name, trial in zip(names, trials, strict=True)
            ]
        )
        return tuple(
            Developed(
                name=name,
                trial=trial,
                log=str((logs / name).relative_to(self._root)),
                success=None if record is None else record.success,
                ticks=0 if record is None else record.ticks,
                scene_digest="" if record is None else record.scene_digest,
            )
            for name, trial, record in zip(names, trials, records, strict=True)
        )

    def read(self, episode: Developed) -> LoggedEpisode:
        """Return a log, made again where it was lost; see `World`.

        Raises:
            InfraError: it was lost and cannot be made again.
        """
        if episode.log not in self._read:
            folder = self._root / episode.log
            if not (folder / HEADER).exists():
                errand = Errand(log=str(folder.resolve()))
                self._rollouts.run([(self._logged(episode.trial), errand)])
            if not (folder / HEADER).exists():
                raise InfraError(f"{folder} is lost and cannot be made again; see the workers' log")
            self._read[episode.log] = read_episode(folder)
        return self._read[episode.log]

    def branch(self, wishes: Sequence[BranchWish], skills: Path) -> tuple[Continuation, ...]:
        """Continue failures; see `World`."""
        wanted: list[Wanted] = []
        for wish in wishes:
            log = self._root / wish.episode.log
            snapshot = snapshot_before(log, wish.at)
            if snapshot is None:
                raise InfraError(f"{log} holds no snapshot at or before tick {wish.at}")
            errand = Errand(
                snapshot=str(snapshot.resolve()),
                at=wish.at,
                kind=wish.change.kind,
                skill=wish.change.skill,
                bundle=str(skills) if wish.change.skill else "",
                seed=wish.seed,
            )
            wanted.append((self._logged(wish.episode.trial), errand))
        records = self._rollouts.run(wanted)
        return tuple(
            _continuation(wish, errand, record)
            for wish, (_, errand), record in zip(wishes, wanted, records, strict=True)
        )

    def arena(self, candidate: Path) -> SimArena:
        """Return where the arms are run; see `World`."""
        return SimArena(self, candidate)

    def watch_only(self, candidate: Path, trials: Sequence[Trial]) -> list[TrialOutcome]:
        """Run a candidate in shadow mode; see `World`."""
        specs = [self._placed(str(candidate), trial) for trial in trials]
        wanted = [(replace(s, options={**s.options, **HELD_BACK}), Errand()) for s in specs]
        return [outcome_of(record) for record in self._rollouts.run(wanted)]

    def record_moments(self, candidate: Path, trials: Sequence[Trial]) -> None:
        """Write when the candidate intervened; see `World`."""
        records = self.arm_records(candidate, [("candidate", t) for t in trials])
        past = [_moments(record) for record in records if record is not None]
        most = self._most_steps(trials)
        text = triggers_text(
            [tuple(Trigger(tick / most, skill) for tick, skill in episode) for episode in past]
        )
        (candidate / OWN_TRIGGERS).write_text(text, encoding="utf-8")

    def report(self, candidate: Path, trials: Sequence[Trial]) -> list[ArmReport]:
        """Return how every arm did; see `World`."""
        wanted: list[ArmTrial] = [(arm, trial) for arm in ARMS for trial in trials]
        records = self.arm_records(candidate, wanted)
        size = len(trials)
        return [
            _arm_report(arm, self._base.suite, trials, records[k * size : (k + 1) * size])
            for k, arm in enumerate(ARMS)
        ]

    def show(self, candidate: Path, trial: Trial, log: Path) -> None:
        """Run a candidate once more on a trial and log it, so that people can look at it."""
        spec = self._placed(str(candidate), trial)
        self._rollouts.run([(spec, Errand(log=str(log.resolve())))])

    def spent(self) -> tuple[int, float]:
        """Return rollouts and CPU seconds so far; see `World`."""
        spent = self._rollouts.spent
        return spent.rollouts, spent.cpu_s

    def arm_records(
        self, candidate: Path, wanted: Sequence[ArmTrial]
    ) -> list[EpisodeRecord | None]:
        """Run arms on trials."""
        bundles: Mapping[Arm, str] = {
            "parent": self._parent,
            "candidate": str(candidate),
            "sham": f"sham:{candidate}",
            "random": f"random:{candidate}",
        }
        return self._rollouts.run(
            [(self._placed(bundles[arm], trial), Errand()) for arm, trial in wanted]
        )

    def critic_p99_s(self, candidate: Path) -> float:
        """Return what the candidate's critics take in a tick on logged episodes, 99th percentile.

        Seconds of wall time, over the first logs of the development block.

        Raises:
            InfraError: there is no log to time them on.
        """
        bundle = load_bundle(str(candidate))
        timed = list[float]()
        for path in sorted(self._logs.glob(f"*/{HEADER}"))[:TIMED]:
            logged = read_episode(path.parent)
            clock = _Timed(monitor_of(bundle, logged.header.instruction, self.control_hz))
            replay_verdicts(logged.ticks, clock, self.control_hz, logged.header.result.stop)
            timed += clock.taken
        if not timed:
            raise InfraError(f"{self._logs} holds no log on which critics could be timed")
        return float(np.quantile(timed, 0.99))

    # ------------------------------------------------------------------ inside

    def _most_steps(self, trials: Sequence[Trial]) -> int:
        spec = self._placed(NO_BUNDLE, trials[0])
        return find_scene(find_simulator(spec.sim), spec).task.max_steps

    def _placed(self, bundle: str, trial: Trial) -> RunSpec:
        options = dict(self._base.options)
        if bundle == NO_BUNDLE:
            options = {k: v for k, v in options.items() if k not in FOR_SKILLS}
        return replace(
            self._base, task=trial.task, seed=trial.scene, policy_seed=trial.policy_seed,
            bundle=bundle, options=options,
        )  # fmt: skip

    def _logged(self, trial: Trial) -> RunSpec:
        spec = self._placed(self._parent, trial)
        return replace(spec, options={**self._base.options, **SHOWN})


@dataclass(frozen=True, slots=True)
class SimArena:
    """The four arms of one candidate."""

    world: SimWorld
    candidate: Path

    def run(self, wanted: Sequence[ArmTrial]) -> Sequence[TrialOutcome]:
        """Run episodes; see `Arena`.

        Where the candidate stays quiet, its run is its parent's and its sham's, action for action:
        those are not run, except a tenth of them that checks it.
        """
        trials = list(dict.fromkeys(trial for arm, trial in wanted if arm in SPARED))
        own = dict(zip(trials, self._records("candidate", trials), strict=True))
        known = {("candidate", trial): record for trial, record in own.items()}
        for arm in dict.fromkeys(arm for arm, _ in wanted):
            asked = [trial for each, trial in wanted if each == arm]
            quiet = [
                t for t in asked if arm in SPARED and _is_quiet(own[t]) and not is_checked(t.scene)
            ]
            known |= {(arm, trial): own[trial] for trial in quiet}
            rest = [trial for trial in asked if (arm, trial) not in known]
            known |= zip([(arm, t) for t in rest], self._records(arm, rest), strict=True)
        return [outcome_of(known[each]) for each in wanted]

    def _records(self, arm: Arm, trials: Sequence[Trial]) -> list[EpisodeRecord | None]:
        return self.world.arm_records(self.candidate, [(arm, trial) for trial in trials])

    def critic_p99_s(self) -> float:
        """Return what critics take; see `Arena`."""
        return self.world.critic_p99_s(self.candidate)


class _Timed:
    """A monitor whose judgements are timed."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.taken: list[float] = []

    def begin(self) -> None:
        self._monitor.begin()

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        start = time.perf_counter()
        said = self._monitor.judge(window, driving)
        self.taken.append(time.perf_counter() - start)
        return said


def _is_quiet(record: EpisodeRecord | None) -> bool:
    return record is not None and not record.recoveries


def outcome_of(record: EpisodeRecord | None) -> TrialOutcome:
    """Return what a comparison needs of a record; None stands for an error of machinery."""
    if record is None:
        return TrialOutcome(None, True, "", "", 0)
    return TrialOutcome(
        success=record.success,
        fired=bool(record.recoveries),
        scene_digest=record.scene_digest,
        actions=record.actions,
        ticks=record.ticks,
        late_ticks=record.late_ticks,
    )


def _continuation(wish: BranchWish, errand: Errand, record: EpisodeRecord | None) -> Continuation:
    name = f"{wish.episode.name}@{Path(errand.snapshot).stem}+{wish.at}"
    if record is None:
        return Continuation(name, wish.at, wish.change, wish.seed, None, error="see the log")
    return Continuation(
        name, wish.at, wish.change, wish.seed, record.success, record.ticks,
        record.sources.get(RECOVERY, 0), record.actions,
    )  # fmt: skip


def _moments(record: EpisodeRecord) -> tuple[tuple[int, str], ...]:
    return tuple((each.tick, each.skill) for each in record.recoveries)


def _arm_report(
    arm: Arm, suite: str, trials: Sequence[Trial], records: Sequence[EpisodeRecord | None]
) -> ArmReport:
    ran = [(t, r) for t, r in zip(trials, records, strict=True) if r is not None]
    won, runs = Counter[str](), Counter[str]()
    for trial, record in ran:
        task = f"{suite}/{trial.task}"
        won[task] += record.success
        runs[task] += 1
    ticks = sum(record.ticks for _, record in ran)
    skills = sum(
        count
        for _, r in ran
        for source, count in r.sources.items()
        if source.startswith(SKILL_PREFIX)
    )
    successes = sum(won.values())
    low, high = wilson(successes, len(ran))
    return ArmReport(
        arm, successes, len(ran), low, high, skills / max(1, ticks),
        {task: (won[task], runs[task]) for task in sorted(runs)},
        ticks, _uses([record for _, record in ran]),
    )  # fmt: skip


def _uses(records: Sequence[EpisodeRecord]) -> tuple[SkillUse, ...]:
    pairs = Counter((each.skill, each.critic) for r in records for each in r.recoveries)
    return tuple(
        _use(skill, critic, count, records) for (skill, critic), count in pairs.most_common()
    )


def _use(skill: str, critic: str, count: int, records: Sequence[EpisodeRecord]) -> SkillUse:
    own = [
        (record.success, ticks)
        for record in records
        if (ticks := [e.ticks for e in record.recoveries if (e.skill, e.critic) == (skill, critic)])
    ]
    solved = sum(success for success, _ in own)
    return SkillUse(skill, critic, count, len(own), solved, sum(sum(t) for _, t in own))
