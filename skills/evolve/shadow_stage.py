"""Shadow replay of a candidate over episodes that its author has not seen.

The stage is a cheap filter and spends no error rate: it can only reject. What it says holds up to
the first intervention; what the recovery is worth is for the arms to say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zetta.critics.detection import (
    Detection,
    Watched,
    at_a_fixed_tick,
    detection,
    shuffled,
)
from zetta.runtime.errors import ConfigError, suggest
from zetta.skills.bundles import LoadedBundle
from zetta.skills.compiled import CompiledSkill
from zetta.skills.evolve.alarms import compiled_for, first_alarm, fits, untouched
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.package import SkillPackage


@dataclass(frozen=True, slots=True)
class ShadowRules:
    """When a candidate is worth rollouts."""

    found_share: float = 0.2
    """Least share of held-out failures in which it takes over in time."""
    found_least: int = 1
    """And at least so many."""
    false_share: float = 0.25
    """Largest share of held-out successes in which it takes over."""
    left: float = 0.25
    """An alarm is in time while this share of the step budget is left."""


@dataclass(frozen=True, slots=True)
class ShadowAlarm:
    """What would have happened in one episode."""

    episode: str
    success: bool
    tick: int | None
    """At which the new skill would have taken over first; None for never."""
    before: str = ""
    """Another skill of the bundle that would have taken over first; empty for none."""


@dataclass(frozen=True, slots=True)
class ShadowResult:
    """What a shadow replay found."""

    passed: bool
    reasons: tuple[str, ...]
    """Why it did not pass, one sentence each."""
    skill: str
    found: Detection
    fixed_tick: Detection
    """An alarm at one tick for all, with as many false alarms."""
    shuffled: Detection
    """The same alarms, dealt out to other episodes."""
    false_alarm_bound: float
    """Upper 95 % Clopper-Pearson bound of the share of successes with an alarm."""
    alarms: tuple[ShadowAlarm, ...]
    preempted: int
    """Episodes in which another skill of the bundle would have come first."""
    unfit: int
    """Episodes whose instruction the skill does not fit; they count, without an alarm."""
    notes: tuple[str, ...] = ()
    """What the figures do not say."""


def shadow(
    bundle: LoadedBundle,
    skill: str,
    failures: Sequence[WatchedEpisode],
    successes: Sequence[WatchedEpisode],
    rules: ShadowRules | None = None,
) -> ShadowResult:
    """Replay a candidate bundle's critics over held-out episodes.

    Args:
        bundle: the candidate; its `parameters` are used where it has some.
        skill: the one that is new, or has new numbers.
        failures: held out: the author has not seen them.
        successes: held out.
        rules: when it passes.

    Raises:
        ConfigError: the bundle has no such skill, or a log holds no signals.
    """
    rules = rules or ShadowRules()
    packages = {package.name: package for package in bundle.packages}
    if skill not in packages:
        raise ConfigError(f"the bundle has no skill {skill!r}; {suggest(skill, packages)}")
    bench = _Bench(bundle)
    episodes = [*failures, *successes]
    alarms = tuple(bench.alarm(packages[skill], episode) for episode in episodes)
    watched = [
        Watched(e.success, len(e.ticks), e.max_steps, a.tick, e.divergence)
        for e, a in zip(episodes, alarms, strict=True)
    ]
    found = detection(watched, rules.left)
    reasons = _reasons(found, rules)
    return ShadowResult(
        passed=not reasons,
        reasons=reasons,
        skill=skill,
        found=found,
        fixed_tick=at_a_fixed_tick(watched, found.false_alarms, rules.left),
        shuffled=shuffled(watched, timely=rules.left) if watched else found,
        false_alarm_bound=found.false_alarm_bound,
        alarms=alarms,
        preempted=sum(bool(alarm.before) for alarm in alarms),
        unfit=sum(not fits(packages[skill], e.instruction) for e in episodes),
        notes=_notes(episodes, found),
    )


class _Bench:
    """Compiles each skill of a bundle once for each control rate."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle = bundle
        self._skills: dict[tuple[str, float], CompiledSkill] = {}

    def alarm(self, package: SkillPackage, episode: WatchedEpisode) -> ShadowAlarm:
        """Return when a skill would have taken over, and whether another one came first."""
        tick = self._first(package, episode)
        first, before = tick, ""
        own = self._bundle.packages.index(package)
        for k, other in enumerate(self._bundle.packages):
            if other.name == package.name or tick is None:
                continue
            theirs = self._first(other, episode)
            # At the same tick the one that stands earlier in the bundle is heard.
            if theirs is not None and first is not None and (
                theirs < first or (theirs == first and not before and k < own)
            ):  # fmt: skip
                first, before = theirs, other.name
        return ShadowAlarm(episode.name, episode.success, tick, before)

    def _first(self, package: SkillPackage, episode: WatchedEpisode) -> int | None:
        if not fits(package, episode.instruction):
            return None
        key = (package.name, episode.control_hz)
        if key not in self._skills:
            values = self._bundle.parameters.get(package.name)
            self._skills[key] = compiled_for(package, episode.control_hz, values)
        return first_alarm(self._skills[key], episode.ticks, episode.control_hz)


def _reasons(found: Detection, rules: ShadowRules) -> tuple[str, ...]:
    reasons = []
    least = max(rules.found_least, math.ceil(rules.found_share * found.failures - 1e-9))
    if found.timely < least:
        late = found.found - found.timely
        reasons.append(
            f"it takes over in time in {found.timely} of {found.failures} held-out failures"
            + (f" ({late} more too late)" if late else "")
            + f"; at least {least} are needed"
        )
    most = math.floor(rules.false_share * found.successes + 1e-9)
    if found.false_alarms > most:
        reasons.append(
            f"it takes over in {found.false_alarms} of {found.successes} held-out successes; at "
            f"most {most} are allowed"
        )
    return tuple(reasons)


def _notes(episodes: Sequence[WatchedEpisode], found: Detection) -> tuple[str, ...]:
    notes = []
    touched = sum(not untouched(episode) for episode in episodes)
    if touched:
        notes.append(
            f"in {touched} of {len(episodes)} episodes a skill drove; what comes after is not what "
            "the policy alone would have done"
        )
    if not found.successes:
        notes.append("no success was held out, so nothing is known of false alarms")
    return tuple(notes)
