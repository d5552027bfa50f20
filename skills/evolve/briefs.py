"""From logs to what an author may see: no scene, no seed, no truth, and only half of the episodes.

The other half is held out for shadow replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from zetta.runtime.core import SENSING_LEVELS, Sensing, Tick
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.evolve.generation_records import Developed, Diagnosed

Read = Callable[[Developed], LoggedEpisode]


def watched_episodes(
    episodes: Sequence[Developed], found: Diagnosed, read: Read, sensing: Sensing
) -> tuple[WatchedEpisode, ...]:
    """Return logged episodes as an author sees them, named by their place."""
    known = {} if found.diagnosis is None else {f.episode: f for f in found.diagnosis.failures}
    watched = []
    for episode in episodes:
        seen = watched_episode(episode.name, episode.success is True, read(episode), sensing)
        failure = known.get(episode.name)
        if failure is not None:
            seen = replace(seen, missing=failure.missing, divergence=failure.divergence)
        watched.append(seen)
    return tuple(watched)


def watched_episode(
    name: str, success: bool, logged: LoggedEpisode, sensing: Sensing
) -> WatchedEpisode:
    """Return one logged episode as an author sees it, without a diagnosis."""
    return WatchedEpisode(
        name=name,
        instruction=logged.header.instruction,
        success=success,
        control_hz=logged.header.spec.control_hz,
        max_steps=logged.header.scene.task.max_steps,
        ticks=tuple(_sensed(tick, sensing) for tick in logged.ticks),
    )


def halves(episodes: Sequence[Developed]) -> tuple[list[Developed], list[Developed]]:
    """Return the half that authors see and the half that is held out; outcomes alternate.

    Successes and failures are split each for themselves, so that both halves hold both.
    """
    seen, held_out = list[Developed](), list[Developed]()
    for success in (False, True):
        own = [each for each in episodes if each.success is success]
        seen += own[0::2]
        held_out += own[1::2]
    return seen, held_out


def _sensed(tick: Tick, sensing: Sensing) -> Tick:
    return replace(tick, signals=_up_to(tick.signals, sensing))


def _up_to(signals: Mapping[str, float], sensing: Sensing) -> dict[str, float]:
    """Return the signals up to a level; an installed signal has no level to doubt."""
    most = SENSING_LEVELS.index(sensing)
    return {
        name: value
        for name, value in signals.items()
        if name not in SIGNALS or SENSING_LEVELS.index(SIGNALS[name].level) <= most
    }
