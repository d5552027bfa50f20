"""Does a skill help on tasks it was not made for? One cell for each task, judged together.

Each cell is a paired comparison on fresh scenes: the parent, and the parent with the skill. Cells
are corrected for their number, so of those that are said to gain, at most the level is chance in
expectation (Benjamini and Hochberg 1995). An error of machinery is no score: its pair is left out
and counted.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from zetta.primitives.roles import Roles
from zetta.runtime.evaluation_results import Row
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.success_rates import lower_bound, mcnemar, newcombe_paired
from zetta.skills.evolve.campaign import SEED_BITS
from zetta.skills.evolve.multiplicity import adjust
from zetta.skills.evolve.significance import harm_bound
from zetta.skills.package import SkillPackage

CellDecision: TypeAlias = Literal["TRANSFERS", "HARMS", "UNDECIDED", "QUIET", "NOT RUN"]
CONFIDENCE = 0.95
"""Of every bound, one-sided."""


@dataclass(frozen=True, slots=True)
class CellCounts:
    """What happened on one task."""

    suite: str
    task: int
    both: int = 0
    wins: int = 0
    """Pairs solved only with the skill."""
    harms: int = 0
    """Pairs solved only without it."""
    neither: int = 0
    called: int = 0
    """Pairs in which the skill had the robot."""
    unattributed: int = 0
    """Pairs that differ although no skill intervened: noise of the machinery."""
    errors: int = 0
    """Pairs of which a run could not be made or was solved at reset; in no other count."""

    @property
    def pairs(self) -> int:
        """Pairs that count."""
        return self.both + self.wins + self.harms + self.neither


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """One task's verdict."""

    counts: CellCounts
    decision: CellDecision
    p: float
    """One-sided, exact sign test."""
    p_adjusted: float
    """For the number of cells."""
    p_harm: float
    """The same test that the skill does harm, adjusted."""
    difference: float
    low: float
    """Lower bound of the difference of success rates (Newcombe 1998, method 10)."""
    win_low: float
    """Lower bound of the share of pairs that the skill wins (Clopper and Pearson 1934)."""
    harm_high: float
    """Upper bound of the share of pairs that it breaks."""


def fresh_seeds(
    key: str, package: str, what: Literal["scene", "policy", "calibration"], count: int
) -> list[int]:
    """Return seeds that nobody can choose: HMAC-SHA-256 under a key, of sampled scenes alone.

    Published tables use numbered initial states, so no scene of theirs can be among these.

    Args:
        key: hexadecimal.
        package: hash of the skill's package.
        what: they are for.
        count: how many.
    """
    secret = bytes.fromhex(key)
    names = (f"transfer/{package}/{what}/{place}".encode() for place in range(count))
    drawn = (hmac.new(secret, name, hashlib.sha256).digest() for name in names)
    return [int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS) for digest in drawn]


def why_not(package: SkillPackage, roles: Roles | None) -> str:
    """Return why a skill does not belong into a task; empty when it does.

    Args:
        package: the skill.
        roles: what the instruction says; None where it is not understood.
    """
    if package.fits(roles):
        return ""
    page = package.page
    if roles is None:
        return "its instruction is not understood"
    missing = [role for role in page.roles if role not in roles.phrases]
    if missing:
        return f"its instruction binds no {' and no '.join(missing)}"
    bound = {*roles.phrases, *(["steps"] if len(roles.steps) > 1 else [])}
    excluded = [word for word in page.excludes if word in bound]
    if excluded:
        return f"the skill excludes tasks with {', '.join(excluded)}"
    return f"its instruction asks for none of: {', '.join(page.verbs)}"


def count_cells(
    rows: Sequence[Row], parent: str, candidate: str, skill: str
) -> tuple[CellCounts, ...]:
    """Count pairs by task, in the order of the rows.

    Args:
        rows: of an evaluation with both arms.
        parent: name of the arm without the skill.
        candidate: name of the arm with it.
        skill: its name.
    """
    cells: dict[tuple[str, int], dict[tuple[int, int], dict[str, Row]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        spec = row.planned.spec
        cells[spec.suite, spec.task][spec.seed, spec.policy_seed][row.planned.arm] = row
    return tuple(
        _count(suite, task, [(arms[parent].record, arms[candidate].record)
                             for arms in pairs.values()], skill)
        for (suite, task), pairs in cells.items()
    )  # fmt: skip


def judge_cells(cells: Sequence[CellCounts], level: float = 0.05) -> tuple[CellVerdict, ...]:
    """Return one verdict for each cell, corrected for their number.

    >>> cells = [CellCounts("s", 0, wins=9, neither=3, called=9), CellCounts("s", 1, neither=12)]
    >>> [verdict.decision for verdict in judge_cells(cells)]
    ['TRANSFERS', 'QUIET']
    """
    gains = [mcnemar(cell.wins, cell.harms).p_one_sided for cell in cells]
    losses = [mcnemar(cell.harms, cell.wins).p_one_sided for cell in cells]
    gained, lost = adjust(gains, level), adjust(losses, level)
    return tuple(
        _verdict(cell, gains[k], gained.p_values[k], lost.p_values[k], level)
        for k, cell in enumerate(cells)
    )


def _verdict(
    cell: CellCounts, p: float, p_adjusted: float, p_harm: float, level: float
) -> CellVerdict:
    decision: CellDecision = "UNDECIDED"
    difference, low = 0.0, -1.0
    if not cell.pairs:
        decision = "NOT RUN"
    else:
        difference, (low, _) = newcombe_paired(
            cell.both, cell.wins, cell.harms, cell.neither, 2 * CONFIDENCE - 1
        )
        if p_adjusted <= level:
            decision = "TRANSFERS"
        elif p_harm <= level:
            decision = "HARMS"
        elif not cell.called:
            decision = "QUIET"
    return CellVerdict(
        counts=cell,
        decision=decision,
        p=p,
        p_adjusted=p_adjusted,
        p_harm=p_harm,
        difference=difference,
        low=low,
        win_low=lower_bound(cell.wins, cell.pairs, CONFIDENCE),
        harm_high=harm_bound(cell.harms, cell.pairs, CONFIDENCE),
    )


def _count(
    suite: str,
    task: int,
    pairs: Sequence[tuple[EpisodeRecord | None, EpisodeRecord | None]],
    skill: str,
) -> CellCounts:
    outcomes, called, unattributed, errors = Counter[tuple[bool, bool]](), 0, 0, 0
    for without, with_skill in pairs:
        if without is None or with_skill is None or without.success_at_reset:
            errors += 1
            continue
        outcomes[without.success, with_skill.success] += 1
        called += any(recovery.skill == skill for recovery in with_skill.recoveries)
        quiet = not without.recoveries and not with_skill.recoveries
        unattributed += quiet and without.success != with_skill.success
    return CellCounts(
        suite=suite,
        task=task,
        both=outcomes[True, True],
        wins=outcomes[False, True],
        harms=outcomes[True, False],
        neither=outcomes[False, False],
        called=called,
        unattributed=unattributed,
        errors=errors,
    )
