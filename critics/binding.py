"""Turns checked code into functions: bound to a control rate and to values of parameters.

The code was made by the checker from its own words, so it is trusted here; it still runs without
builtins and sees only what is listed below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from zetta.critics.operators import (
    NUMBER_FUNCTIONS,
    SERIES_FUNCTIONS,
    WINDOW_FUNCTIONS,
    ticks_in,
)
from zetta.runtime.core import Array

Functions = Mapping[str, Callable[..., Any]]


class Unknown(Exception):
    """A value that is read is not known; says which."""


def unknown(what: str) -> NoReturn:
    """End the call of a program.

    Raises:
        Unknown: always.
    """
    raise Unknown(what)


def settled(series: Array) -> Array:
    """Return a series without NaN and infinity.

    Raises:
        Unknown: it has some.
    """
    if b"\0" in np.isfinite(series).tobytes():
        raise Unknown("a result")
    return series


WORDS_OF_THE_CODE: Final[Functions] = {
    "unknown": unknown,
    "settled": settled,
    **{f"f_{name}": function for name, function in WINDOW_FUNCTIONS.items()},
    **{f"x_{name}": function for name, function in NUMBER_FUNCTIONS.items()},
    **{f"s_{name}": function for name, function in SERIES_FUNCTIONS.items()},
}


def bound_functions(
    code: str,
    name: str,
    ticks: Mapping[str, tuple[float | str, int]],
    control_hz: float,
    values: Mapping[str, float],
    words: Mapping[str, object] | None = None,
) -> Functions:
    """Return the functions that `code` defines.

    Args:
        code: made by the checker.
        name: of the program, for tracebacks.
        ticks: windows by name in the code: seconds or a parameter, and the least ticks.
        control_hz: ticks per second.
        values: of the parameters.
        words: what the code may name beside the operators.
    """
    space: dict[str, Any] = {"__builtins__": {}, **WORDS_OF_THE_CODE, **(words or {})}
    space |= {f"p_{key}": float(value) for key, value in values.items()}
    for key, (seconds, least) in ticks.items():
        length = values[seconds] if isinstance(seconds, str) else seconds
        count = ticks_in(length, control_hz, least)
        space[key] = count
        space[f"d{key[1:]}"] = (count - 1) / control_hz
    before = set(space)
    exec(compile(code, f"<program {name}>", "exec"), space)
    return {key: space[key] for key in space if key not in before}
