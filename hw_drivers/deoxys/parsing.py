"""Bytes to checked protobuf messages. What comes from outside raises nothing but `SpecMismatch`.

Sizes are bounded before anything is parsed; kinds, counts and numbers are checked after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from zetta.hw_drivers.deoxys.schema import new
from zetta.runtime.errors import SpecMismatch

MAX_BYTES: Final = 64 * 2**10
"""A full robot state has about 4 kB."""
TYPE_PREFIX: Final = "type.googleapis.com/"


def parsed(name: str, raw: bytes) -> Any:
    """Return `raw` as a protobuf message of the kind `name`.

    Raises:
        SpecMismatch: it is empty, too large, or no such message.
    """
    if not 0 < len(raw) <= MAX_BYTES:
        raise SpecMismatch(f"got {len(raw)} bytes for a {name}, expected 1 to {MAX_BYTES}")
    from google.protobuf.message import DecodeError

    message = new(name)
    try:
        message.ParseFromString(raw)
    except DecodeError as error:
        raise SpecMismatch(f"got {len(raw)} bytes that are no {name} ({error})") from error
    return message


def wrap(any_message: Any, name: str, inner: Any) -> None:
    """Put `inner`, a message of the kind `name`, into an `Any`."""
    any_message.type_url = TYPE_PREFIX + name
    any_message.value = inner.SerializeToString(deterministic=True)


def unwrapped(any_message: Any, expected: Mapping[str, type]) -> tuple[type, Any]:
    """Return what an `Any` holds; its name is what follows the last slash, whatever is before."""
    slash, name = any_message.type_url.rpartition("/")[1:]
    if not slash or name not in expected:
        raise SpecMismatch(
            f"got {any_message.type_url!r:.100} inside a command, expected {TYPE_PREFIX}"
            + " or ".join(expected)
        )
    inner = new(name)
    if any_message.value:
        inner = parsed(name, any_message.value)
    return expected[name], inner


def known(kind: Any, number: int, what: str) -> Any:
    """Return the member of the enumeration `kind` that has this number.

    Raises:
        SpecMismatch: it has none.
    """
    try:
        return kind(number)
    except ValueError:
        raise SpecMismatch(f"got {what} {number}, expected 0 to {len(kind) - 1}") from None


def counted(values: Sequence[float], count: int, what: str, low: float = -math.inf) -> None:
    """Refuse anything but `count` finite numbers that are not below `low`.

    Raises:
        SpecMismatch: it is something else.
    """
    if len(values) != count:
        raise SpecMismatch(f"got {len(values)} numbers for {what}, expected {count}")
    finite(values, what)
    if min(values) < low:
        raise SpecMismatch(f"got {min(values):g} in {what}, expected nothing below {low:g}")


def finite(values: Iterable[float], what: str) -> None:
    """Refuse a number that is not finite.

    Raises:
        SpecMismatch: there is one.
    """
    if not all(math.isfinite(value) for value in values):
        raise SpecMismatch(f"got a number that is not finite in {what}")
