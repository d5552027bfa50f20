"""What environments do alike that hold a world: its spec, its poses, its landmarks, its outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from zetta.runtime.core import (
    Array,
    CameraSpec,
    EnvSpec,
    Landmark,
    Proprio,
    Step,
    Task,
    Truth,
)
from zetta.sims.env_checks import checked_pose


class World(Protocol):
    """Privileged reading of a simulation, and its poses."""

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for."""
        ...

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        ...

    def show(self, pose: Array) -> None:
        """Put everything where a pose says."""
        ...


class WorldEnv:
    """An environment with a world; subclasses make both, and step it."""

    task: Task
    _spec: EnvSpec
    _world: World

    @property
    def spec(self) -> EnvSpec:
        """Conventions, cameras and versions."""
        return self._spec

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
        self._moved()

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for; simulator truth."""
        return self._world.landmarks()

    def _moved(self) -> None:
        """Bring up to the world what follows from where its things are."""

    def _proprio(self) -> Proprio:
        """Return what the robot senses of itself now."""
        raise NotImplementedError

    def _told(self, truth: Truth, success: bool, ticks: int, lost: bool = False) -> Step:
        """Return what a step came to, after so many ticks of the task's budget."""
        over = success or lost
        return Step(
            proprio=self._proprio(),
            success=success,
            terminated=over,
            truncated=not over and ticks >= self.task.max_steps,
            truth=truth,
        )


def square_cameras(names: Iterable[str], size: int) -> tuple[CameraSpec, ...]:
    """Return cameras of square pictures; those whose name ends in `wrist` ride on a hand.

    >>> [camera.mount for camera in square_cameras(("agentview", "left_wrist"), 256)]
    ['world', 'wrist']
    """
    return tuple(
        CameraSpec(name, size, size, "wrist" if name.endswith("wrist") else "world")
        for name in names
    )
