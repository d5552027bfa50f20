"""What the environments of robosuite do alike, and of RoboCasa, which stands on it.

Physics are the simulator's own control step. After it, positions and contacts are brought up to the
joints (`mj_step1`, which the next control step begins with anyway): robosuite's observations and
its success check lag by one substep of 2 ms, ours do not, and the trajectory is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from zetta.runtime.core import Action, EnvSpec, Image, Observation, Step, Task, Truth
from zetta.runtime.errors import InfraError
from zetta.sims.env_checks import check_cameras, checked_row
from zetta.sims.libero.rendering import Renderer, RenderProfile, profile
from zetta.sims.world_env import World, WorldEnv

CONTROL_HZ: Final = 20.0
PICTURE_SIZE: Final = 256


class MujocoWorld(World, Protocol):
    """A world that says which goals hold."""

    def truth(self) -> Truth:
        """Return where everything is, and which goals hold."""
        ...


class MujocoEnv(WorldEnv):
    """An environment on a simulation of robosuite."""

    _world: MujocoWorld

    def __init__(
        self,
        task: Task,
        inner: Any,
        spec: EnvSpec,
        look: RenderProfile,
        cameras: Mapping[str, str],
    ) -> None:
        """Take hold of a simulation.

        Args:
            task: its task.
            inner: the simulator's own environment object.
            spec: conventions.
            look: render profile.
            cameras: the simulator's names of cameras, by ours.
        """
        self.task, self._spec = task, spec
        self.inner = inner
        """The simulator's own environment object, for scripted experts and truth."""
        self._profile, self._cameras = look, cameras
        self._renderer: Renderer | None = None
        self._tick = 0

    def step(self, action: Action) -> Step:
        """Advance one control tick (0.05 s); what exceeds the limits is clipped to them.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
            InfraError: the simulation became unstable.
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

    def close(self) -> None:
        """Release the renderer and the simulation; calling it again does nothing."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        if self.inner is not None:
            self.inner.close()
            self.inner = None

    # ------------------------------------------------------------------ internals

    def _engine_row(self, row: Action) -> Action:
        """Return a row of ours as the simulator takes it."""
        raise NotImplementedError

    def _advance(self, row: Action) -> None:
        self.inner.step(self._engine_row(row))
        self._moved()
        if not np.isfinite(self._data.qpos).all():
            raise InfraError("the simulation became unstable (joint positions are not finite)")

    def _moved(self) -> None:
        import mujoco

        mujoco.mj_step1(self._model, self._data)

    @property
    def _model(self) -> Any:
        return self.inner.sim.model._model

    @property
    def _data(self) -> Any:
        return self.inner.sim.data._data

    def _outcome(self) -> Step:
        truth = self._world.truth()
        return self._told(truth, all(truth.predicates.values()), self._tick)

    def _drawing(self) -> Renderer:
        if self._renderer is None:
            self._renderer = Renderer(self._model, self._data, self._profile, PICTURE_SIZE)
            self._renderer.check(self._cameras.values(), PICTURE_SIZE)
        return self._renderer


def profile_of(sim: str, render: str) -> RenderProfile:
    """Return a render profile named after a simulator.

    A model of another simulator's pictures is bound to those, and refuses these.

    Raises:
        ConfigError: unknown render profile.
    """
    return replace(profile(render), name=f"{sim}-{render}")
