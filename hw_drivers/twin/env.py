"""The twin as a simulator's environment: scenes by number, success by truth, virtual time.

It is an `ArmEnv` over an arm in this process, so what drives it meets the conventions of a real
arm. What is added is what only a simulator has: truth, snapshots and scenes that set themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from zetta.hw_drivers.arm import OPEN, Guard
from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.frames import Pose, matrix
from zetta.hw_drivers.twin.local import LocalArm, LocalCamera
from zetta.hw_drivers.twin.scene import EYES, arm_model
from zetta.hw_drivers.twin.setups import CONTROL_HZ, twin_setup
from zetta.hw_drivers.twin.side import WORKSPACE
from zetta.hw_drivers.twin.tasks import TwinTask
from zetta.hw_drivers.twin.things import THINGS
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import (
    Action,
    Array,
    EnvSpec,
    Init,
    Landmark,
    Scene,
    Step,
    Task,
    Truth,
    read_only,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.wire import pack, unpack
from zetta.runtime.workspace import Box

VERSION: Final = "1"
"""Changes whenever an equal action sequence could lead to another state."""
INIT_COUNT: Final = 50
FALLEN_M: Final = -0.05
"""Lower than this a thing has fallen off the table."""
_MOST_SEEDS: Final = 2**31


class TwinEnv(ArmEnv):
    """The table and one errand at it."""

    def __init__(self, task: Task, errand: TwinTask, guard: Guard = OPEN) -> None:
        """Build the world of a task.

        Raises:
            ConfigError: MuJoCo or robosuite is not installed.
        """
        self.task, self.errand = task, errand
        self.world = TwinWorld()
        """Physics and truth, for scripted experts and labels."""
        self.local = LocalArm(self.world, CONTROL_HZ, guard)
        cameras = {name: LocalCamera(name, self.world) for name in EYES}
        # No kernel: its state would have to be in every snapshot, and nobody can be hurt.
        super().__init__(self.local, twin_setup(limits=""), cameras)
        self._own_spec = replace(
            super().spec, sensing="oracle", arms=("panda",), render_profile="twin"
        )

    @property
    def spec(self) -> EnvSpec:
        """Conventions of this environment."""
        return self._own_spec

    def reset(self, scene: Scene) -> Step:
        """Set a scene; that of `Init(k)` is the one of seed k.

        Raises:
            ConfigError: the scene is one of another task, or its layout does not exist.
        """
        theirs, own = (scene.task.suite, scene.task.index), (self.task.suite, self.task.index)
        if theirs != own:
            raise ConfigError(
                f"this environment is {own[0]} task {own[1]}, the scene is {theirs[0]} task "
                f"{theirs[1]}; make another environment for it"
            )
        self.world.stuck_gripper = False
        self.local.set_scene(_seed(scene))
        self.task = scene.task
        return self._judged(super().reset(scene))

    def step(self, action: Action) -> Step:
        """Carry out one action for one control period and return what came of it.

        Raises:
            SpecMismatch: no action of the spec, or the episode has ended.
            SafetyStop: the guard refuses it.
        """
        return self._judged(super().step(action))

    def snapshot(self) -> bytes:
        """Return the complete state."""
        return pack(
            {
                "twin": self._digest(),
                "seed": self.world.seed,
                "state": np.array(self.world.state()),
                "ticks": self._ticks,
                "ended": self._ended,
                "task": [self.task.instruction, self.task.max_steps],
            }
        )

    def restore(self, snapshot: bytes) -> Step:
        """Continue from a `snapshot`.

        Raises:
            SpecMismatch: it is none, or one of another version or task.
        """
        kept = _kept(unpack(snapshot))
        if kept.get("twin") != self._digest():
            raise SpecMismatch(
                f"the snapshot is of {str(kept.get('twin'))[:120]}, this is {self._digest()}; "
                "restore it in an environment of the same task and version"
            )
        instruction, max_steps = kept["task"]
        self.task = replace(self.task, instruction=str(instruction), max_steps=int(max_steps))
        self.local.set_scene(0)
        self.world.restore(int(kept["seed"]), np.array(kept["state"]))
        self.local.rewind(int(kept["ticks"]))
        scene = Scene(self.task, Init(0))
        self._scene, self._started, self._ticks = scene, 0.0, int(kept["ticks"])
        self._ended = str(kept["ended"])
        return self._judged(self._step(self.local.state()))

    def pose(self) -> Array:
        """Return the place of everything. Shape (nq,)."""
        return self.world.qpos

    def show(self, pose: Array) -> None:
        """Draw a logged `pose` from now on; physics is not continued.

        Raises:
            SpecMismatch: it is a pose of another simulator.
        """
        self.world.show(np.asarray(pose))

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing; simulator truth."""
        return tuple(_landmark(name, pose) for name, pose in self.world.truth().items())

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of the arm."""
        return arm_model() if index == 0 else None

    def workspace(self, index: int) -> Box | None:
        """Return where the hand may be."""
        return WORKSPACE if index == 0 else None

    def _digest(self) -> str:
        mujoco = self.spec.versions["mujoco"]
        return f"twin {VERSION}/mujoco {mujoco}/{self.task.suite}#{self.task.index}"

    def _judged(self, step: Step) -> Step:
        places = self.world.truth()
        success = self.errand.holds(self.world)
        objects = {n: read_only([*pose.pos, *pose.quat]) for n, pose in places.items()}
        lost = places[self.errand.thing].pos[2] < FALLEN_M
        if lost and not success:
            self._ended = self._ended or "lost"
        return replace(
            step,
            success=success,
            terminated=success or bool(lost),
            truncated=step.truncated and not (success or lost),
            truth=Truth(objects, {self.errand.instruction: success}),
        )


def _seed(scene: Scene) -> int:
    if isinstance(scene.layout, Init):
        if not 0 <= scene.layout.k < INIT_COUNT:
            raise ConfigError(
                f"the twin has the inits 0-{INIT_COUNT - 1}, got {scene.layout.k}; for more "
                "scenes use --init sampled --seed N"
            )
        return scene.layout.k
    drawn = np.random.SeedSequence([0x5A, abs(scene.seed), int(scene.seed < 0)])
    return INIT_COUNT + int(drawn.generate_state(1)[0]) % _MOST_SEEDS


def _kept(plain: object) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise SpecMismatch("this is no snapshot of the twin; pass what snapshot() returned")
    return plain


def _landmark(name: str, pose: Pose) -> Landmark:
    R, size = matrix(pose.quat), np.array(THINGS[name].size)
    upright = abs(R[2, 2]) > 0.9
    extent = size if upright else np.abs(R) @ size
    yaw = float(np.arctan2(R[1, 0], R[0, 0])) if upright else 0.0
    return Landmark(name, (), read_only(pose.pos), read_only(extent), yaw)
