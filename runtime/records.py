"""Frozen records as JSON and back, by their own type hints. Nothing is pickled.

Only what the words need: nested records, tuples, mappings, optional values, literals, numbers,
text, and a layout, which is its `k` or `"sampled"`. NaN is written as null and read as NaN.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from zetta.runtime.core import Init, Sampled
from zetta.runtime.errors import ConfigError, SpecMismatch

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


def read_object(path: Path, advice: str = "") -> dict[str, Any]:
    """Return the one JSON object of a file.

    Args:
        path: the file.
        advice: what to do where there is none; ends the sentence.

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    end = f"; {advice}" if advice else ""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}{end}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}{end}") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{path} holds no JSON object{end}")
    return plain


def from_json(kind: type[T], plain: object) -> T:
    """Return the record of type `kind` that `to_json` wrote as `plain`.

    Arrays, which JSON has none of, are taken as they are when a wire brings them.

    Raises:
        SpecMismatch: `plain` is no such record.
    """
    try:
        return cast(T, _reader(cast(Hashable, kind))(plain))
    except _Unfit as unfit:
        where = ".".join((kind.__name__, *reversed(unfit.path)))
        raise SpecMismatch(f"{where}{unfit.said}") from None


Reader: TypeAlias = Callable[[Any], Any]


class _Unfit(Exception):
    """What does not fit, and where it was found, the innermost name first."""

    def __init__(self, said: str) -> None:
        self.said, self.path = said, list[str]()


def _refused(plain: Any, expected: str) -> _Unfit:
    return _Unfit(f": got {plain!r}, expected {expected}")


@cache
def _reader(kind: Any) -> Reader:
    """Return what reads values of a type hint. Made once: hints are slow to take apart."""
    if kind is Any or kind is object:
        return lambda plain: plain
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(arguments)
    if origin is Literal:
        return _literal_reader(arguments)
    if origin is np.ndarray:
        return _array_reader(np.dtype(get_args(arguments[1])[0]))
    if origin is tuple:
        return _tuple_reader(arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_reader(arguments[1])
    if is_dataclass(kind):
        return _record_reader(cast(type, kind))
    return _float if kind is float else _exact_reader(kind)


def _union_reader(kinds: tuple[Any, ...]) -> Reader:
    if set(kinds) == {Init, Sampled}:
        number = _reader(int)
        return lambda plain: Sampled() if plain == "sampled" else Init(number(plain))
    optional = type(None) in kinds
    (kind,) = (k for k in kinds if k is not type(None))
    inner = _reader(kind)

    def read(plain: Any) -> Any:
        if plain is not None:
            return inner(plain)
        if not optional:
            raise _refused(plain, "a value")
        return None

    return read


def _literal_reader(choices: tuple[Any, ...]) -> Reader:
    kinds = {type(choice) for choice in choices}

    def read(plain: Any) -> Any:
        if type(plain) not in kinds or plain not in choices:
            raise _refused(plain, str(choices))
        return plain

    return read


def _array_reader(dtype: np.dtype[Any]) -> Reader:
    def read(plain: Any) -> Any:
        if not isinstance(plain, np.ndarray) or plain.dtype != dtype:
            got = getattr(plain, "dtype", type(plain))
            raise _refused(got, f"{dtype} in an array")
        return plain

    return read


def _tuple_reader(kind: Any) -> Reader:
    inner = _reader(kind)

    def read(plain: Any) -> Any:
        if not isinstance(plain, list):
            raise _refused(plain, "a list")
        return tuple([inner(item) for item in plain])

    return read


def _mapping_reader(kind: Any) -> Reader:
    inner = _reader(kind)

    def read(plain: Any) -> Any:
        if not isinstance(plain, dict) or not all(type(key) is str for key in plain):
            raise _refused(plain, "an object")
        return {key: _within(key, inner, item) for key, item in plain.items()}

    return read


def _record_reader(kind: type) -> Reader:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    needed = [
        each.name
        for each in fields(kind)
        if each.init and each.default is MISSING and each.default_factory is MISSING
    ]

    def read(plain: Any) -> Any:
        if not isinstance(plain, dict):
            raise _refused(plain, f"a {kind.__name__}")
        if not plain.keys() <= readers.keys():
            unknown = sorted(plain.keys() - readers.keys(), key=str)
            raise _refused(unknown, f"only {', '.join(readers)}")
        values = {name: _within(name, readers[name], item) for name, item in plain.items()}
        missing = [name for name in needed if name not in values]
        if missing:
            raise _Unfit(f" is incomplete: {' and '.join(missing)} missing")
        return kind(**values)

    return read


def _within(name: str, read: Reader, plain: Any) -> Any:
    try:
        return read(plain)
    except _Unfit as unfit:
        unfit.path.append(name)
        raise


def _float(plain: Any) -> float:
    if plain is None:
        return math.nan
    if not isinstance(plain, int | float) or isinstance(plain, bool):
        raise _refused(plain, "a number")
    return float(plain)


def _exact_reader(kind: Any) -> Reader:
    name = getattr(kind, "__name__", str(kind))

    def read(plain: Any) -> Any:
        if type(plain) is not kind:
            raise _refused(plain, name)
        return plain

    return read
