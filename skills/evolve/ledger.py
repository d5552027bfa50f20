"""The ledger of a campaign: which gates were opened, what risk that took, which scenes are burned.

Risk is spent when a gate opens, whatever comes of it. A block that was looked at is burned: its
scenes may be developed on, never gated on again. Only the decision and counts leave a gate.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from zetta.runtime.errors import GateError
from zetta.skills.evolve.multiplicity import alpha_of_opening
from zetta.skills.evolve.plans import GatePlan, check_plan
from zetta.skills.evolve.sequential import Boundary

Decision: TypeAlias = Literal["PROMOTE", "REJECT", "INCONCLUSIVE", "SIMPLIFY"]


@dataclass(frozen=True, slots=True)
class Opening:
    """One gate that was opened for one candidate."""

    number: int
    """In the campaign, from 1."""
    candidate: str
    """Hash of the bundle."""
    plan: str
    """Digest of the sealed plan."""
    alpha: float
    """Risk that this opening takes."""
    scenes: tuple[str, ...]
    """Digests of the sealed block, in the order in which pairs are judged."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An opening and what came of it."""

    opening: Opening
    decision: Decision | None = None
    """None while the gate is open."""
    wins: int = 0
    harms: int = 0
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class Ledger:
    """All openings of a campaign, in order."""

    campaign: str
    entries: tuple[LedgerEntry, ...] = ()

    @property
    def alpha_spent(self) -> float:
        """Risk of any false promotion so far, at most."""
        return sum(entry.opening.alpha for entry in self.entries)

    @property
    def burned(self) -> frozenset[str]:
        """Scenes that no gate may use again."""
        return frozenset(scene for entry in self.entries for scene in entry.opening.scenes)


def open_gate(
    plan: GatePlan,
    ledger: Ledger,
    candidate: str,
    scenes: tuple[str, ...],
    seen: Collection[str] = (),
) -> tuple[Opening, Ledger]:
    """Open the gate for a candidate and spend the risk of the opening.

    Args:
        plan: of the campaign; the first opening seals it.
        ledger: so far.
        candidate: hash of the bundle.
        scenes: digests of a fresh block, one for each pair of the confirmation.
        seen: digests that development, prompts or demonstrations have used.

    Returns:
        The opening, and the ledger with it.

    Raises:
        GateError: a gate is open, the plan changed, the candidate was here before, the block is not
            fresh, or the declared effect would be missed too often.
    """
    number = len(ledger.entries) + 1
    _check_turn(plan, ledger, candidate)
    check_plan(plan, number)
    _check_block(plan, ledger, scenes, seen)
    alpha = alpha_of_opening(number, plan.alpha, plan.spending, len(plan.boundaries))
    opening = Opening(number, candidate, plan.digest, alpha, scenes)
    return opening, replace(ledger, entries=(*ledger.entries, LedgerEntry(opening)))


def close_gate(
    ledger: Ledger, opening: Opening, decision: Decision, wins: int, harms: int, pairs: int
) -> Ledger:
    """Return the ledger with what came of its open gate.

    Raises:
        GateError: that gate is not the open one.
    """
    last = ledger.entries[-1] if ledger.entries else None
    if last is None or last.decision is not None or last.opening != opening:
        raise GateError(
            f"opening {opening.number} of candidate {opening.candidate} is not the open gate of "
            f"campaign {ledger.campaign!r}; a gate is closed once"
        )
    closed = LedgerEntry(opening, decision, wins, harms, pairs)
    return replace(ledger, entries=(*ledger.entries[:-1], closed))


def sealed_boundary(plan: GatePlan, opening: Opening) -> Boundary:
    """Return the boundary of an opening.

    Raises:
        GateError: the plan is not the one that was sealed.
    """
    if plan.digest != opening.plan:
        raise GateError(
            f"opening {opening.number} was sealed with plan {opening.plan[:12]} and this one is "
            f"{plan.digest[:12]}; a plan cannot change after it was sealed"
        )
    return plan.boundaries[opening.number - 1]


def _check_turn(plan: GatePlan, ledger: Ledger, candidate: str) -> None:
    for entry in ledger.entries:
        opening = entry.opening
        if entry.decision is None:
            raise GateError(
                f"opening {opening.number} of campaign {ledger.campaign!r} is still open; close it "
                "first"
            )
        if opening.candidate == candidate:
            raise GateError(
                f"candidate {candidate} was at opening {opening.number} already "
                f"({entry.decision}); a candidate gets one try"
            )
        sealed_boundary(plan, opening)


def _check_block(
    plan: GatePlan, ledger: Ledger, scenes: tuple[str, ...], seen: Collection[str]
) -> None:
    if len(scenes) != plan.budget.confirmation or len(set(scenes)) != len(scenes):
        raise GateError(
            f"the sealed block holds {len(set(scenes))} different scenes in {len(scenes)} places; "
            f"expected {plan.budget.confirmation} different ones"
        )
    for used, why in ((ledger.burned, "burned by an earlier opening"), (seen, "seen already")):
        stale = [scene for scene in scenes if scene in used]
        if stale:
            raise GateError(
                f"{len(stale)} scenes of the sealed block are {why} (first {stale[0]}); draw fresh "
                "ones"
            )
