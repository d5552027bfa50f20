"""On what robot an episode ran, as far as the thresholds of critics depend on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from zetta.runtime.core import EnvSpec

ARM: Final = "arm"
"""In `EnvSpec.versions`: what kind of arm it is."""
LIMITS: Final = "limits"
"""In `EnvSpec.versions`: the limits that every command is held to; they make an arm slower."""
HAND_MM: Final = "hand_mm"
"""In `EnvSpec.versions`: how wide its hand opens, millimetres."""


@dataclass(frozen=True, slots=True)
class Embodiment:
    """A place, an arm and a rate: thresholds that hold for one need not hold for another."""

    name: str
    """Of the environment: a simulator, or what the set-up of an arm calls itself."""
    arm: str
    """The arm's model, the opening of its hand and its limits, or the names of the arms."""
    control_hz: float

    @property
    def key(self) -> str:
        """Return it as the name of a file.

        >>> Embodiment("bench arm", "Franka, 80 mm", 20.0).key
        'bench-arm_franka-80-mm_20hz'
        """
        return f"{_slug(self.name)}_{_slug(self.arm)}_{self.control_hz:g}hz"

    def __str__(self) -> str:
        """Return it as a person says it."""
        return f"{self.name} ({self.arm}, {self.control_hz:g} Hz)"


def embodiment_of(spec: EnvSpec) -> Embodiment:
    """Return on what an environment with these conventions runs."""
    arm = spec.versions.get(ARM, "+".join(spec.arms))
    opening = opening_of(spec)
    if opening is not None:
        arm += f", {1000.0 * opening:g} mm"
    if LIMITS in spec.versions:
        arm += f", limits {spec.versions[LIMITS]}"
    return Embodiment(spec.name, arm, spec.control_hz)


def opening_of(spec: EnvSpec) -> float | None:
    """Return how wide the hand opens, metres; None where it is not said."""
    said = spec.versions.get(HAND_MM)
    return None if said is None else float(said) / 1000.0


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "any"
