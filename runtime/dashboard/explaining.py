"""Why a critic spoke, as the command tells it to the episode view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from zetta.runtime.episode_log import LoggedEpisode


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one expression of a program came to at a tick."""

    line: int
    """Counted from 1."""
    text: str
    """The expression."""
    value: float | bool | None
    """None where it is no number."""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a critic spoke: its code, and what it saw."""

    critic: str
    source: str
    """The whole program."""
    level: str
    """Sensing level of what it reads."""
    same: bool
    """The code is the one under which the episode ran; False where the bundle has changed since."""
    annotations: tuple[Annotation, ...] = ()
    decided: int | None = None
    """Line of the `return` that was reached."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    signals: tuple[str, ...] = ()
    window_s: float = 0.0
    note: str = ""
    """What is missing, in one sentence."""


class Explainer(Protocol):
    """Knows the bundles."""

    def explain(self, episode: LoggedEpisode, critic: str, tick: int) -> Explanation:
        """Return the code of a critic with the values that it saw at a tick.

        Raises:
            ConfigError: the bundle, or the critic in it, is not there any more.
        """
        ...

    def levels(self) -> Mapping[str, tuple[str, str, str]]:
        """Return level, unit and sentence of every signal by its name."""
        ...
