"""Looking tasks up by number and by name, in suites that are data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from zetta.runtime.errors import ConfigError, suggest


class Named(Protocol):
    """A task with a name."""

    @property
    def name(self) -> str:
        """Return what the simulator calls it."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=Named)


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
