"""The GR00T dialect: exact both ways for both generations, and closed to everything hostile."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign import gr00t_codec
from zetta.runtime.foreign.gr00t_codec import Generation, Modality

NUMBERS = st.sampled_from(["|b1", "|u1", "<i2", "<i8", "<f2", "<f4", "<f8"])
ARRAYS = NUMBERS.flatmap(
    lambda d: hnp.arrays(np.dtype(d), hnp.array_shapes(min_dims=0, min_side=0))
)


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def wire(file: object) -> bytes:
    return bytes(msgpack.packb({"__ndarray_class__": True, "as_npy": file}))


@given(ARRAYS)
def test_arrays_come_back_exactly(array: np.ndarray) -> None:
    back = gr00t_codec.decode(gr00t_codec.encode({"x": array}))["x"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


@given(ARRAYS, st.sampled_from("CF"), st.sampled_from([(1, 0), (2, 0), (3, 0)]))
def test_every_npy_file_that_numpy_writes_is_read(
    array: np.ndarray, order: Any, version: tuple[int, int]
) -> None:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order=order), version=version)
    back = gr00t_codec.decode(wire(file.getvalue()))
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    assert back.flags.writeable


@given(ARRAYS)
def test_numpy_reads_the_npy_files_that_we_write(array: np.ndarray) -> None:
    plain = msgpack.unpackb(gr00t_codec.encode(array))
    back = np.load(io.BytesIO(plain["as_npy"]), allow_pickle=False)
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("generation", ["n1.5", "n1.6"])
def test_a_modality_comes_back_and_tells_its_generation(generation: Generation) -> None:
    message = gr00t_codec.encode({"video": Modality(("image",), (-1, 0))}, generation)
    assert gr00t_codec.decode(message) == {"video": Modality(("image",), (-1, 0))}
    assert gr00t_codec.modality_generation(message) == generation


def test_the_two_generations_put_a_modality_as_text_and_as_a_map() -> None:
    old = msgpack.unpackb(gr00t_codec.encode(Modality(("x",)), "n1.5"))
    new = msgpack.unpackb(gr00t_codec.encode(Modality(("x",)), "n1.6"))
    assert json.loads(old["as_json"]) == {"delta_indices": [0], "modality_keys": ["x"]}
    assert new["as_json"] == {"delta_indices": [0], "modality_keys": ["x"]}


def test_fields_that_later_releases_added_are_passed_over() -> None:
    record = {"delta_indices": [0, 1], "modality_keys": ["x"], "action_configs": None}
    message = msgpack.packb({"__ModalityConfig_class__": True, "as_json": record})
    assert gr00t_codec.decode(message) == Modality(("x",), (0, 1))


def test_a_message_without_modalities_tells_no_generation() -> None:
    assert gr00t_codec.modality_generation(gr00t_codec.encode({"a": 1})) is None


def header(text: bytes, body: bytes = b"", version: int = 1) -> bytes:
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + body


GOOD = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"


def test_the_hostile_headers_differ_from_a_good_one_only_by_their_fault() -> None:
    assert gr00t_codec.decode(wire(header(GOOD, b"\0" * 8))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        wire(None),
        wire("text"),
        wire(b""),
        wire(b"\x93NUMPY\x01\x00"),
        wire(npy(np.array([{}], dtype=object), allow_pickle=True)),
        wire(npy(np.zeros(2, dtype=[("a", "<f4")]))),
        wire(npy(np.array([1j]))),
        wire(npy(np.array(["text"]))),
        wire(header(GOOD, b"\0" * 7)),
        wire(header(GOOD, b"\0" * 9)),
        wire(header(GOOD, b"\0" * 8, version=9)),
        wire(header(GOOD.replace(b"(2,)", b"(999999999999, 999999999999)"))),
        wire(header(GOOD.replace(b"(2,)", b"(-2,)"), b"\0" * 8)),
        wire(header(GOOD.replace(b"(2,)", b"(" + b"1, " * 40 + b")"), b"\0" * 4)),
        wire(header(GOOD.replace(b"(2,)", b"(__import__('os').getpid(),)"))),
        wire(header(b"[" * 5000)),
        bytes(msgpack.packb({"__ModalityConfig_class__": True, "as_json": "{"})),
        bytes(msgpack.packb({"__ModalityConfig_class__": True, "as_json": "[" * 100_000})),
        bytes(msgpack.packb({"__ModalityConfig_class__": True, "as_json": {"modality_keys": 1}})),
        bytes(msgpack.packb({"__ModalityConfig_class__": True})),
        b"\x81\xa1x" * 2000,
    ],
)
def test_a_hostile_message_is_a_spec_mismatch(message: bytes) -> None:
    with pytest.raises(SpecMismatch):
        gr00t_codec.decode(message)


@given(ARRAYS, st.data())
@settings(max_examples=300)
def test_damaged_messages_decode_or_are_a_spec_mismatch(
    array: np.ndarray, data: st.DataObject
) -> None:
    body = bytearray(gr00t_codec.encode({"x": array, "m": Modality(("k",))}))
    where = data.draw(st.integers(0, len(body) - 1))
    body[where] = data.draw(st.integers(0, 255))
    for read in (gr00t_codec.decode, gr00t_codec.modality_generation):
        with contextlib.suppress(SpecMismatch):
            read(bytes(body))


@pytest.mark.parametrize("value", [np.array([object()], dtype=object), object(), np.array(["a"])])
def test_what_has_no_form_in_the_dialect_is_not_sent(value: object) -> None:
    with pytest.raises(SpecMismatch):
        gr00t_codec.encode({"x": value})
