"""The box that a hand may move in, and the environments that have one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from zetta.runtime.core import Array, Env
from zetta.runtime.errors import ConfigError

Point: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Where the grip site may be: an upright box in the world, metres.

    Raises:
        ConfigError: it is empty or not finite.
    """

    low: Point
    high: Point

    def __post_init__(self) -> None:
        sides = np.array(self.high) - np.array(self.low)
        if sides.shape != (3,) or not np.isfinite(sides).all() or not (sides > 0.0).all():
            raise ConfigError(
                f"a workspace reaches from its low to its high corner, got {self.low} to "
                f"{self.high}; give finite numbers, each low one below its high one"
            )

    def nearest(self, point: Array) -> Array:
        """Return the point of the box that is nearest to `point`. Shape (3,)."""
        return np.clip(point, self.low, self.high)

    def excess(self, point: Array) -> Array:
        """Return how far a point is outside, by axis and signed. Shape (3,).

        >>> Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)).excess(np.array([0.5, 1.25, -1.0])).tolist()
        [0.0, 0.25, -1.0]
        """
        return np.asarray(point - self.nearest(point))

    def holds(self, point: Array, slack: float = 0.0) -> bool:
        """Say whether a point lies inside, or outside by at most `slack` metres."""
        return float(np.abs(self.excess(point)).max()) <= slack

    def room(self, point: Array) -> float:
        """Return the distance from the nearest wall, metres; negative outside."""
        return float(min(np.min(point - self.low), np.min(self.high - point)))

    def share_inside(self, start: Array, way: Array) -> float:
        """Return which share of a straight way from a point inside stays inside.

        >>> box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        >>> box.share_inside(np.array([0.5, 0.5, 0.5]), np.array([0.0, 0.0, -2.0]))
        0.25
        """
        room = np.where(way > 0.0, np.array(self.high) - start, start - np.array(self.low))
        shares = np.maximum(room, 0.0) / np.maximum(np.abs(way), 1e-12)
        return float(min(1.0, shares.min()))

    def __str__(self) -> str:
        sides = zip("xyz", self.low, self.high, strict=True)
        return ", ".join(f"{a} {100.0 * lo:.0f} to {100.0 * hi:.0f}" for a, lo, hi in sides) + " cm"


@runtime_checkable
class BoundedEnv(Env, Protocol):
    """An environment that says where its hands may be."""

    def workspace(self, index: int) -> Box | None:
        """Return the workspace of arm `index`, or None where none is declared."""
        ...
