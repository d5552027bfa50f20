"""What simulators share that run only in an environment of their own: lists, versions, lateness.

Names and tasks are data and are read anywhere; packages are looked for, and engines imported, only
when an environment is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Protocol, cast

from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import InfraError


class TaskList(Protocol):
    """The module `tasks` of a simulator."""

    @property
    def INIT_COUNT(self) -> int:
        """Return how many `Init` layouts each task has."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        ...

    def find(self, suite: str, index: int) -> object:
        """Return a task as the simulator has it.

        Raises:
            ConfigError: unknown suite or index.
        """
        ...

    def number(self, suite: str, name: str) -> int:
        """Return the index of a task.

        Raises:
            ConfigError: unknown suite or name.
        """
        ...

    def task(self, suite: str, index: int) -> Task:
        """Return a task in the words of the runtime.

        Raises:
            ConfigError: unknown suite or index.
        """
        ...


class OwnInterpreterSimulator:
    """A `Simulator` of a package `zetta.sims.NAME`; subclasses say which, and what it runs from."""

    name: ClassVar[str]
    tasks: ClassVar[TaskList]
    made: ClassVar[str]
    """Class in the module `env` of the package."""
    packages: ClassVar[Mapping[str, str]]
    """Versions that it runs from, by package."""

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return self.tasks.counts()

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return self.tasks.task(suite, index)

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task that the simulator calls `name`.

        Raises:
            ConfigError: unknown suite or name.
        """
        return self.tasks.number(suite, name)

    def init_count(self, suite: str, index: int) -> int:
        """Return how many `Init` layouts there are.

        Raises:
            ConfigError: unknown suite or index.
        """
        self.tasks.find(suite, index)
        return self.tasks.INIT_COUNT

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task, in the virtual environment of the simulator.

        Raises:
            ConfigError: unknown suite, index or render profile.
            InfraError: this interpreter lacks what the simulator runs from, or it cannot be built.
        """
        self.tasks.find(suite, index)
        self.require()
        module = import_module(f"zetta.sims.{self.name}.env")
        return cast(Env, getattr(module, self.made)(suite, index, render))

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        module = import_module(f"zetta.sims.{self.name}.expert")
        return cast(Motion, module.expert_motion(env, noise, seed))

    def require(self) -> None:
        """Refuse an interpreter without what the simulator runs from.

        Raises:
            InfraError: a package is missing or of another version.
        """
        for package, wanted in self.packages.items():
            try:
                found = version(package)
            except PackageNotFoundError:
                found = "none"
            if found != wanted:
                raise InfraError(
                    f"this Python has {package} {found}, expected {wanted}, which lives in an "
                    f"environment of its own; install it with: zetta sims install {self.name}"
                )
