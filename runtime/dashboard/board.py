"""What every view is given: the runs, their index, what runs now, and what was handed down."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zetta.runtime.dashboard.events import Hub
from zetta.runtime.dashboard.explaining import Explainer
from zetta.runtime.dashboard.films import Films
from zetta.runtime.dashboard.indexer import Indexer
from zetta.runtime.dashboard.records import EpisodeRow, RunRow
from zetta.runtime.dashboard.store import Store
from zetta.runtime.dashboard.watching import (
    Running,
    held_inodes,
    is_held,
    running_episodes,
)

WATCH_S: Final = 0.5
"""How often it is looked what runs now, while somebody watches."""
ALONE_S: Final = 3.0
"""The same while nobody does."""


@dataclass(frozen=True, slots=True)
class Handed:
    """What the command hands down, for it knows everybody; a view says what is missing."""

    explainer: Explainer | None = None
    campaigns: Any = None
    library: Any = None


class Board:
    """Everything the views share; closed with the server."""

    def __init__(
        self, root: Path, store: Store, films: Films, handed: Handed, version: str = ""
    ) -> None:
        """Prepare; `open` begins.

        Args:
            root: a folder of runs, or one run.
            store: the index.
            films: draws episodes.
            handed: what only the command can give.
            version: of Zetta.
        """
        self.root, self.store, self.films, self.handed = root, store, films, handed
        self.version, self.hub = version, Hub()
        self.indexer = Indexer(root, store)
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="dashboard watch", daemon=True)
        self._running: tuple[Running, ...] = ()
        self._held: frozenset[str] = frozenset()

    def open(self) -> None:
        """Begin to index and to watch."""
        self.indexer.start()
        self._watcher.start()

    def close(self) -> None:
        """End every thread and every drawing."""
        self._stop.set()
        self.hub.close()
        self.indexer.stop()
        if self._watcher.is_alive():
            self._watcher.join(5.0)
        self.films.close()
        self.store.close()

    # ------------------------------------------------------------------ runs and episodes

    def run(self, run: str) -> RunRow | None:
        """Return a run by its id."""
        return self.store.run(run)

    def episode(self, episode: str) -> EpisodeRow | None:
        """Return an episode by its id."""
        return self.store.episode(episode)

    def folder(self, row: RunRow | EpisodeRow) -> Path:
        """Return the folder of a row; paths come from the index and never from a browser."""
        return self.root / row.path

    # ------------------------------------------------------------------ what runs now

    @property
    def running(self) -> Sequence[Running]:
        """The episodes that run."""
        return self._running

    def is_running(self, run: str) -> bool:
        """Say whether a command works on a run now."""
        return run in self._held

    def look(self) -> None:
        """Look what runs now, and tell those who watch when something has changed."""
        held = held_inodes()
        runs = self.store.rows("SELECT id, path FROM runs")
        self._held = frozenset(r["id"] for r in runs if is_held(self.root / r["path"], held))
        partial = [(path, run, run in self._held) for path, run in self.indexer.partial.items()]
        self._running = tuple(running_episodes(self.root, partial))
        self.hub.tell(self.news())

    def news(self) -> dict[str, Any]:
        """Return what is sent to those who watch."""
        return {
            "revision": self.store.revision,
            "pending": self.indexer.pending,
            "indexed": self.indexer.laps > 0,
            "problem": self.indexer.problem,
            "running": list(self._running),
            "held": sorted(self._held),
            "films": self.films.states(),
        }

    def _watch(self) -> None:
        while not self._stop.is_set():
            # What keeps the index from being asked is told by the indexer.
            # A `live.json` may hold anything; the next look comes all the same.
            with contextlib.suppress(OSError, sqlite3.Error, ValueError, TypeError, RecursionError):
                self.look()
            waited = time.monotonic()
            pause = WATCH_S if self.hub.listeners else ALONE_S
            while time.monotonic() - waited < pause and not self._stop.wait(WATCH_S):
                pause = WATCH_S if self.hub.listeners else ALONE_S
