"""Between our observations and chunks and other people's requests and answers, both ways.

Everything that differs is declared in a `Convention`; here it is carried out, once. GR00T's two
generations nest the same keys differently, which is handled where the key is written or read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from zetta.runtime.core import Array, Image, Observation
from zetta.runtime.errors import SpecMismatch, suggest
from zetta.runtime.foreign import pictures, states
from zetta.runtime.foreign.conventions import Convention, Path

Form: TypeAlias = Literal["openpi", "n1.5", "n1.6", "n1.6-flat"]
"""How keys, batches and instants are written. `n1.6-flat` is what the simulation wrapper of a
GR00T N1.6 server takes."""

_LEADING: Final[Mapping[Form, int]] = {"openpi": 0, "n1.5": 1, "n1.6": 2, "n1.6-flat": 2}
"""Axes of length 1 before those of a picture or a state: batch and time."""
MAX_PROMPT: Final = 2000
"""Characters."""


# --------------------------------------------------------------------------- we ask


def request(
    observation: Observation, instruction: str, convention: Convention, form: Form
) -> dict[str, Any]:
    """Return the request that shows `observation` to a foreign server.

    Raises:
        SpecMismatch: the observation lacks something that the convention needs.
    """
    asked: dict[str, Any] = {}
    ones = (1,) * _LEADING[form]
    for picture in convention.pictures:
        image = observation.images.get(picture.camera.name)
        if image is None:
            raise SpecMismatch(
                f"the convention {convention.name!r} needs a picture of {picture.camera.name!r}; "
                f"{suggest(picture.camera.name, observation.images)}"
            )
        sent = pictures.to_wire(np.asarray(image), picture)
        _put(asked, picture.path, sent.reshape(ones + sent.shape), form)
    for state in convention.states:
        numbers = states.vector(observation.proprio, state.parts, convention)
        sent_numbers = numbers.astype(convention.state_dtype).reshape(*ones, -1)
        _put(asked, state.path, sent_numbers, form)
    _put_prompt(asked, convention.prompt, instruction, form)
    return asked


def rows(answer: object, convention: Convention, form: Form) -> Array:
    """Return the action rows of a server's answer, in our convention.

    Two-valued numbers become one of their two commands. What leaves the range is cut to it, as the
    robot's own controller would; not-a-number is refused.

    Returns:
        Shape (H, A).

    Raises:
        SpecMismatch: keys, shapes or numbers are not those of the convention.
    """
    raw = raw_rows(answer, convention, form)
    ours = raw.copy()
    low, high = np.array(convention.action.low), np.array(convention.action.high)
    for switch in convention.switches:
        i = switch.index
        middle = (switch.low + switch.high) / 2
        upper = (raw[:, i] > middle) == (switch.high > switch.low)
        ours[:, i] = np.where(upper, high[i], low[i])
    return np.asarray(np.clip(ours, low, high))


def raw_rows(answer: object, convention: Convention, form: Form) -> Array:
    """Return the action rows of an answer as the server wrote them. Shape (H, A).

    Raises:
        SpecMismatch: keys or shapes are not those of the convention, or a number is not finite.
    """
    if form in ("n1.6", "n1.6-flat"):
        if not isinstance(answer, list) or not answer:
            raise SpecMismatch(f"got {_short(answer)}; expected a list of actions and information")
        answer = answer[0]
    if not isinstance(answer, Mapping):
        raise SpecMismatch(f"got {_short(answer)}, expected a map of actions")
    columns = []
    for part in convention.rows:
        key = f"action.{part.key}" if form in ("n1.5", "n1.6-flat") else part.key
        if key not in answer:
            raise SpecMismatch(f"the answer has no {key!r}; {suggest(key, map(str, answer))}")
        columns.append(_column(answer[key], key, part.size))
    if len({len(column) for column in columns}) != 1:
        raise SpecMismatch(f"the answer's parts have {[len(c) for c in columns]} rows")
    together = np.concatenate(columns, axis=1)  # (H, A)
    if not len(together) or not np.isfinite(together).all():
        raise SpecMismatch("the answer holds no rows, or numbers that are not finite")
    return together


# --------------------------------------------------------------------------- we are asked


def observation(asked: object, t: float, convention: Convention, form: Form) -> Observation:
    """Return what a foreign client's request shows.

    Raises:
        SpecMismatch: keys, shapes or types are not those of the convention.
    """
    if not isinstance(asked, Mapping):
        raise SpecMismatch(f"got {_short(asked)}, expected an observation, which is a map")
    images: dict[str, Image] = {}
    for picture in convention.pictures:
        image = pictures.from_wire(_get(asked, picture.path, form), picture)
        image.flags.writeable = False
        images[picture.camera.name] = image
    felt: states.Felt = {}
    for state in convention.states:
        size = convention.state_size(state)
        numbers = _numbers(_get(asked, state.path, form), state.path, size)
        first = 0
        for part in state.parts:
            count = convention.size_of(part)
            states.add(felt, part, numbers[first : first + count], convention)
            first += count
    proprio = states.proprio(t, felt, convention)
    return Observation(proprio, _prompt(asked, convention.prompt, form), images)


def answer(actions: Array, convention: Convention, form: Form) -> Any:
    """Return rows in the convention's action spec as a foreign client expects them.

    Args:
        actions: shape (H, A).
        convention: whose client it is.
        form: how it asked.
    """
    theirs = np.array(actions, dtype=np.float64)
    low, high = np.array(convention.action.low), np.array(convention.action.high)
    for switch in convention.switches:
        i = switch.index
        theirs[:, i] = np.where(theirs[:, i] > (low[i] + high[i]) / 2, switch.high, switch.low)
    if form == "openpi":
        return {convention.rows[0].key: theirs}
    parts: dict[str, Any] = {}
    first = 0
    for part in convention.rows:
        column = theirs[:, first : first + part.size].astype(np.float32)
        first += part.size
        key = part.key if form == "n1.6" else f"action.{part.key}"
        parts[key] = column if form == "n1.5" else column[None]
    return parts if form == "n1.5" else [parts, {}]


# --------------------------------------------------------------------------- keys


def _put(asked: dict[str, Any], path: Path, value: object, form: Form) -> None:
    if form in ("n1.5", "n1.6-flat"):
        asked[".".join(path)] = value
        return
    for key in path[:-1]:
        asked = asked.setdefault(key, {})
    asked[path[-1]] = value


def _put_prompt(asked: dict[str, Any], path: Path, text: str, form: Form) -> None:
    if form in ("n1.5", "n1.6-flat"):
        asked[path[-1]] = [text]
    else:
        _put(asked, path, [[text]] if form == "n1.6" else text, form)


def _get(asked: Mapping[str, Any], path: Path, form: Form) -> Any:
    inner: Any = asked
    keys = (".".join(path),) if form in ("n1.5", "n1.6-flat") else path
    for key in keys:
        if not isinstance(inner, Mapping) or key not in inner:
            known = inner if isinstance(inner, Mapping) else ()
            raise SpecMismatch(f"the request has no {'/'.join(path)!r}; {suggest(key, known)}")
        inner = inner[key]
    return inner


def _prompt(asked: Mapping[str, Any], path: Path, form: Form) -> str:
    flat = form in ("n1.5", "n1.6-flat")
    text = _get(asked, path[-1:] if flat else path, "openpi")
    while isinstance(text, list) and len(text) == 1:
        text = text[0]
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_PROMPT:
        raise SpecMismatch(
            f"the instruction {path[-1]!r} is {_short(text)}; expected one sentence of at most "
            f"{MAX_PROMPT} characters"
        )
    return text


def _numbers(value: object, path: Path, size: int) -> Array:
    array = np.asarray(value) if isinstance(value, np.ndarray | float | int) else None
    if array is None or array.dtype.kind not in "fiu" or array.size != size:
        shape = "no array" if array is None else f"shape {array.shape} of {array.dtype}"
        raise SpecMismatch(f"the state {'/'.join(path)!r} has {shape}, expected {size} numbers")
    flat = array.reshape(-1).astype(np.float64)
    if not np.isfinite(flat).all():
        raise SpecMismatch(f"the state {'/'.join(path)!r} holds numbers that are not finite")
    return flat


def _column(value: object, key: str, size: int) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        raise SpecMismatch(f"the answer's {key!r} is {_short(value)}, expected an array of numbers")
    column = value
    while column.ndim > 2 and column.shape[0] == 1:
        column = column[0]  # a batch of one
    if column.ndim == 1 and size == 1:
        column = column[:, None]
    if column.ndim == 2 and column.shape[0] == 1 and size == 1 and column.shape[1] > 1:
        column = column.T  # (1, H) of a single number
    if column.ndim != 2 or column.shape[1] != size:
        raise SpecMismatch(
            f"the answer's {key!r} has shape {value.shape}, expected rows of {size} numbers"
        )
    return column.astype(np.float64)


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, Mapping):
        return f"a map of {sorted(map(str, value))!s:.120}"
    return f"{value!r:.60}"
