"""The twin where a simulator could stand: its errands are the tasks, its seeds the layouts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from zetta.hw_drivers.twin.tasks import MAX_STEPS, TASKS, TwinTask
from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import ConfigError, suggest

SUITES: Final[Mapping[str, tuple[TwinTask, ...]]] = MappingProxyType(
    {
        "twin_pick": tuple(task for task in TASKS if not task.on),
        "twin_place": tuple(task for task in TASKS if task.on),
    }
)
RENDERS: Final = ("fast",)


class TwinSimulator:
    """Every errand at the twin's table."""

    name = "twin"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return {suite: len(tasks) for suite, tasks in SUITES.items()}

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return Task(suite, index, _errand(suite, index).instruction, MAX_STEPS)

    def init_count(self, suite: str, index: int) -> int:
        """Return how many numbered layouts a task has.

        Raises:
            ConfigError: unknown suite or index.
        """
        from zetta.hw_drivers.twin.env import INIT_COUNT

        _errand(suite, index)
        return INIT_COUNT

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task.

        Raises:
            ConfigError: unknown suite, index or render setting, or something is not installed.
        """
        from zetta.hw_drivers.twin.env import TwinEnv

        if render not in RENDERS:
            raise ConfigError(
                f"the twin has no render setting {render!r}; {suggest(render, RENDERS)}"
            )
        return TwinEnv(self.task(suite, index), _errand(suite, index))

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert, which reads the twin's truth.

        Raises:
            ConfigError: not an environment of the twin.
        """
        from zetta.hw_drivers.twin.env import TwinEnv
        from zetta.hw_drivers.twin.expert import expert_motion

        if not isinstance(env, TwinEnv):
            raise ConfigError(f"got a {type(env).__name__}, expected an environment of the twin")
        return expert_motion(env, noise, seed)


def _errand(suite: str, index: int) -> TwinTask:
    if suite not in SUITES:
        raise ConfigError(f"the twin has no suite {suite!r}; {suggest(suite, SUITES)}")
    if not 0 <= index < len(SUITES[suite]):
        raise ConfigError(f"{suite} has the tasks 0-{len(SUITES[suite]) - 1}, got {index}")
    return SUITES[suite][index]
