"""Simulators whose packages clash with ours: their environments live in another interpreter.

Names, tasks and conventions are data and are read here; only `make` needs the other interpreter,
and each environment gets a process of its own there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, runtime_checkable

from zetta.runtime.core import Env, Motion, Simulator, Task
from zetta.runtime.errors import ConfigError

CALL_S: Final = 300.0
"""For one call: a first picture that compiles shaders takes minutes on a busy machine."""


@runtime_checkable
class NamesTasks(Protocol):
    """A simulator whose tasks have names."""

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task called `name`.

        Raises:
            ConfigError: unknown suite or name.
        """
        ...


class ApartSimulator:
    """A simulator of which only the lists are here."""

    def __init__(
        self,
        simulator: Simulator,
        python: str,
        variables: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        """Wrap `simulator`, which makes its environments with the interpreter `python`.

        Args:
            simulator: knows the lists.
            python: interpreter of the environments' processes.
            variables: gives the environment variables of such a process when one is started;
                None passes ours on.
        """
        self._simulator, self._python, self._variables = simulator, python, variables
        self.name = simulator.name

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite name."""
        return self._simulator.suites()

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return self._simulator.task(suite, index)

    def task_number(self, suite: str, name: str) -> int:
        """Return the index of the task called `name`.

        Raises:
            ConfigError: unknown suite or name, or its tasks have only numbers.
        """
        if not isinstance(self._simulator, NamesTasks):
            raise ConfigError(f"tasks of {self.name} have numbers, got {name!r}")
        return self._simulator.task_number(suite, name)

    def init_count(self, suite: str, index: int) -> int:
        """Return how many `Init` layouts ship with the task."""
        return self._simulator.init_count(suite, index)

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task in a process of the other interpreter.

        Raises:
            ConfigError: unknown suite, index or render profile.
            InfraError: the process cannot be started, or the simulator is not usable there.
        """
        from zetta.sims.remote import RemoteEnv, RemoteSettings  # late: lists need no sockets

        self._simulator.task(suite, index)  # an unknown one needs no process
        variables = None if self._variables is None else self._variables()
        settings = RemoteSettings(
            call_s=CALL_S, python=self._python, lent=True, environment=variables
        )
        return RemoteEnv(self.name, suite, index, render, settings)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        return self._simulator.expert(env, noise, seed)
