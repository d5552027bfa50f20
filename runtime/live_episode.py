"""What is known of an episode while it runs: a small file beside its log, for whoever watches.

A log is written when its episode ends. Until then `live.json`, in the folder of the unfinished log,
says which tick it is and who drives; it is gone when the log is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from zetta.runtime.core import Scene, Tick
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.records import from_json, to_json

LIVE: Final = "live.json"
EVERY_S: Final = 0.5
"""Least time between two writings."""
FORMAT: Final = "zetta-live-1"


@dataclass(frozen=True, slots=True)
class LiveEpisode:
    """`live.json`."""

    sim: str
    suite: str
    task: int
    init: str
    """The init's number, or `sampled`."""
    seed: int
    instruction: str
    policy: str
    bundle: str
    sensing: str
    control_hz: float
    max_steps: int
    started: float
    """Seconds since 1970."""
    tick: int = -1
    """The last one that was carried out; -1 before the first."""
    source: str = ""
    """Who drove it."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """Ticks driven so far by each source."""
    interventions: int = 0
    said: str = ""
    """What a critic said last, and at which tick."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Of the last tick."""
    success: bool = False
    """The goal holds now."""
    format: str = FORMAT


class LiveFile:
    """Keeps `live.json` of one episode; a disk that refuses costs the episode nothing."""

    def __init__(
        self, folder: Path, first: LiveEpisode, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Write what is known before the first tick into `folder`."""
        self._path, self._known, self._clock = folder / LIVE, first, clock
        self._sources: Counter[str] = Counter()
        self._source, self._said, self._interventions = "", "", 0
        self._write(first)

    def tick(self, tick: Tick, success: bool) -> None:
        """Take one tick; write, if the last writing is long enough ago."""
        if tick.source != self._source and self._source and tick.source != "policy":
            self._interventions += 1
        self._source = tick.source
        self._sources[tick.source] += 1
        for verdict in tick.verdicts:
            if verdict.decision != "pass":
                self._said = f"tick {tick.index}: {verdict.critic}: {verdict.reason}"
        if self._clock() - self._written < EVERY_S:
            return
        self._write(
            replace(
                self._known,
                tick=tick.index,
                source=tick.source,
                sources=self._sources,
                interventions=self._interventions,
                said=self._said,
                signals={name: float(value) for name, value in tick.signals.items()},
                success=bool(success),
            )
        )

    def close(self) -> None:
        """Take the file away: the log takes its place."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _write(self, known: LiveEpisode) -> None:
        self._written = self._clock()
        fresh = self._path.with_name(f".{LIVE}.{os.getpid()}")
        with contextlib.suppress(OSError, SpecMismatch):
            fresh.write_text(json.dumps(to_json(known), allow_nan=False), encoding="utf-8")
            fresh.replace(self._path)


def live_episode(
    scene: Scene, instruction: str, sim: str, control_hz: float, ran: tuple[str, str, str]
) -> LiveEpisode:
    """Return what is known of an episode before its first tick.

    Args:
        scene: where it starts.
        instruction: what the policy is told.
        sim: of the scene.
        control_hz: ticks per second.
        ran: names of the policy and the bundle, and the sensing level.
    """
    task = scene.task
    return LiveEpisode(
        sim, task.suite, task.index, str(scene.layout), scene.seed, instruction, *ran,
        control_hz, task.max_steps, time.time(),
    )  # fmt: skip


def read_live(folder: Path) -> LiveEpisode | None:
    """Return what `live.json` of an unfinished log says; None where there is none to be read."""
    try:
        plain = json.loads((folder / LIVE).read_text(encoding="utf-8"))
        return from_json(LiveEpisode, plain)
    except (OSError, ValueError, SpecMismatch):
        return None
