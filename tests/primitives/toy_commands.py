"""Commands on the toy in tests: an executor with the oracle's eyes, one command after another."""

from __future__ import annotations

from command_bench import Bench

from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.grasps import HANDS
from zetta.primitives.roles import parse_instruction
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import (
    Action,
    Init,
    Layout,
    RunSpec,
    Scene,
    Step,
)
from zetta.sims.toy import ToyEnv
from zetta.sims.toy_faults import ToyFaults
from zetta.sims.toy_tasks import toy_task


class EndlessToy(ToyEnv):
    """A toy that goes on after success, and after its budget is spent."""

    def step(self, action: Action) -> Step:
        """Advance one tick."""
        self._ended = ""
        return super().step(action)


def bench(
    suite: str = "toy_pick",
    index: int = 0,
    layout: Layout | None = None,
    seed: int = 0,
    faults: ToyFaults | None = None,
    told: bool = True,
    **equipment: object,
) -> Bench[ToyEnv]:
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
