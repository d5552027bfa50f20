"""The agent that decides in calls from elsewhere: a client executes commands, this waits for it.

The episode has a thread of its own. There `decide` waits for the commands of a client; the next
`decide`, or the end of the episode, answers the client with what came of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from zetta.primitives.agent.called_cockpit import CalledCockpit, LookingCockpit, Questions
from zetta.primitives.agent.cockpit import Refusal, View
from zetta.primitives.agent.drive import Drive
from zetta.primitives.agent.records import Answer, Spent, Turn
from zetta.primitives.agent.verifier import Verification
from zetta.primitives.command_results import CommandResult
from zetta.primitives.overlays import Overlays
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick
from zetta.runtime.errors import ConfigError

_T = TypeVar("_T")

BEFORE: Final = "commands that had not begun"
MCP: Final = "mcp"
"""Name of the agent; the source of its ticks is `agent:mcp`."""
BUSY: Final = (
    "commands are still being carried out; wait for the answer of the call that gave them, or stop "
    "them"
)


@dataclass(frozen=True, slots=True)
class CameOf:
    """What came of the commands of one call."""

    results: tuple[CommandResult, ...]
    remarks: tuple[str, ...]
    turn: Turn | None
    """What is there to be decided on next; None where the episode is over."""
    verification: Verification | None = None
    """What the evidence says, where `done` was said."""
    over: str = ""
    """Why the episode is over; empty while it goes on."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a dry run says of commands."""

    understood: tuple[str, ...]
    """Each command as it was understood, with what was clipped, up to the first that was not."""
    refusal: str = ""
    """What is wrong; empty where nothing is."""


class McpAgent:
    """Gives what a client decides; every method beside those of an agent may be called anywhere."""

    name = MCP
    looks = True

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._questions = Questions()
        self._cockpit: CalledCockpit | None = None
        self._drive: Drive | None = None
        self._turn: Turn | None = None
        self._answer: Answer | None = None
        """What was decided and is not taken yet."""
        self._waiting: Future[CameOf] | None = None
        """Of the call whose commands are decided on or carried out."""
        self._memory = ""
        self._leaving = ""
        self._over = ""
        self._home = 0
        """The thread of the episode."""

    # ------------------------------------------------------------------ the episode's side

    def board(self, cockpit: LookingCockpit) -> CalledCockpit:
        """Return the cockpit in which this agent drives."""
        self._cockpit = CalledCockpit(cockpit, self._questions)
        return self._cockpit

    def attach(self, drive: Drive) -> None:
        """Take the drive, which is interrupted and asked what came of its last turn."""
        self._drive = drive

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Note whose thread this is; the first `decide` tells the rest."""
        self._home = threading.get_ident()

    def decide(self, turn: Turn) -> Answer:
        """Answer the last call with what came of it, and wait for the next one."""
        waiting = None
        with self._changed:
            self._turn = turn
            if self._answer is None:  # else it was given before the first turn and is not taken yet
                waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set_result(self._came_of(turn))
        start = time.monotonic()
        answer = self._awaited()
        return replace(answer, spent=Spent(seconds=time.monotonic() - start))

    def close(self) -> None:
        """End the drive and refuse what still waits."""
        self.leave("the agent was closed")
        self.finish("the agent was closed")

    def _awaited(self) -> Answer:
        """Wait for a decision; in the thread of the episode, answer questions meanwhile."""
        at_home = threading.get_ident() == self._home
        while True:
            with self._changed:
                if self._leaving or self._over:  # nobody asks for it where it is over
                    return Answer((), leave=self._leaving or self._over)
                if self._answer is not None:
                    answer, self._answer = self._answer, None
                    return answer
            if not (at_home and self._questions.serve()):
                with self._changed:
                    self._changed.wait_for(self._anything)

    def _anything(self) -> bool:
        at_home = threading.get_ident() == self._home
        news = bool(self._leaving or self._over) or self._answer is not None
        return news or (at_home and self._questions.waiting)

    def _came_of(self, turn: Turn) -> CameOf:
        verification = None
        if self._drive is not None and self._drive.records:
            verification = self._drive.records[-1].verification
        return CameOf(turn.results, turn.remarks, turn, verification)

    def finish(self, reason: str) -> None:
        """Refuse all further calls, and answer the one that waits; only the first reason counts."""
        with self._changed:
            if self._over:
                return
            self._over = f"the episode is over: {reason}"
            waiting, self._waiting = self._waiting, None
            taken, self._answer = self._answer is None, None
            self._changed.notify_all()
        self._questions.close(self._over)
        if waiting is not None:
            waiting.set_result(self._last(taken))

    def _last(self, taken: bool) -> CameOf:
        """Return what came of the last turn, as far as its commands were taken up."""
        if not taken:
            return CameOf((), ("it ended before these commands were begun",), None, over=self._over)
        records = self._drive.records if self._drive is not None else []
        index = -1 if self._turn is None else self._turn.index
        if not records or records[-1].index != index:
            remark = "it ended while these commands were carried out"
            return CameOf((), (remark,), None, over=self._over)
        last = records[-1]
        return CameOf(last.results, last.refusals, None, last.verification, self._over)

    # ------------------------------------------------------------------ the client's side

    @property
    def over(self) -> str:
        """Why every call is refused; empty while the episode goes on."""
        return self._over

    @property
    def moving(self) -> str:
        """The command that is being carried out, as text; empty while none is."""
        return "" if self._cockpit is None else self._cockpit.moving

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras; none before the world is built."""
        return () if self._cockpit is None else self._cockpit.cameras

    @property
    def busy(self) -> bool:
        """Whether commands of a call are waited for."""
        with self._changed:
            return self._waiting is not None

    @property
    def turn(self) -> Turn | None:
        """What is there to be decided on; None before the episode has begun."""
        with self._changed:
            return self._turn

    @property
    def memory(self) -> str:
        """What the client wrote down."""
        with self._changed:
            return self._memory

    def remember(self, text: str) -> None:
        """Write down what the log keeps with the next decision.

        Raises:
            ConfigError: the episode is over.
        """
        with self._changed:
            self._check_open()
            self._memory = text

    def submit(self, commands: Sequence[str]) -> Future[CameOf]:
        """Let commands be carried out.

        Raises:
            ConfigError: the episode is over, or the commands of another call are carried out.
        """
        future: Future[CameOf] = Future()
        future.set_running_or_notify_cancel()  # what moves an arm is stopped, not forgotten
        with self._changed:
            self._check_open()
            if self._waiting is not None:
                raise ConfigError(BUSY)
            if self._cockpit is not None:
                self._cockpit.stopped.clear()
            self._waiting = future
            self._answer = Answer(tuple(commands), memory=self._memory)
            self._changed.notify_all()
        return future

    def stop(self) -> str:
        """Stop what is being carried out, and what has not begun; return what was going on.

        Raises:
            ConfigError: the episode is over.
        """
        with self._changed:
            self._check_open()
            waiting, moving = self._waiting, self.moving
            if waiting is None:
                return ""
            if self._answer is not None:  # nobody has taken it up yet
                self._answer = self._waiting = None
                waiting.set_result(CameOf((), ("it was stopped before it began",), self._turn))
                return BEFORE
            if self._cockpit is not None:
                self._cockpit.stopped.set()
        if self._drive is not None:
            self._drive.interrupt()
        return moving or BEFORE

    def leave(self, reason: str) -> None:
        """Stop what is being carried out and end the drive; allowed at any time."""
        with self._changed:
            self._leaving = self._leaving or reason
            if self._cockpit is not None:
                self._cockpit.stopped.set()
            self._changed.notify_all()
        if self._drive is not None:
            self._drive.interrupt()

    def look(
        self, cameras: Sequence[str] | None, overlays: Overlays | None
    ) -> Future[tuple[View, str]]:
        """Look through some cameras, or all; the future also says what is being carried out.

        Raises:
            ConfigError: the episode is over, or too many calls wait; in the future, if there is no
                such camera.
        """

        def work() -> tuple[View, str]:
            cockpit = self._boarded()
            names = cockpit.cameras if cameras is None else tuple(cameras)
            unknown = [name for name in names if name not in cockpit.cameras]
            if unknown:
                known = ", ".join(map(repr, cockpit.cameras))
                raise ConfigError(f"there is no camera {unknown[0]!r}; the cameras are {known}")
            return cockpit.look(names, overlays), cockpit.moving

        return self._ask(work)

    def rehearse(self, commands: Sequence[str]) -> Future[Rehearsal]:
        """Check commands together without carrying them out.

        Raises:
            ConfigError: the episode is over, or too many calls wait.
        """
        return self._ask(lambda: _rehearsed(self._boarded(), commands))

    def _ask(self, work: Callable[[], _T]) -> Future[_T]:
        with self._changed:
            future = self._questions.ask(work)
            self._changed.notify_all()
        return future

    def _boarded(self) -> CalledCockpit:
        assert self._cockpit is not None  # questions are answered by the cockpit's own thread
        return self._cockpit

    def _check_open(self) -> None:
        if self._over:
            raise ConfigError(self._over)


class EpisodeEnd:
    """The sink that tells a client how its episode ended."""

    def __init__(self, agent: McpAgent, drive: Drive) -> None:
        """Take who is told, and what says why."""
        self._agent, self._drive = agent, drive

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Need nothing."""

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Need nothing."""

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Tell what it came to, with what nobody is told before it is over."""
        if result.reason == "error":
            self._agent.finish(result.detail)
            return
        drive = self._drive
        parts = [drive.ended or result.detail or "the control steps of the episode are used up"]
        if drive.verification is not None:
            parts.append(f"by the evidence the task {_SAID[drive.verification.verified]}")
        parts.append(f"the world counts it as {'' if result.success else 'not '}solved")
        self._agent.finish("; ".join(parts))


_SAID: Final = {True: "is done", False: "is not done", None: "cannot be told to be done or not"}


def _rehearsed(cockpit: CalledCockpit, lines: Sequence[str]) -> Rehearsal:
    commands = []
    understood: list[str] = []
    for line in lines:
        try:
            parsed = cockpit.read(line)
        except ConfigError as error:
            return Rehearsal(tuple(understood), str(error))
        commands.append(parsed)
        understood.append("; ".join((cockpit.text(parsed), *parsed.notices)))
    refusal: Refusal | None = cockpit.check(commands, cockpit.proprio)
    if refusal is None:
        return Rehearsal(tuple(understood))
    return Rehearsal(tuple(understood), f"command {refusal.index + 1}: {refusal.reason}")
