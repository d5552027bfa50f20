"""Keeps the index in step with the folders: laps over them that read only what is new.

A lap asks each folder that may change for its time of change, and lists it only when that is
another one. A logged episode never changes its files, so its folder is a leaf that no lap looks at;
its row is known by path and inode.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from zetta.runtime.dashboard.records import (
    LOCK,
    MANIFEST,
    MARKERS,
    PLAN,
    RESULTS,
    RUN,
    EpisodeRow,
    RunRow,
    identify,
    read_log_row,
    read_plan,
    read_run,
    read_shard_row,
)
from zetta.runtime.dashboard.store import Store
from zetta.runtime.episode_log import JUDGEMENT

DEEPEST: Final = 8
"""Folders below the root that are looked into."""
SETTLED_NS: Final = 2_000_000_000
"""A folder that changed less than this ago is listed again: clocks of file systems are coarse."""
BATCH: Final = 100
"""Rows of one transaction."""
PIECE: Final = 4 << 20
"""Bytes of a shard that are read at once."""
LAP_S: Final = 1.0
REST: Final = 20.0
"""A `run.json` that took a while to read is left alone for that many times as long."""
PARTIAL: Final = ".partial-"
UNJUDGED_MOST: Final = 500
"""Episodes of arms that are looked at again in a lap."""


@dataclass(slots=True)
class _Folder:
    """What is remembered of a folder between two laps."""

    changed: int = -1
    """Its time of change, ns, when it was listed; -1 to list it again."""
    folders: list[str] = field(default_factory=list)
    """Names of those that must be looked into."""
    partial: list[str] = field(default_factory=list)
    """Names of logs that are being written."""
    shards: list[str] = field(default_factory=list)
    run: RunRow | None = None
    """The run that it belongs to; None above all runs."""


class Indexer:
    """Walks below `root`, in a thread of its own once it is started."""

    def __init__(self, root: Path, store: Store) -> None:
        """`root` is a folder of runs, or one run."""
        self.root, self._store = root, store
        self.partial: dict[str, str] = {}
        """Id of the run by folder of an unfinished log, relative to the root."""
        self.pending = 0
        """Logs that were found and are not read yet."""
        self.laps = 0
        self.problem = ""
        """What keeps the index from being whole, in words."""
        self._folders: dict[str, _Folder] = {}
        self._known: dict[str, dict[str, tuple[int, str]]] = {}
        for row in store.rows("SELECT path, inode, id FROM episodes WHERE path != ''"):
            parent, _, name = str(row["path"]).rpartition("/")
            self._known.setdefault(parent or ".", {})[name] = (row["inode"], row["id"])
        self._runs = {row["id"]: RunRow(**row) for row in store.rows("SELECT * FROM runs")}
        self._read = {
            row["path"]: (row["inode"], row["read"])
            for row in store.rows("SELECT path, inode, read FROM shards")
        }
        self._rests: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="dashboard index", daemon=True)

    def start(self) -> None:
        """Walk until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, soon."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _work(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.lap()
                self.problem = ""
            except (OSError, sqlite3.Error) as error:
                self.problem = f"the index cannot be kept: {error}"
            except Exception as error:  # pages must not be shown from an index that has died
                self.problem = f"the index stands still: {type(error).__name__}: {error}"
            # Folders by the thousand are looked at less often than a few.
            self._stop.wait(max(LAP_S, 5 * (time.monotonic() - began)))

    def lap(self) -> None:
        """Look at everything once; afterwards the index holds what was there when it began."""
        seen: set[str] = set()
        runs: set[str] = set()
        partial: dict[str, str] = {}
        for path, folder in self._walk(seen):
            if self._stop.is_set():
                return
            if folder.run is None:
                continue
            runs.add(folder.run.id)
            for name in folder.partial:
                partial[_join(path, name)] = folder.run.id
            for name in folder.shards:
                self._read_shard(_join(path, name), folder.run)
            if not self.laps:  # the first lap may take long
                self.partial = dict(partial)
        self.partial = partial
        self._forget(seen, runs)
        self._hear_judgements()
        self.laps += 1

    def _walk(self, seen: set[str]) -> Iterator[tuple[str, _Folder]]:
        """Yield every folder that is no leaf; later names come first, for they are newer."""
        stack: list[tuple[str, RunRow | None, int]] = [(".", None, 0)]
        while stack:
            path, run, depth = stack.pop()
            try:
                changed = (self.root / path).stat().st_mtime_ns
            except OSError:
                continue
            seen.add(path)
            folder = self._folders.setdefault(path, _Folder())
            if folder.changed != changed:
                hot = time.time_ns() - changed < SETTLED_NS
                folder.changed = -1 if hot else changed
                folder.run = run
                self._list(path, folder)
            yield path, folder
            if depth < DEEPEST:
                stack += [(_join(path, name), folder.run, depth + 1) for name in folder.folders]

    def _list(self, path: str, folder: _Folder) -> None:
        """List a folder: read what is new in it and find what is gone."""
        try:
            with os.scandir(self.root / path) as listing:
                # A name that is no text can be neither shown nor kept.
                entries = {entry.name: entry for entry in listing if _is_text(entry.name)}
        except OSError:
            return
        if folder.run is None and any(name in entries for name in MARKERS):
            folder.run = self._begin_run(path, LOCK in entries)
        if folder.run is not None:
            self._read_facts(path, folder, entries)
        folders = {n: e.inode() for n, e in entries.items() if e.is_dir(follow_symlinks=False)}
        folder.partial = [n for n in folders if n.startswith(".") and PARTIAL in n]
        folder.shards = sorted(
            n for n in entries if n.startswith("episodes-") and n.endswith(".jsonl")
        )
        open_to_all = {n: inode for n, inode in folders.items() if not n.startswith(".")}
        folder.folders = sorted(self._sort_out(path, folder, open_to_all))

    def _sort_out(self, path: str, folder: _Folder, found: dict[str, int]) -> list[str]:
        """Read the logs among the folders `found` and return those that are none."""
        known = self._known.setdefault(path, {})
        self._store.forget_episodes(
            known.pop(name)[1]
            for name in [n for n, (inode, _) in known.items() if found.get(n) != inode]
        )
        others: list[str] = []
        fresh: list[EpisodeRow] = []
        new = [name for name in sorted(found) if name not in known]
        for number, name in enumerate(new):
            self.pending = len(new) - number
            row = self._read_log(path, folder, name, found[name])
            if row is None:
                others.append(name)
            else:
                known[name] = (row.inode, row.id)
                fresh.append(row)
            if len(fresh) >= BATCH:
                self._store.keep_episodes(fresh)
                fresh = []
            if self._stop.is_set():
                break
        self._store.keep_episodes(fresh)
        self.pending = 0
        return others

    def _read_log(self, path: str, folder: _Folder, name: str, inode: int) -> EpisodeRow | None:
        run = folder.run or self._row_of(path)
        row = read_log_row(self.root, self.root / path / name, run, inode)
        if row is not None and folder.run is None:  # a plain folder of logs is a run, too
            folder.run = self._begin_run(path, False)
        return row

    def _hear_judgements(self) -> None:
        """Read again what nobody had judged; an arm does not know whether it succeeded."""
        waiting = self._store.rows(
            "SELECT path, run, inode FROM episodes WHERE success IS NULL AND error = '' "
            "AND path != '' LIMIT ?",
            (UNJUDGED_MOST,),
        )
        for row in waiting:
            folder = self.root / row["path"]
            run = self._runs.get(row["run"])
            if run is not None and (folder / JUDGEMENT).exists():
                found = read_log_row(self.root, folder, run, row["inode"])
                self._store.keep_episodes([] if found is None else [found])

    # ------------------------------------------------------------------ runs

    def _row_of(self, path: str) -> RunRow:
        inside = Path(path)
        name = self.root.name if path == "." else inside.as_posix()
        return RunRow(identify("run", path), path, name)

    def _begin_run(self, path: str, locked: bool) -> RunRow:
        row = self._row_of(path)
        known = self._runs.get(row.id)
        if known is not None:
            return known
        place = self.root / path / LOCK if locked else self.root / path
        with contextlib.suppress(OSError):
            row = replace(row, begun=place.stat().st_mtime)
        return self._keep_run(row)

    def _keep_run(self, row: RunRow) -> RunRow:
        if self._runs.get(row.id) != row:
            self._runs[row.id] = row
            self._store.keep_run(row)
        return row

    def _read_facts(self, path: str, folder: _Folder, entries: dict[str, os.DirEntry[str]]) -> None:
        """Read what a run says of itself, where this folder holds such a file."""
        assert folder.run is not None
        row = self._runs.get(folder.run.id, folder.run)
        own = row.path == path
        if own and MANIFEST in entries:
            row = replace(row, kind="campaign")
        if own and RESULTS in entries:
            row = replace(row, planned=None)
        if PLAN in entries:
            row = read_plan(self.root / path / PLAN, row)
        if own and RUN in entries:
            if time.monotonic() < self._rests.get(path, 0.0):
                folder.changed = -1
            else:
                began = time.monotonic()
                told = read_run(self.root / path, row)
                self._rests[path] = began + (REST + 1) * (time.monotonic() - began)
                row = told.row
                self._store.keep_episodes(told.reports)
        folder.run = self._keep_run(row)

    # ------------------------------------------------------------------ shards

    def _read_shard(self, path: str, run: RunRow) -> None:
        """Read the lines that were added to a shard."""
        place = self.root / path
        try:
            facts = place.stat()
            inode, read = self._read.get(path, (facts.st_ino, 0))
            if inode != facts.st_ino or facts.st_size < read:
                read = 0
            while read < facts.st_size and not self._stop.is_set():
                with place.open("rb") as file:
                    file.seek(read)
                    piece = file.read(PIECE)
                whole = piece[: piece.rfind(b"\n") + 1]
                if not whole:
                    return
                read += len(whole)
                lines = (_object(line) for line in whole.splitlines())
                rows = (read_shard_row(line, run, facts.st_mtime) for line in lines)
                self._store.keep_shard(path, facts.st_ino, read, [r for r in rows if r is not None])
                self._read[path] = (facts.st_ino, read)
        except OSError:
            return

    # ------------------------------------------------------------------ what is gone

    def _forget(self, seen: set[str], runs: set[str]) -> None:
        for path in [p for p in self._known if p not in seen]:
            self._store.forget_episodes(each for _, each in self._known.pop(path).values())
        for path in [p for p in self._folders if p not in seen]:
            del self._folders[path]
        for run in [r for r in self._runs if r not in runs]:
            del self._runs[run]
            self._store.forget_run(run)
        for path in [p for p in self._read if p.rpartition("/")[0] not in (*seen, "")]:
            self._store.forget_shard(path)
            del self._read[path]


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _join(path: str, name: str) -> str:
    return name if path == "." else f"{path}/{name}"


def _object(line: bytes) -> dict[str, object]:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}
