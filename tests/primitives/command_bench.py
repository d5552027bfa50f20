"""Commands in tests: an executor in an environment, one command after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Command, Parsed
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Action, Env, Motion, Outcome, Proprio, Step
from zetta.runtime.drivers import ActionCheck, MotionDriver

E = TypeVar("E", bound=Env)


@dataclass
class Bench(Generic[E]):
    """A scene and an executor in it."""

    env: E
    sight: Sight
    executor: Executor
    step: Step
    felt: list[Proprio] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)

    def do(self, command: Command, *notices: str, most_ticks: int = 0) -> CommandResult:
        """Carry one command out, in a motion of its own."""
        return self.do_all([Parsed(command, notices)], most_ticks)[0]

    def do_all(self, lines: Sequence[Parsed], most_ticks: int = 0) -> list[CommandResult]:
        """Carry commands out in one motion; the loop's memory of estimates lasts."""
        results: list[CommandResult] = []

        def motion() -> Motion:
            for parsed in lines:
                results.append((yield from self.executor.run(parsed, most_ticks)))
            return Outcome(True)

        self._drive(motion())
        return results

    def _drive(self, motion: Motion) -> None:
        driver = MotionDriver(motion, "agent:test", self.env, self.sight)
        check = ActionCheck(self.env.spec.action, "agent:test")
        while not isinstance(wish := driver.next_action(self.step.proprio), Outcome):
            self.actions.append(check(wish))
            self.step = self.env.step(self.actions[-1])
            self.felt.append(self.step.proprio)
