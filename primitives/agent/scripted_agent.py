"""The agent without a model: the instruction parsed, and the same commands that a model would give.

It sees nothing itself. What it knows is the instruction and what came of its last commands.
"""

from __future__ import annotations

import re
from typing import Final

from zetta.primitives.agent.records import Answer, Turn
from zetta.primitives.agent.wording import lines_of
from zetta.primitives.roles import parse_instruction
from zetta.runtime.errors import ConfigError

TRIES: Final = 3
"""Attempts at one errand, before the next one is begun."""
_ERRAND: Final = re.compile(r"^errand (\d+)\b")
"""How a remark on a `done` without evidence names the errand, counted from 1."""


class ScriptedAgent:
    """Does one errand after the other, tries again what failed, and says `done`."""

    name = "scripted"
    looks = False

    def __init__(self) -> None:
        self._lines: tuple[tuple[str, ...], ...] = ()
        self._waiting: list[int] = []
        """Numbers of the errands that are still to be done."""
        self._tries: dict[int, int] = {}
        self._step = 0
        """Which line of the errand comes next."""
        self._holds = False
        self._free: tuple[str, ...] = ()
        """What frees the hand before an errand begins."""
        self._hidden = False
        """What comes next was not seen: the arm may stand before it."""
        self._aside = ""
        """What brings the arm out of the picture."""

    def begin(self, instruction: str, arms: tuple[str, ...]) -> None:
        """Read the instruction.

        Raises:
            ConfigError: it is not understood, or there is no command for it.
        """
        try:
            steps = parse_instruction(instruction).steps
        except ConfigError as error:
            raise ConfigError(f"the agent 'scripted' cannot do this task: {error}") from error
        arm = arms[0] if len(arms) > 1 else ""
        self._free, self._holds = (f"{arm} gripper open".strip(),), False
        self._aside, self._hidden = f"{arm} home".strip(), False
        self._lines = tuple(lines_of(errand, arm) for errand in steps)
        self._waiting = list(range(len(steps)))
        self._tries = {}
        self._step = 0

    def decide(self, turn: Turn) -> Answer:
        """Return one command: the next one, or the first of a new attempt."""
        for result in turn.results:
            if result.moved is not None:  # without evidence of a grasp the gripper is open
                self._holds = result.grasp is not None and result.grasp.grip == "held"
        if turn.results:
            last = turn.results[-1]
            self._hidden = last.stop == "not found"
            self._learn(last.completed)
        elif turn.remarks:
            self._hidden = any("not seen" in remark for remark in turn.remarks)
            self._learn(False)  # nothing was carried out
        for remark in turn.remarks:
            self._reopen(remark)
        if not self._waiting:
            return Answer(("done",), progress="every errand was done or given up")
        errand = self._waiting[0]
        line = self._lines[errand][self._step]
        first = self._free if self._holds and self._step == 0 else ()
        if self._hidden:
            first = (*first, self._aside)
            self._hidden = False
        return Answer(
            (*first, line),
            progress=f"errand {errand + 1} of {len(self._lines)}",
        )

    def close(self) -> None:
        """Need nothing."""

    def _learn(self, completed: bool) -> None:
        """Go on after a command that was completed; begin its errand anew after another one."""
        if not self._waiting:
            return
        errand = self._waiting[0]
        if completed:
            self._step += 1
            if self._step == len(self._lines[errand]):
                self._next()
            return
        # What is still held need not be picked again.
        self._step = self._step if self._holds else 0
        self._tries[errand] = self._tries.get(errand, 0) + 1
        if self._tries[errand] >= TRIES:
            self._next()

    def _next(self) -> None:
        self._waiting.pop(0)
        self._step = 0

    def _reopen(self, remark: str) -> None:
        """Try an errand again of which the evidence says that it is not done."""
        match = _ERRAND.match(remark)
        if match is None or self._waiting:
            return
        errand = int(match.group(1)) - 1
        tries = self._tries.get(errand, 0) + 1
        if 0 <= errand < len(self._lines) and tries <= TRIES:
            self._tries[errand] = tries
            self._waiting.append(errand)
