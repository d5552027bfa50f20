"""The toy: a pick-and-place world in numpy alone, behind the same protocols as the others.

Fast, deterministic and small enough to read; everything is tested on it first. Its conventions
are those of the LIBERO adapter: 20 Hz, and per arm `dx dy dz rx ry rz gripper` in [-1, 1].
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import (
    Action,
    ActionSpec,
    Array,
    Camera,
    CameraSpec,
    Env,
    EnvSpec,
    Image,
    Init,
    Landmark,
    Motion,
    Observation,
    Proprio,
    Scene,
    Step,
    Task,
    Truth,
)
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.workspace import Box
from zetta.sims.toy_expert import expert_motion
from zetta.sims.toy_faults import ToyFaults
from zetta.sims.toy_landmarks import landmarks_of
from zetta.sims.toy_physics import CONTROL_HZ, STEP_M, STEP_RAD, Arm, Body, World
from zetta.sims.toy_render import FRONT_POSE, Lens, camera, draw, wrist_pose
from zetta.sims.toy_state import (
    Session,
    check_pose,
    frozen,
    lost,
    pack,
    pose_of,
    proprio_of,
    truth_of,
    unpack,
)
from zetta.sims.toy_tasks import (
    INIT_COUNT,
    TABLE_Z,
    ToyTask,
    places,
    scene_generator,
    suites,
    toy_task,
)

VERSION = "1"
"""Changes whenever an equal action sequence could lead to another state."""
_AXES = ("dx", "dy", "dz", "rx", "ry", "rz", "gripper")
_SCALE = {"fast": 1, "full": 2}
"""Pictures are this many times 48 pixels high, by render setting."""


def action_spec(arms: Sequence[str] = ("arm",)) -> ActionSpec:
    """Return the toy's action convention for the named arms."""
    size = len(_AXES) * len(arms)
    names = _AXES if len(arms) == 1 else tuple(f"{a}_{axis}" for a in arms for axis in _AXES)
    scale = (STEP_M,) * 3 + (STEP_RAD,) * 3 + (1.0,)
    return ActionSpec("delta_pose", names, (-1.0,) * size, (1.0,) * size, scale * len(arms))


class ToyEnv:
    """The world of one toy task."""

    def __init__(self, toy: ToyTask, render: str = "fast", faults: ToyFaults | None = None) -> None:
        if render not in _SCALE:
            raise ConfigError(
                f"the toy has no render setting {render!r}; {suggest(render, _SCALE)}"
            )
        self.toy = toy
        self.faults = faults or ToyFaults()
        k, arms = _SCALE[render], tuple(arm.name for arm in toy.arms)
        wrists = ("wrist",) if len(arms) == 1 else tuple(f"{name}_wrist" for name in arms)
        self._lenses = {"front": Lens(48 * k, 64 * k, 86.0 * k)}
        self._lenses |= {name: Lens(48 * k, 48 * k, 44.0 * k) for name in wrists}
        self._spec = EnvSpec(
            name="toy",
            control_hz=CONTROL_HZ,
            action=action_spec(arms),
            cameras=tuple(
                CameraSpec(name, lens.height, lens.width, "world" if name == "front" else "wrist")
                for name, lens in self._lenses.items()
            ),
            arms=arms,
            render_profile=f"toy-{render}",
            versions={"toy": VERSION, "numpy": np.__version__},
        )
        model = repr((VERSION, toy.task.suite, toy.task.index, toy.things, toy.goals, toy.arms))
        self._digest = f"toy {VERSION}/{hashlib.sha256(model.encode()).hexdigest()[:16]}"
        self._world: World | None = None
        self._max_steps = toy.task.max_steps
        self._instruction = toy.task.instruction
        self._ended = ""
        self._shown: Array | None = None
        self._frozen: Array | None = None

    @property
    def spec(self) -> EnvSpec:
        """Conventions of this environment."""
        return self._spec

    @property
    def digest(self) -> str:
        """Version and model, as snapshots carry them."""
        return self._digest

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene`.

        Raises:
            ConfigError: the scene is one of another task, or its layout does not exist.
        """
        task, own = scene.task, self.toy.task
        if (task.suite, task.index) != (own.suite, own.index):
            raise ConfigError(
                f"this environment is {own.suite} task {own.index}, the scene is "
                f"{task.suite} task {task.index}; make another environment for it"
            )
        bodies = [
            Body(thing, x, y, TABLE_Z + thing.half_height, yaw)
            for thing, (x, y, yaw) in zip(
                self.toy.things, places(self.toy, scene.layout, scene.seed), strict=True
            )
        ]
        arms = [Arm(plan, *plan.home) for plan in self.toy.arms]
        rng = scene_generator(task, scene.layout, scene.seed, "physics")
        faults = self.faults
        self._world = World(
            bodies, arms, rng, slip_scale=faults.slip_scale, hold_left=faults.hold_ticks(scene)
        )
        self._max_steps, self._instruction = task.max_steps, task.instruction
        self._shown = self._frozen = None
        self._ended = ""
        return self._step()

    def step(self, action: Action) -> Step:
        """Advance one tick.

        Raises:
            SpecMismatch: the action has another length or is not finite, or the episode is over.
        """
        world = self._running()
        if self._ended:
            raise SpecMismatch(f"the episode ended ({self._ended}); call reset before step")
        row = np.asarray(action, dtype=np.float64)
        if row.shape != (self._spec.action.size,) or not np.isfinite(row).all():
            raise SpecMismatch(
                f"an action is {self._spec.action.size} finite numbers, got "
                f"{np.array2string(row, precision=3, threshold=20)} of shape {row.shape}"
            )
        self._shown = None
        self._fail(world)
        world.pending.append(tuple(np.clip(row, -1.0, 1.0).tolist()))
        if len(world.pending) > self.faults.action_delay:
            obeyed = world.pending[0]
            world.pending = world.pending[len(world.pending) - self.faults.action_delay :]
        else:
            obeyed = (0.0,) * self._spec.action.size
        world.advance(obeyed)
        return self._step()

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now, or at the pose that `show` put up; only the named cameras are drawn.

        Raises:
            ConfigError: no such camera.
        """
        pose = self.pose() if self._shown is None else self._shown.copy()
        images: dict[str, Image] = {}
        depths: dict[str, npt.NDArray[np.float32]] = {}
        calibrations: dict[str, Camera] = {}
        for name in cameras:
            lens = self._lens(name)
            images[name], picture_depth, calibrations[name] = self._look(name, pose, lens)
            if depth:
                depths[name] = picture_depth
        return Observation(self._proprio(pose), self._instruction, images, depths, calibrations)

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        """Draw what a camera sees, at any size. Shape (height, width, 3).

        Raises:
            ConfigError: no such camera.
        """
        lens = self._lens(camera)
        sized = Lens(height, width, lens.focal * height / lens.height)
        pose = self.pose() if self._shown is None else self._shown.copy()
        return self._look(camera, pose, sized)[0]

    def close(self) -> None:
        """Free nothing: the toy holds no resources."""

    # ------------------------------------------------------------------ snapshots and poses

    def snapshot(self) -> bytes:
        """Return the complete state."""
        session = Session(self._max_steps, self._instruction, self._ended, self._frozen)
        return pack(self._running(), self._digest, session)

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`; the faults stay those of this environment.

        Raises:
            SpecMismatch: it is no snapshot, or one of another version or task.
        """
        if self._world is None:
            self.reset(Scene(self.toy.task, Init(0)))
        session = unpack(self._running(), self._digest, snapshot)
        self._max_steps, self._instruction = session.max_steps, session.instruction
        self._ended, self._frozen = session.ended, session.frozen
        self._shown = None
        return self._step()

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        return frozen(pose_of(self._running()))

    def show(self, pose: Array) -> None:
        """Make `observe` draw a logged pose until the next step, reset or restore.

        Raises:
            SpecMismatch: it is a pose of another task.
        """
        self._shown = check_pose(self.toy, pose)

    def truth(self) -> Truth:
        """Return simulator truth of the present moment, for experts and labels."""
        return truth_of(self.toy, self._running(), self.pose())

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return simulator truth about every named thing at the present moment."""
        return landmarks_of(self.toy, self.pose())

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm can be: the bounds of its physics."""
        if not 0 <= index < len(self.toy.arms):
            return None
        return Box(self.toy.arms[index].low, self.toy.arms[index].high)

    # ------------------------------------------------------------------ inside

    def _running(self) -> World:
        if self._world is None:
            raise SpecMismatch("the world is empty before the first reset; call reset(scene)")
        return self._world

    def _step(self) -> Step:
        world = self._running()
        pose = pose_of(world)
        truth = truth_of(self.toy, world, pose)
        success = all(truth.predicates.values())
        terminated = success or lost(self.toy, world)
        truncated = not terminated and world.tick >= self._max_steps
        if not self._ended:
            # Whether a solved episode goes on is for whoever runs it to say.
            gone = terminated and not success
            self._ended = "lost" if gone else "budget" if world.tick >= self._max_steps else ""
        return Step(self._proprio(pose), success, terminated, truncated, truth)

    def _proprio(self, pose: Array) -> Proprio:
        shift = (self.faults.proprio_shift_x, self.faults.proprio_shift_y)
        return proprio_of(self.toy, pose, shift)

    def _fail(self, world: World) -> None:
        """Let go wrong what was ordered for this tick."""
        faults, tick = self.faults, world.tick
        if tick == faults.slip_at:
            world.slip_pending = True
        stuck_for = tick - faults.gripper_stuck_at
        world.stuck = faults.gripper_stuck_at >= 0 and 0 <= stuck_for < faults.gripper_stuck_for
        if tick == faults.knock_at:
            index = self.toy.index_of(faults.knock_object or self.toy.goals[0].item)
            if world.held_by(index) < 0:
                world.bodies[index].x += faults.knock_x
                world.bodies[index].y += faults.knock_y
        if tick == faults.camera_frozen_at:
            self._frozen = pose_of(world)

    def _lens(self, name: str) -> Lens:
        if name not in self._lenses:
            raise ConfigError(f"the toy has no camera {name!r}; {suggest(name, self._lenses)}")
        return self._lenses[name]

    def _look(
        self, name: str, pose: Array, lens: Lens
    ) -> tuple[Image, npt.NDArray[np.float32], Camera]:
        faults = self.faults
        struck = name == faults.camera
        if struck and self._frozen is not None and pose[0] >= self._frozen[0]:
            pose = self._frozen
        image, depth = draw(self.toy, pose, lens, self._mount(name, pose))
        if struck and 0 <= faults.camera_black_at <= round(float(pose[0]) * CONTROL_HZ):
            image, depth = np.zeros_like(image), np.zeros_like(depth)
            image.flags.writeable = depth.flags.writeable = False
        told = self._mount(name, pose)
        if struck:
            told[:2, 3] += (faults.camera_shift_x, faults.camera_shift_y)
        return image, depth, camera(name, lens, told)

    def _mount(self, name: str, pose: Array) -> Array:
        if name == "front":
            return FRONT_POSE.copy()
        return wrist_pose(self.toy, pose, list(self._lenses).index(name) - 1)


class ToySimulator:
    """All toy tasks."""

    name = "toy"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite name."""
        return suites()

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return toy_task(suite, index).task

    def init_count(self, suite: str, index: int) -> int:
        """Return how many `Init` layouts ship with the task.

        Raises:
            ConfigError: unknown suite or index.
        """
        toy_task(suite, index)
        return INIT_COUNT

    def make(
        self, suite: str, index: int, render: str = "fast", faults: ToyFaults | None = None
    ) -> ToyEnv:
        """Build the environment of one task.

        Raises:
            ConfigError: unknown suite, index or render setting.
        """
        return ToyEnv(toy_task(suite, index), render, faults)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert; `noise` is the standard deviation of its actions.

        Raises:
            ConfigError: `env` is no environment of the toy.
        """
        if not isinstance(env, ToyEnv):
            raise ConfigError(f"the toy's expert drives a ToyEnv, not a {type(env).__name__}")
        return expert_motion(env, noise, seed)
