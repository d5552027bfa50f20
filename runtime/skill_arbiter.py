"""Who drives when critics may hand the robot to skills: budgets, preconditions, hand-back."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace

from zetta.runtime.core import (
    Abort,
    Action,
    Continue,
    HandBack,
    Look,
    Monitor,
    Motion,
    Outcome,
    Proprio,
    Recovery,
    Ruling,
    Scene,
    Sense,
    Skill,
    Start,
    Verdict,
    Window,
)
from zetta.runtime.drivers import MAX_LOOKS
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.snapshots import restore, saved

SKILL_PREFIX = "skill:"
"""How the source of a tick begins that a skill drove; its name follows."""

ORDER = "branch"
"""Who asks for the skill of an order, in the place of a critic's name."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """How much skills may do in one episode."""

    interventions: int = 8
    """Hand-overs; together with the pause this bounds chatter."""
    share: float = 0.2
    """Ticks driven by skills, as a share of the task's step budget."""
    per_skill: int = 3
    """Hand-overs to one skill."""
    attempts: int = 2
    """Runs of a recovery within one hand-over while its re-entry condition does not hold."""
    pause_s: float = 0.5
    """Least time that the policy drives between two hand-overs, seconds."""


@dataclass(frozen=True, slots=True)
class ArbiterState:
    """What an arbiter remembers between two ticks at which the policy drives."""

    recoveries: tuple[Recovery, ...] = ()
    skill_ticks: int = 0
    """Ticks that recoveries used."""
    free_at: int = 0
    """First tick at which the next one may start."""
    tick: int = 0
    """The last one that was ruled."""
    sham_drove: str = ""
    """Source that drives as far as the monitor knows at the next tick; empty for the real one."""
    monitor: bytes = b""
    """State of the critics; empty where there were none."""


class SkillArbiter:
    """Lets critics hand the robot to skills, within budgets.

    `abort` ends the episode. While the policy drives, the first `recover` in bundle order whose
    skill exists, is within its budgets and has its precondition starts that skill. A running
    recovery is interrupted by an abort or a spent budget and by nothing else: a recovery that
    interrupts a recovery is how chatter begins.

    In shadow mode the same decisions are recorded and none is carried out.

    Attributes:
        order_refused: why an order was not carried out at the last tick at which it stood.
    """

    def __init__(
        self,
        monitor: Monitor,
        skills: Mapping[str, Skill],
        window: Window,
        budgets: Budgets | None = None,
        *,
        shadow: bool = False,
        sham: bool = False,
    ) -> None:
        """Put the parts together.

        Args:
            monitor: runs the critics.
            skills: by name, as verdicts name them.
            window: the signals; already updated when `rule` is called.
            budgets: what skills may use.
            shadow: record decisions only.
            sham: in place of every recovery interrupt the policy and let it begin anew, which is
                the control for the effect of the interruption itself.
        """
        self._monitor, self._skills, self._window = monitor, dict(skills), window
        self._budgets = budgets or Budgets()
        self._shadow, self._sham = shadow, sham
        self._order: Verdict | None = None
        self._order_for_s = 0.0
        self._order_until: int | None = None
        self.order_refused = ""
        self._forget()

    def _forget(self) -> None:
        self._recoveries: list[Recovery] = []
        self._skill_ticks = 0
        self._most_ticks = 0
        self._driving = False
        self._free_at = 0
        self._tick = 0
        self._sham_drove = ""

    def begin(self, scene: Scene) -> None:
        """Forget the last episode."""
        self._forget()
        self._most_ticks = int(self._budgets.share * scene.task.max_steps)
        self._monitor.begin()

    def rule(
        self, index: int, proprio: Proprio, signals: Mapping[str, float], driving: str
    ) -> tuple[Ruling, tuple[Verdict, ...]]:
        """Judge the tick and decide."""
        self._tick = index
        # A sham drives no tick; for the monitor it has driven, or its critic would fire again.
        judged = self._sham_drove or driving
        self._sham_drove = ""
        verdicts = (*self._ordered(), *self._monitor.judge(self._window, judged))
        ruling = self._decide(verdicts)
        if self._shadow:
            return Continue(), verdicts
        if isinstance(ruling, Continue | Start) and self._driving:
            self._skill_ticks += 1
            self._recoveries[-1] = _longer(self._recoveries[-1])
        return ruling, verdicts

    def motion_ended(self, source: str, outcome: Outcome) -> None:
        """Note how the recovery ended; its last tick, in which the policy acts, is not its own."""
        self._skill_ticks -= 1
        last = self._recoveries[-1]
        self._recoveries[-1] = replace(last, ticks=last.ticks - 1)
        self._finish(outcome.completed, outcome.reason)

    def recoveries(self) -> tuple[Recovery, ...]:
        """Return what skills did so far, in order."""
        if self._driving:  # the episode ended under it
            last = replace(self._recoveries[-1], ending="the episode ended")
            return (*self._recoveries[:-1], last)
        return tuple(self._recoveries)

    def order(self, skill: str, patience_s: float = 2.0) -> None:
        """Hand over to `skill` once, whatever critics say, to see what it would do.

        It starts at the next tick at which its precondition holds, within `patience_s`; budgets
        hold as ever. For a branch of an episode, never for a robot.

        Raises:
            ConfigError: there is no such skill here.
        """
        if skill not in self._skills:
            raise ConfigError(
                f"the skill {skill!r} cannot be ordered here; {suggest(skill, self._skills)}"
            )
        self._order = Verdict("recover", "ordered by a branch", ORDER, skill)
        self._order_for_s, self._order_until = patience_s, None

    def state(self) -> ArbiterState:
        """Return what is remembered between two ticks, the monitor's state included.

        Raises:
            ConfigError: a recovery is running, of which there can be no copy, or the monitor
                cannot be copied.
        """
        if self._order is not None:
            raise ConfigError("an order waits for its tick; take the state before it is given")
        if self._driving:
            raise ConfigError(
                f"the recovery {self._recoveries[-1].skill!r} is running and cannot be copied; "
                "take the state at a tick at which the policy drives"
            )
        return ArbiterState(
            recoveries=tuple(self._recoveries),
            skill_ticks=self._skill_ticks,
            free_at=self._free_at,
            tick=self._tick,
            sham_drove=self._sham_drove,
            monitor=saved(self._monitor, "monitor"),
        )

    def restore(self, state: ArbiterState) -> None:
        """Continue from `state` after `begin`, with the policy driving.

        A state without critics lets those of this arbiter begin here.

        Raises:
            SpecMismatch: it is the state of other critics.
        """
        if state.monitor:
            restore(self._monitor, "monitor", state.monitor)
        self._recoveries = list(state.recoveries)
        self._skill_ticks = state.skill_ticks
        self._free_at, self._tick = state.free_at, state.tick
        self._sham_drove, self._driving = state.sham_drove, False

    # ------------------------------------------------------------------ deciding

    def _ordered(self) -> tuple[Verdict, ...]:
        """Return the order while it stands."""
        if self._order is None or self._driving:
            return ()
        if self._order_until is None:
            ticks = round(self._order_for_s * self._window.control_hz)
            self._order_until = self._tick + ticks
        if self._tick > self._order_until:
            self._order = None
            return ()
        return (self._order,)

    def _decide(self, verdicts: tuple[Verdict, ...]) -> Ruling:
        for verdict in verdicts:
            if verdict.decision == "abort":
                if self._driving:
                    self._finish(False, f"interrupted: {verdict.reason}")
                return Abort(f"{verdict.critic}: {verdict.reason}")
        if self._driving:
            return self._watch_budgets()
        for verdict in verdicts:
            skill, obstacle = self._wanted(verdict)
            if verdict.critic == ORDER:
                self.order_refused = obstacle
            if skill is not None:
                return self._start(skill, verdict)
        return Continue()

    def _watch_budgets(self) -> Ruling:
        last = self._recoveries[-1]
        skill = self._skills[last.skill]
        if last.ticks >= skill.max_ticks:
            spent = f"interrupted: its {skill.max_ticks} ticks are spent"
        elif self._skill_ticks >= self._most_ticks:
            spent = f"interrupted: the {self._most_ticks} ticks for recoveries are spent"
        else:
            return Continue()
        self._finish(False, spent)
        return HandBack(spent)

    def _wanted(self, verdict: Verdict) -> tuple[Skill | None, str]:
        """Return the skill that this verdict may start now, or None and why not."""
        if verdict.decision != "recover" or verdict.skill not in self._skills:
            return None, "it names no skill"
        budgets, skill = self._budgets, self._skills[verdict.skill]
        used = sum(recovery.skill == skill.name for recovery in self._recoveries)
        within = (
            len(self._recoveries) < budgets.interventions
            and used < budgets.per_skill
            and self._skill_ticks < self._most_ticks
            and self._tick >= self._free_at
        )
        if not within:
            return None, "what skills may use in an episode is spent, or one has just ended"
        if not skill.precondition(self._window):
            return None, "its precondition does not hold"
        return skill, ""

    def _start(self, skill: Skill, verdict: Verdict) -> Ruling:
        recovery = Recovery(skill.name, verdict.critic, verdict.reason, self._tick)
        if self._shadow:
            self._recoveries.append(replace(recovery, ending="shadow"))
            self._pause()
            return Continue()
        self._recoveries.append(recovery)
        self._driving, self._order = True, None
        source = SKILL_PREFIX + skill.name
        if self._sham:
            self._sham_drove = source
        motion = _nothing() if self._sham else _acting(self._recover(skill))
        return Start(motion, source, verdict.reason)

    def _recover(self, skill: Skill) -> Motion:
        """Run the recovery until its re-entry condition holds, at most `attempts` times."""
        outcome = Outcome(False)
        for _ in range(self._budgets.attempts):
            outcome = yield from skill.recover(self._window)
            if skill.reentry(self._window):
                return Outcome(True, outcome.reason)
        missing = "the re-entry condition does not hold"
        return Outcome(False, f"{outcome.reason}; {missing}" if outcome.reason else missing)

    def _finish(self, completed: bool, ending: str) -> None:
        self._recoveries[-1] = replace(self._recoveries[-1], completed=completed, ending=ending)
        self._driving = False
        self._pause()

    def _pause(self) -> None:
        self._free_at = self._tick + round(self._budgets.pause_s * self._window.control_hz)


def _longer(recovery: Recovery) -> Recovery:
    return replace(recovery, ticks=recovery.ticks + 1)


def _acting(motion: Motion) -> Generator[Action | Look, Sense, Outcome]:
    """End a recovery that looks and looks within one tick, which the loop takes for a fault.

    A recovery that could make its episode an error could take failures out of the count.
    """
    looks = 0
    try:
        wish = next(motion)
        while True:
            looks = looks + 1 if isinstance(wish, Look) else 0
            if looks > MAX_LOOKS:
                return Outcome(False, f"interrupted: it looked {MAX_LOOKS} times without acting")
            wish = motion.send((yield wish))
    except StopIteration as ended:
        outcome: Outcome = ended.value
        return outcome
    finally:
        motion.close()


def _nothing() -> Generator[Action | Look, Sense, Outcome]:
    return Outcome(True, "sham")
    yield Look(())
