"""A bar over bytes with speed and time left on stderr; plain lines where that is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from zetta.runtime.cli import colours, output

REDRAWN_S: Final = 0.1
Reached: TypeAlias = Callable[[int, int], None]
"""Called with how many bytes are finished in all, and how many there are; 0 if nobody knows."""


def in_words(size: float) -> str:
    """Return bytes as people say them.

    >>> in_words(537_000_000), in_words(3_737_778_549), in_words(1200)
    ('537 MB', '3.7 GB', '1 kB')
    """
    for unit, least, digits in (("GB", 1e9, 1), ("MB", 1e6, 0), ("kB", 1e3, 0)):
        if size >= least:
            return f"{size / least:.{digits}f} {unit}"
    return f"{size:.0f} bytes"


@contextmanager
def byte_progress(what: str) -> Iterator[Reached]:
    """Show how far `what` has come."""
    if not colours.lively(sys.stderr):
        yield _plain(what)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        job = bar.add_task(what, total=None)
        drawn = 0.0

        def reached(done: int, total: int) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn >= REDRAWN_S or done == total:  # drawing costs more than a block
                drawn = now
                bar.update(job, completed=done, total=total or None)

        yield reached


def _plain(what: str) -> Reached:
    start = last = time.monotonic()
    first: int | None = None

    def reached(done: int, total: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None:  # what lay here before says nothing about the speed
            first = done
        if now - last < output.PLAIN_PROGRESS_S and done != total:
            return
        last = now
        speed = (done - first) / max(now - start, 1e-9)
        of = f" of {in_words(total)}" if total else ""
        left = f", {(total - done) / speed:.0f} s left" if total and speed else ""
        output.note(f"{what}: {in_words(done)}{of}, {in_words(speed)}/s{left}")

    return reached
