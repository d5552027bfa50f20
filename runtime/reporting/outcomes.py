"""Episodes under one or several arms, as a report of a run or an evaluation shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from zetta.runtime.core import Recovery
from zetta.runtime.evaluation_plan import Arm
from zetta.runtime.evaluation_results import Row
from zetta.runtime.evaluation_tables import Comparison, Tables, tabulate
from zetta.runtime.rollouts.factory import EpisodeRecord

Kind: TypeAlias = Literal["run", "runs", "evaluation"]
PairName: TypeAlias = tuple[str, int, str, int, int]
"""Suite, task, layout, scene seed and policy seed: what two arms have in common."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode, and what lies beside its row."""

    row: Row
    name: str
    """Of the episode within its arm, such as `003`."""
    instruction: str = ""
    log: Path | None = None
    """Its folder, where there is one."""
    strip: Path | None = None
    """A picture strip, where one was drawn."""
    note: str = ""
    """What else is to be said of it, such as how a drive ended."""

    @property
    def arm(self) -> str:
        """Name of its arm."""
        return self.row.planned.arm

    @property
    def record(self) -> EpisodeRecord | None:
        """What it came to; None where the machinery failed."""
        return self.row.record

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        """What skills did in it."""
        return () if self.record is None else self.record.recoveries

    @property
    def outcome(self) -> str:
        """What it came to, in a word or two."""
        if self.record is None:
            return "error, no score"
        if self.record.success_at_reset:
            return "solved at reset, no score"
        return "solved" if self.record.success else "failed"

    @property
    def is_scored(self) -> bool:
        """Whether it counts."""
        return self.outcome in ("solved", "failed")

    @property
    def pair(self) -> PairName:
        """What it shares with the same episode of another arm."""
        spec = self.row.planned.spec
        return spec.suite, spec.task, str(spec.layout), spec.seed, spec.policy_seed


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Everything a report of episodes is made of."""

    kind: Kind
    title: str
    arms: tuple[Arm, ...]
    episodes: tuple[Episode, ...]
    facts: Mapping[str, Mapping[str, str]]
    """What was run, by arm; under the empty name what all arms share."""
    commands: Mapping[str, str] = field(default_factory=dict)
    sensing: tuple[str, ...] = ()
    expected: int | None = None
    """Episodes that were planned; None where nobody knows."""
    alarms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all episodes."""
        return tuple(each.row for each in self.episodes)

    def of(self, arm: str) -> Iterator[Episode]:
        """Yield the episodes of one arm."""
        return (each for each in self.episodes if each.arm == arm)

    @property
    def instructions(self) -> dict[tuple[str, int], str]:
        """What a task asks for, where it is known."""
        return {
            (each.row.planned.spec.suite, each.row.planned.spec.task): each.instruction
            for each in self.episodes
            if each.instruction
        }


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """What an arm's skills did where its baseline needed none of them."""

    baseline: str
    arm: str
    solved: int
    """Pairs that the baseline solved."""
    alarmed: int
    """Among these: a skill of the arm intervened."""
    lost: int
    """Among the alarmed: the arm failed."""


def tables_of(outcomes: Outcomes) -> Tables:
    """Return counts and paired tests; several runs are all compared with the first."""
    pairs = None
    if outcomes.kind == "runs":
        first, *others = outcomes.arms
        pairs = [(first, arm) for arm in others]
    return tabulate(outcomes.rows, outcomes.arms, pairs)


def false_alarms(outcomes: Outcomes, compared: Sequence[Comparison]) -> list[FalseAlarms]:
    """Return, for each pair of arms, how often skills intervened where nothing was wrong."""
    found = []
    for each in compared:
        if each.suite is not None:
            continue
        solved = {e.pair for e in outcomes.of(each.baseline) if e.outcome == "solved"}
        own = [e for e in outcomes.of(each.arm) if e.pair in solved and e.is_scored]
        alarmed = [e for e in own if e.recoveries]
        lost = sum(e.outcome == "failed" for e in alarmed)
        found.append(FalseAlarms(each.baseline, each.arm, len(own), len(alarmed), lost))
    return found


def worth_showing(outcomes: Outcomes, most: int) -> tuple[list[Episode], int]:
    """Return the episodes whose strips are evidence, and how many there are in all.

    Those with interventions come before failures without one, and among each the arms and tasks
    take turns, so that no single task fills the report.
    """
    wanted = [e for e in outcomes.episodes if e.recoveries or e.outcome == "failed"]
    seen: dict[tuple[str, str, int, bool], int] = {}
    ranked = []
    for place, each in enumerate(wanted):
        spec, intervened = each.row.planned.spec, bool(each.recoveries)
        group = (each.arm, spec.suite, spec.task, intervened)
        turn = seen[group] = seen.get(group, 0) + 1
        ranked.append((not intervened, turn, place, each))
    ranked.sort(key=lambda item: item[:3])
    chosen = sorted(ranked[:most], key=lambda item: (item[0], item[2]))
    return [each for *_, each in chosen], len(wanted)
