"""What crosses the wire of LeKiwi, in SI units on our side and in its own on the wire.

There: degrees, degrees a second, the gripper from 0 (closed) to 100 (open). Here: radians, and the
share of the opening. Current hosts send a JSON header and one JPEG frame for each camera; older
ones send one JSON text with the JPEGs in base64. They are told apart by counting frames.

The joints are degrees only where the host was configured so (`use_degrees`); otherwise they are
-100 to 100 of the calibrated range, and nothing on the wire says which.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from PIL import Image as Pictures

from zetta.runtime.core import Image, read_only
from zetta.runtime.errors import SpecMismatch

Variant: TypeAlias = Literal["frames", "text"]
"""`frames`: JSON header and JPEG frames, as sent now. `text`: one JSON text, as sent before."""
Vector: TypeAlias = tuple[float, ...]

JOINTS: Final = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
GRIPPER: Final = "gripper"
CAMERAS_KEY: Final = "_cams"
MAX_COMMAND_BYTES: Final = 16 * 2**10
MAX_HEADER_BYTES: Final = 64 * 2**10
MAX_TEXT_BYTES: Final = 16 * 2**20
MAX_JPEG_BYTES: Final = 4 * 2**20
MAX_CAMERAS: Final = 16
MAX_PIXELS: Final = 8 * 2**20
GRIPPER_SLACK: Final = 0.05
"""A reported gripper may be so far outside its range; calibrations are not exact."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which keys a robot has on this wire."""

    prefix: str = "arm_"
    base: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """Return all keys, in the order in which they are sent."""
        joints = tuple(f"{self.prefix}{joint}.pos" for joint in (*JOINTS, GRIPPER))
        return joints + (("x.vel", "y.vel", "theta.vel") if self.base else ())


LEKIWI: Final = Layout()
SO_ARM: Final = Layout(prefix="", base=False)
"""An SO-100 or SO-101 behind a host of the same pattern."""


@dataclass(frozen=True, slots=True)
class LekiwiRow:
    """Where the arm is or is to be, and how the base drives."""

    joints: Vector
    """Radians, in the order of `JOINTS`. Shape (5,)."""
    gripper: float
    """Share of the opening: 0 closed, 1 open."""
    base: Vector = (0.0, 0.0, 0.0)
    """Forward and left in m/s, turn to the left in rad/s. Shape (3,)."""


@dataclass(frozen=True, slots=True)
class LekiwiObservation:
    """One message of the host."""

    row: LekiwiRow
    jpegs: Mapping[str, bytes] = field(default_factory=dict)
    """By camera; a camera whose picture could not be made is missing."""
    variant: Variant = "frames"


# --------------------------------------------------------------------------- commands


def command_bytes(row: LekiwiRow, layout: Layout = LEKIWI) -> bytes:
    """Return a command as the host reads it: one JSON map of numbers, complete.

    Raises:
        SpecMismatch: a wrong count, a number that is not finite, or a gripper outside 0 to 1.
    """
    return json.dumps(_to_wire(row, layout, 0.0)).encode()


def read_command(raw: bytes, layout: Layout = LEKIWI) -> LekiwiRow:
    """Undo `command_bytes`. A missing key is refused: taken for 0 it would be a motion.

    Raises:
        SpecMismatch: no command.
    """
    return _from_wire(_json_map(raw, MAX_COMMAND_BYTES), layout, 0.0)


# --------------------------------------------------------------------------- observations


def observation_frames(observation: LekiwiObservation, layout: Layout = LEKIWI) -> list[bytes]:
    """Return an observation as a host of its variant sends it.

    Raises:
        SpecMismatch: a wrong count, a number that is not finite, or pictures above the limits.
    """
    _check_pictures(observation.jpegs)
    numbers = _to_wire(observation.row, layout, GRIPPER_SLACK)
    if observation.variant == "frames":
        header = {CAMERAS_KEY: list(observation.jpegs), **numbers}
        return [json.dumps(header).encode(), *observation.jpegs.values()]
    texts = {name: base64.b64encode(jpeg).decode() for name, jpeg in observation.jpegs.items()}
    return [json.dumps({**numbers, **texts}).encode()]


def read_observation(frames: Sequence[bytes], layout: Layout = LEKIWI) -> LekiwiObservation:
    """Undo `observation_frames`; which variant it is, is seen by the frames.

    Raises:
        SpecMismatch: no observation, or larger than the limits.
    """
    if not 1 <= len(frames) <= 1 + MAX_CAMERAS:
        raise SpecMismatch(f"got {len(frames)} frames, expected 1 to {1 + MAX_CAMERAS}")
    header = _json_map(frames[0], MAX_HEADER_BYTES if len(frames) > 1 else MAX_TEXT_BYTES)
    row = _from_wire(header, layout, GRIPPER_SLACK)
    if CAMERAS_KEY not in header:
        if len(frames) > 1:
            raise SpecMismatch(f"got {len(frames)} frames and no {CAMERAS_KEY!r} that names them")
        texts = {name: text for name, text in header.items() if isinstance(text, str) and text}
        jpegs = {name: _of_base64(name, text) for name, text in texts.items()}
        _check_pictures(jpegs)
        return LekiwiObservation(row, jpegs, "text")
    names = header[CAMERAS_KEY]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SpecMismatch(f"got {names!r:.80} as names of cameras, expected a list of texts")
    if len(names) != len(frames) - 1 or len(set(names)) != len(names):
        raise SpecMismatch(f"got {len(frames) - 1} pictures for the cameras {names!r:.80}")
    named = zip(names, frames[1:], strict=True)
    jpegs = {name: jpeg for name, jpeg in named if jpeg}  # empty: it could not be made
    _check_pictures(jpegs)
    return LekiwiObservation(row, jpegs, "frames")


def read_picture(jpeg: bytes, swapped: bool = True) -> Image:
    """Return a picture as upright RGB. Shape (height, width, 3), uint8.

    Args:
        jpeg: as it came.
        swapped: red and blue have changed places inside the JPEG. LeRobot's hosts do that: their
            cameras give RGB, and the encoder they use expects BGR. Their own client undoes it with
            the same mistake; every other reader has to undo it knowingly.

    Raises:
        SpecMismatch: it is no JPEG, is cut off, or is larger than the limits.
    """
    _check_pictures({"picture": jpeg})
    try:
        with Pictures.open(io.BytesIO(jpeg), formats=("JPEG",)) as picture:
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise SpecMismatch(f"got a picture of {width} x {height}, at most {MAX_PIXELS}")
            rgb = np.asarray(picture.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError) as error:
        raise SpecMismatch(f"got {len(jpeg)} bytes that are no JPEG ({error!s:.80})") from error
    return read_only(rgb[:, :, ::-1] if swapped else rgb, np.uint8)  # (H, W, 3)


# --------------------------------------------------------------------------- shared


def _to_wire(row: LekiwiRow, layout: Layout, slack: float) -> dict[str, float]:
    _check_row(row, slack)
    numbers = [math.degrees(angle) for angle in row.joints]
    numbers.append(row.gripper * 100.0)
    if layout.base:
        numbers += [row.base[0], row.base[1], math.degrees(row.base[2])]
    elif any(row.base):
        raise SpecMismatch("this robot has no base to drive")
    return dict(zip(layout.keys, map(float, numbers), strict=True))


def _from_wire(plain: Mapping[str, Any], layout: Layout, slack: float) -> LekiwiRow:
    numbers = [_number(plain, key) for key in layout.keys]
    count = len(JOINTS)
    base = numbers[count + 1 :]
    row = LekiwiRow(
        tuple(math.radians(angle) for angle in numbers[:count]),
        numbers[count] / 100.0,
        (base[0], base[1], math.radians(base[2])) if base else (0.0, 0.0, 0.0),
    )
    _check_row(row, slack)
    return row


def _check_row(row: LekiwiRow, slack: float) -> None:
    if len(row.joints) != len(JOINTS) or len(row.base) != 3:
        raise SpecMismatch(
            f"got {len(row.joints)} joints and {len(row.base)} numbers for the base, expected "
            f"{len(JOINTS)} and 3"
        )
    if not all(map(math.isfinite, (*row.joints, row.gripper, *row.base))):
        raise SpecMismatch("got a number that is not finite in a row of LeKiwi")
    if not -slack <= row.gripper <= 1.0 + slack:
        raise SpecMismatch(f"got a gripper at {row.gripper:g} of its opening, expected 0 to 1")


def _number(plain: Mapping[str, Any], key: str) -> float:
    if key not in plain:
        raise SpecMismatch(f"{key!r} is missing; a part of a row is no row")
    value = plain[key]
    if type(value) not in (int, float):
        raise SpecMismatch(f"got {value!r:.40} for {key!r}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise SpecMismatch(f"got a number for {key!r} that is not finite") from None


def _json_map(raw: bytes, limit: int) -> dict[str, Any]:
    if not 0 < len(raw) <= limit:
        raise SpecMismatch(f"got {len(raw)} bytes of JSON, expected 1 to {limit}")
    try:
        plain = json.loads(
            raw.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_without_twins
        )
    except (ValueError, RecursionError) as error:
        raise SpecMismatch(f"got {len(raw)} bytes that are no JSON ({error!s:.80})") from error
    if not isinstance(plain, dict):
        raise SpecMismatch(f"got JSON that is a {type(plain).__name__}, expected a map")
    return plain


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise ValueError("a key comes twice")
    return plain


def _of_base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SpecMismatch(f"the picture of {name!r:.40} is no base64 ({error!s:.60})") from error


def _check_pictures(jpegs: Mapping[str, bytes]) -> None:
    if len(jpegs) > MAX_CAMERAS:
        raise SpecMismatch(f"got {len(jpegs)} pictures, at most {MAX_CAMERAS}")
    for name, jpeg in jpegs.items():
        if len(jpeg) > MAX_JPEG_BYTES:
            raise SpecMismatch(
                f"the picture of {name!r:.40} has {len(jpeg)} bytes, at most {MAX_JPEG_BYTES}"
            )
