"""Which skills of an evaluation did harm, so that they are left out before anybody looks.

A *harm* of a skill is a pair of episodes on one scene with one policy seed in which the arm without
skills solved the scene, the arm with skills did not, and the skill had the robot. Where several
skills had it, each bears the harm: whom to let out again is decided with more evidence than this.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.evaluation_plan import scene_name
from zetta.runtime.evaluation_results import PLAN_FILE
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.rollouts.messages import record_from_json, spec_from_json
from zetta.runtime.rollouts.shards import ShardFolder
from zetta.runtime.success_rates import lower_bound
from zetta.skills.library_history import Author, Change
from zetta.skills.user_library import UserLibrary


@dataclass(frozen=True, slots=True)
class HarmLimit:
    """How much harm is borne."""

    share: float = 0.1
    """Of the episodes in which a skill intervenes; above it when the lower bound is."""
    confidence: float = 0.95
    most: int = 0
    """Harms that are forgiven whatever the share; one more and the skill is left out."""

    def exceeded(self, harms: int, episodes: int) -> bool:
        """Say whether so many harms in so many episodes are too many.

        The bound is that of Clopper and Pearson 1934, one-sided.

        >>> HarmLimit(most=3).exceeded(2, 40), HarmLimit(most=3).exceeded(4, 40)
        (False, True)
        """
        return harms > self.most or lower_bound(harms, episodes, self.confidence) > self.share


@dataclass(frozen=True, slots=True)
class SkillHarm:
    """What a skill did to scenes that are solved without it."""

    skill: str
    episodes: int
    """Pairs in which it had the robot."""
    harms: int


@dataclass(frozen=True, slots=True)
class EpisodePair:
    """One scene and policy seed, without and with skills."""

    solved_without: bool
    solved_with: bool
    skills: tuple[str, ...]
    """Those that had the robot."""


def paired_episodes(folder: Path, baseline: str, arm: str) -> tuple[EpisodePair, ...]:
    """Return the pairs that an evaluation ran to an end in both arms.

    Args:
        folder: that `zetta eval --out` wrote.
        baseline: arm without skills.
        arm: arm with them.

    Raises:
        ConfigError: it is no evaluation, cannot be read, or lacks an arm.
    """
    found: dict[str, dict[tuple[str, int], EpisodeRecord]] = {}
    for plan in sorted(folder.glob(f"*/{PLAN_FILE}")):
        for name, key, record in _records(plan):
            found.setdefault(name, {})[key] = record
    for wanted in (baseline, arm):
        if wanted not in found:
            raise ConfigError(
                f"{folder} holds no episode of the arm {wanted!r}; it has "
                f"{', '.join(sorted(found)) or 'none'} (is it what zetta eval --out wrote?)"
            )
    return tuple(
        EpisodePair(
            solved_without=found[baseline][key].success,
            solved_with=record.success,
            skills=tuple(dict.fromkeys(recovery.skill for recovery in record.recoveries)),
        )
        for key, record in sorted(found[arm].items())
        if key in found[baseline]
    )


def harms_of(pairs: Sequence[EpisodePair]) -> tuple[SkillHarm, ...]:
    """Return what each skill that intervened did, by name.

    >>> harms_of([EpisodePair(True, False, ("regrasp",)), EpisodePair(False, True, ("regrasp",))])
    (SkillHarm(skill='regrasp', episodes=2, harms=1),)
    """
    episodes, harms = Counter[str](), Counter[str]()
    for pair in pairs:
        episodes.update(pair.skills)
        if pair.solved_without and not pair.solved_with:
            harms.update(pair.skills)
    return tuple(SkillHarm(name, episodes[name], harms[name]) for name in sorted(episodes))


def quarantine_harmful(
    library: UserLibrary, found: Sequence[SkillHarm], limit: HarmLimit, author: Author
) -> tuple[Change, ...]:
    """Put every skill of the library that did too much harm into quarantine, and return how.

    Skills of others, and those in quarantine already, are left as they are.

    Raises:
        ConfigError: the library is empty or damaged.
    """
    standing = {each.part.name: each for each in library.standings(library.resolve(""))}
    return tuple(
        library.quarantine(
            each.skill,
            author,
            f"broke {each.harms} of the {each.episodes} scenes in which it intervened",
        )
        for each in found
        if each.skill in standing
        and not standing[each.skill].quarantined
        and limit.exceeded(each.harms, each.episodes)
    )


def _records(plan: Path) -> list[tuple[str, tuple[str, int], EpisodeRecord]]:
    try:
        digest = str(json.loads(plan.read_text(encoding="utf-8"))["plan"])
        rows = [row for row in ShardFolder(plan.parent, digest).rows() if "record" in row]
        read = [(str(r["arm"]), spec_from_json(r["spec"]), record_from_json(r["record"]))
                for r in rows]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, SpecMismatch) as error:
        raise ConfigError(f"{plan.parent} cannot be read as an evaluation: {error!r}") from None
    return [
        (arm, (scene_name(spec), spec.policy_seed), record)
        for arm, spec, record in read
        if not record.success_at_reset
    ]
