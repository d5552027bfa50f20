"""When the robot's side leads its arm, and where: by a clock of our own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import pose
from zetta.hw_drivers.arm import ArmReading, ArmTarget, Passed
from zetta.hw_drivers.arm_lead import FASTEST, Asked, Lead
from zetta.hw_drivers.arm_messages import COUNTED
from zetta.hw_drivers.audit import Changes
from zetta.hw_drivers.decisions import AuditEntry
from zetta.hw_drivers.simple_side import SimpleSide

TICK, TURN = 0.05, 0.001


class Noting:
    """A guard that writes down what it is asked and passes it."""

    limits, tick_s, stopped, rests = "test", TICK, "", True

    def __init__(self) -> None:
        self.ticks: list[tuple[float, ArmTarget | None, str]] = []
        self.helds: list[int] = []

    def tick(
        self, asked: ArmTarget | None, reading: ArmReading | None, now: float, driver: str
    ) -> Passed:
        self.ticks.append((now, asked, driver))
        return Passed(asked, "held" if asked is None else "as asked")

    def held(self) -> None:
        self.helds.append(len(self.ticks))

    def stop(self, reason: str, now: float, by: str) -> None: ...

    def clear(self, by: str, now: float) -> None: ...

    def approve(self, token: str, by: str, now: float) -> None: ...


def led(arrivals: Sequence[float], until: float) -> tuple[Noting, list[float], Lead]:
    """Return what a guard was asked, and how long before a tick each target had come."""
    guard, side = Noting(), SimpleSide(clock=lambda: 0.0)
    lead = Lead(side, guard, 0.2, dict.fromkeys(COUNTED, 0))
    waiting, waits, now = list(arrivals), [], 0.0
    came: dict[int, float] = {}
    while now < until:
        while waiting and waiting[0] <= now:
            t = waiting.pop(0)
            target = pose()
            came[id(target)] = t
            lead.ask(Asked(len(came), target, "agent:a"), t)
        before = len(guard.ticks)
        lead.tick(side.read(), now)
        if len(guard.ticks) > before and guard.ticks[-1][1] is not None:
            waits.append(now - came[id(guard.ticks[-1][1])])
        now += TURN
    return guard, waits, lead


def test_first_tick_comes_half_a_period_after_the_first_target() -> None:
    _, waits, _ = led([0.1], 0.14)
    assert waits == [pytest.approx(TICK / 2, abs=2 * TURN)]


@settings(deadline=None, max_examples=10)
@given(st.floats(-0.0004, 0.0004), st.integers(0, 99))
def test_ticks_keep_to_the_middle_between_messages_and_are_no_faster(
    drift: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    arrivals = np.arange(120) * TICK * (1.0 + drift) + rng.uniform(0.0, 0.01, 120)
    guard, waits, lead = led(np.sort(arrivals).tolist(), 5.9)
    assert max(abs(wait - TICK / 2) for wait in waits) < 0.4 * TICK
    times = np.array([t for t, _, _ in guard.ticks])
    assert np.diff(times).min() >= TICK * (1.0 - FASTEST) - 2 * TURN
    # Over a while the turns' own length is nothing, and the rate is that of the limits.
    assert (times[50] - times[0]) / 50 >= TICK * (1.0 - FASTEST)
    targets = [id(asked) for _, asked, _ in guard.ticks]
    assert len(set(targets)) == len(targets)  # none twice, none left out
    assert lead._counts["superseded"] == 0


def test_target_is_used_again_until_it_is_old_and_then_nobody_asks() -> None:
    guard, _, lead = led([0.0], 0.35)
    asked = [(round(t, 2), target is not None, driver) for t, target, driver in guard.ticks]
    assert [was for _, was, _ in asked] == [True, True, False, False, False, False, False]
    assert {driver for _, _, driver in asked} == {"agent:a"}
    assert lead.silent(0.21)
    lead.hold()
    assert not lead.following
    assert guard.helds[-1] == len(guard.ticks)


def test_guard_begins_anew_after_a_time_in_which_nothing_ran() -> None:
    guard, side = Noting(), SimpleSide(clock=lambda: 0.0)
    lead = Lead(side, guard, 0.2, dict.fromkeys(COUNTED, 0))
    for now, frozen in ((0.0, False), (0.05, False), (0.6, True), (0.65, False)):
        lead.ask(Asked(1, pose(), "policy"), now)
        before = len(guard.helds)
        lead.tick(side.read(), now + TICK / 2)
        assert (len(guard.helds) > before) == (frozen or now == 0.0)


def entry(verdict: str, driver: str = "policy", event: str = "decision") -> AuditEntry:
    return AuditEntry(0.0, 0, event, driver, verdict, None, None, ())  # type: ignore[arg-type]


def test_log_of_changes_leaves_out_what_passes_as_it_is() -> None:
    kept: list[AuditEntry] = []
    changes = Changes(kept.append)
    rows = [
        (entry("as asked"), True),
        (entry("as asked"), False),
        (entry("changed"), True),
        (entry("changed"), True),
        (entry("as asked"), True),
        (entry("as asked", "agent:a"), True),
        (entry("as asked", "agent:a"), False),
        (entry("stop", "Ada", "stop"), True),
        (entry("stopped"), True),
        (entry("clear", "Ada", "clear"), True),
    ]
    for row, wanted in rows:
        before = len(kept)
        changes(row)
        assert (len(kept) > before) == wanted
