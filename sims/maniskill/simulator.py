"""ManiSkill as a `Simulator`: lists without an engine, builds where ManiSkill 3.0.1 lies."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import InfraError
from zetta.sims.maniskill import tasks

WANTED = "3.0.1"


class ManiSkillSimulator:
    """Tasks of ManiSkill with one Panda arm."""

    name = "maniskill"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite; `maniskill:ID` is a suite as well."""
        return {suite: len(listed) for suite, listed in tasks.TASKS.items()}

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return tasks.task(suite, index)

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task that ManiSkill calls `name`.

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
        """Build the environment of one task, in the virtual environment of ManiSkill.

        Raises:
            ConfigError: unknown suite, index or render profile.
            InfraError: this interpreter has no ManiSkill, or no device draws.
        """
        require()
        from zetta.sims.maniskill.env import ManiSkillEnv

        return ManiSkillEnv(suite, index, render)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        from zetta.sims.maniskill.expert import expert_motion

        return expert_motion(env, noise, seed)


def require() -> None:
    """Refuse an interpreter without the right ManiSkill.

    Raises:
        InfraError: it has none, or another version.
    """
    try:
        found = version("mani_skill")
    except PackageNotFoundError:
        found = "none"
    if found != WANTED:
        raise InfraError(
            f"this Python has ManiSkill {found}, expected {WANTED}, which lives in an environment "
            "of its own; install it with: zetta sims install maniskill"
        )
