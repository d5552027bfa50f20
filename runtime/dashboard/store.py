"""The index on disk: one SQLite file in the cache, made anew whenever it does not fit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Final

from zetta.runtime.dashboard.records import EpisodeRow, RunRow
from zetta.runtime.errors import InfraError

SCHEMA: Final = 1
"""A file with another number is thrown away: everything in it can be read again."""
BUSY_S: Final = 10.0
CACHED: Final = 64
"""Answers that are kept until something changes."""
_EPISODE: Final = tuple(f.name for f in fields(EpisodeRow))
_RUN: Final = tuple(f.name for f in fields(RunRow))
_TABLES: Final = (
    f"CREATE TABLE episodes ({', '.join(_EPISODE)}, PRIMARY KEY (id)) WITHOUT ROWID",
    f"CREATE TABLE runs ({', '.join(_RUN)}, PRIMARY KEY (id)) WITHOUT ROWID",
    "CREATE TABLE shards (path PRIMARY KEY, inode, read) WITHOUT ROWID",
    # Everything that a list is filtered or counted by, so that a count reads no wide row.
    "CREATE INDEX by_run ON episodes (run, success, error, ended)",
    "CREATE INDEX by_path ON episodes (path)",
    "CREATE INDEX by_ended ON episodes (ended)",
    "CREATE INDEX by_scene ON episodes (scene)",
)


class Store:
    """Rows of runs and episodes; any thread may read, one at a time writes."""

    def __init__(self, path: Path) -> None:
        """Open the index at `path`, or begin it.

        Raises:
            InfraError: it cannot be written there.
        """
        self._path = path
        self._own = threading.local()
        self._writing = threading.Lock()
        self._open: list[sqlite3.Connection] = []
        self._cached: dict[str, tuple[int, Any]] = {}
        self.revision = 0
        """Grows with every change."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._begin()
        except (OSError, sqlite3.Error) as error:
            raise InfraError(f"the index {path} cannot be written: {error}") from error

    def _begin(self) -> None:
        try:
            fits = self._connection().execute("PRAGMA user_version").fetchone()[0] == SCHEMA
        except sqlite3.DatabaseError:  # damaged
            fits = False
        if fits:
            return
        self.close()
        for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
            self._path.with_name(name).unlink(missing_ok=True)
        with self.change() as connection:
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _connection(self) -> sqlite3.Connection:
        """Return the connection of this thread."""
        known: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if known is None:
            known = sqlite3.connect(
                self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            known.row_factory = sqlite3.Row
            known.execute("PRAGMA journal_mode = WAL")
            known.execute("PRAGMA synchronous = OFF")  # it can be made again
            self._own.connection = known
            self._open.append(known)
        return known

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one transaction."""
        with self._writing:
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            self.revision += 1

    def rows(self, query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return what a query finds."""
        return [dict(row) for row in self._connection().execute(query, tuple(values))]

    def cached(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, made once for each key until something changes."""
        revision = self.revision
        known = self._cached.get(key)
        if known is not None and known[0] == revision:
            return known[1]
        made = make()
        if len(self._cached) >= CACHED:
            self._cached.clear()
        self._cached[key] = (revision, made)
        return made

    def keep_episodes(self, rows: Iterable[EpisodeRow]) -> None:
        """Add rows, or replace those of the same id."""
        rows = tuple(rows)
        if not rows:
            return
        marks = ", ".join("?" * len(_EPISODE))
        with self.change() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO episodes VALUES ({marks})", (astuple(r) for r in rows)
            )

    def keep_run(self, row: RunRow) -> None:
        """Add a run, or replace it."""
        marks = ", ".join("?" * len(_RUN))
        with self.change() as connection:
            connection.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", astuple(row))

    def keep_shard(self, path: str, inode: int, read: int, rows: Iterable[EpisodeRow]) -> None:
        """Keep new lines of a shard together with how far it was read."""
        marks = ", ".join("?" * len(_EPISODE))
        with self.change() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO episodes VALUES ({marks})", (astuple(r) for r in rows)
            )
            connection.execute(
                "INSERT OR REPLACE INTO shards VALUES (?, ?, ?)", (path, inode, read)
            )

    def forget_shard(self, path: str) -> None:
        """Forget how far a shard was read."""
        with self.change() as connection:
            connection.execute("DELETE FROM shards WHERE path = ?", (path,))

    def forget_episodes(self, ids: Iterable[str]) -> None:
        """Take rows away whose files are gone."""
        gone = [(each,) for each in ids]
        if gone:
            with self.change() as connection:
                connection.executemany("DELETE FROM episodes WHERE id = ?", gone)

    def forget_run(self, run: str) -> None:
        """Take a run away with its episodes."""
        with self.change() as connection:
            connection.execute("DELETE FROM episodes WHERE run = ?", (run,))
            connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    def run(self, run: str) -> RunRow | None:
        """Return a run."""
        found = self.rows("SELECT * FROM runs WHERE id = ?", (run,))
        return RunRow(**found[0]) if found else None

    def episode(self, episode: str) -> EpisodeRow | None:
        """Return an episode."""
        found = self.rows("SELECT * FROM episodes WHERE id = ?", (episode,))
        return EpisodeRow(**found[0]) if found else None

    def close(self) -> None:
        """Close every connection."""
        while self._open:
            self._open.pop().close()
        self._own = threading.local()
