"""Commands on the twin in tests: the oracle's eyes, virtual time, no picture drawn."""

from __future__ import annotations

from command_bench import Bench

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.env import TwinEnv
from zetta.hw_drivers.twin.setups import twin_setup
from zetta.hw_drivers.twin.simulator import SUITES
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.grasps import hand_of
from zetta.primitives.roles import parse_instruction
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Action, Camera, RunSpec, Sampled, Scene, Step, Task
from zetta.runtime.workspace import Box

FOREVER = 10**9


class EndlessTwin(TwinEnv):
    """A twin that goes on after success."""

    def step(self, action: Action) -> Step:
        """Advance one tick."""
        self._ended = ""
        return super().step(action)


def twin_bench(env: EndlessTwin, seed: int, workspace: Box) -> Bench[EndlessTwin]:
    """Set a scene of the twin up."""
    roles = parse_instruction(env.errand.instruction)
    spec = RunSpec("twin", env.task.suite, env.task.index, Sampled(), seed, sensing="oracle")
    sight = Sight(spec, env, roles)
    setup = twin_setup()

    def calibration(name: str) -> Camera:
        name = name or next(iter(setup.cameras))
        arm = env.observe().proprio.arms[0]
        return setup.cameras[name].camera(name, Pose(arm.ee_pos, arm.ee_quat).transform())

    made = Equipment(
        env.spec.action,
        env.spec.arms,
        env.spec.control_hz,
        sight.bind,
        hand=hand_of(env.spec),
        errands=roles.steps,
        workspace=workspace,
        camera=calibration,
    )
    step = env.reset(Scene(env.task, Sampled(), seed))
    return Bench(env, sight, Executor(made), step)


def twin() -> EndlessTwin:
    """Build the world, which takes a second."""
    suite = "twin_place"
    errand = SUITES[suite][0]
    return EndlessTwin(Task(suite, 0, errand.instruction, FOREVER), errand)
