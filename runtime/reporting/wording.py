"""Numbers as reports and tables write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zetta.runtime.success_rates import Interval  # late: commands that only count need no scipy

NONE = "–"


def percent(share: float | None) -> str:
    """Return a share in percent with one digit.

    >>> percent(0.354), percent(None)
    ('35.4 %', '–')
    """
    return NONE if share is None or share != share else f"{100 * share:.1f} %"


def whole_percent(share: float) -> str:
    """Return a share in whole percent.

    >>> whole_percent(0.354), whole_percent(float("nan"))
    ('35 %', '–')
    """
    return NONE if share != share else f"{100 * share:.0f} %"


def signed(share: float) -> str:
    """Return a difference of shares in points.

    >>> signed(0.18)
    '+18.0'
    """
    return f"{100 * share:+.1f}"


def interval(bounds: Interval | None, is_signed: bool = False) -> str:
    """Return both bounds in percent, or in points.

    >>> interval((0.028, 0.324)), interval((-0.007, 0.251), is_signed=True)
    ('2.8 to 32.4', '-0.7 to +25.1')
    """
    if bounds is None:
        return NONE
    low, high = (signed(b) if is_signed else f"{100 * b:.1f}" for b in bounds)
    return f"{low} to {high}"


def number(value: float | None) -> str:
    """Return a number in three digits.

    >>> number(0.0303), number(None)
    ('0.0303', '–')
    """
    return NONE if value is None or value != value else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Return a duration as people say it.

    >>> seconds(5.25), seconds(150), seconds(9000), seconds(None)
    ('5.2 s', '2.5 min', '2.5 h', '–')
    """
    if value is None or value != value:
        return NONE
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def counted(n: int, what: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "episode"), counted(3, "episode")
    ('1 episode', '3 episodes')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
