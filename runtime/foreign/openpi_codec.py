"""The dialect of numpy in msgpack that openpi servers and clients speak.

An array is a map with *byte* keys `__ndarray__`, `data`, `dtype`, `shape`; a numpy scalar one with
`__npgeneric__`, `data`, `dtype`. We send byte keys, as the reference does and needs, and read bytes
or text. Ordinary maps have text keys. Nothing is unpickled: objects, records, complex numbers, text
and time are refused both ways. Arrays arrive as private, writable copies. Whatever comes from
outside raises `SpecMismatch` and nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign import limits

DIALECT: Final = "openpi msgpack"
_ARRAY, _SCALAR = "__ndarray__", "__npgeneric__"


def encode(message: object) -> bytes:
    """Return `message`: None, numbers, text, bytes, arrays, and lists or maps of these.

    Raises:
        SpecMismatch: it holds something else, or is too large.
    """
    return limits.packed(message, DIALECT, _plain)


def decode(message: bytes) -> Any:
    """Undo `encode`; tuples come back as lists.

    Raises:
        SpecMismatch: the bytes are no such message, or exceed the limits.
    """
    return limits.unpack(message, DIALECT, _rich)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        array = limits.sendable_array(value, DIALECT)
        return {
            b"__ndarray__": True,
            b"data": array.tobytes(),
            b"dtype": array.dtype.str,
            b"shape": list(array.shape),
        }
    if isinstance(value, np.bool_ | np.integer | np.floating):
        limits.sendable_array(np.asarray(value), DIALECT)
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise SpecMismatch(
        f"a {type(value).__name__} cannot be sent as {DIALECT}; send numbers, text, bytes, arrays "
        "of numbers, and lists or maps of these"
    )


def _rich(items: dict[Any, Any]) -> object:
    named = limits.text_keys(items)
    if _ARRAY in named:
        return limits.checked_array(named.get("dtype"), named.get("shape"), named.get("data"))
    if _SCALAR in named:
        return _scalar(named.get("dtype"), named.get("data"))
    return named


def _scalar(dtype: object, value: object) -> np.generic:
    known = isinstance(dtype, str) and limits.DTYPE.fullmatch(dtype)
    if not known or not isinstance(value, bool | int | float):
        raise SpecMismatch(
            f"got a numpy scalar of dtype {dtype!r:.60} and a {type(value).__name__}; expected a "
            "number"
        )
    with np.errstate(all="ignore"):
        scalar: np.generic = np.dtype(str(dtype)).type(value)
    return scalar
