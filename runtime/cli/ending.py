"""How a command that runs until it is told to end is told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Ending:
    """Whether and how the user wants it to end."""

    stop: threading.Event
    interrupted: bool = False


@contextmanager
def wish_to_end() -> Iterator[Ending]:
    """Turn the first SIGTERM or Ctrl-C into a wish to end; a second Ctrl-C ends at once."""
    ending = Ending(threading.Event())

    def hear(number: int, _: object) -> None:
        if ending.stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        ending.interrupted = number == signal.SIGINT
        ending.stop.set()

    before = {n: signal.signal(n, hear) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, old in before.items():
            signal.signal(number, old)
