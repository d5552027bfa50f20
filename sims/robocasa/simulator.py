"""RoboCasa as a `Simulator`: lists without an engine, builds where RoboCasa lies."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import InfraError
from zetta.sims.probes import refused_argument
from zetta.sims.robocasa import tasks

PACKAGES: Mapping[str, str] = {"rlinf-robocasa365": "1.0.1", "praxis-robosuite": "1.5.2.post1"}
"""What RoboCasa runs from, and its versions."""
TAKEN = "robosuite.environments.manipulation.manipulation_env:ManipulationEnv:load_model_on_init"
"""What tells the robosuite that RoboCasa needs from the one of the same version that it cannot
use."""


class RobocasaSimulator:
    """The tasks of RoboCasa365, with a Panda arm on a mobile base."""

    name = "robocasa"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return {suite: len(listed) for suite, listed in tasks.TASKS.items()}

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return tasks.task(suite, index)

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task that RoboCasa calls `name`.

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
        """Build the environment of one task, in the virtual environment of RoboCasa.

        Raises:
            ConfigError: unknown suite, index or render profile.
            InfraError: this interpreter has no RoboCasa, or not the packages that it runs with, or
                the task needs assets that are not there.
        """
        tasks.find(suite, index)
        require()
        from zetta.sims.robocasa.env import RobocasaEnv

        return RobocasaEnv(suite, index, render)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        from zetta.sims.robocasa.expert import expert_motion

        return expert_motion(env, noise, seed)


def require() -> None:
    """Refuse an interpreter without what RoboCasa runs from.

    Raises:
        InfraError: a package is missing or of another version, or robosuite is not the one that
            RoboCasa needs.
    """
    fix = "which lives in an environment of its own; install it with: zetta sims install robocasa"
    for package, wanted in PACKAGES.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "none"
        if found != wanted:
            raise InfraError(f"this Python has {package} {found}, expected {wanted}, {fix}")
    refused = refused_argument(TAKEN)
    if refused:
        raise InfraError(
            f"{refused}; make the environment anew with: zetta sims install robocasa --again"
        )
