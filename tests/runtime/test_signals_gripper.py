"""Holding, missing and losing, told from the opening alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from zetta.runtime.signals_gripper import NAN, GripSignals

TICK = 0.05
CLOSED_EMPTY = [77.1, 73.5, 67.1, 59.1, 50.2, 40.9, 31.2, 21.4, 13.1, 8.2, 5.5, 3.9, 3.1, 2.6]
CLOSED_EMPTY += [2.3, 2.2, 2.1, 2.0, 1.9, 1.85, 1.8, 1.75, 1.7, 1.65, 1.6]
"""Openings of LIBERO's Panda hand that closes in free air, millimetres."""
NAMES = (
    "gripper_speed", "closed_for", "open_for", "gripper_closing", "closed_on_nothing", "holding",
    "slip", "lift",
)  # fmt: skip


def judged(
    openings_mm: Sequence[float],
    commands: Sequence[float] | None = None,
    heights: Sequence[float] | None = None,
) -> dict[str, list[float]]:
    """Return the signals over time; commands are close after the first tick unless given."""
    grip = GripSignals()
    told = commands or [NAN, *[1.0] * (len(openings_mm) - 1)]
    high = heights or [0.9] * len(openings_mm)
    said = [
        grip.update(k * TICK, (k - 1) * TICK if k else NAN, mm / 1000, high[k], told[k])
        for k, mm in enumerate(openings_mm)
    ]
    return {name: [row[i] for row in said] for i, name in enumerate(NAMES)}


def test_an_empty_hand_is_told_once_it_is_at_rest_and_never_before() -> None:
    signals = judged(CLOSED_EMPTY)

    assert sum(signals["holding"]) == 0
    first = signals["closed_on_nothing"].index(1.0)
    assert CLOSED_EMPTY[first] < 2.2
    assert all(signals["closed_on_nothing"][first:])


@pytest.mark.parametrize("thickness", [3.4, 4.0, 9.0, 63.0])
def test_whatever_keeps_the_fingers_apart_is_held(thickness: float) -> None:
    openings = [max(mm, thickness) for mm in CLOSED_EMPTY]
    signals = judged(openings)

    assert sum(signals["closed_on_nothing"]) == 0
    assert signals["holding"][-1] == 1.0
    first = signals["holding"].index(1.0)
    assert signals["closed_for"][first] >= 0.4 - 1e-9
    assert signals["slip"][-1] == 0.0


def test_a_rim_that_slides_out_is_held_until_it_is_lost_and_then_missed() -> None:
    slide = [3.4 - 0.02 * k for k in range(50)] + [2.0, 1.9, 1.8, 1.8]
    signals = judged([77.0, 40.0, 8.0, *[3.4] * 9, *slide])

    changes = [b - a for a, b in zip(signals["holding"], signals["holding"][1:], strict=False)]
    assert [c for c in changes if c] == [1.0, -1.0]
    assert signals["closed_on_nothing"][-1] == 1.0
    assert signals["slip"][-1] == pytest.approx(0.0016)


def test_what_turns_between_the_fingers_stays_held() -> None:
    turning = [9.1, 8.4, 7.5, 6.6, 5.2, 4.5, 4.5, 4.5, 4.4]
    signals = judged([77.0, 40.0, *[9.1] * 10, *turning])

    first = signals["holding"].index(1.0)
    assert all(signals["holding"][first:])
    assert signals["slip"][-1] == pytest.approx(0.0047)


def test_fingers_that_never_closed_hold_nothing_and_missed_nothing() -> None:
    signals = judged([77.4] * 40)

    assert signals["closed_for"][-1] == pytest.approx(39 * TICK)
    for name in ("holding", "closed_on_nothing", "gripper_closing", "slip"):
        assert sum(signals[name]) == 0


def test_a_command_to_open_does_not_let_go_and_open_fingers_do() -> None:
    openings = [77.0, 60.0, *[36.0] * 12, 36.2, 36.4, 36.1, 36.0, *[36.0] * 3, 37.0, 41.0, 50.0]
    commands = [NAN, *[1.0] * 13, 0.0, 0.0, 1.0, *[1.0] * 4, 0.0, 0.0, 0.0]
    heights = [0.9] * 14 + [1.0] * 10
    signals = judged(openings, commands, heights)

    assert signals["holding"][13:22] == [1.0] * 9
    assert signals["holding"][22:] == [0.0, 0.0]
    assert signals["lift"][14:22] == pytest.approx([0.1] * 8)
    assert signals["lift"][22:] == [0.0, 0.0]
    assert signals["slip"][22:] == [0.0, 0.0]


def test_a_loss_is_remembered_while_the_command_stays_close() -> None:
    openings = [77.0, 60.0, *[36.0] * 12, 30.0, 24.0, 12.0, 2.0, 1.5, 1.4, 1.4, 1.4, 5.0]
    commands = [NAN, *[1.0] * 21, 0.0]
    signals = judged(openings, commands)

    assert signals["slip"][14] == pytest.approx(0.006)
    assert signals["slip"][21] == pytest.approx(0.0346)
    assert (signals["holding"][21], signals["closed_on_nothing"][21]) == (0.0, 1.0)
    assert (signals["slip"][22], signals["closed_on_nothing"][22]) == (0.0, 0.0)


def test_times_of_the_command_begin_where_it_was_given() -> None:
    signals = judged([50.0] * 6, [NAN, 0.0, 0.0, 1.0, 1.0, 0.0])

    assert signals["open_for"] == pytest.approx([0.0, TICK, 2 * TICK, 0.0, 0.0, TICK])
    assert signals["closed_for"] == pytest.approx([0.0, 0.0, 0.0, TICK, 2 * TICK, 0.0])
