"""One robosuite task as an `Env`: exact resets, lazy pictures, bit-exact snapshots.

Conventions of the simulator, converted here and in `arms.py` and nowhere else: per arm
`dx dy dz rx ry rz gripper` in [-1, 1], world frame, 0.05 m and 0.5 rad (axis-angle) per 1.0,
gripper -1 open and +1 close, 20 Hz; body quaternions of MuJoCo are wxyz, ours are xyzw; OpenGL
pictures are upside down (`sims/libero/rendering.py` turns them). Position is that of the grip
site, orientation that of the Panda's hand body (z approach, y finger axis), as robosuite's
`robot0_eef_pos` and `robot0_eef_quat`.

Physics are robosuite's own control step. After it, positions and contacts are brought up to the
joints (`mj_step1`, which the next control step begins with anyway): robosuite's observations and
its success check lag by one substep of 2 ms, ours do not, and the trajectory is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import (
    Action,
    Array,
    CameraSpec,
    EnvSpec,
    Image,
    Landmark,
    Observation,
    Proprio,
    Scene,
    Step,
)
from zetta.runtime.errors import InfraError
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import (
    check_cameras,
    check_scene,
    checked_pose,
    checked_row,
    drawn_from,
    solved_from_the_start,
)
from zetta.sims.libero.rendering import Renderer, profile
from zetta.sims.robosuite import engine, tasks
from zetta.sims.robosuite.arms import Arms, action_spec
from zetta.sims.robosuite.snapshots import dump, load
from zetta.sims.robosuite.world import RobosuiteWorld

CONTROL_HZ = 20.0
SETTLE_STEPS = 10
"""Ticks of no motion with open grippers, while objects drop the last centimetre to the table."""
PICTURE_SIZE = 256
SAMPLING_TRIES = 20


class RobosuiteEnv:
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile.
        InfraError: robosuite cannot be built.
    """

    def __init__(self, suite: str, index: int, render: str = "fast") -> None:
        self.task = tasks.task(suite, index)
        own, arms = tasks.find(suite, index), tasks.arms_of(suite)
        # Named after the simulator: a model of another simulator's pictures is bound to those.
        self._profile = replace(profile(render), name=f"robosuite-{render}")
        self._cameras = {"agentview": "agentview", **_wrists(arms)}
        self.inner = engine.build(own, len(arms), CONTROL_HZ)
        """robosuite's own environment object, for scripted experts and truth."""
        self._world = RobosuiteWorld(self.inner, own)
        self._arms = Arms(self.inner, own)
        self._renderer: Renderer | None = None
        self._tick = 0
        self._spec = EnvSpec(
            name="robosuite",
            control_hz=CONTROL_HZ,
            action=action_spec(arms),
            cameras=tuple(
                CameraSpec(n, PICTURE_SIZE, PICTURE_SIZE, "world" if n == "agentview" else "wrist")
                for n in self._cameras
            ),
            arms=arms,
            render_profile=self._profile.name,
            versions=engine.versions(),
        )

    @property
    def spec(self) -> EnvSpec:
        """Conventions, cameras and versions."""
        return self._spec

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene` and let it settle.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: no layout of this seed settles short of its goal.
        """
        check_scene(self.task, scene)
        entropy = drawn_from(scene.layout, scene.seed, tasks.INIT_COUNT)
        self.task = scene.task
        for attempt in range(SAMPLING_TRIES):
            seeds = np.random.SeedSequence([*entropy, attempt])
            engine.reset(self.inner, int(seeds.generate_state(1)[0]))
            for _ in range(SETTLE_STEPS):
                self._advance(self._arms.rest_row())
            self._tick = 0
            step = self._outcome()
            if not step.success:
                return step
        raise solved_from_the_start(scene)

    def step(self, action: Action) -> Step:
        """Advance one control tick (0.05 s); what exceeds the limits is clipped to them.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
        """
        row = checked_row(action, self._spec.action.size)
        self._advance(row)
        self._tick += 1
        return self._outcome()

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ConfigError: unknown camera.
        """
        check_cameras(cameras, self._cameras)
        named = {name: self._cameras[name] for name in cameras}
        sights = self._drawing().look(named, PICTURE_SIZE, depth) if named else ({}, {}, {})
        return Observation(self._proprio(), self.task.instruction, *sights)

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        """Draw what a camera sees, at any size. Shape (height, width, 3).

        Raises:
            ConfigError: unknown camera.
        """
        check_cameras((camera,), self._cameras)
        return self._drawing().sized(self._cameras[camera], height, width)

    def snapshot(self) -> bytes:
        """Return the complete state; restoring it continues bit-exactly."""
        return dump(self.inner, self._tick, self.task)

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`.

        Raises:
            SpecMismatch: it was taken by another simulator version, of another model or task.
        """
        self._tick, self.task = load(self.inner, snapshot, self.task, self._world.markers)
        self._catch_up()
        return self._outcome()

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        return self._world.pose()

    def show(self, pose: Array) -> None:
        """Draw a logged `pose` from now on; physics is not continued.

        Raises:
            SpecMismatch: the pose has another length.
        """
        checked = checked_pose(pose, self.pose().size)
        self._world.show(checked)
        self._catch_up()

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for; simulator truth."""
        return self._world.landmarks()

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm, read from the running simulation."""
        return self._arms.model(index)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm may be."""
        return self._arms.workspace(index)

    def close(self) -> None:
        """Release the renderer and the simulation; calling it again does nothing."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        if self.inner is not None:
            self.inner.close()
            self.inner = None

    # ------------------------------------------------------------------ internals

    def _advance(self, row: Action) -> None:
        self.inner.step(self._arms.engine_row(row))
        self._catch_up()
        if not np.isfinite(self._data.qpos).all():
            raise InfraError("the simulation became unstable (joint positions are not finite)")

    def _catch_up(self) -> None:
        import mujoco

        mujoco.mj_step1(self.inner.sim.model._model, self._data)

    @property
    def _data(self) -> Any:
        return self.inner.sim.data._data

    def _outcome(self) -> Step:
        truth = self._world.truth()
        success = all(truth.predicates.values())
        return Step(
            proprio=self._proprio(),
            success=success,
            terminated=success,
            truncated=not success and self._tick >= self.task.max_steps,
            truth=truth,
        )

    def _proprio(self) -> Proprio:
        return Proprio(t=self._tick / CONTROL_HZ, arms=self._arms.states())

    def _drawing(self) -> Renderer:
        if self._renderer is None:
            model = self.inner.sim.model._model
            self._renderer = Renderer(model, self._data, self._profile, PICTURE_SIZE)
            self._renderer.check(self._cameras.values(), PICTURE_SIZE)
        return self._renderer


def _wrists(arms: tuple[str, ...]) -> dict[str, str]:
    """Return robosuite's cameras on the hands, by our names."""
    if len(arms) == 1:
        return {"wrist": "robot0_eye_in_hand"}
    return {f"{arm}_wrist": f"robot{i}_eye_in_hand" for i, arm in enumerate(arms)}
