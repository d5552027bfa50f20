"""What a gate looks at: pairs of runs, costs and counts, and how pairs are counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zetta.runtime.errors import GateError
from zetta.skills.evolve.reliability import Repetitions


@dataclass(frozen=True, slots=True)
class PairedOutcome:
    """One scene and policy seed under two arms."""

    index: int
    """Place in its block, from 0: pairs are judged in this order, whoever finished first."""
    scene: str
    """Digest of the settled scene."""
    seed: int
    """Of the policy."""
    baseline: bool | None
    """Whether the parent or the control succeeded; None when the machinery failed for good."""
    candidate: bool | None
    fired: bool
    """Whether the candidate intervened before the two runs parted; against a control, whether
    either did."""
    same_trace: bool | None = None
    """Whether all actions are equal; None when the second run was not made or not compared."""
    family: str = ""
    """Family of tasks the scene belongs to."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over pairs; a missing run counts against the candidate."""

    pairs: int = 0
    both: int = 0
    wins: int = 0
    harms: int = 0
    neither: int = 0
    unattributed: int = 0
    """Pairs that differ although the candidate stayed quiet: noise of the machinery."""
    missing_baseline: int = 0
    missing_candidate: int = 0

    @property
    def differing(self) -> int:
        """Pairs that inform the test."""
        return self.wins + self.harms


@dataclass(frozen=True, slots=True)
class CostEvidence:
    """What the candidate's runs took, and its parent's on the same pairs."""

    control_period_s: float
    critic_p99_s: float
    ticks: int
    late_ticks: int
    baseline: tuple[float, ...]
    """Cost of each episode of the parent: ticks, policy calls or seconds, as declared."""
    candidate: tuple[float, ...]
    """The same of the candidate, in the same order."""


@dataclass(frozen=True, slots=True)
class SafetyCount:
    """Events of one kind over equal numbers of runs."""

    kind: str
    baseline: int
    candidate: int
    catastrophic: bool = False
    """One event in the candidate's runs ends the gate."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All runs of one candidate so far; a stage without runs has not been reached."""

    same_scene: tuple[PairedOutcome, ...] = ()
    """Failed scenes, parent run afresh: the outcome that chose the scene is never used again."""
    no_harm: tuple[PairedOutcome, ...] = ()
    parent: tuple[PairedOutcome, ...] = ()
    """The sealed block."""
    sham: tuple[PairedOutcome, ...] = ()
    """The sealed block, against a fresh sample of the policy at the candidate's moments."""
    random: tuple[PairedOutcome, ...] = ()
    """The sealed block, against the candidate's recovery at moments drawn at random."""
    cost: CostEvidence | None = None
    repetitions: tuple[Repetitions, ...] = ()
    safety: tuple[SafetyCount, ...] = ()


def in_order(pairs: Sequence[PairedOutcome], block: str) -> tuple[PairedOutcome, ...]:
    """Return the pairs by place.

    Raises:
        GateError: a place is missing or taken twice: a verdict would depend on who was fast.
    """
    ordered = tuple(sorted(pairs, key=lambda pair: pair.index))
    places = [pair.index for pair in ordered]
    if places != list(range(len(places))):
        raise GateError(
            f"the {block} block holds pairs {places}; expected each of 0 to {len(places) - 1} "
            "once: wait for the missing runs"
        )
    return ordered


def check_fresh(pairs: Sequence[PairedOutcome], block: str) -> None:
    """Refuse a block in which a scene comes twice: its pairs would not be independent.

    Raises:
        GateError: one does.
    """
    scene, times = Counter(pair.scene for pair in pairs).most_common(1)[0] if pairs else ("", 0)
    if times > 1:
        raise GateError(
            f"scene {scene} comes {times} times in the {block} block; draw each scene once"
        )


def check_quiet(pairs: Iterable[PairedOutcome], block: str) -> None:
    """Assert that a candidate that stays quiet changes nothing.

    Raises:
        GateError: a pair differs without an intervention, so equal seeds do not give equal runs
            and no difference can be attributed.
    """
    for pair in pairs:
        known = pair.baseline is not None and pair.candidate is not None
        parted = pair.same_trace is False or (known and pair.baseline != pair.candidate)
        if not pair.fired and parted:
            raise GateError(
                f"pair {pair.index} of the {block} block (scene {pair.scene}, seed {pair.seed}) "
                "differs although the candidate stayed quiet; find what is not deterministic, or "
                "declare it with deterministic = false"
            )


def count(pair: PairedOutcome, so_far: Tally) -> Tally:
    """Return the counts with one more pair.

    A missing run of the candidate is a failure and one of the baseline a success: the worst case.
    """
    candidate = pair.candidate is True
    baseline = pair.baseline is not False
    return Tally(
        so_far.pairs + 1,
        so_far.both + (candidate and baseline),
        so_far.wins + (candidate and not baseline),
        so_far.harms + (baseline and not candidate),
        so_far.neither + (not candidate and not baseline),
        so_far.unattributed + (candidate != baseline and not pair.fired),
        so_far.missing_baseline + (pair.baseline is None),
        so_far.missing_candidate + (pair.candidate is None),
    )


def tally(pairs: Iterable[PairedOutcome]) -> Tally:
    """Return the counts over pairs, in any order.

    >>> tally([PairedOutcome(0, "a", 0, False, True, True)]).wins
    1
    """
    counts = Tally()
    for pair in pairs:
        counts = count(pair, counts)
    return counts


def by_scene(pairs: Iterable[PairedOutcome]) -> tuple[int, ...]:
    """Return wins minus harms of each scene."""
    sums: dict[str, int] = defaultdict(int)
    for pair in pairs:
        one = count(pair, Tally())
        sums[pair.scene] += one.wins - one.harms
    return tuple(sums.values())


def by_family(pairs: Iterable[PairedOutcome]) -> tuple[tuple[str, Tally], ...]:
    """Return the counts of each family of tasks, by name."""
    groups: dict[str, list[PairedOutcome]] = defaultdict(list)
    for pair in pairs:
        groups[pair.family].append(pair)
    return tuple((family, tally(groups[family])) for family in sorted(groups))
