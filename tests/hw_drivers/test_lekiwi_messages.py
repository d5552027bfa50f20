"""The messages of LeKiwi: exact texts, round trips, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pictures

from zetta.hw_drivers.lekiwi import messages
from zetta.hw_drivers.lekiwi.messages import (
    LEKIWI,
    MAX_COMMAND_BYTES,
    MAX_HEADER_BYTES,
    MAX_JPEG_BYTES,
    MAX_TEXT_BYTES,
    SO_ARM,
    LekiwiObservation,
    LekiwiRow,
    command_bytes,
    observation_frames,
    read_command,
    read_observation,
    read_picture,
)
from zetta.runtime.errors import SpecMismatch

COMMAND = (
    b'{"arm_shoulder_pan.pos": 0.0, "arm_shoulder_lift.pos": 90.0, "arm_elbow_flex.pos": -90.0, '
    b'"arm_wrist_flex.pos": 180.0, "arm_wrist_roll.pos": 45.0, "arm_gripper.pos": 25.0, '
    b'"x.vel": 0.25, "y.vel": -0.125, "theta.vel": 90.0}'
)
ROW = LekiwiRow(
    (0.0, math.pi / 2, -math.pi / 2, math.pi, math.pi / 4), 0.25, (0.25, -0.125, math.pi / 2)
)
NUMBERS = json.loads(COMMAND)


def jpeg(colour: tuple[int, int, int] = (250, 5, 5), size: tuple[int, int] = (16, 8)) -> bytes:
    out = io.BytesIO()
    Pictures.new("RGB", size, colour).save(out, "JPEG", quality=95)
    return out.getvalue()


def refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except SpecMismatch as error:
        return str(error)
    return None


def test_a_command_is_exactly_the_published_json() -> None:
    assert command_bytes(ROW) == COMMAND
    assert read_command(COMMAND) == ROW


def test_a_command_for_an_arm_without_a_base_has_no_prefix_and_no_velocities() -> None:
    row = LekiwiRow(ROW.joints, ROW.gripper)
    expected = (
        b'{"shoulder_pan.pos": 0.0, "shoulder_lift.pos": 90.0, "elbow_flex.pos": -90.0, '
        b'"wrist_flex.pos": 180.0, "wrist_roll.pos": 45.0, "gripper.pos": 25.0}'
    )
    assert command_bytes(row, SO_ARM) == expected
    assert read_command(expected, SO_ARM) == row
    with pytest.raises(SpecMismatch, match="no base"):
        command_bytes(ROW, SO_ARM)


def test_an_observation_of_a_current_host_is_a_header_and_raw_jpegs() -> None:
    front, wrist = jpeg(), jpeg((0, 0, 200))
    seen = LekiwiObservation(ROW, {"front": front, "wrist": wrist}, "frames")
    header = b'{"_cams": ["front", "wrist"], ' + COMMAND[1:]
    assert observation_frames(seen) == [header, front, wrist]
    assert read_observation([header, front, wrist]) == seen


def test_an_observation_of_an_older_host_is_one_text_with_base64() -> None:
    front = jpeg()
    seen = LekiwiObservation(ROW, {"front": front}, "text")
    text = COMMAND[:-1] + b', "front": "' + base64.b64encode(front) + b'"}'
    assert observation_frames(seen) == [text]
    assert read_observation([text]) == seen


def test_a_host_without_cameras_is_understood_in_both_variants() -> None:
    assert read_observation([COMMAND]).variant == "text"
    assert read_observation([b'{"_cams": [], ' + COMMAND[1:]]).variant == "frames"


def test_a_picture_that_could_not_be_made_is_missing_and_the_rest_is_there() -> None:
    header = json.dumps({"_cams": ["front", "wrist"], **NUMBERS}).encode()
    assert list(read_observation([header, b"", jpeg()]).jpegs) == ["wrist"]
    text = json.dumps({**NUMBERS, "front": ""}).encode()
    assert read_observation([text]).jpegs == {}


angle = st.floats(-10.0, 10.0)
rows = st.builds(
    LekiwiRow, st.tuples(*[angle] * 5), st.floats(0.0, 1.0), st.tuples(angle, angle, angle)
)


def close(left: LekiwiRow, right: LekiwiRow) -> bool:
    """Degrees and back lose the last bits."""
    return np.allclose(
        (*left.joints, left.gripper, *left.base),
        (*right.joints, right.gripper, *right.base),
        rtol=1e-14,
        atol=1e-14,
    )


@given(rows)
def test_every_command_arrives_as_it_was_sent(row: LekiwiRow) -> None:
    assert close(read_command(command_bytes(row)), row)


@given(
    rows,
    st.dictionaries(st.text("abcxyz_", min_size=1, max_size=9), st.binary(min_size=1), max_size=4),
    st.sampled_from(["frames", "text"]),
)
def test_every_observation_arrives_as_it_was_sent(
    row: LekiwiRow, jpegs: dict[str, bytes], variant: messages.Variant
) -> None:
    jpegs.pop("_cams", None)
    read = read_observation(observation_frames(LekiwiObservation(row, jpegs, variant)))
    assert close(read.row, row)
    assert (read.jpegs, read.variant) == (jpegs, variant)


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_refused_as_a_command_in_one_sentence(raw: bytes) -> None:
    said = refusal(lambda: read_command(raw))
    assert said
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "raw",
    [
        pickle.dumps({"arm": 1}),
        b"[" * 15_000,
        b'{"a":' * 3000,
        b"9" * 10_000,
        b"\xff\xfe{}",
        b"null",
        b"",
    ],
    ids=["pickle", "deep list", "deep map", "long number", "no text", "null", "empty"],
)
def test_hostile_commands_are_refused_in_one_sentence(raw: bytes) -> None:
    said = refusal(lambda: read_command(raw))
    assert said
    assert "\n" not in said
    assert len(said) < 300


@given(st.lists(st.binary(max_size=60) | st.just(COMMAND), max_size=20))
def test_hostile_observations_are_read_or_refused(frames: list[bytes]) -> None:
    refusal(lambda: read_observation(frames))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x.vel": "0"}, "expected a number"),
        ({"x.vel": True}, "expected a number"),
        ({"x.vel": None}, "expected a number"),
        ({"x.vel": [0.0]}, "expected a number"),
        ({"x.vel": 10**400}, "not finite"),
        ({"arm_gripper.pos": 101.0}, "expected 0 to 1"),
        ({"arm_gripper.pos": -1.0}, "expected 0 to 1"),
    ],
)
def test_a_command_with_one_odd_value_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecMismatch, match=said):
        read_command(json.dumps({**NUMBERS, **change}).encode())


@pytest.mark.parametrize("key", LEKIWI.keys)
def test_a_missing_key_is_refused_and_never_taken_for_zero(key: str) -> None:
    plain = {name: value for name, value in NUMBERS.items() if name != key}
    with pytest.raises(SpecMismatch, match="missing"):
        read_command(json.dumps(plain).encode())


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(word: str) -> None:
    with pytest.raises(SpecMismatch, match=r"is no number|not finite"):
        read_command(COMMAND.replace(b'"x.vel": 0.25', b'"x.vel": ' + word.encode()))


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([], "got 0 frames"),
        ([COMMAND] * 18, "got 18 frames"),
        ([COMMAND, jpeg()], "no '_cams'"),
        ([json.dumps({"_cams": "front", **NUMBERS}).encode(), jpeg()], "list of texts"),
        ([json.dumps({"_cams": [1], **NUMBERS}).encode(), jpeg()], "list of texts"),
        ([json.dumps({"_cams": ["a", "b"], **NUMBERS}).encode(), jpeg()], "got 1 pictures"),
        ([json.dumps({"_cams": ["a", "a"], **NUMBERS}).encode(), b"x", b"y"], "got 2 pictures"),
        ([json.dumps({"_cams": ["a"], **NUMBERS}).encode(), bytes(MAX_JPEG_BYTES + 1)], "at most"),
        ([json.dumps({**NUMBERS, "a": "not base64!"}).encode()], "no base64"),
        ([bytes(MAX_TEXT_BYTES + 1)], "bytes of JSON"),
        ([bytes(MAX_HEADER_BYTES + 1), b"x"], "bytes of JSON"),
        ([b'{"_cams": [], "_cams": []}'], "twice"),
        ([b"[]"], "expected a map"),
    ],
)
def test_an_observation_that_contradicts_itself_is_refused_with_the_reason(
    frames: Sequence[bytes], said: str
) -> None:
    with pytest.raises(SpecMismatch, match=said):
        read_observation(frames)


def test_a_command_that_is_too_long_is_not_even_parsed() -> None:
    with pytest.raises(SpecMismatch, match="bytes of JSON"):
        read_command(b" " * MAX_COMMAND_BYTES + COMMAND)


@pytest.mark.parametrize(
    "row",
    [
        LekiwiRow((0.0,) * 4, 0.5),
        LekiwiRow((math.nan,) * 5, 0.5),
        LekiwiRow((0.0,) * 5, 1.01),
        LekiwiRow((0.0,) * 5, 0.5, (math.inf, 0.0, 0.0)),
        LekiwiRow((0.0,) * 5, 0.5, (0.0, 0.0)),
    ],
)
def test_a_row_that_is_none_is_never_sent(row: LekiwiRow) -> None:
    with pytest.raises(SpecMismatch):
        command_bytes(row)


def test_red_and_blue_are_put_back_where_the_camera_saw_them() -> None:
    as_sent = jpeg((5, 5, 250))  # the camera saw red; the encoder took its RGB for BGR
    assert read_picture(as_sent)[4, 4].tolist()[0] > 200
    assert read_picture(as_sent, swapped=False)[4, 4].tolist()[2] > 200
    picture = read_picture(as_sent)
    assert picture.shape == (8, 16, 3)
    assert not picture.flags.writeable


@pytest.mark.parametrize("cut", [0, 1, 3, 20, 200, 400])
def test_a_picture_that_is_cut_off_is_refused(cut: int) -> None:
    whole = jpeg()
    assert cut < len(whole)
    with pytest.raises(SpecMismatch, match="no JPEG"):
        read_picture(whole[:cut])


def test_other_pictures_and_huge_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    png = io.BytesIO()
    Pictures.new("RGB", (4, 4)).save(png, "PNG")
    with pytest.raises(SpecMismatch, match="no JPEG"):
        read_picture(png.getvalue())
    monkeypatch.setattr(messages, "MAX_PIXELS", 100)
    with pytest.raises(SpecMismatch, match="16 x 8"):
        read_picture(jpeg())
