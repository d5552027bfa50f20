"""Whether something grows: slopes of memory, open files and shared memory over a long run.

A trend of samples taken every second says less than it seems, because each is like the one before;
so samples are averaged in blocks first, and the line goes through the blocks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.stats import linregress, t

BLOCKS: Final = 12
WARM_UP: Final = 1 / 3
"""Share of the run that is not judged: caches fill, allocators settle."""
CONFIDENCE: Final = 0.95
FLAT: Final = 1e-100
"""Values that differ by less are equal: the squares of smaller differences are 0 as floats."""
PROC: Final = Path("/proc")
SHARED_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process and its descendants hold at one moment."""

    time_s: float
    own_bytes: int
    """Resident memory of the process itself."""
    children_bytes: int
    """Resident memory of its descendants."""
    files: int
    """Open descriptors of all of them."""
    segments: int
    """Files in /dev/shm, whoever made them."""


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth in one hour, with its 95 % interval."""

    per_hour: float
    low: float
    high: float

    def negligible(self, bound: float) -> bool:
        """Say that no growth can be told: the interval holds 0, or ends below `bound`."""
        return self.low <= 0.0 or self.high < bound


def slope(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope of `values` after the warm-up, through the means of blocks.

    Raises:
        ValueError: too few samples for two in each block.

    >>> slope(range(60), [5.0] * 60)
    Slope(per_hour=0.0, low=0.0, high=0.0)
    """
    begin = times_s[0] + WARM_UP * (times_s[-1] - times_s[0])
    kept = [(time, value) for time, value in zip(times_s, values, strict=True) if time >= begin]
    if len(kept) < 2 * BLOCKS:
        raise ValueError(f"got {len(kept)} samples after the warm-up, need {2 * BLOCKS}")
    blocks = [block.mean(axis=0) for block in np.array_split(np.array(kept), BLOCKS)]  # (2,) each
    x, y = np.array(blocks).T
    if np.ptp(y) < FLAT:
        return Slope(0.0, 0.0, 0.0)
    fitted = linregress(x / 3600.0, y)
    half = float(t.ppf((1 + CONFIDENCE) / 2, BLOCKS - 2) * fitted.stderr)
    steep = float(fitted.slope)
    return Slope(steep, steep - half, steep + half)


def sample(time_s: float, pid: int | None = None) -> Sample:
    """Look at the process `pid` (this one by default) and everything below it."""
    root = os.getpid() if pid is None else pid
    below = descendants(root)
    return Sample(
        time_s,
        _resident_bytes(root),
        sum(_resident_bytes(each) for each in below),
        sum(_open_files(each) for each in (root, *below)),
        len(list(SHARED_MEMORY.iterdir())) if SHARED_MEMORY.is_dir() else 0,
    )


def descendants(root: int) -> list[int]:
    """Return the processes below `root`, whichever session they are in; not those that ended."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit() and (found := _parent(folder)) is not None:
            children.setdefault(found, []).append(int(folder.name))
    found_below: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found_below += below
        waiting += below
    return found_below


def _parent(folder: Path) -> int | None:
    try:
        state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None  # it has ended meanwhile
    return None if state == "Z" else int(parent)


def _resident_bytes(pid: int) -> int:
    try:
        pages = (PROC / str(pid) / "statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _open_files(pid: int) -> int:
    try:
        return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return 0
