"""RoboTwin as a `Simulator`: lists without an engine, builds where RoboTwin's runtime lies."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import InfraError
from zetta.sims.robotwin import tasks

PACKAGE, WANTED = "rlinf-robotwin-runtime", "0.1.3"


class RobotwinSimulator:
    """The fifty tasks of RoboTwin 2.0, five of them on a robot of ours as well."""

    name = "robotwin"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return {suite: len(tasks.tasks_of(suite)) for suite in tasks.SUITES}

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return tasks.task(suite, index)

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task that RoboTwin calls `name`.

        Raises:
            ConfigError: unknown suite or name.
        """
        return tasks.number(suite, name)

    def init_count(self, suite: str, index: int) -> int:
        """Return how many `Init` layouts there are.

        Raises:
            ConfigError: unknown suite or index.
        """
        tasks.find(suite, index)
        return tasks.INIT_COUNT

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task, in the virtual environment of RoboTwin.

        Raises:
            ConfigError: unknown suite, index or render profile.
            InfraError: this interpreter has no RoboTwin, or another version; assets are missing.
        """
        require()
        from zetta.sims.robotwin.env import RobotwinEnv

        return RobotwinEnv(suite, index, render)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        from zetta.sims.robotwin.expert import expert_motion

        return expert_motion(env, noise, seed)


def require() -> None:
    """Refuse an interpreter without the right RoboTwin.

    Raises:
        InfraError: it has none, or another version.
    """
    try:
        found = version(PACKAGE)
    except PackageNotFoundError:
        found = "none"
    if found != WANTED:
        raise InfraError(
            f"this Python has {PACKAGE} {found}, expected {WANTED}, which lives in an environment "
            "of its own; install it with: zetta sims install robotwin"
        )
