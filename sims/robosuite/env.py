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
    Init,
    Landmark,
    Layout,
    Observation,
    Proprio,
    Scene,
    Step,
    read_only,
)
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.workspace import Box
from zetta.sims.libero.rendering import Renderer, profile
from zetta.sims.robosuite import engine, tasks
from zetta.sims.robosuite.arms import Arms, action_spec
from zetta.sims.robosuite.snapshots import dump, load
from zetta.sims.robosuite.world import RobosuiteWorld

CONTROL_HZ = 20.0
SETTLE_STEPS = 10
"""Ticks of no motion with open grippers, while objects drop the last centimetre to the table."""
PICTURE_SIZE = 256
_INITS, _SAMPLES = 0, 1
"""Streams of seeds, which never meet."""
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
        if (scene.task.suite, scene.task.index) != (self.task.suite, self.task.index):
            raise ConfigError(
                f"this environment is {self.task.suite}#{self.task.index}, the scene is of "
                f"{scene.task.suite}#{scene.task.index}; make one environment for each task"
            )
        entropy = _entropy(scene.layout, scene.seed)
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
        raise InfraError(
            f"every layout of {self.task.suite}#{self.task.index} with seed {scene.seed} began "
            "with its goal reached; use another seed"
        )

    def step(self, action: Action) -> Step:
        """Advance one control tick (0.05 s); what exceeds the limits is clipped to them.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
        """
        row, size = np.asarray(action, dtype=np.float64), self._spec.action.size
        if row.shape != (size,):
            raise SpecMismatch(f"got an action of shape {row.shape}, expected ({size},)")
        if not np.isfinite(row).all():
            raise SpecMismatch(f"got an action that is not finite: {row.tolist()}")
        self._advance(row)
        self._tick += 1
        return self._outcome()

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ConfigError: unknown camera.
        """
        unknown = [c for c in cameras if c not in self._cameras]
        if unknown:
            raise ConfigError(f"unknown camera {unknown[0]!r}; known: {', '.join(self._cameras)}")
        images, depths, calibrations = {}, {}, {}
        for name in cameras:
            renderer, camera = self._drawing(), self._cameras[name]
            rgb, metres = renderer.draw(camera, PICTURE_SIZE, PICTURE_SIZE, depth)
            images[name] = read_only(rgb, np.uint8)
            if metres is not None:
                depths[name] = read_only(metres, np.float32)
            calibrations[name] = renderer.calibration(camera, name, PICTURE_SIZE, PICTURE_SIZE)
        return Observation(self._proprio(), self.task.instruction, images, depths, calibrations)

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
        expected = self.pose().shape
        if np.shape(pose) != expected:
            raise SpecMismatch(
                f"got a pose of shape {np.shape(pose)}, expected {expected}; it was logged on "
                "another task"
            )
        self._world.show(np.asarray(pose, np.float64))
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
            self._check_pictures()
        return self._renderer

    def _check_pictures(self) -> None:
        # A broken context returns constant or equal frames without any error.
        assert self._renderer is not None
        pictures = [
            self._renderer.draw(camera, PICTURE_SIZE, PICTURE_SIZE, depth=False)[0]
            for camera in self._cameras.values()
        ]
        if min(float(p.std()) for p in pictures) < 5 or np.array_equal(pictures[0], pictures[1]):
            raise InfraError("the renderer returns empty pictures; run zetta doctor")


def _wrists(arms: tuple[str, ...]) -> dict[str, str]:
    """Return robosuite's cameras on the hands, by our names."""
    if len(arms) == 1:
        return {"wrist": "robot0_eye_in_hand"}
    return {f"{arm}_wrist": f"robot{i}_eye_in_hand" for i, arm in enumerate(arms)}


def _entropy(layout: Layout, seed: int) -> tuple[int, int]:
    """Return what a layout is drawn from.

    Raises:
        ConfigError: there is no such init.
    """
    if not isinstance(layout, Init):
        return _SAMPLES, seed
    if not 0 <= layout.k < tasks.INIT_COUNT:
        raise ConfigError(f"a robosuite task has the inits 0-{tasks.INIT_COUNT - 1}, got {layout}")
    return _INITS, layout.k
