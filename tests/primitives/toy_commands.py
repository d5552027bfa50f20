"""Commands on the toy in tests: an executor with the oracle's eyes, one command after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Command, Parsed
from zetta.primitives.grasps import HANDS
from zetta.primitives.roles import parse_instruction
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import (
    Action,
    Init,
    Layout,
    Motion,
    Outcome,
    Proprio,
    RunSpec,
    Scene,
    Step,
)
from zetta.runtime.drivers import ActionCheck, MotionDriver
from zetta.sims.toy import ToyEnv
from zetta.sims.toy_faults import ToyFaults
from zetta.sims.toy_tasks import toy_task


class EndlessToy(ToyEnv):
    """A toy that goes on after success, and after its budget is spent."""

    def step(self, action: Action) -> Step:
        """Advance one tick."""
        self._ended = ""
        return super().step(action)


@dataclass
class Bench:
    """A toy scene and an executor in it."""

    env: ToyEnv
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


def bench(
    suite: str = "toy_pick",
    index: int = 0,
    layout: Layout | None = None,
    seed: int = 0,
    faults: ToyFaults | None = None,
    told: bool = True,
    **equipment: object,
) -> Bench:
    """Set a toy scene up; `told` says whether the executor knows the instruction."""
    env = EndlessToy(toy_task(suite, index), "fast", faults)
    where, task = layout or Init(0), env.toy.task
    roles = parse_instruction(task.instruction)
    sight = Sight(RunSpec("toy", suite, index, where, seed, sensing="oracle"), env, roles)
    made = Equipment(
        env.spec.action,
        env.spec.arms,
        env.spec.control_hz,
        sight.bind,
        hand=HANDS["toy"],
        errands=roles.steps if told else (),
        camera=lambda name: env.observe([name or "front"]).cameras[name or "front"],
        **equipment,  # type: ignore[arg-type]
    )
    step = env.reset(Scene(task, where, seed))
    return Bench(env, sight, Executor(made), step)
