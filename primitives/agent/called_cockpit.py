"""A cockpit that also answers questions from other threads, between two ticks of its own thread.

A renderer belongs to the thread that made it, and commands are carried out in that thread; so what
somebody elsewhere wants to see or to know is asked here and answered there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from zetta.primitives.agent.cockpit import Cockpit, Refusal, View
from zetta.primitives.agent.verifier import Verification
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Parsed
from zetta.primitives.motions import Steps
from zetta.primitives.overlays import Overlays
from zetta.runtime.core import Look, Proprio
from zetta.runtime.errors import ConfigError, InfraError, ZettaError

_T = TypeVar("_T")

QUESTIONS_MOST: Final = 8
"""Questions that may wait at a time."""


class LookingCockpit(Cockpit, Protocol):
    """A cockpit that shows chosen cameras with chosen overlays."""

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras."""
        ...

    def look(self, cameras: Sequence[str], overlays: Overlays | None, proprio: Proprio) -> View:
        """Return what these cameras see; None draws what the drive was told to draw."""
        ...


@dataclass(frozen=True, slots=True)
class _Question:
    """Something that the thread of the episode shall do for another one."""

    answer: Callable[[], None]
    """Does it and sets the future, whatever comes of it."""
    fail: Callable[[str], None]
    """Sets the future to an error."""


class Questions:
    """What other threads want to know; bounded, answered by `serve`."""

    def __init__(self) -> None:
        self._waiting: deque[_Question] = deque()
        self._lock = threading.Lock()
        self._over = ""

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for an answer."""
        with self._lock:
            return bool(self._waiting)

    def ask(self, work: Callable[[], _T]) -> Future[_T]:
        """Let the thread of the episode do `work`.

        Raises:
            ConfigError: it is over, or too many wait already.
        """
        future: Future[_T] = Future()

        def answer() -> None:
            if not future.set_running_or_notify_cancel():
                return  # nobody waits for it any more
            try:
                future.set_result(work())
            except ZettaError as error:
                future.set_exception(error)
            finally:
                if not future.done():
                    future.set_exception(InfraError("the episode broke down over this question"))

        def fail(reason: str) -> None:
            if future.set_running_or_notify_cancel():
                future.set_exception(ConfigError(reason))

        with self._lock:
            if self._over:
                raise ConfigError(self._over)
            if len(self._waiting) >= QUESTIONS_MOST:
                raise ConfigError(
                    f"{QUESTIONS_MOST} calls wait for an answer already; wait for theirs first"
                )
            self._waiting.append(_Question(answer, fail))
        return future

    def serve(self) -> bool:
        """Answer the question that waits longest; return whether there was one."""
        with self._lock:
            question = self._waiting.popleft() if self._waiting else None
        if question is None:
            return False
        question.answer()
        return True

    def close(self, reason: str) -> None:
        """Refuse what waits and what comes."""
        with self._lock:
            self._over = reason
            left = list(self._waiting)
            self._waiting.clear()
        for question in left:
            question.fail(reason)


class CalledCockpit:
    """A cockpit whose motions answer questions between two ticks, and can be stopped beforehand.

    Attributes:
        moving: the command that is being carried out, as text; empty while none is.
        stopped: no command begins while this is set.
        proprio: what was felt last.
    """

    def __init__(self, cockpit: LookingCockpit, questions: Questions) -> None:
        """Ride on `cockpit`."""
        self.moving = ""
        self.stopped = threading.Event()
        self.proprio: Proprio
        self._cockpit, self._questions = cockpit, questions

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        return self._cockpit.arms

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras."""
        return self._cockpit.cameras

    def begin(self, proprio: Proprio) -> None:
        """Note where the arms and the things are before anything moves."""
        self.proprio = proprio
        self._cockpit.begin(proprio)

    def read(self, line: str) -> Parsed:
        """Understand a line of text.

        Raises:
            ConfigError: it is no command.
        """
        return self._cockpit.read(line)

    def text(self, command: Parsed) -> str:
        """Return a command as text."""
        return self._cockpit.text(command)

    def check(self, commands: Sequence[Parsed], proprio: Proprio) -> Refusal | None:
        """Check the commands of a turn together, before anything moves."""
        return self._cockpit.check(commands, proprio)

    def predictable(self, command: Parsed) -> bool:
        """Say whether the dry run knows where this command will end."""
        return self._cockpit.predictable(command)

    def run(self, command: Parsed) -> Steps[CommandResult]:
        """Carry out one command, unless everything was stopped before it began."""
        text = self._cockpit.text(command)
        if self.stopped.is_set():
            return CommandResult(text, False, "interrupted", "it was stopped before it began")
        self.moving = text
        try:
            return (yield from self._answering(self._cockpit.run(command)))
        finally:
            self.moving = ""

    def hold(self) -> Steps[None]:
        """Stay where the arms are for one tick."""
        yield from self._answering(self._cockpit.hold())

    def view(self, pictures: bool, proprio: Proprio) -> View:
        """Return what an agent is shown."""
        self.proprio = proprio
        return self._cockpit.view(pictures, proprio)

    def look(self, cameras: Sequence[str], overlays: Overlays | None) -> View:
        """Return what these cameras see now."""
        return self._cockpit.look(cameras, overlays, self.proprio)

    def verify(self) -> Verification:
        """Look whether the instruction was carried out."""
        return self._cockpit.verify()

    def _answering(self, steps: Steps[_T]) -> Steps[_T]:
        """Pass a motion on and answer questions after each tick."""
        try:
            wish = next(steps)
            while True:
                sense = yield wish
                self.proprio = sense.proprio
                if not isinstance(wish, Look):
                    self._questions.serve()
                wish = steps.send(sense)
        except StopIteration as stop:
            value: _T = stop.value
            return value
        finally:
            steps.close()
