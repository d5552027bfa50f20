"""Branches of a logged episode: as it was, and with a skill that starts at a tick.

The episode is run again up to the tick and compared with its log, action for action and state for
state. There everything is copied, and each branch goes on from the copy: with the policy's own
seed first, then with others. Where a part cannot be copied, each branch is run from the reset.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import Assembled, Assembler
from zetta.runtime.cli.counterfactual_records import (
    Continuation,
    Exactness,
    Recorded,
    compare,
    continuation_of,
    ordered_of,
)
from zetta.runtime.cli.counterfactual_request import MARK, Branch, Question
from zetta.runtime.cli.deploy import Candidate
from zetta.runtime.core import (
    Array,
    Env,
    EnvSpec,
    EpisodeResult,
    RunSpec,
    Scene,
    SnapshotEnv,
    Step,
    Tick,
)
from zetta.runtime.episode_log import EpisodeLog, LoggedEpisode
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.loop import POLICY
from zetta.runtime.skill_arbiter import SkillArbiter
from zetta.runtime.snapshots import EpisodeSnapshot
from zetta.skills.evolve.branches import TRIES

WITHIN_S: Final = 1e9
"""Patience of an order that is only to find out when a skill could start, seconds."""


class _BranchLog:
    """A sink that writes a whole episode: what both branches share, then one of them."""

    def __init__(self, shared: Recorded | None, told: Callable[[int], None]) -> None:
        """`shared` is None where the branch is run from the reset and brings its own beginning."""
        self._shared, self._told = shared, told
        self.into: EpisodeLog | None = None

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        assert self.into is not None  # it is set before the episode begins
        if self._shared is None or self._shared.settled is None:
            self.into.begin(scene, spec, instruction, step)
            return
        self.into.begin(scene, spec, instruction, self._shared.settled)
        for moment in self._shared.moments:
            self.into.tick(*moment)

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        assert self.into is not None
        self.into.tick(tick, step, pose)
        self._told(tick.index)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        assert self.into is not None
        self.into.end(result, pose)


class Brancher:
    """Runs the branches of one question, one after the other, in this process."""

    def __init__(
        self,
        question: Question,
        record: LoggedEpisode,
        spec: RunSpec,
        told: Callable[[int], None] = lambda tick: None,
    ) -> None:
        """`told` hears the ticks that are run."""
        self._question, self._record, self._spec = question, record, spec
        self._told = told
        self._assembler = Assembler(output.command_line())
        self._shared = Recorded()
        self._snapshot: EpisodeSnapshot | None = None

    def close(self) -> None:
        """Close the environment and the policy."""
        self._assembler.close()

    def env(self) -> Env:
        """Return the environment in the episode's scene, for pictures."""
        env = self._assembler.assemble(self._spec).env
        env.reset(self._record.header.scene)
        return env

    def begin(self) -> Exactness:
        """Run the episode up to the tick, compare it with its log, and copy it.

        Raises:
            ConfigError: a skill drives at that tick, or the episode ends before it.
        """
        shared, tick = Recorded(), self._question.tick
        made = self._assembler.assemble(self._spec, sinks=[shared])
        self._check_parts(made)
        with made.episode as episode:
            episode.begin()
            while episode.result is None and episode.index < tick:
                episode.tick()
                self._told(episode.index)
            if episode.result is not None:
                raise ConfigError(
                    f"run again, this episode ends after {episode.result.ticks} ticks "
                    f"({episode.result.reason}), before tick {tick}; nothing can be branched there"
                )
            if episode.source != POLICY:
                raise ConfigError(self._driven(episode.source))
            exactness = compare(self._record, shared.moments, _pose(made.env))
            try:
                self._snapshot = episode.snapshot()
            except ConfigError as error:
                output.note(f"each branch is run from the reset: {error}")
        self._shared = shared
        return exactness

    def check_skill(self) -> None:
        """Refuse a skill that would not start at the tick, and say when it could.

        Raises:
            ConfigError: it would not start.
        """
        asked = self._question
        with self._at_the_tick(asked.skill, Recorded()) as made:
            episode, arbiter = made.episode, _takes_orders(made)
            arbiter.order(asked.skill, 0.0)
            episode.tick()
            if ordered_of(arbiter.recoveries()) is not None:
                return
            why = arbiter.order_refused or "a critic ended the episode at this tick"
            if episode.result is None:
                arbiter.order(asked.skill, WITHIN_S)
            while episode.result is None and ordered_of(arbiter.recoveries()) is None:
                episode.tick()
                self._told(episode.index)
            later = ordered_of(arbiter.recoveries())
        when = (
            f"as this episode went, it could first start at tick {later.tick}"
            if later is not None
            else "as this episode went, it could not start at any later tick either"
        )
        raise ConfigError(
            f"the skill {asked.skill!r} does not start at tick {asked.tick}: {why}; {when}"
        )

    def run(self, branch: Branch, seed: int | None, log: Path) -> Continuation:
        """Run one branch to its end and log it; an error of the machinery is tried once more.

        Args:
            branch: which one.
            seed: of the policy from the tick on; None for its own.
            log: folder of its log, which must not exist.
        """
        error = ""
        for _ in range(TRIES):
            try:
                self._run(branch, seed, log)
            except InfraError as failure:
                error = f"{type(failure).__name__}: {failure}"
                shutil.rmtree(log, ignore_errors=True)
                continue
            return continuation_of(branch, self._seed(seed), log, self._record, self._question.tick)
        return Continuation(branch, self._seed(seed), None, error=error)

    def _run(self, branch: Branch, seed: int | None, log: Path) -> None:
        skill = self._question.skill if branch == "with the skill" else ""
        sink = _BranchLog(None if self._snapshot is None else self._shared, self._told)
        with self._at_the_tick(skill, sink, log) as made:
            if seed is not None:
                made.episode.reseed(seed)
            if skill:
                _takes_orders(made).order(skill, 0.0)
            while made.episode.result is None:
                made.episode.tick()

    @contextmanager
    def _at_the_tick(
        self, skill: str, sink: _BranchLog | Recorded, log: Path | None = None
    ) -> Iterator[Assembled]:
        """Give the episode at the tick; its arbiter takes orders for `skill`, if one is named."""
        asked = self._question
        candidate = Candidate(asked.folder, skill) if skill else None
        made = self._assembler.assemble(self._spec, sinks=[sink], candidate=candidate)
        if log is not None and isinstance(sink, _BranchLog):
            said = f"{skill or 'unchanged'} from tick {asked.tick} on"
            facts = replace(made.facts, options={**made.facts.options, MARK: said})
            sink.into = EpisodeLog(log, self._spec.sim, facts)
        with made.episode as episode:
            if self._snapshot is not None:
                episode.restore(self._snapshot)
            else:
                episode.begin()
            while episode.result is None and episode.index < asked.tick:
                episode.tick()
                self._told(episode.index)
            yield made

    def _seed(self, seed: int | None) -> int:
        return self._spec.policy_seed if seed is None else seed

    def _check_parts(self, made: Assembled) -> None:
        header = self._record.header
        now, then = made.facts.policy, header.run.policy
        if now is not None and then is not None and now.digest != then.digest:
            raise ConfigError(
                f"the policy {header.run.policy_name!r} is not the one of the log (its weights "
                "have another hash); serve that one, or run the episode again"
            )
        if made.scene != header.scene:
            raise ConfigError(
                f"this version makes another scene of what the log names: {made.scene} instead of "
                f"{header.scene}; run the episode again"
            )

    def _driven(self, source: str) -> str:
        """Return the sentence for a tick at which a skill drives."""
        ticks, at = self._record.ticks, self._question.tick
        last = next((t.index for t in ticks[at:] if t.source == POLICY), None)
        free = [t.index for t in ticks[:at] if t.source == POLICY]
        choices = [f"tick {free[-1] + 1}" if free else "", f"tick {last}" if last else ""]
        return (
            f"{source} drives at tick {at}, and branches part where the policy drives; choose "
            f"{' or '.join(filter(None, choices)) or 'another episode'}"
        )


def _takes_orders(made: Assembled) -> SkillArbiter:
    assert isinstance(made.arbiter, SkillArbiter)  # it was assembled with a candidate
    return made.arbiter


def _pose(env: Env) -> Array | None:
    return np.array(env.pose(), dtype=np.float64) if isinstance(env, SnapshotEnv) else None
