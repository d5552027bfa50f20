"""Motions of two arms as one: each has its own columns of every action, and its own eyes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from zetta.primitives.motions import Arm, Steps
from zetta.runtime.core import Action, Estimate, Look, Sense
from zetta.runtime.tracking import ARM_SIZE

_T = TypeVar("_T")


class Strand(Generic[_T]):
    """One part of a motion while it runs: what it wishes next, and what it has seen itself.

    The loop remembers estimates from motion to motion, under the names of roles. A role of the
    command before was another thing, so only what was located for this part is passed on.

    Attributes:
        wish: what it wants done next; None when it has ended.
        result: what it came to; None while it runs.
    """

    def __init__(self, steps: Steps[_T]) -> None:
        """Start `steps`; nothing happens before its first wish is granted."""
        self._steps = steps
        self._seen: dict[str, Estimate] = {}
        self.wish: Action | Look | None = None
        self.result: _T | None = None
        try:
            self.wish = next(steps)
        except StopIteration as stop:
            self.result = stop.value

    def grant(self, sense: Sense, before: Mapping[str, Estimate]) -> None:
        """Give it what came of its wish; `before` is what the loop had seen until then."""
        if isinstance(self.wish, Look):
            fresh = {r: e for r, e in sense.estimates.items() if before.get(r) is not e}
            self._seen.update({r: e for r, e in fresh.items() if r in self.wish.roles})
        try:
            self.wish = self._steps.send(replace(sense, estimates=dict(self._seen)))
        except StopIteration as stop:
            self.wish, self.result = None, stop.value

    def close(self) -> None:
        """Interrupt it."""
        self._steps.close()


def single(steps: Steps[_T], sense: Sense) -> Steps[_T]:
    """Run one part with its own eyes; `sense` is the present."""
    strand = Strand(steps)
    try:
        while strand.wish is not None:
            before = sense.estimates
            sense = yield strand.wish
            strand.grant(sense, before)
    finally:
        strand.close()
    assert strand.result is not None
    return strand.result


def together(
    parts: Sequence[tuple[int, Steps[_T]]],
    sense: Sense,
    holder: Callable[[int], Arm],
    bind: Callable[[int], None],
) -> Steps[list[_T]]:
    """Run a part for each of several arms at once, until all have ended.

    Args:
        parts: number of the arm, and what it does.
        sense: the present.
        holder: makes what holds an arm whose part has ended.
        bind: called before an arm's look, so that the localiser means its things.

    Returns:
        The results, in the order of the parts.
    """
    strands = [(arm, Strand(steps)) for arm, steps in parts]
    holds: dict[int, Strand[None]] = {}
    try:
        while True:
            row: Action | None = None
            for arm, strand in strands:
                sense = yield from _looked(arm, strand, sense, bind)
            if all(strand.wish is None for _, strand in strands):
                break
            for arm, strand in strands:
                mover: Strand[_T] | Strand[None] = strand
                if strand.wish is None:
                    if arm not in holds:
                        holds[arm] = Strand(_hold(holder(arm)))
                        sense = yield from _looked(arm, holds[arm], sense, bind)
                    mover = holds[arm]
                row = _with_columns(row, mover.wish, arm)
            assert row is not None
            sense = yield row
            movers: list[Strand[_T] | Strand[None]] = [s for _, s in strands]
            for mover in [*movers, *holds.values()]:
                if mover.wish is not None:
                    mover.grant(sense, sense.estimates)
    finally:
        for _, strand in strands:
            strand.close()
    return [strand.result for _, strand in strands if strand.result is not None]


def _looked(
    arm: int, strand: Strand[_T] | Strand[None], sense: Sense, bind: Callable[[int], None]
) -> Steps[Sense]:
    """Answer the looks of one part until it acts or ends; return the latest sense."""
    while isinstance(strand.wish, Look):
        if strand.wish.roles:
            bind(arm)
        before = sense.estimates
        sense = yield strand.wish
        strand.grant(sense, before)
    return sense


def _with_columns(row: Action | None, own: Action | Look | None, arm: int) -> Action:
    assert isinstance(own, np.ndarray)
    if row is None:
        return np.array(own, dtype=np.float64)
    columns = slice(ARM_SIZE * arm, ARM_SIZE * (arm + 1))
    row[columns] = own[columns]
    return row


def _hold(arm: Arm) -> Steps[None]:
    """Hold an arm where it is, without end."""
    yield from arm.start()
    position, rotation = arm.position, arm.rotation
    while True:
        yield from arm.toward(position, rotation)
