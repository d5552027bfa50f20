"""What scripted experts drive: environments that tell where every named thing is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from zetta.runtime.core import Env, Landmark
from zetta.runtime.errors import ConfigError


@runtime_checkable
class Surveyed(Env, Protocol):
    """An environment that tells where every named thing is."""

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return simulator truth about every named thing of the scene."""
        ...


def surveyed(env: Env, sim: str, title: str) -> Surveyed:
    """Return `env`, which an expert of one simulator shall drive.

    Args:
        env: an environment of it, here or in another process.
        sim: its name.
        title: as its makers write it.

    Raises:
        ConfigError: it is one of another simulator.
    """
    if not isinstance(env, Surveyed) or env.spec.name != sim:
        raise ConfigError(f"{title}'s experts drive its environments, not a {type(env).__name__}")
    return env


def no_expert(instruction: str, covered: str) -> ConfigError:
    """Return the error of a task that no expert covers; `covered` says what there is one for."""
    return ConfigError(f"no scripted expert covers {instruction!r}; there is one for {covered}")


def landmark(env: Surveyed, name: str) -> Landmark:
    """Return the thing of a name that the scene has."""
    return next(mark for mark in env.landmarks() if mark.name == name)
