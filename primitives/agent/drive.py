"""One drive: an agent decides in turns, its commands are checked, carried out and told back.

A drive is a motion, so the loop keeps the tick, critics keep watching, and closing it interrupts
whatever runs. While the agent of a robot thinks, the arm holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar, cast

from zetta.primitives.agent.cockpit import Cockpit, TurnRecord, View
from zetta.primitives.agent.records import Agent, Answer, Limits, Spent, Turn
from zetta.primitives.agent.verifier import Verification
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Done, Parsed
from zetta.primitives.motions import Steps
from zetta.runtime.core import Look, Motion, Outcome, Sense
from zetta.runtime.errors import ConfigError

_T = TypeVar("_T")

WAIT_S: Final = 0.1
"""How often somebody looks at the clock while an agent thinks and the world waits, seconds."""
MUTE_TURNS: Final = 3
"""Answers in a row that could not be read, after which the agent is given up."""
EMPTY_DONES: Final = 3
"""A `done` said so often in a row without evidence ends the drive."""
HISTORY_TURNS: Final = 12
HISTORY_WIDTH: Final = 200
MEMORY_MOST: Final = 2500
"""Characters of what an agent writes down for itself."""


class Drive:
    """Lets an agent drive; `motion` once.

    Attributes:
        records: one for each turn so far.
        spent: what all decisions cost.
        ended: why it is over; empty while it goes on.
        verification: what the evidence says of the task in the end; None where nobody looked.
    """

    def __init__(
        self,
        agent: Agent,
        cockpit: Cockpit,
        instruction: str,
        limits: Limits,
        *,
        paced: bool = False,
        think_ahead: bool = False,
        watched: bool = False,
        keep: Sequence[Callable[[TurnRecord, View], None]] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put the parts together.

        Args:
            agent: decides.
            cockpit: reads, checks, carries out and looks.
            instruction: what the agent is told to do.
            limits: what it may spend.
            paced: the ticks go on while it thinks, and the arm holds; else the world waits.
            think_ahead: ask for the next turn while the last command of a turn still runs, where
                its end is predictable; for agents that remember nothing between two decisions,
                because an answer to what did not come is thrown away.
            watched: draw the pictures of each turn also for an agent that does not look.
            keep: are given each turn as soon as it is over, with what the agent was shown.
            now: a monotonic clock, seconds.
        """
        self.records: list[TurnRecord] = []
        self.spent = Spent()
        self.ended = ""
        self.verification: Verification | None = None
        self._agent, self._cockpit, self._instruction = agent, cockpit, instruction
        self._limits, self._paced, self._ahead = limits, paced, think_ahead
        self._looks = agent.looks or watched
        self._keep, self._now = tuple(keep), now
        apart = paced or think_ahead or limits.wall_s > 0.0
        self._thread = ThreadPoolExecutor(1, "agent") if apart else None
        self._next: Future[Answer] | None = None
        """The answer of the coming turn, where it was asked for ahead of time."""
        self._memory = ""
        self._ticks = 0
        self._mute = self._idle = self._dones = 0
        self._sense: Sense
        self._start = 0.0
        self._begun = False
        self._stopped = threading.Event()

    def interrupt(self) -> None:
        """Stop the command that runs, from any thread; the agent is told and decides anew."""
        self._stopped.set()

    def motion(self) -> Motion:
        """Drive until the agent is done or something is spent.

        Raises:
            ConfigError: the agent cannot do such a task.
            InfraError: the model behind the agent cannot be reached.
        """
        self._start = self._now()
        try:
            self._agent.begin(self._instruction, self._cockpit.arms)
            self._sense = yield from self._counted(_present())
            self._cockpit.begin(self._sense.proprio)
            self._begun = True
            results: tuple[CommandResult, ...] = ()
            remarks: tuple[str, ...] = ()
            while not self.ended:
                results, remarks = yield from self._turn(results, remarks)
                self.ended = self.ended or self._spent_out()
            self.judge()
            return Outcome(self.ended.startswith("done"), self.ended)
        finally:
            self._stop_thinking()

    def judge(self, ended: str = "") -> None:
        """Look how it came out, where nobody has, and note why it is over, where nobody knows."""
        self.ended = self.ended or ended
        if self.verification is None and self._begun:
            self.verification = self._cockpit.verify()

    # ------------------------------------------------------------------ one turn

    def _turn(
        self, results: tuple[CommandResult, ...], remarks: tuple[str, ...]
    ) -> Steps[tuple[tuple[CommandResult, ...], tuple[str, ...]]]:
        """Show, decide, check, carry out, keep; return what the next turn is told."""
        began, ahead = self._ticks, self._next is not None
        view = self._cockpit.view(self._looks, self._sense.proprio)
        answer = yield from self._decided(self._shown(view, results, remarks))
        thought = self._ticks - began
        self.spent = self.spent.plus(answer.spent)
        if answer.leave:
            self.ended = answer.leave
            return (), ()
        self._memory = (answer.memory or self._memory)[:MEMORY_MOST]
        commands, refusals = self._understood(answer)
        done = bool(commands) and isinstance(commands[-1].command, Done)
        moves = commands[:-1] if done else commands
        came = yield from self._carried_out(moves)
        verification = None
        if done and all(result.completed for result in came):
            verification = self._cockpit.verify()
            refusals += self._judged(verification)
        elif not done:
            self._dones = 0
        self._watch(answer, came, done)
        record = TurnRecord(
            len(self.records),
            began,
            view.state,
            remarks,
            answer,
            came,
            refusals,
            thought,
            ahead,
            verification,
        )
        self.records.append(record)
        for keep in self._keep:
            keep(record, view)
        return came, refusals

    def _shown(
        self,
        view: View,
        results: tuple[CommandResult, ...],
        remarks: tuple[str, ...],
        later: int = 0,
    ) -> Turn:
        """Return what an agent is shown now, or in the turn that comes `later`."""
        index = len(self.records) + later
        return Turn(
            index=index,
            instruction=self._instruction,
            state=view.state,
            results=results,
            remarks=remarks,
            pictures=view.pictures,
            memory=self._memory,
            history=tuple(_line(record) for record in self.records[-HISTORY_TURNS:]),
            turns_left=self._limits.turns - index,
            commands_left=self._limits.commands_per_turn,
        )

    def _understood(self, answer: Answer) -> tuple[tuple[Parsed, ...], tuple[str, ...]]:
        """Return the commands to carry out, and what is wrong: all is checked, or nothing moves."""
        if answer.trouble:
            return (), (answer.trouble,)
        if not answer.commands:
            return (), ("the answer held no command; give at least one, or 'done'",)
        most = self._limits.commands_per_turn
        remarks = list(answer.remarks)
        if len(answer.commands) > most:
            remarks.append(f"only the first {most} of {len(answer.commands)} commands were taken")
        parsed: list[Parsed] = []
        for line in answer.commands[:most]:
            try:
                parsed.append(self._cockpit.read(line))
            except ConfigError as error:
                return (), (*remarks, f"nothing was carried out: {error}")
            if isinstance(parsed[-1].command, Done):
                break
        refusal = self._cockpit.check(parsed, self._sense.proprio)
        if refusal is not None:
            line = answer.commands[refusal.index]
            return (), (*remarks, f"nothing was carried out: {line!r}: {refusal.reason}")
        return tuple(parsed), tuple(remarks)

    def _carried_out(self, commands: Sequence[Parsed]) -> Steps[tuple[CommandResult, ...]]:
        """Carry out commands until one fails."""
        results: list[CommandResult] = []
        for command in commands:
            if self._ahead and command is commands[-1] and self._cockpit.predictable(command):
                self._think_ahead(tuple(results))
            result = yield from self._run(command)
            results.append(result)
            if not result.completed:
                self._forget_next()
                break
        self._sense = yield from self._counted(_present())
        return tuple(results)

    def _run(self, command: Parsed) -> Steps[CommandResult]:
        """Carry out one command, unless somebody stops it."""
        self._stopped.clear()
        result = yield from self._until(self._cockpit.run(command), self._stopped)
        if result is None:
            self._stopped.clear()
            text = self._cockpit.text(command)
            return CommandResult(text, False, "interrupted", "somebody stopped it")
        return result

    # ------------------------------------------------------------------ thinking

    def _decided(self, turn: Turn) -> Steps[Answer]:
        """Ask the agent; on a robot the arm holds until it has answered."""
        if self._thread is None:
            return self._agent.decide(turn)
        future = self._next or self._thread.submit(self._agent.decide, turn)
        self._next = None
        while not future.done():
            late = self._time_out()
            if late:
                self._agent.close()  # so that nobody waits for its answer
                return Answer((), leave=late)
            if self._paced:
                yield from self._counted(self._cockpit.hold())
            else:
                wait([future], WAIT_S)
        self._sense = yield from self._counted(_present())
        return future.result()

    def _think_ahead(self, results: tuple[CommandResult, ...]) -> None:
        """Ask for the coming turn, as if the command that now begins will do what it says."""
        assert self._thread is not None
        view = self._cockpit.view(self._looks, self._sense.proprio)
        remark = "the last command is still being carried out; it is expected to end as asked"
        turn = self._shown(view, results, (remark,), later=1)
        self._next = self._thread.submit(self._agent.decide, turn)

    def _forget_next(self) -> None:
        """Throw away an answer to what did not come; what it cost counts all the same."""
        if self._next is not None and not self._next.cancel():
            self._next.add_done_callback(self._pay)
        self._next = None

    def _pay(self, future: Future[Answer]) -> None:
        if not future.cancelled() and future.exception() is None:
            self.spent = self.spent.plus(future.result().spent)

    def _stop_thinking(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------ when it is over

    def _judged(self, verification: Verification) -> tuple[str, ...]:
        """End the drive for a `done` with evidence or without any against it."""
        self.verification = verification
        if verification.verified is not False:
            self.ended = "done" if verification.verified else "done, which nobody could check"
            return ()
        self._dones += 1
        if self._dones >= EMPTY_DONES:
            self.ended = f"said done {EMPTY_DONES} times against the evidence"
            return ()
        self.verification = None  # it goes on; what counts is how it ends
        return verification.missing

    def _watch(self, answer: Answer, results: Sequence[CommandResult], done: bool) -> None:
        """Give an agent up that cannot be understood or gets nowhere."""
        self._mute = self._mute + 1 if answer.trouble else 0
        moved = any(result.completed for result in results)
        self._idle = 0 if moved or done else self._idle + 1
        most = self._limits.idle_turns
        if self._mute >= MUTE_TURNS:
            self.ended = f"{MUTE_TURNS} answers in a row could not be read"
        elif 0 < most <= self._idle:
            self.ended = f"{most} turns in a row without a completed command"

    def _spent_out(self) -> str:
        limits, tokens = self._limits, self.spent.input_tokens + self.spent.output_tokens
        if len(self.records) >= limits.turns:
            return f"the {limits.turns} turns are spent"
        if limits.tokens and tokens >= limits.tokens:
            return f"the {limits.tokens} tokens are spent"
        if limits.dollars and self.spent.dollars >= limits.dollars:
            return f"the {limits.dollars:g} dollars are spent"
        return self._time_out()

    def _time_out(self) -> str:
        wall_s = self._limits.wall_s
        late = 0.0 < wall_s <= self._now() - self._start
        return f"the {wall_s:g} seconds are spent" if late else ""

    def _counted(self, steps: Steps[_T]) -> Steps[_T]:
        """Pass a part of the motion on and count its ticks."""
        # Nobody stops it, so what it returns is its own.
        return cast(_T, (yield from self._until(steps, None)))

    def _until(self, steps: Steps[_T], stopped: threading.Event | None) -> Steps[_T | None]:
        """Pass a part of the motion on until it ends or `stopped` is set; then return None."""
        try:
            wish = next(steps)
            while True:
                if stopped is not None and stopped.is_set():
                    return None
                sense = yield wish
                if not isinstance(wish, Look):
                    self._ticks += 1
                wish = steps.send(sense)
        except StopIteration as stop:
            value: _T = stop.value
            return value
        finally:
            steps.close()


def _present() -> Generator[Look, Sense, Sense]:
    return (yield Look(()))


def _line(record: TurnRecord) -> str:
    """Return one turn as a line of the history."""
    said = "; ".join(record.answer.commands) or "no command"
    came = "; ".join("ok" if r.completed else f"FAILED: {r.detail}" for r in record.results)
    line = f"turn {record.index + 1}: {said} -> {came or '; '.join(record.refusals) or 'nothing'}"
    return line if len(line) <= HISTORY_WIDTH else line[: HISTORY_WIDTH - 1] + "…"
