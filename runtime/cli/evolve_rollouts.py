"""Every rollout of a campaign, run once: what is in the journal is not run again.

The journal is a folder of shards beside the stage records. A campaign that is killed loses the
episodes in hand and nothing else, and no finished scene is run a second time.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from zetta.runtime.cli.deploy import bundle_digest
from zetta.runtime.cli.evolve_episodes import FACTORY, Errand, EvolvingEpisodes, sent_on
from zetta.runtime.cli.worker_environment import pool_settings
from zetta.runtime.core import RunSpec
from zetta.runtime.episode_log import HEADER
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.rollouts.factory import EpisodeFactory, EpisodeRecord
from zetta.runtime.rollouts.launchers import Job
from zetta.runtime.rollouts.messages import record_from_json, record_to_json, spec_to_json
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.runtime.rollouts.shards import ShardFolder
from zetta.skills.evolve.campaign import read_manifest

JOURNAL: Final = "rollouts"
WORKER_LOGS: Final = "workers"
IN_PROCESS: Final = frozenset({"toy"})
"""Simulators whose episodes are quicker than the start of a worker."""
TRIES: Final = 3
"""How often an episode is tried in this process when the machinery fails."""
Wanted: TypeAlias = tuple[RunSpec, Errand]
Told: TypeAlias = Callable[[int, int, str], None]
"""Told how many of how many are done, and what runs."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a campaign has taken so far in this process."""

    rollouts: int
    """Episodes and continuations, in the journal."""
    cpu_s: float
    """Of this process and its workers, in this run of the command."""


def workers_of(sim: str, workers: int, folder: Path) -> PoolSettings | None:
    """Return how episodes of a campaign in `folder` are run; None for in this process.

    Raises:
        InfraError: the simulator draws with OpenGL and no backend works here.
    """
    if sim in IN_PROCESS:
        return None
    return pool_settings(sim, FACTORY, folder / WORKER_LOGS, workers)


class Rollouts:
    """Runs what is wanted on workers, or in this process where no pool is given."""

    def __init__(
        self,
        folder: Path,
        campaign: str,
        pool: PoolSettings | None,
        told: Told,
        factory: Callable[[], EpisodeFactory] = EvolvingEpisodes,
        reuse: Path | None = None,
    ) -> None:
        """Continue the journal in `folder` of the campaign with the hash `campaign`.

        `factory` makes what runs episodes in this process. `reuse` is another campaign: an episode
        that it has run, with the same scene, seeds, policy and bundle, is taken from there.

        Raises:
            ConfigError: the journal is another campaign's, or damaged.
        """
        self._root, self._pool, self._told = folder.resolve(), pool, told
        self._factory = factory
        self._shards = ShardFolder(folder / JOURNAL, campaign)
        self._here: EpisodeFactory | None = None
        self._known = _journal(self._shards)
        self._reuse = reuse
        self._borrowed = {} if reuse is None else _journal(_shards_of(reuse))

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return Spent(len(self._known), sum(each.ru_utime + each.ru_stime for each in used))

    def close(self) -> None:
        """Close the journal and what was kept to run in this process."""
        self._shards.close()
        if self._here is not None:
            self._here.close()

    def run(self, wanted: Sequence[Wanted]) -> list[EpisodeRecord | None]:
        """Return the record of everything wanted, in order; None where the machinery failed.

        Raises:
            ConfigError, SpecMismatch: something wanted does not exist.
        """
        keys = [self._key(spec, errand) for spec, errand in wanted]
        for key, (_, errand) in zip(keys, wanted, strict=True):
            self._borrow(key, errand)
        missing = {
            key: each
            for key, each in zip(keys, wanted, strict=True)
            if key not in self._known or self._lost(each[1])
        }
        for done, (key, record) in enumerate(self._carried_out(missing), start=1):
            if record is not None and key not in self._known:
                self._shards.append({"key": key, "record": record_to_json(record)})
            if record is not None:
                self._known[key] = record
            self._told(done, len(missing), _said(missing[key][0]))
        return [self._known.get(key) for key in keys]

    def _borrow(self, key: str, errand: Errand) -> None:
        """Take an episode from the other campaign, with its log."""
        if self._reuse is None or key in self._known or key not in self._borrowed:
            return
        if errand.log:
            theirs = self._reuse / self._inside(errand.log)
            if not (theirs / HEADER).exists():
                return
            shutil.copytree(theirs, errand.log, dirs_exist_ok=True)
        self._known[key] = self._borrowed[key]
        self._shards.append({"key": key, "record": record_to_json(self._known[key])})

    def _carried_out(
        self, missing: dict[str, Wanted]
    ) -> Iterator[tuple[str, EpisodeRecord | None]]:
        if self._pool is None:
            for key, (spec, errand) in missing.items():
                yield key, self._in_this_process(sent_on(spec, errand))
            return
        jobs = [
            Job(key, f"{spec.suite}/{spec.task}", sent_on(spec, errand))
            for key, (spec, errand) in missing.items()
        ]
        with closing(Pool(self._pool)) as pool:
            for outcome in pool.run(jobs):
                yield outcome.job.key, outcome.record

    def _in_this_process(self, spec: RunSpec) -> EpisodeRecord | None:
        if self._here is None:
            self._here = self._factory()
        for _ in range(TRIES):
            try:
                return self._here.run(spec, Nobody())
            except InfraError:
                continue
        return None

    def _key(self, spec: RunSpec, errand: Errand) -> str:
        """Return the content key: what is deployed counts, not where it lies."""
        plain = {**spec_to_json(replace(spec, bundle="")), "bundle": bundle_digest(spec)}
        told = {**asdict(errand), "log": self._inside(errand.log)}
        told["snapshot"] = self._inside(errand.snapshot)
        del told["strip"]  # pictures are no rollouts, so no key of the journal tells of them
        if errand.bundle:
            told["bundle"] = bundle_digest(replace(spec, bundle=errand.bundle))
        return hashlib.sha256(json.dumps([plain, told], sort_keys=True).encode()).hexdigest()[:32]

    def _inside(self, path: str) -> str:
        return str(Path(path).resolve().relative_to(self._root)) if path else ""

    def _lost(self, errand: Errand) -> bool:
        """Say whether a log that was written is gone; only logs are ever made again."""
        return bool(errand.log) and not (Path(errand.log) / HEADER).exists()


class Nobody:
    """A watch that nobody looks at."""

    def phase(self, text: str) -> None:
        """Tell nobody."""

    def tick(self, index: int) -> None:
        """Tell nobody."""


def _said(spec: RunSpec) -> str:
    return f"{spec.suite}/{spec.task}"


def _shards_of(campaign: Path) -> ShardFolder:
    return ShardFolder(campaign / JOURNAL, read_manifest(campaign).digest)


def _journal(shards: ShardFolder) -> dict[str, EpisodeRecord]:
    """Return what was run, by content key.

    Raises:
        ConfigError: a row is no rollout.
    """
    found = {}
    for place, row in enumerate(shards.rows(), start=1):
        try:
            found[str(row["key"])] = record_from_json(row["record"])
        except (KeyError, TypeError, SpecMismatch) as error:
            raise ConfigError(
                f"row {place} of the journal in {shards.folder} is no rollout ({error!r}); take "
                "that line out, and its episode is run again"
            ) from None
    return found
