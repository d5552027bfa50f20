"""Replay windows: short logged stretches of signals on which a critic must, or must not, speak.

A window is a JSON file:

    {"control_hz": 20, "expect": "fires", "tick": 41, "source": "where it comes from",
     "signals": {"ee_z": [0.31, 0.30, ...], "object_confidence": 0.9, "lift": [null, ...]}}

A signal is a list with one value for each tick, or one number that stands for all ticks; null is
NaN. Replaying pushes one tick after the other into an empty history, as a live run does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeAlias, cast, get_args

import numpy as np

from zetta.critics.critic import Critic, is_disarmed
from zetta.runtime.core import Array, Verdict, Window, read_only
from zetta.runtime.errors import ScreenError, suggest
from zetta.runtime.signals import SIGNALS, SignalHistory

Expectation: TypeAlias = Literal["fires", "silent", "disarmed"]

FIELDS: Final = ("control_hz", "expect", "tick", "source", "signals")
TICKS_MOST: Final = 2_000
HZ_MOST: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class ReplayWindow:
    """One logged stretch and what is expected of the critic on it."""

    name: str
    control_hz: float
    expect: Expectation
    """`fires`: at some tick it hands over to its skill, which may start, or aborts. `silent`: it
    never does, though it judged at least one tick. `disarmed`: it never does, and at one tick it
    was not armed or a value that it reads was unknown."""
    tick: int | None
    """When it first fires; any tick when it is None. When it is disarmed; the last tick when it
    is None."""
    source: str
    """Where the values come from."""
    signals: Mapping[str, Array]
    """Values by signal. Shape (T,) each."""

    @property
    def ticks(self) -> int:
        """Length T."""
        return len(next(iter(self.signals.values())))


@dataclass(frozen=True, slots=True)
class Replayed:
    """What happened at each tick of a window."""

    judged: tuple[bool, ...]
    """The critic was armed and knew every value it read."""
    fired: tuple[bool, ...]
    """It handed over to a skill that may start, or aborted."""
    reasons: tuple[str, ...]
    """What it said; empty where it did not fire."""


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """Whether a window was met."""

    window: str
    expect: Expectation
    passed: bool
    said: str
    """What happened, in one sentence."""


def read_window(text: str, path: Path) -> ReplayWindow:
    """Read a replay window.

    Args:
        text: the JSON text.
        path: where it lies, for messages; its stem is the window's name.

    Raises:
        ScreenError: the text is no window; the message begins with file and line.
    """

    def refuse(key: str, reason: str) -> NoReturn:
        line = text.count("\n", 0, max(text.find(f'"{key}"'), 0)) + 1
        raise ScreenError(f"{path}:{line}: {reason}")

    try:
        fields = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ScreenError(f"{path}:{error.lineno}: this is no JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise ScreenError(f"{path}:1: this is no JSON: {error}") from None
    if not isinstance(fields, dict):
        refuse("", "expected one JSON object with control_hz, expect and signals")
    for key in fields:
        if key not in FIELDS:
            refuse(key, f"unknown field {key!r}; {suggest(key, FIELDS)}")
    for key in ("control_hz", "expect", "signals"):
        if key not in fields:
            refuse("", f"the field {key!r} is missing")
    hz, expect, tick = fields["control_hz"], fields["expect"], fields.get("tick")
    if not _is_number(hz) or not 1.0 <= hz <= HZ_MOST:
        refuse("control_hz", f"control_hz is {hz!r}; expected ticks per second, 1 to {HZ_MOST:g}")
    if expect not in get_args(Expectation):
        refuse("expect", f"expect is {expect!r}; {suggest(str(expect), get_args(Expectation))}")
    signals = _signals(fields["signals"], refuse)
    length = len(next(iter(signals.values())))
    if tick is not None and (type(tick) is not int or not 0 <= tick < length):
        refuse("tick", f"tick is {tick!r}; the window has the ticks 0 to {length - 1}")
    if tick is not None and expect == "silent":
        refuse("tick", "a silent window names no tick")
    source = fields.get("source", "")
    if not isinstance(source, str):
        refuse("source", "source is no text; say where the values come from")
    return ReplayWindow(path.stem, float(hz), cast(Expectation, expect), tick, source, signals)


def window_text(window: ReplayWindow, digits: int = 4) -> str:
    """Return a window as JSON text, its values rounded to `digits` decimals."""
    signals = {name: _compact(values, digits) for name, values in window.signals.items()}
    if not any(isinstance(values, list) for values in signals.values()):
        first = next(iter(signals))  # one list says how long the window is
        signals[first] = [cast("float | None", signals[first])] * window.ticks
    rows = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(values)}" for name, values in signals.items()
    )
    tick = "" if window.tick is None else f'  "tick": {window.tick},\n'
    return (
        f'{{\n  "control_hz": {window.control_hz:g},\n  "expect": "{window.expect}",\n{tick}'
        f'  "source": {json.dumps(window.source)},\n  "signals": {{\n{rows}\n  }}\n}}\n'
    )


def replay(
    window: ReplayWindow,
    critic: Critic,
    precondition: Callable[[Window], bool],
    needs: Iterable[str] = (),
) -> Replayed:
    """Judge every tick of a window in order, from an empty history.

    Args:
        window: what happened.
        critic: who judges.
        precondition: whether the recovery may start.
        needs: signals that the precondition reads.

    Raises:
        ScreenError: the window lacks a signal that the critic or the precondition reads.
    """
    lacking = [n for n in dict.fromkeys((*critic.signals, *needs)) if n not in window.signals]
    if lacking:
        raise ScreenError(
            f"the replay window {window.name!r} of {critic.name!r} lacks {', '.join(lacking)}, "
            "which the programs read"
        )
    history = SignalHistory(tuple(window.signals), window.control_hz)
    judged, reasons, fired = [], [], []
    for row in np.stack(list(window.signals.values()), axis=1):
        history.push(row)
        armed = critic.armed(history)
        verdict = critic.judge(history) if armed else Verdict("pass")
        fires = verdict.decision == "abort" or (
            verdict.decision == "recover" and precondition(history)
        )
        judged.append(armed and not is_disarmed(verdict))
        fired.append(fires)
        reasons.append(verdict.reason if fires else "")
    return Replayed(tuple(judged), tuple(fired), tuple(reasons))


def meet(window: ReplayWindow, replayed: Replayed) -> ReplayOutcome:
    """Compare what happened with what the window expects."""
    first = replayed.fired.index(True) if any(replayed.fired) else None
    at = window.ticks - 1 if window.tick is None else window.tick
    judged = f"it judged {sum(replayed.judged)} of {len(replayed.judged)} ticks"
    if first is not None:
        passed = window.expect == "fires" and window.tick in (None, first)
        wrong = window.expect == "fires" and not passed
        said = f"fires at tick {first}: {replayed.reasons[first]}"
        said += f"; expected tick {window.tick}" if wrong else ""
    elif window.expect == "disarmed":
        passed = not replayed.judged[at]
        said = f"{'disarmed' if passed else 'armed'} at tick {at}; {judged}"
    else:
        passed = window.expect == "silent" and any(replayed.judged)
        said = f"silent; {judged}"
    return ReplayOutcome(window.name, window.expect, passed, said)


# ------------------------------------------------------------------------------------- reading


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} stands where a number or null is expected")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _signals(value: object, refuse: Callable[[str, str], NoReturn]) -> dict[str, Array]:
    """Return the values by signal, all of one length."""
    if not isinstance(value, dict) or not value:
        refuse("signals", "signals is no JSON object with a list of values for each signal")
    for name, values in value.items():
        if name not in SIGNALS:
            refuse(name, f"there is no signal {name!r}; {suggest(name, SIGNALS)}")
        entries = values if isinstance(values, list) else [values]
        if not all(entry is None or (_is_number(entry) and _fits(entry)) for entry in entries):
            refuse(name, f"{name} holds something else than finite numbers and null")
    lengths = {name: len(values) for name, values in value.items() if isinstance(values, list)}
    if not lengths:
        refuse("signals", "no signal has a value for each tick; write one as a list")
    length = max(lengths.values())
    for name, count in lengths.items():
        if count != length or count == 0:
            refuse(name, f"{name} has {count} values and another signal {length}")
    if length > TICKS_MOST:
        refuse("signals", f"the window has {length} ticks; at most {TICKS_MOST} are allowed")
    return {name: _array(values, length) for name, values in value.items()}


def _fits(number: float) -> bool:
    return abs(number) <= 1e9


def _array(values: list[float | None] | float | None, length: int) -> Array:
    entries = values if isinstance(values, list) else [values] * length
    return read_only([math.nan if entry is None else float(entry) for entry in entries])


def _compact(values: Array, digits: int) -> list[float | None] | float | None:
    """Return a list, or one value where all ticks have the same."""
    rounded = [None if math.isnan(v) else _short(round(float(v), digits)) for v in values]
    return rounded if len(set(rounded)) > 1 else rounded[0]


def _short(value: float) -> float:
    return int(value) if value == int(value) else value
