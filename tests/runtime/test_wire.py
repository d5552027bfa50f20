"""The codec: what is sent arrives, and what arrives from anywhere else is refused in one way."""

from __future__ import annotations

import math
import pickle
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zetta.runtime import errors, wire
from zetta.runtime.core import (
    ActionChunk,
    ActionSpec,
    ArmState,
    Camera,
    CameraSpec,
    EnvSpec,
    Estimate,
    Init,
    Observation,
    PolicySpec,
    Proprio,
    RunSpec,
    Sampled,
    Scene,
    Step,
    Task,
    Truth,
    Verdict,
    read_only,
)
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, ZettaError

DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
arrays = st.sampled_from(DTYPES).flatmap(
    lambda code: hnp.arrays(np.dtype(code), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | arrays
)
messages = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Tell whether two messages are equal to the last bit, types included."""
    if isinstance(left, np.ndarray):
        return (
            isinstance(right, np.ndarray)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, float):
        return isinstance(right, float) and (left == right or (left != left and right != right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(left[key], right[key]) for key in left)
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def through(message: object) -> Any:
    """Send `message` as a socket would."""
    return wire.decode([bytes(frame) for frame in wire.encode(message)])


# --------------------------------------------------------------------------- round trips


@given(messages)
def test_whatever_is_sent_in_frames_arrives(message: object) -> None:
    assert same(message, through(message))


@given(messages)
def test_whatever_is_packed_is_unpacked(message: object) -> None:
    assert same(message, wire.unpack(wire.pack(message)))


@given(messages)
def test_equal_messages_have_equal_bytes(message: object) -> None:
    assert [bytes(f) for f in wire.encode(message)] == [bytes(f) for f in wire.encode(message)]


@given(arrays)
def test_arrays_arrive_read_only_whatever_their_layout(array: np.ndarray) -> None:
    for layout in (array, array.T, array[::-1] if array.ndim else array, np.asfortranarray(array)):
        arrived = through({"array": layout})["array"]
        assert same(np.array(layout), np.array(arrived))
        assert not arrived.flags.writeable


def test_foreign_byte_order_arrives_with_the_same_numbers() -> None:
    swapped = np.arange(5, dtype=">f8")

    arrived = through(swapped)

    assert arrived.dtype == np.float64
    np.testing.assert_array_equal(arrived, swapped)


def test_pictures_travel_as_frames_of_their_own_without_a_copy() -> None:
    picture = np.zeros((64, 64, 3), np.uint8)

    body, frame = wire.encode({"picture": picture, "small": np.zeros(7)})

    assert len(body) < 300
    assert np.shares_memory(np.frombuffer(frame, np.uint8), picture)
    received = [bytes(body), bytes(frame)]
    arrived = wire.decode(received)["picture"]
    assert np.shares_memory(arrived, np.frombuffer(received[1], np.uint8))


def test_numpy_scalars_arrive_as_plain_numbers() -> None:
    arrived = through([np.float32(0.5), np.int16(3), np.bool_(True), np.float64(0.25)])

    assert arrived == [0.5, 3, True, 0.25]
    assert [type(value) for value in arrived] == [float, int, bool, float]


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "unsendable",
    [
        np.array([None, {}], dtype=object),
        np.array(["text"]),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("x", "f8")]),
        np.zeros((1,) * 17),
        object(),
        {1, 2},
        2**64,
        "\ud800",
        np.float64,
        np.datetime64("2020-01-01"),
    ],
    ids=lambda value: type(value).__name__ + getattr(getattr(value, "dtype", None), "str", ""),
)
def test_what_has_no_place_on_the_wire_is_refused_when_sent(unsendable: object) -> None:
    with pytest.raises(SpecMismatch, match="cannot be sent"):
        wire.encode({"value": [unsendable]})


def test_a_structure_without_end_is_refused_when_sent() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(SpecMismatch):
        wire.encode(endless)


def test_object_arrays_of_another_sender_are_refused_and_never_built() -> None:
    content = pickle.dumps(np.array([print], dtype=object))
    forged = msgpack.packb(msgpack.ExtType(1, msgpack.packb(["|O", [1], content])))

    with pytest.raises(SpecMismatch, match="described by"):
        wire.decode([forged])


def described(dtype: object, shape: object, where: object, code: int = 1) -> bytes:
    return bytes(msgpack.packb(msgpack.ExtType(code, msgpack.packb([dtype, shape, where]))))


@pytest.mark.parametrize(
    "forged",
    [
        [described("<f8", [2], bytes(15))],
        [described("<f8", [2**61, 8], b"")],
        [described("<f8", [-1], b"")],
        [described("<f8", [-1, -1], bytes(8))],
        [described("<f8", [True], bytes(8))],
        [described("<f8", ["1"], bytes(8))],
        [described("<f8", [1] * 40, bytes(8))],
        [described("<f3", [1], bytes(3))],
        [described("<c16", [1], bytes(16))],
        [described("|S8", [1], bytes(8))],
        [described("<f8,<f8", [1], bytes(16))],
        [described("|b1", [1], b"\x02")],
        [described("|u1", [4], 1, code=2)],
        [described("|u1", [4], 0, code=2)],
        [described("|u1", [4], -1, code=2), bytes(4)],
        [described("|u1", [4], 1, code=2), bytes(5)],
        [described("|u1", [4], bytes(4), code=7)],
        [msgpack.packb(msgpack.ExtType(1, b""))],
        [msgpack.packb(msgpack.ExtType(1, msgpack.packb(5)))],
        [msgpack.packb({1: "a map with a number for a key"})],
        [b""],
        [b"\xc1"],
        [b"\x93\x01"],
        [b"\x01\x01"],
        [b"\xdd\xff\xff\xff\xff"],
        [b"\xdf\xff\xff\xff\xff"],
        [b"\xc6\xff\xff\xff\xff"],
        [b"\x91" * 100_000],
        [b"\xa1\xff"],
        [pickle.dumps({"a": 1})],
        [],
    ],
)
def test_forged_frames_are_refused(forged: list[bytes]) -> None:
    with pytest.raises(SpecMismatch) as error:
        wire.decode(forged)

    assert "\n" not in str(error.value)


@given(st.lists(st.binary(max_size=200), max_size=3))
def test_random_frames_are_a_message_or_refused(frames: list[bytes]) -> None:
    try:
        wire.decode(frames)
    except SpecMismatch:
        return


@given(messages, st.data())
def test_damaged_messages_are_a_message_or_refused(message: object, data: st.DataObject) -> None:
    packed = bytearray(wire.pack(message))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        wire.unpack(bytes(packed))
    except SpecMismatch:
        return


@pytest.mark.parametrize(
    "frames",
    [
        [bytes(wire.MAX_BODY_BYTES + 1)],
        [b"\x00", bytes(wire.MAX_MESSAGE_BYTES)],
        [b"\x00"] * (wire.MAX_FRAMES + 1),
    ],
    ids=["body", "total", "frames"],
)
def test_too_large_a_message_is_refused_before_it_is_read(frames: list[bytes]) -> None:
    with pytest.raises(SpecMismatch, match="too large"):
        wire.decode(frames)


def test_too_large_a_message_is_refused_when_sent() -> None:
    with pytest.raises(SpecMismatch, match="too large"):
        wire.encode({"text": "x" * wire.MAX_BODY_BYTES})
    with pytest.raises(SpecMismatch, match="too large"):
        wire.encode(np.zeros(wire.MAX_MESSAGE_BYTES, np.uint8))


# --------------------------------------------------------------------------- records

ARM = ArmState(
    read_only([0.1, 0.2, 0.3]), read_only([0, 0, 0, 1]), read_only(np.arange(7)), 0.08, -0.01
)
PROPRIO = Proprio(0.35, (ARM, ARM), read_only([0.0, 1.0, 0.5]))
ACTION = ActionSpec("delta_pose", ("dx", "gripper"), (-1.0, -1.0), (1.0, 1.0), (0.05, 1.0))
CAMERA = CameraSpec("front", 48, 64, depth=False)
RECORDS = [
    Scene(Task("suite", 3, "put it there", 220), Init(7), seed=5),
    Scene(Task("suite", 3, "put it there", 220), Sampled()),
    EnvSpec("toy", 20.0, ACTION, (CAMERA,), ("left", "right"), versions={"toy": "1"}),
    PolicySpec("p", ACTION, (CAMERA,), 4, 8, render_profile=None, digest="ab"),
    PROPRIO,
    Proprio(0.0, (ARM,)),
    Observation(
        PROPRIO,
        "put it there",
        {"front": read_only(np.arange(48 * 64 * 3).reshape(48, 64, 3) % 251, np.uint8)},
        {"front": read_only(np.full((48, 64), 0.5), np.float32)},
        {"front": Camera("front", read_only(np.eye(3)), read_only(np.eye(4)))},
    ),
    Step(PROPRIO, True, True, False, Truth({"cube": read_only(np.arange(7))}, {"on a b": True})),
    Step(PROPRIO, False, False, True),
    ActionChunk(read_only(np.ones((8, 7))), 0.2, math.nan),
    ActionChunk(read_only(np.ones((8, 7))), 0.2, math.inf),
    Verdict("recover", "slipping", "grip", "regrasp", {"opening": 0.01}),
    Estimate("object", read_only(np.ones(3)), read_only(np.ones(3)), 0.1, 0.9, 1.5, "vision"),
    RunSpec("toy", "toy_pick", 0, Init(3), options={"a": "b"}),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_arrive_as_they_were(record: Any) -> None:
    arrived = wire.from_wire(type(record), through(wire.to_wire(record)))

    assert type(arrived) is type(record)
    assert same(wire.to_wire(arrived), wire.to_wire(record))
    # Arrays apart, records compare by value: types such as tuples have come back too.
    assert repr(arrived) == repr(record)


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (Scene, {"task": 5, "layout": 1, "seed": 0}),
        (Scene, [1, 2]),
        (Camera, {"name": "front", "intrinsics": np.eye(3)}),
        (Camera, {"name": "f", "intrinsics": np.eye(3, dtype=np.float32), "T_world_cam": 1}),
        (ArmState, {"ee_pos": [0.0, 0.0, 0.0]}),
        (Task, {"suite": "a", "index": "0", "instruction": "", "max_steps": 1}),
        (Task, {"suite": "a", "index": 0, "instruction": "", "max_steps": 1, "more": 2}),
        (Verdict, {"decision": "maybe"}),
        (Verdict, {"decision": "pass", b"evidence": {}, "nothing": 1}),
        (Verdict, {"decision": "pass", "evidence": {b"opening": 1.0}}),
    ],
)
def test_what_is_no_record_of_its_kind_is_refused(kind: type, plain: object) -> None:
    with pytest.raises(SpecMismatch):
        wire.from_wire(kind, plain)


def test_a_refusal_says_where_in_the_record_it_is() -> None:
    plain = wire.to_wire(PROPRIO)
    plain["arms"][1]["gripper_opening"] = "wide"

    with pytest.raises(SpecMismatch) as error:
        wire.from_wire(Proprio, plain)
    assert str(error.value) == "Proprio.arms.gripper_opening: got 'wide', expected a number"


# --------------------------------------------------------------------------- envelopes


def test_requests_and_replies_keep_their_id() -> None:
    request = wire.Request(7, "step", {"action": np.ones(7)})
    arrived = wire.read_request([bytes(f) for f in wire.request_frames(request)])
    reply = wire.read_reply([bytes(f) for f in wire.reply_frames(wire.Reply(7, [1, 2]))])

    assert (arrived.id, arrived.do) == (7, "step")
    assert same(dict(arrived.given), dict(request.given))
    assert reply == wire.Reply(7, [1, 2])


@pytest.mark.parametrize("kind", [ConfigError, SpecMismatch, errors.Timeout, errors.WorkerDied])
def test_an_error_arrives_as_the_class_and_the_sentence_it_was(kind: type[ZettaError]) -> None:
    frames = wire.reply_frames(wire.Reply(1, error=kind("got a, expected b")))

    error = wire.read_reply([bytes(f) for f in frames]).error

    assert type(error) is kind
    assert str(error) == "got a, expected b"


@pytest.mark.parametrize("kind", ["SystemExit", "annotations", "Iterable", "difflib", "NoSuch"])
def test_only_our_errors_are_built_from_what_arrives(kind: str) -> None:
    frames = wire.encode({"id": 1, "error": {"kind": kind, "message": "x"}})

    assert type(wire.read_reply([bytes(f) for f in frames]).error) is InfraError


def test_another_protocol_version_is_explained() -> None:
    frames = wire.encode({"protocol": 99, "id": 1, "do": "step", "given": {}})

    with pytest.raises(SpecMismatch, match=r"protocol 99.*same version"):
        wire.read_request([bytes(f) for f in frames])


@pytest.mark.parametrize("message", [None, [], {}, {"id": 1}, {"protocol": 1, "id": "1"}])
def test_what_is_no_envelope_is_refused(message: object) -> None:
    frames = [bytes(f) for f in wire.encode(message)]

    with pytest.raises(SpecMismatch, match="expected a request"):
        wire.read_request(frames)
    with pytest.raises(SpecMismatch, match="expected a reply"):
        wire.read_reply(frames)
