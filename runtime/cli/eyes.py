"""Who sees for an episode, how often, and in which thread: on an arm in one beside the loop."""

from __future__ import annotations

from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Env, Localizer, RunSpec
from zetta.runtime.looking import LooksAside
from zetta.runtime.signals_source import Look

LOOK_EVERY_S: Final = 0.5
"""How often the cameras are looked through for signals."""


def eyes(spec: RunSpec, env: Env, sight: Sight) -> tuple[Localizer, Look]:
    """Return who answers the looks of motions, and the scheduled look of signals.

    A simulator waits for both. On an arm they look in a thread, one after the other.
    """
    if not registry.is_arm(spec.sim):
        return sight, sight.look
    aside = LooksAside(sight)
    return aside, aside.glances(env, lambda: sight.bound)


def looking(localizer: Localizer, env: Env, sight: Sight) -> Look:
    """Return the look of an agent's signals: at what is bound, when it is asked for.

    Not ahead of time: commands bind what is looked for, and a look must not meet the next.
    """
    return lambda: localizer.locate(env.observe(localizer.cameras, depth=True), sight.bound)


def looks_at(control_hz: float) -> int:
    """Return how many ticks lie between two looks: those of half a second.

    >>> looks_at(20.0), looks_at(50.0)
    (10, 25)
    """
    return max(1, round(LOOK_EVERY_S * control_hz))
