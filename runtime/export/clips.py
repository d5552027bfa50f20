"""What is exported: stretches of logged episodes, and why others are left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow.parquet as pq

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import EnvSpec
from zetta.runtime.episode_log import HEADER, TICKS, EpisodeHeader, read_header
from zetta.runtime.errors import ConfigError, SpecMismatch

SKILL: Final = "skill:"
"""How the source of a tick begins that a skill drove."""
ORACLE: Final = "oracle:"
World: TypeAlias = tuple[str, str, int, str]
"""Simulator, suite, task and render profile: what one environment can draw."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """Which episodes, and which of their ticks, are wanted."""

    only_interventions: bool = False
    """Only what skills drove, with a margin around."""
    margin: int = 0
    """Ticks before and after an intervention."""
    successes: bool = False
    with_oracle: bool = False


@dataclass(frozen=True, slots=True)
class Clip:
    """A stretch of one logged episode that becomes one episode of the export."""

    folder: str
    digest: str
    """SHA-256 of the episode's header."""
    world: World
    instruction: str
    first: int
    """First tick."""
    ticks: int


@dataclass(frozen=True, slots=True)
class Selection:
    """What will be exported, in this order."""

    spec: EnvSpec
    """Of the first clip; rate, actions and arms are those of all."""
    clips: tuple[Clip, ...]
    sources: tuple[str, ...]
    """Who drove at all, `policy` first; a clip may hold fewer."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Why episodes were left out, and how many."""

    @property
    def ticks(self) -> int:
        """How many there are in all."""
        return sum(clip.ticks for clip in self.clips)

    @property
    def skills(self) -> tuple[str, ...]:
        """Names of the skills among the sources."""
        return tuple(s.removeprefix(SKILL) for s in self.sources if s.startswith(SKILL))

    @property
    def instructions(self) -> tuple[str, ...]:
        """Every instruction once, in the order of the clips."""
        return tuple(dict.fromkeys(clip.instruction for clip in self.clips))


def select(paths: Sequence[Path], wishes: Wishes) -> Selection:
    """Look through logs and choose; only headers are read, and who drove.

    Clips of one world follow each other, so that each world is built once.

    Raises:
        ConfigError: no log is there, or none is left, or they do not go into one data set.
        SpecMismatch: a log was written in another format.
    """
    skipped: dict[str, int] = {}
    clips: list[Clip] = []
    sources: set[str] = set()
    spec: EnvSpec | None = None
    for folder in logs_below(paths):
        header = read_header(folder)
        why = _unwanted(header, wishes)
        found = () if why else _clips(folder, header, wishes)
        if not found:
            why = why or ("without interventions" if wishes.only_interventions else "without ticks")
            skipped[why] = skipped.get(why, 0) + 1
            continue
        spec = spec or header.spec
        _check_alike(spec, header.spec, folder)
        clips += found
        sources |= header.result.sources.keys()
    if spec is None:
        left_out = ", ".join(f"{count} {why}" for why, count in skipped.items())
        raise ConfigError(f"nothing is left to export of {_named(paths)}: {left_out}")
    order = {world: i for i, world in enumerate(dict.fromkeys(clip.world for clip in clips))}
    clips.sort(key=lambda clip: order[clip.world])
    drivers = tuple(sorted(sources, key=lambda source: (source != "policy", source)))
    return Selection(spec, tuple(clips), drivers, skipped)


def logs_below(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders of finished logs, each once, in the order of their names.

    Raises:
        ConfigError: a path holds none.
    """
    seen: set[Path] = set()
    for path in paths:
        found = sorted(
            header.parent
            for header in path.rglob(HEADER)
            if not any(part.startswith(".") for part in header.relative_to(path).parts)
        )
        if not found:
            raise ConfigError(
                f"{path} holds no logged episode; give a run folder, or the folder of one episode"
            )
        for folder in found:
            if (real := folder.resolve()) not in seen:
                seen.add(real)
                yield folder


def is_oracle(header: EpisodeHeader) -> bool:
    """Say whether simulator truth had a part in what was done."""
    drivers = header.result.sources
    return header.run.sensing == "oracle" or any(s.startswith(ORACLE) for s in drivers)


def stretches(sources: Sequence[str], margin: int) -> tuple[tuple[int, int], ...]:
    """Return first and end of what skills drove, with a margin; what then touches is one.

    >>> stretches(["policy", "policy", "skill:a", "policy", "policy", "policy"], 1)
    ((1, 4),)
    """
    found: list[tuple[int, int]] = []
    for i, source in enumerate(sources):
        if not source.startswith(SKILL):
            continue
        first, end = max(0, i - margin), min(len(sources), i + margin + 1)
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return tuple(found)


def _unwanted(header: EpisodeHeader, wishes: Wishes) -> str:
    """Return why an episode is left out; empty if it is not."""
    if not header.complete:
        return "cut short by an error"
    if is_oracle(header) and not wishes.with_oracle:
        return "with oracle sensing"
    if wishes.successes and not header.result.success:
        return "not solved"
    return ""


def _clips(folder: Path, header: EpisodeHeader, wishes: Wishes) -> tuple[Clip, ...]:
    task = header.scene.task
    world = (header.sim, task.suite, task.index, header.run.render)
    digest = hashlib.sha256((folder / HEADER).read_bytes()).hexdigest()
    try:
        if wishes.only_interventions:
            column = pq.read_table(folder / TICKS, columns=["source"]).column("source")
            parts = stretches(column.to_pylist(), wishes.margin)
        else:
            count = pq.read_metadata(folder / TICKS).num_rows
            parts = ((0, count),) if count else ()
    except UNREADABLE as error:
        raise ConfigError(f"the log {folder} cannot be read: {error}") from error
    where = str(folder.resolve())
    return tuple(
        Clip(where, digest, world, header.instruction, first, end - first) for first, end in parts
    )


def _check_alike(one: EnvSpec, other: EnvSpec, folder: Path) -> None:
    """Refuse what does not go into one data set.

    Raises:
        SpecMismatch: rate, actions or arms differ.
    """
    for what, ours, theirs in (
        ("control rate", f"{one.control_hz:g} Hz", f"{other.control_hz:g} Hz"),
        ("action", one.action, other.action),
        ("arms", one.arms, other.arms),
    ):
        if ours != theirs:
            raise SpecMismatch(
                f"{folder} has another {what} than the episodes before it (got {theirs}, expected "
                f"{ours}); a data set has one, so export them into folders of their own"
            )


def _named(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
