"""What every environment of a simulator refuses, and the seeds of its layouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import numpy as np

from zetta.runtime.core import Action, Array, Image, Init, Layout, Scene, Step, Task
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch

SAMPLING_TRIES: Final = 20
"""Layouts that are drawn for a scene before its seed is given up."""
_INITS, _SAMPLES = 0, 1
"""Streams of seeds, which never meet."""


def check_scene(task: Task, scene: Scene) -> None:
    """Refuse a scene that is none of the environment's task.

    Raises:
        ConfigError: it belongs to another task.
    """
    if (scene.task.suite, scene.task.index) != (task.suite, task.index):
        raise ConfigError(
            f"this environment is {task.suite}#{task.index}, the scene is of "
            f"{scene.task.suite}#{scene.task.index}; make one environment for each task"
        )


def checked_row(action: Action, size: int) -> Array:
    """Return a copy of an action as numbers. Shape (size,).

    Raises:
        SpecMismatch: it has the wrong length or is not finite.
    """
    row = np.array(action, dtype=np.float64)
    if row.shape != (size,):
        raise SpecMismatch(f"got an action of shape {row.shape}, expected ({size},)")
    if not np.isfinite(row).all():
        raise SpecMismatch(f"got an action that is not finite: {row.tolist()}")
    return row


def check_cameras(asked: Iterable[str], known: Collection[str]) -> None:
    """Refuse a camera that there is not.

    Raises:
        ConfigError: it is not among the known ones.
    """
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ConfigError(f"unknown camera {unknown[0]!r}; known: {', '.join(known)}")


def checked_pose(pose: Array, size: int) -> Array:
    """Return a logged pose as numbers. Shape (size,).

    Raises:
        SpecMismatch: it has another length.
    """
    if np.shape(pose) != (size,):
        raise SpecMismatch(
            f"got a pose of shape {np.shape(pose)}, expected ({size},); it was logged in another "
            "task or scene, so reset to that one first"
        )
    return np.asarray(pose, dtype=np.float64)


def check_pictures(pictures: Iterable[Image]) -> None:
    """Refuse the pictures of a broken context, which are constant or equal, without any error.

    Raises:
        InfraError: one shows nothing, or two show the same.
    """
    first, *others = pictures
    blank = min(float(picture.std()) for picture in (first, *others)) < 5
    if blank or any(np.array_equal(first, picture) for picture in others):
        raise InfraError("the renderer returns empty pictures; run zetta doctor")


def drawn_from(layout: Layout, seed: int, inits: int) -> tuple[int, int]:
    """Return what a layout is drawn from: which stream of seeds, and where in it.

    >>> drawn_from(Init(3), 7, 50)
    (0, 3)

    Raises:
        ConfigError: there is no such init.
    """
    if not isinstance(layout, Init):
        return _SAMPLES, seed
    if not 0 <= layout.k < inits:
        raise ConfigError(f"this task has the inits 0-{inits - 1}, got {layout}")
    return _INITS, layout.k


def seeds_of(scene: Scene, inits: int, attempt: int, count: int = 1) -> tuple[int, ...]:
    """Return what an attempt at the layout of a scene draws from: `count` numbers of 32 bits.

    Raises:
        ConfigError: there is no such init.
    """
    entropy = drawn_from(scene.layout, scene.seed, inits)
    numbers = np.random.SeedSequence([*entropy, attempt]).generate_state(count)
    return tuple(int(number) for number in numbers)


def first_unsolved(scene: Scene, lay_out: Callable[[int], Step]) -> Step:
    """Lay a scene out until it begins short of its goal; each attempt draws another layout.

    Raises:
        InfraError: every attempt began with the goal reached.
    """
    for attempt in range(SAMPLING_TRIES):
        step = lay_out(attempt)
        if not (step.success or step.terminated):
            return step
    raise InfraError(
        f"every layout of {scene.task.suite}#{scene.task.index} with seed {scene.seed} began with "
        "its goal reached; use another seed"
    )
