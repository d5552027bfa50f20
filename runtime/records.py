"""Frozen records as JSON and back, by their own type hints. Nothing is pickled.

Only what the words need: nested records, tuples, mappings, optional values, literals, numbers,
text, and a layout, which is its `k` or `"sampled"`. NaN is written as null and read as NaN.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from zetta.runtime.core import Init, Sampled
from zetta.runtime.errors import SpecMismatch

T = TypeVar("T")


def to_json(value: object) -> Any:
    """Return `value` as plain JSON.

    >>> to_json(Init(3)), to_json(Sampled()), to_json((1.5, float("nan")))
    (3, 'sampled', [1.5, None])

    Raises:
        SpecMismatch: it holds something that has no place in JSON.
    """
    if isinstance(value, Init):
        return value.k
    if isinstance(value, Sampled):
        return "sampled"
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    raise SpecMismatch(f"a {type(value).__name__} has no place in a JSON record")


def from_json(kind: type[T], plain: object) -> T:
    """Return the record of type `kind` that `to_json` wrote as `plain`.

    Arrays, which JSON has none of, are taken as they are when a wire brings them.

    Raises:
        SpecMismatch: `plain` is no such record.
    """
    return cast(T, _read(kind, plain, kind.__name__))


def _read(kind: Any, plain: Any, where: str) -> Any:
    if kind is Any or kind is object:
        return plain
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _read_union(arguments, plain, where)
    if origin is Literal:
        return _checked(plain in arguments, plain, where, str(arguments))
    if origin is np.ndarray:
        dtype = np.dtype(get_args(arguments[1])[0])
        got = getattr(plain, "dtype", type(plain))
        _checked(isinstance(plain, np.ndarray) and got == dtype, got, where, f"{dtype} in an array")
        return plain
    if origin is tuple:
        _checked(isinstance(plain, list), plain, where, "a list")
        return tuple(_read(arguments[0], item, where) for item in plain)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _checked(isinstance(plain, dict), plain, where, "an object")
        return {key: _read(arguments[1], item, f"{where}.{key}") for key, item in plain.items()}
    if is_dataclass(kind):
        return _read_record(cast(type, kind), plain, where)
    if kind is float:
        number = isinstance(plain, int | float) and not isinstance(plain, bool)
        _checked(plain is None or number, plain, where, "a number")
        return math.nan if plain is None else float(plain)
    return _checked(type(plain) is kind, plain, where, getattr(kind, "__name__", str(kind)))


def _read_union(kinds: tuple[Any, ...], plain: Any, where: str) -> Any:
    if set(kinds) == {Init, Sampled}:
        return Sampled() if plain == "sampled" else Init(_read(int, plain, where))
    if plain is None:
        return _checked(type(None) in kinds, plain, where, "a value")
    (kind,) = (k for k in kinds if k is not type(None))
    return _read(kind, plain, where)


def _read_record(kind: type, plain: Any, where: str) -> Any:
    _checked(isinstance(plain, dict), plain, where, f"a {kind.__name__}")
    hints = _hints(kind)
    unknown = sorted(set(plain) - set(hints))
    _checked(not unknown, unknown, where, f"only {', '.join(hints)}")
    try:
        return kind(**{k: _read(hints[k], item, f"{where}.{k}") for k, item in plain.items()})
    except TypeError as error:
        raise SpecMismatch(f"{where} is incomplete: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _checked(fits: bool, plain: Any, where: str, expected: str) -> Any:
    if not fits:
        raise SpecMismatch(f"{where}: got {plain!r}, expected {expected}")
    return plain
