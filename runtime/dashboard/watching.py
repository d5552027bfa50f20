"""What runs now: unfinished logs that say how far they are, and folders that somebody holds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from zetta.runtime.dashboard.records import LOCK, identify
from zetta.runtime.live_episode import LIVE, read_live

FRESH_S: Final = 15.0
"""An episode that was silent for longer is shown as silent."""
LOST_S: Final = 120.0
"""One that was silent for longer, in a folder that nobody holds, is shown no more."""
MOST: Final = 64
"""Running episodes that are shown."""
LOCKS: Final = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Running:
    """An episode that runs now."""

    id: str
    """The id that it will have in the index."""
    run: str
    name: str
    silent_s: float
    known: dict[str, Any]


def held_inodes() -> frozenset[int] | None:
    """Return the inodes of files that somebody has locked; None where the system does not tell.

    Nothing is locked to find out: a lock that is tried for a moment could turn a run away.
    """
    try:
        lines = LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    places = (part.split(":") for line in lines for part in line.split() if part.count(":") == 2)
    return frozenset(int(place[2]) for place in places if place[2].isdecimal())


def is_held(run: Path, held: frozenset[int] | None) -> bool:
    """Say whether a command works on this run now."""
    if held is None:
        return False
    try:
        return (run / LOCK).stat().st_ino in held
    except OSError:
        return False


def running_episodes(
    root: Path, partial: Iterable[tuple[str, str, bool]], now: float | None = None
) -> list[Running]:
    """Return the episodes that run, the ones that began last first.

    Args:
        root: of the paths.
        partial: folder of each unfinished log, its run, and whether somebody holds that run.
        now: seconds since 1970.
    """
    moment = time.time() if now is None else now
    found = []
    for path, run, held in partial:
        folder = root / path
        try:
            silent = max(0.0, moment - (folder / LIVE).stat().st_mtime)
        except OSError:
            continue
        if silent > LOST_S and not held:
            continue
        known = read_live(folder)
        if known is None:
            continue
        parent, _, name = path.rpartition("/")
        plain = name[1:].rpartition(".partial-")[0]
        final = f"{parent}/{plain}" if parent else plain
        # In steps, for what has not changed is not told again.
        steps = 5.0 * (silent // 5.0)
        found.append(Running(identify(final), run, plain, steps, asdict(known)))
    return sorted(found, key=lambda each: -float(each.known["started"]))[:MOST]


def state_of(held: bool, done: int, planned: int | None, silent_s: float | None) -> str:
    """Return `running`, `finished` or `stopped`.

    Args:
        held: somebody holds the run's folder.
        done: episodes that are in.
        planned: those that are to be, where that is known.
        silent_s: of the liveliest running episode; None where none runs.
    """
    if held or (silent_s is not None and silent_s < FRESH_S):
        return "running"
    if silent_s is not None or (planned is not None and done < planned):
        return "stopped"
    return "finished"


def process_memory_mb() -> float:
    """Return the memory of this process that is in RAM, in megabytes; 0 where nothing tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
