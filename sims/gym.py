"""Any environment of this runtime as a Gymnasium environment; importing this tells it their names.

Gymnasium 1 reads no entry points any more: `import zetta.sims.gym`, or name the module where the
environment is made: `gymnasium.make("zetta.sims.gym:zetta/libero_object-0-v0")`.

Observations are a dictionary of arrays: a picture for each camera (`(height, width, 3)` uint8,
upright), and for each arm `NAME_state`: position (3, metres), orientation (4, xyzw), opening of
the gripper (metres) and its rate (m/s), then the joint positions (radians); `base` is where a
mobile base stands (x, y, yaw). Actions are rows of `EnvSpec.action`. The reward of a step is 1
where the goal holds and 0 elsewhere; simulator truth is in neither of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from zetta.runtime.core import ArmState, Env, Image, Init, Layout, Sampled, Scene, Step, Task
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.sims.gym_names import register

Observed: TypeAlias = dict[str, npt.NDArray[Any]]
_LARGEST_SEED = 2**31


class Told(TypedDict):
    """What a reset and a step tell beside the observation."""

    instruction: str
    success: bool
    t: float


@dataclass(frozen=True, slots=True)
class World:
    """One task, and how its environment is made."""

    task: Task
    init_count: int
    make: Callable[[], Env]


class GymWorld(gymnasium.Env[Observed, npt.NDArray[np.float32]]):
    """One task as Gymnasium wants it.

    `reset(seed=N)` draws a layout from the seed; `reset(options={"init": k})` takes init `k`.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium's own attribute

    def __init__(
        self,
        world: World,
        cameras: Sequence[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Build the environment.

        Args:
            world: the task.
            cameras: those that every observation has; None for all, none for a blind one.
            render_mode: `rgb_array`, or None.

        Raises:
            ConfigError: unknown camera or render mode.
            InfraError: the simulator is not usable here.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"got the render mode {render_mode!r}; there is only rgb_array")
        self._world, self.render_mode = world, render_mode
        self._env = world.make()
        spec = self._env.spec
        self.metadata = {**self.metadata, "render_fps": round(spec.control_hz)}
        known = [camera.name for camera in spec.cameras]
        self._cameras = tuple(known if cameras is None else cameras)
        unknown = [name for name in self._cameras if name not in known]
        if unknown:
            self._env.close()
            raise ConfigError(f"unknown camera {unknown[0]!r}; known: {', '.join(known)}")
        action = spec.action
        self.action_space = spaces.Box(
            np.array(action.low, np.float32), np.array(action.high, np.float32)
        )
        first = self._env.reset(Scene(world.task, Init(0)))
        parts: dict[str, spaces.Space[Any]] = {
            f"{name}_state": spaces.Box(-np.inf, np.inf, _state(arm).shape, np.float32)
            for name, arm in zip(spec.arms, first.proprio.arms, strict=True)
        }
        if first.proprio.base is not None:
            parts["base"] = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        for name in self._cameras:
            camera = spec.camera(name)
            shape = (camera.height, camera.width, 3)
            parts[name] = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = cast("spaces.Space[Observed]", spaces.Dict(parts))
        self._ended = True
        self._said = self._env.observe().instruction

    @property
    def instruction(self) -> str:
        """What the robot is asked to do; where scenes are worded one by one, in this episode."""
        return self._said

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observed, dict[str, Any]]:
        """Begin an episode.

        Raises:
            ConfigError: unknown option, or no such init.
        """
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_LARGEST_SEED))
        layout = _layout(options or {}, self._world.init_count)
        step = self._env.reset(Scene(self._world.task, layout, drawn))
        self._said = self._env.observe().instruction
        self._ended = False
        return self._observed(step), dict(self._told(step))

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Observed, float, bool, bool, dict[str, Any]]:
        """Advance one control tick.

        Raises:
            SpecMismatch: the episode is over, or the action has another length or is not finite.
        """
        if self._ended:
            raise SpecMismatch("the episode is over, or was never begun; call reset before step")
        step = self._env.step(np.asarray(action, np.float64))
        self._ended = step.terminated or step.truncated
        reward = 1.0 if step.success else 0.0
        told = dict(self._told(step))
        return self._observed(step), reward, step.terminated, step.truncated, told

    def render(self) -> Image | None:
        """Return the picture of the first camera, in the render mode `rgb_array`."""
        if self.render_mode is None:
            return None
        name = self._env.spec.cameras[0].name
        return np.array(self._env.observe([name]).images[name])

    def close(self) -> None:
        """Free everything; calling it again does nothing."""
        self._env.close()

    def _observed(self, step: Step) -> Observed:
        spec = self._env.spec
        arms = zip(spec.arms, step.proprio.arms, strict=True)
        found: Observed = {f"{name}_state": _state(arm) for name, arm in arms}
        if step.proprio.base is not None:
            found["base"] = np.array(step.proprio.base, np.float32)
        if self._cameras:
            images = self._env.observe(self._cameras).images
            found |= {name: np.array(images[name]) for name in self._cameras}
        return found

    def _told(self, step: Step) -> Told:
        return {"instruction": self.instruction, "success": step.success, "t": step.proprio.t}


def _state(arm: ArmState) -> npt.NDArray[np.float32]:
    grip = [arm.gripper_opening, arm.gripper_velocity]
    return np.concatenate([arm.ee_pos, arm.ee_quat, grip, arm.joint_pos]).astype(np.float32)


def _layout(options: dict[str, Any], count: int) -> Layout:
    unknown = set(options) - {"init"}
    if unknown:
        raise ConfigError(f"unknown option {sorted(unknown)[0]!r} of reset; there is only 'init'")
    if "init" not in options:
        return Sampled()
    k = int(options["init"])
    if not 0 <= k < count:
        raise ConfigError(f"the task has the inits 0-{count - 1}, got {k}")
    return Init(k)


register()
