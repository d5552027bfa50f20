"""The dialect of numpy in msgpack that GR00T servers and clients speak, both generations.

An array is a map with `__ndarray_class__` and the bytes of an `.npy` file; a modality
configuration one with `__ModalityConfig_class__` and JSON text (N1.5) or a plain map (N1.6 and
later). The `.npy` header is matched against the one form that numpy writes, and never evaluated:
it could name a shape that exhausts memory, or a dtype that unpickles. Whatever comes from outside
raises `SpecMismatch` and nothing else.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign import limits

DIALECT: Final = "GR00T msgpack"
Generation: TypeAlias = Literal["n1.5", "n1.6"]
"""`n1.6` stands for everything since: later releases kept its envelope."""

_ARRAY, _MODALITY = "__ndarray_class__", "__ModalityConfig_class__"
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{'descr': '([<>|=][a-z][0-9]{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,12}, ?)*(?:[0-9]{1,12})?)\), \} *\n"
)


@dataclass(frozen=True, slots=True)
class Modality:
    """One modality of a server: which keys, at which ticks relative to now."""

    keys: tuple[str, ...]
    delta_indices: tuple[int, ...] = (0,)
    """Of actions: as many as the horizon."""


def encode(message: object, generation: Generation = "n1.6") -> bytes:
    """Return `message`; a `Modality` in it takes the form of `generation`.

    Raises:
        SpecMismatch: it holds something that cannot be sent, or is too large.
    """

    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return _plain_array(np.asarray(value))
        if isinstance(value, np.ndarray):
            return _plain_array(value)
        if isinstance(value, Modality):
            return _plain_modality(value, generation)
        raise SpecMismatch(
            f"a {type(value).__name__} cannot be sent as {DIALECT}; send numbers, text, arrays of "
            "numbers, and lists or maps of these"
        )

    return limits.packed(message, DIALECT, plain)


def decode(message: bytes) -> Any:
    """Undo `encode`; tuples come back as lists, numpy scalars as arrays without dimensions.

    Raises:
        SpecMismatch: the bytes are no such message, or exceed the limits.
    """
    return limits.unpack(message, DIALECT, _rich)


def modality_generation(message: bytes) -> Generation | None:
    """Return which generation wrote the modality configurations in `message`, if there are any.

    Raises:
        SpecMismatch: the bytes are no message.
    """
    found: list[Generation] = []

    def look(items: dict[Any, Any]) -> object:
        named = limits.text_keys(items)
        if _MODALITY in named:
            found.append("n1.5" if isinstance(named.get("as_json"), str) else "n1.6")
        return named

    limits.unpack(message, DIALECT, look)
    return found[0] if found else None


def _plain_array(value: npt.NDArray[Any]) -> dict[str, Any]:
    file = io.BytesIO()
    np.save(file, limits.sendable_array(value, DIALECT), allow_pickle=False)
    return {_ARRAY: True, "as_npy": file.getvalue()}


def _plain_modality(value: Modality, generation: Generation) -> dict[str, Any]:
    record = {"delta_indices": list(value.delta_indices), "modality_keys": list(value.keys)}
    return {_MODALITY: True, "as_json": json.dumps(record) if generation == "n1.5" else record}


def _rich(items: dict[Any, Any]) -> object:
    named = limits.text_keys(items)
    if _ARRAY in named:
        return _array(named.get("as_npy"))
    if _MODALITY in named:
        return _modality(named.get("as_json"))
    return named


def _array(file: object) -> npt.NDArray[Any]:
    if not isinstance(file, bytes) or file[:6] != _MAGIC or len(file) < 12:
        raise SpecMismatch(f"got an array that is no .npy file: {file!r:.40}")
    start = 10 if file[6] == 1 else 12
    length = int.from_bytes(file[8:start], "little")
    match = _HEADER.fullmatch(file[start : start + length])
    if file[6] not in (1, 2, 3) or match is None:
        raise SpecMismatch(
            f"got an array whose .npy header numpy would not write for numbers: "
            f"{file[start : start + min(length, 60)]!r}"
        )
    dtype, fortran, lengths = match.groups()
    shape = [int(n) for n in lengths.split(b",") if n.strip()]
    order = "F" if fortran == b"True" else "C"
    return limits.checked_array(dtype.decode(), shape, file[start + length :], order)


def _modality(described: object) -> Modality:
    if isinstance(described, str):
        try:
            described = json.loads(described)
        except (ValueError, RecursionError) as error:
            raise SpecMismatch(f"got a modality configuration that is no JSON ({error})") from error
    if isinstance(described, Mapping):
        keys, deltas = described.get("modality_keys"), described.get("delta_indices")
        if _plain_list(keys, str) and _plain_list(deltas, int):
            return Modality(tuple(keys or ()), tuple(deltas or ()))
    raise SpecMismatch(
        f"got a modality configuration {described!r:.80}; expected modality_keys, a list of text, "
        "and delta_indices, a list of integers"
    )


def _plain_list(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)
