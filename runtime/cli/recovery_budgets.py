"""What skills may spend in one episode, as the options of a run say it."""

from __future__ import annotations

from dataclasses import replace

from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError
from zetta.runtime.skill_arbiter import Budgets
from zetta.skills.compiled import CompiledSkill


def budgets(spec: RunSpec) -> Budgets:
    """Return the share of the step budget that skills may use.

    Raises:
        ConfigError: it is no share.
    """
    text = spec.options.get("recovery_share")
    if text is None:
        return Budgets()
    share = _number(text)
    if not 0.0 <= share <= 1.0:
        raise ConfigError(f"the recovery share is a number from 0 to 1, got {text!r}")
    return Budgets(share=share)


def skill_time(spec: RunSpec) -> float:
    """Return how many times as long as written a skill may take, for an arm that is slower.

    Raises:
        ConfigError: it is no number from 1 to 10.
    """
    text = spec.options.get("skill_time", "1")
    times = _number(text)
    if not 1.0 <= times <= 10.0:
        raise ConfigError(f"skill_time is a number from 1 to 10, got {text!r}")
    return times


def with_time(skill: CompiledSkill, times: float) -> CompiledSkill:
    """Return a skill that may take so many times as long."""
    return replace(skill, max_ticks=round(skill.max_ticks * times))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
