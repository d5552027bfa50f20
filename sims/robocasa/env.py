"""One RoboCasa task as an `Env`: exact resets, lazy pictures, bit-exact snapshots.

Conventions of the simulator, converted here and in `robot.py` and nowhere else: the arm's
translations and rotations are in the frame of the robot's base, 0.05 m and 0.5 rad (axis-angle) per
1.0; gripper -1 open and +1 close; the base's three velocities, the torso and a mode follow; 20 Hz.
Body quaternions of MuJoCo are wxyz, ours are xyzw; OpenGL pictures are upside down
(`sims/libero/rendering.py` turns them).

`sims/mujoco_env.py` says how it is stepped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import (
    Action,
    Array,
    EnvSpec,
    Image,
    Init,
    Landmark,
    Observation,
    Proprio,
    Sampled,
    Scene,
    Step,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import check_scene, first_unsolved, seeds_of
from zetta.sims.libero.rendering import Renderer
from zetta.sims.mujoco_env import CONTROL_HZ, PICTURE_SIZE, MujocoEnv, profile_of
from zetta.sims.robocasa import engine, tasks
from zetta.sims.robocasa.robot import ACTION, MobileArm
from zetta.sims.robocasa.world import KitchenWorld
from zetta.sims.robosuite.snapshots import dump, load, world_of
from zetta.sims.world_env import square_cameras

CAMERAS: Final[Mapping[str, str]] = {
    "agentview_left": "robot0_agentview_left",
    "agentview_right": "robot0_agentview_right",
    "wrist": "robot0_eye_in_hand",
}
"""RoboCasa's cameras, by our names. The first two are fixed to the base and ride with it."""


class RobocasaEnv(MujocoEnv):
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile.
        InfraError: RoboCasa cannot be built, or needs assets that are not there.
    """

    _world: KitchenWorld

    def __init__(self, suite: str, index: int, render: str = "fast") -> None:
        self._own, split = tasks.find(suite, index), tasks.SPLITS[suite]
        look = profile_of("robocasa", render)
        inner = engine.build(self._own, split, CONTROL_HZ)
        spec = EnvSpec(
            name="robocasa",
            control_hz=CONTROL_HZ,
            action=ACTION,
            cameras=square_cameras(CAMERAS, PICTURE_SIZE),
            arms=("panda",),
            render_profile=look.name,
            versions=engine.versions(split),
        )
        super().__init__(tasks.task(suite, index), inner, spec, look, CAMERAS)
        self._kitchens = tuple((int(a), int(b)) for a, b in inner.layout_and_style_ids)
        """Those of the split that RoboCasa does not exclude for this task."""
        self._stale = False
        """The scene was built anew since the renderer last drew."""
        self._scene: Scene | None = None
        self._fresh: Step | None = None
        """What the reset came to; None once something was done since."""

    def instruction(self, scene: Scene) -> str:
        """Return how RoboCasa words the task in `scene`, into which the world is put.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: the scene cannot be laid out.
        """
        self.reset(scene)
        return self.task.instruction

    def reset(self, scene: Scene) -> Step:
        """Lay `scene` out, settled; the instruction is then the one that it has in RoboCasa.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: no layout of this seed settles short of its goal.
        """
        check_scene(self.task, scene)
        if self._fresh is not None and self._same_start(scene):
            self._scene = scene
            self.task = replace(scene.task, instruction=self.task.instruction)
            return self._fresh
        step = first_unsolved(scene, lambda attempt: self._lay_out(scene, attempt))
        self._fresh = step
        return step

    def step(self, action: Action) -> Step:
        """Advance one control tick (0.05 s); what exceeds the limits is clipped to them.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
            ConfigError: nothing was reset yet.
            InfraError: the simulation became unstable.
        """
        self._laid_out()
        self._fresh = None
        return super().step(action)

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ConfigError: unknown camera, or nothing was reset yet.
        """
        self._laid_out()
        return super().observe(cameras, depth)

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        """Draw what a camera sees, at any size. Shape (height, width, 3).

        Raises:
            ConfigError: unknown camera, or nothing was reset yet.
        """
        self._laid_out()
        return super().picture(camera, height, width)

    def snapshot(self) -> bytes:
        """Return the complete state; restoring it continues bit-exactly."""
        scene = self._laid_out()
        layout = scene.layout.k if isinstance(scene.layout, Init) else None
        world = {"layout": layout, "seed": scene.seed, "attempt": self._attempt}
        return dump(self.inner, self._tick, self.task, world)

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`; its scene is built anew where another one stands here.

        Raises:
            SpecMismatch: it was taken by another simulator version, of another model or task.
        """
        world = world_of(snapshot)
        if not {"layout", "seed", "attempt"} <= set(world):
            raise SpecMismatch("got a snapshot of another simulator, expected one of robocasa")
        layout = Sampled() if world["layout"] is None else Init(int(world["layout"]))
        scene = Scene(self.task, layout, int(world["seed"]))
        if not self._same_start(scene) or self._attempt != world["attempt"]:
            self._lay_out(scene, int(world["attempt"]))
        self._fresh = None
        self._tick, self.task = load(self.inner, snapshot, self.task, [])
        self._scene = replace(scene, task=self.task)
        self._moved()
        return self._outcome()

    def pose(self) -> Array:
        """Return what is needed to draw the present moment of this scene. Shape (N,)."""
        self._laid_out()
        return super().pose()

    def show(self, pose: Array) -> None:
        """Draw a logged `pose` of this scene from now on; physics is not continued.

        Raises:
            SpecMismatch: the pose has another length.
        """
        self._fresh = None
        super().show(pose)

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for; simulator truth."""
        self._laid_out()
        return super().landmarks()

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of the arm, its base where the robot stands now."""
        self._laid_out()
        return self._arm.model(index)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand may be."""
        self._laid_out()
        return self._arm.workspace(index)

    def close(self) -> None:
        """Release the renderer and the simulation; calling it again does nothing."""
        if self._scene is None:
            self.inner = None  # of a kitchen that stands nowhere there is nothing to close
        super().close()

    # ------------------------------------------------------------------ internals

    def _lay_out(self, scene: Scene, attempt: int) -> Step:
        """Build the world of a scene; the same one after any history."""
        self._fresh, self._scene = None, None  # half a world is none
        seed, draw = seeds_of(scene, tasks.INIT_COUNT, attempt, 2)
        pair = self._kitchens[draw % len(self._kitchens)]
        if isinstance(scene.layout, Init) and len(self._kitchens) <= tasks.INIT_COUNT:
            pair = self._kitchens[scene.layout.k % len(self._kitchens)]  # each one equally often
        engine.reset(self.inner, seed, pair)
        self._world, self._arm = KitchenWorld(self.inner, self._own.name), MobileArm(self.inner)
        self._stale, self._tick, self._attempt = True, 0, attempt
        said = str(self.inner.get_ep_meta()["lang"]).strip()
        self.task = replace(scene.task, instruction=said or scene.task.instruction)
        self._scene = scene
        self._moved()
        return self._outcome()

    def _same_start(self, scene: Scene) -> bool:
        held = self._scene
        return held is not None and (held.layout, held.seed) == (scene.layout, scene.seed)

    def _laid_out(self) -> Scene:
        if self._scene is None:
            raise ConfigError("a kitchen is laid out by its scene; call reset first")
        return self._scene

    def _engine_row(self, row: Action) -> Action:
        return self._arm.engine_row(row)

    def _proprio(self) -> Proprio:
        return Proprio(self._tick / CONTROL_HZ, self._arm.states(), self._arm.base())

    def _drawing(self) -> Renderer:
        if self._renderer is None:
            self._renderer = Renderer(self._model, self._data, self._profile, PICTURE_SIZE)
        elif self._stale:
            self._renderer.become(self._model, self._data)
        if self._stale:
            self._stale = False
            self._renderer.check(CAMERAS.values(), PICTURE_SIZE)
        return self._renderer
