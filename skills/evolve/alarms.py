"""When a skill would have taken over in logged episodes, while nobody had intervened yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zetta.critics.shadow import moments
from zetta.primitives.robot import Robot
from zetta.primitives.roles import roles_or_none
from zetta.runtime.core import Tick
from zetta.runtime.errors import ConfigError
from zetta.runtime.loop import POLICY
from zetta.skills.compiled import CompiledSkill, compile_skill
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.package import SkillPackage


def compiled_for(
    package: SkillPackage, control_hz: float, values: Mapping[str, float] | None = None
) -> CompiledSkill:
    """Return a skill whose critic and precondition can be asked, and that never moves anything.

    Raises:
        ConfigError: a value is unknown or out of bounds.
    """
    return compile_skill(package, values, control_hz=control_hz, robot=_no_robot)


def fits(package: SkillPackage, instruction: str) -> bool:
    """Say whether a skill belongs into an episode with this instruction."""
    return package.fits(roles_or_none(instruction))


def first_alarm(skill: CompiledSkill, ticks: Sequence[Tick], control_hz: float) -> int | None:
    """Return the first tick at which a skill would take over from the policy, or None.

    Its critic asks for it and its precondition holds, and the policy drove the tick before. An
    abort counts too, whoever drove: it ends the episode.

    Raises:
        ConfigError: the log holds no signals.
    """
    check_signals(ticks)
    driving = POLICY
    for tick, history in moments(ticks, control_hz):
        decision = skill.critic.judge(history).decision if skill.critic.armed(history) else "pass"
        takes_over = decision == "recover" and driving == POLICY and skill.precondition(history)
        if takes_over or decision == "abort":
            return tick.index
        driving = tick.source
    return None


def untouched(episode: WatchedEpisode) -> bool:
    """Say whether the policy drove every tick."""
    return all(tick.source == POLICY for tick in episode.ticks)


def check_signals(ticks: Sequence[Tick]) -> None:
    """Refuse a log without signals.

    Raises:
        ConfigError: it holds none.
    """
    if ticks and not ticks[0].signals:
        raise ConfigError(
            "this log holds no signals; run the episode again with --signals or with a bundle"
        )


def _no_robot() -> Robot:
    raise AssertionError("a shadow replay starts no recovery")
