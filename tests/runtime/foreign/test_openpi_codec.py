"""The openpi dialect: exact both ways, equal to the reference, and closed to everything hostile."""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign import limits, openpi_codec

NUMBERS = st.sampled_from(["|b1", "|u1", "<i2", ">i4", "<u8", "<f2", "<f4", ">f8"])
ARRAYS = NUMBERS.flatmap(
    lambda d: hnp.arrays(np.dtype(d), hnp.array_shapes(min_dims=0, min_side=0))
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | ARRAYS
)
KEYS = st.text(max_size=6).filter(lambda k: not k.startswith("__"))
MESSAGES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.shape == other.shape
            and one.dtype == other.dtype.newbyteorder(one.dtype.byteorder)
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


@given(MESSAGES)
def test_what_is_encoded_comes_back(message: Any) -> None:
    assert same(message, openpi_codec.decode(openpi_codec.encode(message)))


@given(MESSAGES)
@settings(max_examples=50)
def test_the_reference_reads_what_we_write_and_we_what_it_writes(message: Any) -> None:
    reference = pytest.importorskip(
        "openpi_client.msgpack_numpy", reason="needs openpi-client, which make setup installs"
    )
    assert same(message, reference.unpackb(openpi_codec.encode(message)))
    assert same(message, openpi_codec.decode(reference.packb(message)))


@pytest.mark.parametrize("scalar", [np.float32(1.5), np.int16(-3), np.bool_(True), np.uint8(9)])
def test_numpy_scalars_keep_their_type(scalar: np.generic) -> None:
    back = openpi_codec.decode(openpi_codec.encode({"x": scalar}))["x"]
    assert type(back) is type(scalar)
    assert back == scalar


def test_arrays_are_sent_with_byte_keys_and_arrive_as_private_writable_copies() -> None:
    message = openpi_codec.encode(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert set(msgpack.unpackb(message)) == {b"__ndarray__", b"data", b"dtype", b"shape"}
    first, second = openpi_codec.decode(message), openpi_codec.decode(message)
    first[:] = -1.0
    assert second[1, 2] == 5.0


def test_text_keys_of_arrays_are_read_too() -> None:
    plain = {"__ndarray__": True, "data": b"\x01\x02", "dtype": "|u1", "shape": [2]}
    assert openpi_codec.decode(msgpack.packb(plain)).tolist() == [1, 2]


def test_byte_keys_of_ordinary_maps_arrive_as_text() -> None:
    assert openpi_codec.decode(msgpack.packb({b"prompt": "go"})) == {"prompt": "go"}


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()], dtype=object),
        np.array([1j]),
        np.zeros(2, dtype=[("a", "<f4")]),
        np.array(["text"]),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        object(),
        {1: "a set of keys that are no text"}.keys(),
    ],
)
def test_what_has_no_form_in_the_dialect_is_not_sent(value: object) -> None:
    with pytest.raises(SpecMismatch):
        openpi_codec.encode({"x": value})


def array(**changes: object) -> bytes:
    plain = {b"__ndarray__": True, b"data": b"\0" * 8, b"dtype": "<f4", b"shape": [2]}
    changed = plain | {key.encode(): value for key, value in changes.items()}
    return bytes(msgpack.packb(changed))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        array(dtype="|O"),
        array(dtype="|V8"),
        array(dtype="<c8"),
        array(dtype="<U2"),
        array(dtype="<f16"),
        array(dtype=["<f4"]),
        array(dtype="<f4, <f4"),
        array(dtype=None),
        array(shape=[3]),
        array(shape=[-2]),
        array(shape=[2**62, 2**62]),
        array(shape=[True, 2]),
        array(shape="2"),
        array(shape=[1] * 17),
        array(data="text"),
        array(data=None),
        array(dtype="|b1", data=b"\x02", shape=[1]),
        bytes(msgpack.packb({b"__npgeneric__": True, b"data": b"x", b"dtype": "<f4"})),
        bytes(msgpack.packb({b"__npgeneric__": True, b"data": 300, b"dtype": "|u1"})),
        bytes(msgpack.packb({b"__npgeneric__": True, b"data": 1, b"dtype": "|O"})),
        bytes(msgpack.packb(msgpack.ExtType(42, b"x"))),
        bytes(msgpack.packb({3: 4})),
        b"\x81\xc4\x01\xff\x01",
        b"\x91" * 3000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xdc\x0f\xff" + b"\x90" * 0x0FFF + b"\x00",
        b"\xdc\x0f\xa0" + (b"\xdc\x00\x20" + b"\x90" * 32) * 4000,
    ],
)
def test_a_hostile_message_is_a_spec_mismatch(message: bytes) -> None:
    with pytest.raises(SpecMismatch):
        openpi_codec.decode(message)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_decode_or_are_a_spec_mismatch(message: bytes) -> None:
    with contextlib.suppress(SpecMismatch):
        openpi_codec.decode(message)


@given(MESSAGES, st.data())
@settings(max_examples=300)
def test_damaged_messages_decode_or_are_a_spec_mismatch(message: Any, data: st.DataObject) -> None:
    body = bytearray(openpi_codec.encode(message))
    where = data.draw(st.integers(0, len(body) - 1))
    body[where] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SpecMismatch):
        openpi_codec.decode(bytes(body[: data.draw(st.integers(0, len(body)))]))


def test_a_message_above_the_limit_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MESSAGE_BYTES", 100)
    with pytest.raises(SpecMismatch, match="at most 100"):
        openpi_codec.decode(b"\0" * 101)
    with pytest.raises(SpecMismatch, match="at most 100"):
        openpi_codec.encode(np.zeros(200, np.uint8))
