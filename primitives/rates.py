"""What was tuned in ticks of 20 Hz, at another control rate: the same time, the same speed."""

from __future__ import annotations

from typing import Final

TUNED_HZ: Final = 20.0
"""The rate at which numbers per tick were found; at this one they are used as they stand."""


def ticks_at(control_hz: float, ticks: int) -> int:
    """Return so many ticks of 20 Hz as ticks of another rate, at least one.

    >>> ticks_at(20.0, 3), ticks_at(50.0, 3), ticks_at(5.0, 2)
    (3, 8, 1)
    """
    return max(1, round(ticks * (control_hz / TUNED_HZ)))


def per_tick_at(control_hz: float, metres: float) -> float:
    """Return what a speed that makes so much in a tick of 20 Hz makes in a tick of another rate.

    >>> per_tick_at(20.0, 4e-4) == 4e-4, per_tick_at(40.0, 4e-4) == 2e-4
    (True, True)
    """
    return metres * (TUNED_HZ / control_hz)
