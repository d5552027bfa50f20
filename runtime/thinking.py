"""Work beside the loop: a thread, and pieces of work that are given up when they take too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from zetta.runtime.errors import Timeout

DEADLINE_S: Final = 60.0
"""A piece of work that takes longer has failed."""
END_WITHIN_S: Final = 5.0
"""How long the end of a program waits for what a thread still does."""

T = TypeVar("T")


class Thinker(Protocol):
    """Does one piece of work after the other, somewhere else."""

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work`; the future ends with what it returns or raises."""
        ...

    def close(self) -> None:
        """Take no more work."""
        ...


class ThinkingThread:
    """One thread that never holds up the end of the program, whatever it waits for."""

    def __init__(self, name: str = "zetta-policy") -> None:
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._think, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work`."""
        future: Future[T] = Future()
        self._work.put((future, work))
        return future

    def close(self) -> None:
        """Take no more work; the thread ends with what it does now."""
        self._work.put(None)

    def _think(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except Exception as error:  # the thread's boundary: whoever waits hears it
                future.set_exception(error)


class Thought(Generic[T]):
    """One piece of work under way."""

    def __init__(
        self, thinker: Thinker, work: Callable[[], T], what: str, deadline_s: float = DEADLINE_S
    ) -> None:
        """Begin `work`; `what` says in an error who is at it, and with what."""
        self._what, self._deadline_s = what, deadline_s
        self._give_up = time.monotonic() + deadline_s
        self._future = thinker.submit(work)

    @property
    def ready(self) -> bool:
        """Whether it is over, well or badly."""
        return self._future.done()

    def result(self, within_s: float | None = None) -> T | None:
        """Return what came of it, or None if that takes longer than `within_s`.

        None waits until it is over.

        Raises:
            Timeout: its deadline has passed.
            ZettaError: whatever the work raised.
        """
        left = max(0.0, self._give_up - time.monotonic())
        try:
            self._future.exception(left if within_s is None else min(left, within_s))
        except TimeoutError:
            if within_s is not None and time.monotonic() < self._give_up:
                return None
            raise Timeout(
                f"{self._what} for {self._deadline_s:g} s; use a faster device, or another one"
            ) from None
        return self._future.result()

    def drop(self) -> None:
        """Forget it; what has begun goes on to its end and nobody hears of it."""
        self._future.cancel()
