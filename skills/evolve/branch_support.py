"""Whether branches support a diagnosis: exact, on distinct continuations, with the null beside it.

The rule: a recovery is supported when it succeeds more often than the unchanged policy *and* more
often than a fresh sample of it, each by an exact one-sided test at `alpha`. Both must hold, so
nothing is corrected (Berger 1982, Technometrics 24, 295).

The second comparison is the one that counts. Snapshots come from failures, so the unchanged policy
fails because it was chosen so; any other run of the policy looks like a cure beside it. A fresh
sample has no such handicap. What it gains over the unchanged policy is printed as the null.

Equal traces of one snapshot are one run and count once: repeating a deterministic policy is no
evidence. One episode then says little, and several snapshots must agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import hypergeom

from zetta.runtime.errors import ConfigError
from zetta.runtime.success_rates import Interval, clopper_pearson
from zetta.skills.evolve.branches import ChangeKind, Continuation
from zetta.skills.evolve.significance import infrastructure_imbalance

Counts: TypeAlias = tuple[int, int]
"""Successes and runs."""
Stratum: TypeAlias = tuple[Counts, Counts]
"""One snapshot: control and treated."""
Finding: TypeAlias = Literal["supported", "not supported", "undecided"]

UNEVEN: Final = 0.05
"""Errors of the machinery that hit one change more than another with a p below this."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class ExactTest:
    """Does the treated arm succeed more often than the control, snapshot by snapshot?"""

    p: float
    """One-sided."""
    size: float
    """Chance that so many successes, shared out blindly, give a p of at most alpha: the null."""
    smallest: float
    """The p if every treated run had succeeded and every control run failed."""


@dataclass(frozen=True, slots=True)
class ChangeScore:
    """How the continuations of one change ended."""

    kind: ChangeKind
    successes: int
    runs: int
    """Distinct ones that ended."""
    interval: Interval
    """Clopper and Pearson, 95 %; runs of one snapshot are alike, so it describes and never decides.
    """
    repeats: int
    """Left out because they were equal to another, action for action."""
    errors: int
    """Left out because the machinery failed."""


@dataclass(frozen=True, slots=True)
class Support:
    """What the branches say about one recovery."""

    finding: Finding
    reason: str
    skill: str
    snapshots: int
    alpha: float
    scores: tuple[ChangeScore, ...]
    against_unchanged: ExactTest
    against_fresh: ExactTest
    null: ExactTest
    """A fresh sample against the unchanged policy: what beginning anew does by itself."""


def stratified_test(strata: Sequence[Stratum], alpha: float = 0.05) -> ExactTest:
    """Test that the treated arm succeeds no more often than the control in any stratum.

    Given the successes of each stratum, those of the treated arm are hypergeometric; their sum
    over strata is convolved exactly (Gart 1970, Biometrika 57, 471). One stratum gives Fisher's
    exact test, strata of one against one the sign test.

    >>> stratified_test([((0, 1), (1, 1))] * 5).p
    0.03125
    >>> round(stratified_test([((0, 8), (8, 8))]).p, 7)
    7.77e-05

    Raises:
        ConfigError: impossible counts.
    """
    mass: npt.NDArray[np.float64] = np.ones(1)
    first = total = 0
    smallest = 1.0
    for (control, n_control), (treated, n_treated) in strata:
        if not (0 <= control <= n_control and 0 <= treated <= n_treated):
            raise ConfigError(
                f"got {control} of {n_control} and {treated} of {n_treated}; expected successes "
                "from 0 to the number of runs"
            )
        if min(n_control, n_treated) == 0:
            continue  # nothing to compare here
        runs, successes = n_control + n_treated, control + treated
        low, high = max(0, successes - n_control), min(successes, n_treated)
        shares = hypergeom.pmf(np.arange(low, high + 1), runs, successes, n_treated)
        mass = np.convolve(mass, shares)
        first, total = first + low, total + treated
        smallest /= math.comb(runs, n_treated)
    tails = np.minimum(np.cumsum(mass[::-1])[::-1], 1.0)
    tails[0] = 1.0
    allowed = tails[tails <= alpha + _ROUNDING]
    return ExactTest(
        float(tails[total - first]), float(allowed[0]) if allowed.size else 0.0, smallest
    )


def supports(continuations: Sequence[Continuation], alpha: float = 0.05) -> Support:
    """Say whether the continuations of one or more snapshots support one recovery.

    Raises:
        ConfigError: no recovery among them or several skills, or one seed of a snapshot given
            twice for one change.
    """
    skill = _skill(continuations)
    _check_once(continuations)
    names = sorted({each.snapshot for each in continuations})
    distinct = {kind: _distinct(continuations, kind) for kind in _KINDS}

    def compare(one: ChangeKind, other: ChangeKind) -> ExactTest:
        strata = [(_counts(distinct[one], n), _counts(distinct[other], n)) for n in names]
        return stratified_test(strata, alpha)

    unchanged, fresh = compare("unchanged", "recovery"), compare("fresh sample", "recovery")
    finding, reason = _decide(continuations, unchanged, fresh, alpha)
    return Support(
        finding=finding,
        reason=reason,
        skill=skill,
        snapshots=len(names),
        alpha=alpha,
        scores=tuple(_score(continuations, distinct[kind], kind) for kind in _KINDS),
        against_unchanged=unchanged,
        against_fresh=fresh,
        null=compare("unchanged", "fresh sample"),
    )


_KINDS: Final[tuple[ChangeKind, ...]] = ("unchanged", "fresh sample", "recovery")


def _decide(
    continuations: Sequence[Continuation], unchanged: ExactTest, fresh: ExactTest, alpha: float
) -> tuple[Finding, str]:
    recoveries = [c for c in continuations if c.change.kind == "recovery"]
    ended = [c for c in recoveries if c.success is not None]
    if not any(c.recovery_ticks for c in ended):
        return "undecided", "the recovery never drove: its precondition did not hold in time"
    for kind in ("unchanged", "fresh sample"):
        control = [c for c in continuations if c.change.kind == kind]
        if _uneven(control, recoveries):
            return "undecided", f"errors of the machinery hit {kind} and recovery unevenly"
    for what, test in (("unchanged", unchanged), ("fresh sample", fresh)):
        if test.smallest > alpha:
            return "undecided", (
                f"too few distinct runs against {what}: the best outcome would give "
                f"p = {test.smallest:.3g}; add snapshots of other episodes, or seeds"
            )
    for what, test in (("the unchanged policy", unchanged), ("a fresh sample", fresh)):
        if test.p > alpha:
            return "not supported", f"no better than {what} (p = {test.p:.3g})"
    return "supported", (
        f"better than the unchanged policy (p = {unchanged.p:.3g}) and than a fresh sample "
        f"(p = {fresh.p:.3g})"
    )


def _uneven(control: Sequence[Continuation], treated: Sequence[Continuation]) -> bool:
    missing = [sum(c.success is None for c in arm) for arm in (control, treated)]
    if len(control) == len(treated):
        return infrastructure_imbalance(missing[0], missing[1], len(control)) < UNEVEN
    return sum(missing) > 0


def _distinct(continuations: Sequence[Continuation], kind: ChangeKind) -> list[Continuation]:
    """Return what ended, each trace of a snapshot once."""
    found = {
        (c.snapshot, c.trace): c
        for c in continuations
        if c.change.kind == kind and c.success is not None
    }
    return list(found.values())


def _counts(runs: Sequence[Continuation], snapshot: str) -> Counts:
    own = [c for c in runs if c.snapshot == snapshot]
    return sum(c.success is True for c in own), len(own)


def _score(
    continuations: Sequence[Continuation], distinct: Sequence[Continuation], kind: ChangeKind
) -> ChangeScore:
    own = [c for c in continuations if c.change.kind == kind]
    errors = sum(c.success is None for c in own)
    successes = sum(c.success is True for c in distinct)
    return ChangeScore(
        kind=kind,
        successes=successes,
        runs=len(distinct),
        interval=clopper_pearson(successes, len(distinct)) if distinct else (0.0, 1.0),
        repeats=len(own) - errors - len(distinct),
        errors=errors,
    )


def _skill(continuations: Sequence[Continuation]) -> str:
    skills = {c.change.skill for c in continuations if c.change.kind == "recovery"}
    if len(skills) != 1:
        raise ConfigError(
            f"got continuations with the recoveries {', '.join(sorted(skills)) or 'none'}; "
            "expected those of one skill, with their controls"
        )
    return skills.pop()


def _check_once(continuations: Sequence[Continuation]) -> None:
    keys = {(c.snapshot, c.at, c.change, c.seed) for c in continuations}
    if len(keys) < len(continuations):
        raise ConfigError(
            "a continuation is given twice (same snapshot, change and seed); give each once"
        )
