"""A skill package made ready to run: bound to a control rate, to numbers and to a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from zetta.critics.critic import Critic, compile_critic
from zetta.primitives.rates import ticks_at
from zetta.primitives.robot import Robot
from zetta.runtime.core import Motion, Sensing, Window
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SIGNALS, SignalSpec
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import CRITIC, RECOVERY
from zetta.skills.program import Program, compile_program
from zetta.skills.replay import ReplayOutcome, meet, replay


@dataclass(frozen=True, slots=True, eq=False)
class CompiledSkill:
    """One recovery and the critic that calls for it; a `core.Skill`."""

    name: str
    max_ticks: int
    """Of the episode's rate; in the front matter they are of 20 Hz."""
    critic: Critic
    level: Sensing
    digest: str
    """Of the package."""
    parameters: Mapping[str, float]
    """Every number, those left at their default included."""
    _program: Program = field(repr=False)
    _robot: Callable[[], Robot] = field(repr=False)

    def precondition(self, window: Window) -> bool:
        """Say whether the recovery may start now; not while a value it reads is unknown."""
        return self._program.precondition(window)

    def recover(self, window: Window) -> Motion:
        """Return the motion, on a robot that remembers nothing of the last recovery."""
        return self._program.recover(self._robot(), window)

    def reentry(self, window: Window) -> bool:
        """Say whether the policy may go on; not while a value it reads is unknown."""
        return self._program.reentry(window)


def compile_skill(
    package: SkillPackage,
    parameters: Mapping[str, float] | None = None,
    *,
    control_hz: float,
    robot: Callable[[], Robot],
    signals: Mapping[str, SignalSpec] = SIGNALS,
) -> CompiledSkill:
    """Return a skill that can run.

    Args:
        package: what was loaded.
        parameters: values of some of its numbers; the others take their defaults.
        control_hz: ticks per second of the episode.
        robot: makes a robot; called once for each recovery.
        signals: what there is, as the package was loaded with.

    Raises:
        ConfigError: unknown number, or a value out of bounds.
    """
    try:
        critic = compile_critic(
            package.critic_source, str(package.folder / CRITIC), package.name, control_hz,
            signals, package.parameters, parameters,
        )  # fmt: skip
        program = compile_program(
            package.recovery_source, str(package.folder / RECOVERY), package.name, control_hz,
            signals, package.parameters, parameters,
        )  # fmt: skip
    except ConfigError as error:
        raise ConfigError(f"the skill {package.name!r}: {error}") from None
    return CompiledSkill(
        name=package.name,
        max_ticks=ticks_at(control_hz, package.page.max_ticks),
        critic=critic,
        level=package.level,
        digest=package.digest,
        parameters=critic.parameters,
        _program=program,
        _robot=robot,
    )


def run_windows(
    package: SkillPackage, parameters: Mapping[str, float] | None = None
) -> tuple[ReplayOutcome, ...]:
    """Replay every window of a package and say which are met.

    A package without a window on which it fires, or without one on which it stays silent, is not
    tested at all; that counts as a window that is not met.

    Raises:
        ConfigError: unknown number, or a value out of bounds.
        ScreenError: a window lacks a signal that the programs read.
    """
    outcomes = []
    for window in package.windows:
        skill = compile_skill(package, parameters, control_hz=window.control_hz, robot=_no_robot)
        replayed = replay(window, skill.critic, skill.precondition, package.signals)
        outcomes.append(meet(window, replayed))
    for expect in ("fires", "silent"):
        if not any(window.expect == expect for window in package.windows):
            said = f"there is no window in replay/ with the expectation {expect!r}"
            outcomes.append(ReplayOutcome("(missing)", expect, False, said))
    return tuple(outcomes)


def _no_robot() -> Robot:
    raise AssertionError("replaying starts no recovery")
