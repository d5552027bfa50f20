"""One robosuite task as an `Env`: exact resets, lazy pictures, bit-exact snapshots.

Conventions of the simulator, converted here and in `arms.py` and nowhere else: per arm
`dx dy dz rx ry rz gripper` in [-1, 1], world frame, 0.05 m and 0.5 rad (axis-angle) per 1.0,
gripper -1 open and +1 close, 20 Hz; body quaternions of MuJoCo are wxyz, ours are xyzw; OpenGL
pictures are upside down (`sims/libero/rendering.py` turns them). Position is that of the grip
site, orientation that of the Panda's hand body (z approach, y finger axis), as robosuite's
`robot0_eef_pos` and `robot0_eef_quat`.

`sims/mujoco_env.py` says how it is stepped.
"""

from __future__ import annotations

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, EnvSpec, Proprio, Scene, Step
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import check_scene, first_unsolved, seeds_of
from zetta.sims.mujoco_env import CONTROL_HZ, PICTURE_SIZE, MujocoEnv, profile_of
from zetta.sims.robosuite import engine, tasks
from zetta.sims.robosuite.arms import Arms, action_spec
from zetta.sims.robosuite.snapshots import dump, load
from zetta.sims.robosuite.world import RobosuiteWorld
from zetta.sims.world_env import square_cameras

SETTLE_STEPS = 10
"""Ticks of no motion with open grippers, while objects drop the last centimetre to the table."""


class RobosuiteEnv(MujocoEnv):
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile.
        InfraError: robosuite cannot be built.
    """

    _world: RobosuiteWorld

    def __init__(self, suite: str, index: int, render: str = "fast") -> None:
        own, arms = tasks.find(suite, index), tasks.arms_of(suite)
        look, cameras = profile_of("robosuite", render), {"agentview": "agentview", **_wrists(arms)}
        inner = engine.build(own, len(arms), CONTROL_HZ)
        spec = EnvSpec(
            name="robosuite",
            control_hz=CONTROL_HZ,
            action=action_spec(arms),
            cameras=square_cameras(cameras, PICTURE_SIZE),
            arms=arms,
            render_profile=look.name,
            versions=engine.versions(),
        )
        super().__init__(tasks.task(suite, index), inner, spec, look, cameras)
        self._world = RobosuiteWorld(inner, own)
        self._arms = Arms(inner, own)

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene` and let it settle.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: no layout of this seed settles short of its goal.
        """
        check_scene(self.task, scene)
        return first_unsolved(scene, lambda attempt: self._lay_out(scene, attempt))

    def snapshot(self) -> bytes:
        """Return the complete state; restoring it continues bit-exactly."""
        return dump(self.inner, self._tick, self.task)

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`.

        Raises:
            SpecMismatch: it was taken by another simulator version, of another model or task.
        """
        self._tick, self.task = load(self.inner, snapshot, self.task, self._world.markers)
        self._moved()
        return self._outcome()

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm, read from the running simulation."""
        return self._arms.model(index)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm may be."""
        return self._arms.workspace(index)

    # ------------------------------------------------------------------ internals

    def _lay_out(self, scene: Scene, attempt: int) -> Step:
        (seed,) = seeds_of(scene, tasks.INIT_COUNT, attempt)
        self.task = scene.task
        engine.reset(self.inner, seed)
        for _ in range(SETTLE_STEPS):
            self._advance(self._arms.rest_row())
        self._tick = 0
        return self._outcome()

    def _engine_row(self, row: Action) -> Action:
        return self._arms.engine_row(row)

    def _proprio(self) -> Proprio:
        return Proprio(t=self._tick / CONTROL_HZ, arms=self._arms.states())


def _wrists(arms: tuple[str, ...]) -> dict[str, str]:
    """Return robosuite's cameras on the hands, by our names."""
    if len(arms) == 1:
        return {"wrist": "robot0_eye_in_hand"}
    return {f"{arm}_wrist": f"robot{i}_eye_in_hand" for i, arm in enumerate(arms)}
