"""What crosses a socket: msgpack, with arrays as dtype, shape and raw bytes.

Why not pickle: it runs whatever it is sent. Why not one of the two dialects of numpy in msgpack:
both tell an array by a key of an ordinary map, which ordinary data may hold too; an extension type
cannot be mistaken. Large arrays (pictures) travel as frames of their own beside the message, so
they are never copied into it. Arrays of objects, text, time or complex numbers are refused on both
sides. Sizes are bounded before anything is allocated.

Records of `core.py` become plain maps here and nowhere else. Anything that does not fit is a
`SpecMismatch`: what comes from outside never raises anything but that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgpack
import numpy as np
import numpy.typing as npt

from zetta.runtime import errors
from zetta.runtime.core import Init, Sampled
from zetta.runtime.errors import InfraError, SpecMismatch, ZettaError
from zetta.runtime.records import from_json

PROTOCOL: Final = 1
"""Raised when an old peer could misread a message."""
MAX_BODY_BYTES: Final = 16 * 2**20
MAX_MESSAGE_BYTES: Final = 64 * 2**20
"""Body and frames together; a socket should refuse single frames above it as well."""
MAX_FRAMES: Final = 256
OWN_FRAME_BYTES: Final = 4096
"""Arrays from this size on travel as a frame of their own."""
MAX_DIMENSIONS: Final = 16

Frame: TypeAlias = bytes | memoryview
T = TypeVar("T")

_INLINE, _FRAMED = 1, 2
_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f[248])")


# --------------------------------------------------------------------------- codec


def encode(message: object) -> list[Frame]:
    """Return `message` as a body and the frames of its large arrays.

    Args:
        message: None, booleans, integers of 64 bits, floats, text, bytes, arrays, and lists,
            tuples (which arrive as lists) and maps with text keys of these.

    Raises:
        SpecMismatch: it holds something else, or is larger than the limits.
    """
    frames: list[Frame] = []

    def place(raw: Frame) -> int | bytes:
        if len(raw) < OWN_FRAME_BYTES:
            return bytes(raw)
        frames.append(raw)
        return len(frames)

    return _checked_sizes([_pack(message, place), *frames])


def pack(message: object) -> bytes:
    """Return `message` as one piece of bytes, for transports without frames.

    Raises:
        SpecMismatch: as in `encode`.
    """
    body = _pack(message, bytes)
    return bytes(_checked_sizes([body], MAX_MESSAGE_BYTES)[0])


def decode(frames: Sequence[Frame]) -> Any:
    """Undo `encode`; arrays are read-only and share the memory of their frames.

    Raises:
        SpecMismatch: the frames are no message, or exceed the limits.
    """
    if not frames:
        raise SpecMismatch("got a message without a body")
    _checked_sizes(frames)
    return _unpack(frames[0], frames)


def unpack(message: bytes) -> Any:
    """Undo `pack`.

    Raises:
        SpecMismatch: as in `decode`.
    """
    return _unpack(_checked_sizes([message], MAX_MESSAGE_BYTES)[0], ())


def _pack(message: object, place: Any) -> bytes:
    def default(value: object) -> object:
        if isinstance(value, np.ndarray):
            return _array_to_ext(value, place)
        if isinstance(value, np.bool_ | np.integer | np.floating):
            return value.item()
        raise SpecMismatch(f"a {type(value).__name__} cannot be sent; {_SENDABLE}")

    try:
        return cast(bytes, msgpack.packb(message, default=default))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SpecMismatch(f"the message cannot be sent ({error}); {_SENDABLE}") from error


_SENDABLE = "send numbers, text, bytes, arrays of numbers, and lists or maps of these"


def _array_to_ext(array: npt.NDArray[Any], place: Any) -> msgpack.ExtType:
    little = array.dtype.newbyteorder("<")
    if not _DTYPE.fullmatch(little.str) or array.ndim > MAX_DIMENSIONS:
        raise SpecMismatch(
            f"an array of {array.dtype} with {array.ndim} dimensions cannot be sent; send booleans,"
            f" integers or floats of at most 64 bits with at most {MAX_DIMENSIONS} dimensions"
        )
    rows = np.ascontiguousarray(array, dtype=little).reshape(-1).view(np.uint8)
    where = place(rows.data)
    code = _INLINE if isinstance(where, bytes) else _FRAMED
    return msgpack.ExtType(code, msgpack.packb([little.str, list(array.shape), where]))


def _unpack(body: Frame, frames: Sequence[Frame]) -> Any:
    def array(code: int, content: bytes) -> npt.NDArray[Any]:
        return _array_from_ext(code, content, frames)

    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=True, ext_hook=array)
    except SpecMismatch:
        raise
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise SpecMismatch(
            f"got {len(body)} bytes that are no message ({said}); is the other side a Zetta of "
            "the same version?"
        ) from error


def _array_from_ext(code: int, content: bytes, frames: Sequence[Frame]) -> npt.NDArray[Any]:
    if code not in (_INLINE, _FRAMED):
        raise SpecMismatch(f"got an extension of unknown kind {code}")
    match msgpack.unpackb(content):
        case [str(dtype), list(shape), (bytes() | int()) as where] if _DTYPE.fullmatch(dtype):
            raw = _raw(where, frames)
        case other:
            raise SpecMismatch(f"got an array that is described by {other!r:.80}")
    plain = all(type(n) is int and 0 <= n < 2**62 for n in shape)
    expected = math.prod(shape) * np.dtype(dtype).itemsize if plain else -1
    if len(shape) > MAX_DIMENSIONS or expected != len(raw):
        raise SpecMismatch(
            f"got {len(raw)} bytes for an array of {dtype} and shape {shape!r:.80}, expected "
            f"{expected}"
        )
    flat = np.frombuffer(raw, np.uint8) if len(raw) else np.empty(0, np.uint8)
    if dtype == "|b1" and flat.size and int(flat.max()) > 1:
        raise SpecMismatch("got an array of booleans that holds other bytes than 0 and 1")
    array = flat.view(dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _raw(where: bytes | int, frames: Sequence[Frame]) -> Frame:
    if isinstance(where, bytes):
        return where
    if not 1 <= where < len(frames):
        raise SpecMismatch(f"got an array in frame {where} of a message of {len(frames)} frames")
    return frames[where]


def _checked_sizes(frames: Sequence[Frame], body_limit: int = MAX_BODY_BYTES) -> list[Frame]:
    total = sum(len(frame) for frame in frames)
    if len(frames) > MAX_FRAMES or len(frames[0]) > body_limit or total > MAX_MESSAGE_BYTES:
        raise SpecMismatch(
            f"a message of {total} bytes in {len(frames)} frames is too large: at most "
            f"{MAX_MESSAGE_BYTES} bytes ({body_limit} without large arrays), {MAX_FRAMES} frames"
        )
    return list(frames)


# --------------------------------------------------------------------------- records


def to_wire(value: object) -> Any:
    """Return a record of `core.py` as plain maps, lists and arrays; `from_wire` undoes it.

    >>> to_wire(Init(3)), to_wire(Sampled())
    (3, 'sampled')
    """
    if isinstance(value, Init):
        return value.k
    if isinstance(value, Sampled):
        return "sampled"
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_wire(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_wire(item) for item in value]
    return value


def from_wire(kind: type[T], plain: object) -> T:
    """Return the record of type `kind` that `to_wire` made.

    Raises:
        SpecMismatch: `plain` is no such record: a field is missing, unknown, or of another type.
    """
    return from_json(kind, plain)


# --------------------------------------------------------------------------- envelopes


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what to do, with what."""

    id: int
    """Echoed in the reply, so that a late answer is never taken for a newer one."""
    do: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the request of the same id: a value or an error."""

    id: int
    value: Any = None
    error: ZettaError | None = None


def request_frames(request: Request) -> list[Frame]:
    """Return a request as frames.

    Raises:
        SpecMismatch: it holds something that cannot be sent.
    """
    return encode(
        {"protocol": PROTOCOL, "id": request.id, "do": request.do, "given": dict(request.given)}
    )


def read_request(frames: Sequence[Frame]) -> Request:
    """Undo `request_frames`.

    Raises:
        SpecMismatch: no request, or one of another protocol version.
    """
    match decode(frames):
        case {"protocol": int(theirs)} if theirs != PROTOCOL:
            raise SpecMismatch(
                f"the other side speaks protocol {theirs}, this one {PROTOCOL}; install the same "
                "version of zetta on both sides"
            )
        case {"protocol": int(), "id": int(number), "do": str(do), "given": dict(given)}:
            return Request(number, do, given)
        case other:
            raise SpecMismatch(f"got {_short(other)}, expected a request")


def claimed_id(body: Frame) -> int:
    """Return the id that a request seems to have when it cannot be read; -1 where it shows none.

    Its sender waits for that id and for no other, so an error is answered under it.
    """
    try:
        plain = msgpack.unpackb(body, raw=False, strict_map_key=True, ext_hook=lambda *_: None)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        return -1
    number = plain.get("id") if isinstance(plain, dict) else None
    return number if type(number) is int else -1


def reply_frames(reply: Reply) -> list[Frame]:
    """Return a reply as frames; an error travels as its class name and its sentence.

    Raises:
        SpecMismatch: the value cannot be sent.
    """
    if reply.error is None:
        return encode({"id": reply.id, "value": reply.value})
    described = {"kind": type(reply.error).__name__, "message": str(reply.error)}
    return encode({"id": reply.id, "error": described})


def read_reply(frames: Sequence[Frame]) -> Reply:
    """Undo `reply_frames`.

    Raises:
        SpecMismatch: no reply.
    """
    match decode(frames):
        case {"id": int(number), "error": {"kind": str(kind), "message": str(message)}}:
            return Reply(number, error=_error(kind, message))
        case {"id": int(number), "value": value}:
            return Reply(number, value)
        case other:
            raise SpecMismatch(f"got {_short(other)}, expected a reply")


def explained(error: Exception) -> ZettaError:
    """Return `error` as a reply can carry it; what nobody foresaw counts as machinery."""
    if isinstance(error, ZettaError):
        return error
    return InfraError(f"unexpected {type(error).__name__}: {error}")


def _error(kind: str, message: str) -> ZettaError:
    found = getattr(errors, kind, None)
    known = isinstance(found, type) and issubclass(found, ZettaError)
    return cast(type[ZettaError], found)(message) if known else InfraError(message)


def _short(plain: object) -> str:
    return f"a map of {sorted(map(str, plain))}" if isinstance(plain, dict) else f"{plain!r:.60}"
