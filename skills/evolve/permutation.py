"""A trigger must not depend on what things are called, in which order they come, or where zero is.

Each check replays a critic over logged episodes that were changed in a way that a rule about the
robot cannot notice: the first alarm of every episode must stay where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from zetta.critics.values import axis_of
from zetta.runtime.core import Tick
from zetta.runtime.signals import SIGNALS, SignalSpec
from zetta.skills.compiled import CompiledSkill
from zetta.skills.evolve.alarms import compiled_for, first_alarm, fits
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.package import SkillPackage

SHIFTS: Final[Mapping[str, float]] = {"x": 0.25, "y": -0.5, "z": 0.125}
"""By how much the origin moves along each axis, metres: powers of two round little."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """What one change did to the triggers."""

    what: str
    """What was changed, as the beginning of a sentence."""
    differing: tuple[str, ...]
    """Names of the episodes whose first alarm moved."""


def permuted_triggers(
    package: SkillPackage,
    episodes: Sequence[WatchedEpisode],
    *,
    identity: Sequence[str] = (),
    signals: Mapping[str, SignalSpec] = SIGNALS,
    seed: int = 0,
) -> tuple[Permutation, ...]:
    """Return, for each change, the episodes in which a skill would take over at another tick.

    Args:
        package: the skill; episodes whose instruction it does not fit are left out.
        episodes: logs with signals.
        identity: signals that tell scenes, tasks or things apart. None that is built in does; a
            signal that somebody installed may.
        signals: what exists; places in the world are found in it by their axis.
        seed: of the permutations.
    """
    own = [e for e in episodes if fits(package, e.instruction)]
    skills = {hz: compiled_for(package, hz) for hz in {e.control_hz for e in own}}
    before = _alarms(skills, own)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(own))
    renamed = [replace(own[k], name=f"{n}", instruction=own[n].instruction)
               for n, k in enumerate(order)]  # fmt: skip
    after: dict[int, int | None] = dict(
        zip(order.tolist(), _alarms(skills, [_reordered(e, rng) for e in renamed]), strict=True)
    )
    changes = [Permutation("the order of episodes, names and instructions", _names(
        own, before, [after[k] for k in range(len(own))]))]  # fmt: skip
    axes = {name: axis_of(spec) for name, spec in signals.items()}
    shifts = {name: SHIFTS[axis] for name, axis in axes.items() if axis}
    moved = [_changed(e, lambda n, v: v + shifts.get(n, 0.0)) for e in own]
    changes.append(Permutation("where the world's origin lies", _names(
        own, before, _alarms(skills, moved))))  # fmt: skip
    if identity:
        swapped = [_identified(e, own[k], identity) for e, k in zip(own, order, strict=True)]
        changes.append(Permutation("who is who", _names(own, before, _alarms(skills, swapped))))
    return tuple(changes)


def _alarms(
    skills: Mapping[float, CompiledSkill], episodes: Sequence[WatchedEpisode]
) -> list[int | None]:
    """Return first alarms; one compiled skill sees all episodes, so what it kept would show."""
    return [first_alarm(skills[e.control_hz], e.ticks, e.control_hz) for e in episodes]


def _names(
    episodes: Sequence[WatchedEpisode], one: Sequence[int | None], other: Sequence[int | None]
) -> tuple[str, ...]:
    return tuple(e.name for e, a, b in zip(episodes, one, other, strict=True) if a != b)


def _reordered(episode: WatchedEpisode, rng: np.random.Generator) -> WatchedEpisode:
    """Return an episode whose signals stand in another order."""
    if not episode.ticks:
        return episode
    names = list(episode.ticks[0].signals)
    names = [names[k] for k in rng.permutation(len(names))]
    ticks = tuple(replace(t, signals={n: t.signals[n] for n in names}) for t in episode.ticks)
    return replace(episode, ticks=ticks)


def _changed(episode: WatchedEpisode, change: Callable[[str, float], float]) -> WatchedEpisode:
    ticks = tuple(
        replace(t, signals={n: change(n, v) for n, v in t.signals.items()}) for t in episode.ticks
    )
    return replace(episode, ticks=ticks)


def _identified(
    episode: WatchedEpisode, other: WatchedEpisode, identity: Sequence[str]
) -> WatchedEpisode:
    """Return an episode with the identity signals that another one began with."""
    taken = {n: v for n, v in _first(other).items() if n in identity}
    return _changed(episode, lambda name, value: taken.get(name, value))


def _first(episode: WatchedEpisode) -> Mapping[str, float]:
    first: Sequence[Tick] = episode.ticks[:1]
    return first[0].signals if first else {}
