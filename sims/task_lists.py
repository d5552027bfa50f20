"""Looking tasks up by number and by name, in suites that are data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from zetta.runtime.core import Task
from zetta.runtime.errors import ConfigError, suggest


class Named(Protocol):
    """A task with a name and an instruction."""

    @property
    def name(self) -> str:
        """Return what the simulator calls it."""
        ...

    @property
    def instruction(self) -> str:
        """Return what the robot is asked to do."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class TaskLists(Generic[N]):
    """The suites of a simulator: what `sims/own_interpreter.py` asks of them, and what answers."""

    suites: Mapping[str, Sequence[N]]
    """Tasks by suite, in a fixed order."""
    listed: Callable[[str], Sequence[N]]
    """Returns the tasks of a suite, which need not be among `suites`; raises ConfigError."""
    steps: Callable[[str, N], int]
    """Returns the budget of a task in a suite, ticks."""
    elsewhere: Mapping[str, Sequence[N]]
    """Suites in which a task may be that another one has not, the likeliest first."""
    hint: Callable[[str], str] = lambda name: ""
    """Returns what else may be tried where a name is unknown."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return {suite: len(own) for suite, own in self.suites.items()}

    def find(self, suite: str, index: int) -> N:
        """Return a task as the simulator has it.

        Raises:
            ConfigError: unknown suite or index.
        """
        return nth(self.listed(suite), suite, index)

    def number(self, suite: str, name: str) -> int:
        """Return the index of the task called `name`.

        Raises:
            ConfigError: unknown suite or name.
        """
        return number_of(self.listed(suite), suite, name, self.elsewhere, self.hint(name))

    def task(self, suite: str, index: int) -> Task:
        """Return a task in the words of the runtime.

        Raises:
            ConfigError: unknown suite or index.
        """
        own = self.find(suite, index)
        return Task(suite, index, own.instruction, self.steps(suite, own))


def suite_of(suites: Mapping[str, T], suite: str, sim: str) -> T:
    """Return a suite.

    Raises:
        ConfigError: unknown suite.
    """
    if suite not in suites:
        raise ConfigError(f"unknown {sim} suite {suite!r}; {suggest(suite, suites)}")
    return suites[suite]


def nth(tasks: Sequence[T], suite: str, index: int) -> T:
    """Return a task of a suite.

    Raises:
        ConfigError: unknown index.
    """
    if not 0 <= index < len(tasks):
        raise ConfigError(f"suite {suite} has tasks 0-{len(tasks) - 1}, got {index}")
    return tasks[index]


def number_of(
    tasks: Sequence[N],
    suite: str,
    name: str,
    others: Mapping[str, Sequence[N]],
    hint: str = "",
) -> int:
    """Return the index of the task called `name`.

    Args:
        tasks: those of the suite.
        suite: its name.
        name: of the task.
        others: suites in which it may be instead, the likeliest first.
        hint: what else may be tried.

    Raises:
        ConfigError: unknown name.
    """
    names = [task.name for task in tasks]
    if name in names:
        return names.index(name)
    for other, listed in others.items():
        if name in [task.name for task in listed]:
            raise ConfigError(f"{name} is no task of {suite}; it is one of --suite {other}")
    raise ConfigError(f"unknown task {name!r} of {suite}; {suggest(name, names)}{hint}")
