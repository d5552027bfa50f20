"""What a decoder of a foreign dialect allows, and how it counts.

A message of a few bytes can ask for millions of lists, so the pieces are counted while they are
read, not afterwards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgpack
import numpy as np
import numpy.typing as npt

from zetta.runtime.errors import SpecMismatch

MAX_MESSAGE_BYTES: Final = 64 * 2**20
MAX_LENGTH: Final = 4096
"""Items of one list or map; long rows of numbers travel as arrays."""
MAX_ITEMS: Final = 65_536
"""Items of all lists and maps together."""
MAX_DIMENSIONS: Final = 16
DTYPE: Final = re.compile(r"[<>|=](b1|[iu][1248]|f[248])")


def unpack(message: bytes, dialect: str, convert: Callable[[dict[Any, Any]], object]) -> Any:
    """Return what `message` holds; `convert` sees every map, the innermost first.

    Raises:
        SpecMismatch: it is no message of this dialect, or exceeds the limits.
    """
    if len(message) > MAX_MESSAGE_BYTES:
        raise SpecMismatch(
            f"got {len(message)} bytes of {dialect}; at most {MAX_MESSAGE_BYTES} are read"
        )
    counted = 0

    def count(items: int) -> None:
        nonlocal counted
        counted += items + 1
        if counted > MAX_ITEMS:
            raise SpecMismatch(f"got {dialect} with more than {MAX_ITEMS} items; send arrays")

    def on_list(items: list[Any]) -> list[Any]:
        count(len(items))
        return items

    def on_map(items: dict[Any, Any]) -> object:
        count(len(items))
        return convert(items)

    try:
        return msgpack.unpackb(
            message,
            raw=False,
            strict_map_key=True,
            object_hook=on_map,
            list_hook=on_list,
            ext_hook=_no_extension,
            max_array_len=MAX_LENGTH,
            max_map_len=MAX_LENGTH,
        )
    except SpecMismatch:
        raise
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise SpecMismatch(
            f"got {len(message)} bytes that are no {dialect} ({said:.120})"
        ) from error


def text_keys(items: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `items` with text keys; peers of other languages send them as bytes.

    Raises:
        SpecMismatch: a key is no UTF-8.
    """
    try:
        return {k.decode() if isinstance(k, bytes) else k: v for k, v in items.items()}
    except UnicodeDecodeError as error:
        raise SpecMismatch(f"got a map with a key that is no text ({error.reason})") from error


def checked_array(dtype: object, shape: object, raw: object, order: str = "C") -> npt.NDArray[Any]:
    """Return a private, writable, native array of `raw`.

    Raises:
        SpecMismatch: the description is not one of plain numbers, or does not fit the bytes.
    """
    if not (isinstance(dtype, str) and DTYPE.fullmatch(dtype)):
        raise SpecMismatch(
            f"got an array of dtype {dtype!r:.60}; expected booleans, integers or floats of at "
            "most 64 bits"
        )
    if not isinstance(shape, list | tuple) or len(shape) > MAX_DIMENSIONS:
        raise SpecMismatch(f"got an array of shape {shape!r:.60}; expected a list of lengths")
    if not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise SpecMismatch(f"got an array of shape {shape!r:.60}; expected a list of lengths")
    if not isinstance(raw, bytes):
        raise SpecMismatch(f"got an array whose content is a {type(raw).__name__}, not bytes")
    expected = math.prod(shape) * np.dtype(dtype).itemsize
    if len(raw) != expected:
        raise SpecMismatch(
            f"got {len(raw)} bytes for an array of {dtype} and shape {list(shape)}, expected "
            f"{expected}"
        )
    if dtype[1:] == "b1" and raw.strip(b"\x00\x01"):
        raise SpecMismatch("got an array of booleans that holds other bytes than 0 and 1")
    if not raw:
        return np.empty(shape, np.dtype(dtype).newbyteorder("="))
    flat = np.frombuffer(raw, np.dtype(dtype))
    shaped = flat.reshape(shape, order="F" if order == "F" else "C")
    return np.array(shaped, dtype=flat.dtype.newbyteorder("="), order="C", copy=True)


def sendable_array(array: npt.NDArray[Any], dialect: str) -> npt.NDArray[Any]:
    """Return `array` as it may be sent: contiguous, little-endian numbers.

    Raises:
        SpecMismatch: it holds objects, text, time, records or complex numbers.
    """
    little = array.dtype.newbyteorder("<")
    if not DTYPE.fullmatch(little.str) or array.ndim > MAX_DIMENSIONS:
        raise SpecMismatch(
            f"an array of {array.dtype} with {array.ndim} dimensions cannot be sent as {dialect}; "
            "send booleans, integers or floats of at most 64 bits"
        )
    # ascontiguousarray makes one dimension of none, so the shape is put back.
    return np.ascontiguousarray(array, dtype=little).reshape(array.shape)


def packed(message: object, dialect: str, default: Callable[[object], object]) -> bytes:
    """Return `message` as bytes.

    Raises:
        SpecMismatch: it holds something that the dialect has no form for, or is too large.
    """
    try:
        body: bytes = msgpack.packb(message, default=default)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SpecMismatch(f"this cannot be sent as {dialect}: {error}") from error
    if len(body) > MAX_MESSAGE_BYTES:
        raise SpecMismatch(
            f"a message of {len(body)} bytes is too large; at most {MAX_MESSAGE_BYTES} are sent"
        )
    return body


def _no_extension(code: int, content: bytes) -> object:
    raise SpecMismatch(f"got an extension of kind {code} and {len(content)} bytes; expected none")
