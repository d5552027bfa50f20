"""What the network sees of an observation. Trainers and servers call the same functions.

The pictures are reduced by whole-number area averaging, so the result is the same bits on every
machine: 256 x 256 becomes 128 x 128 for the scene camera (cut to 96 rows) and 96 x 96 at the wrist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from zetta.runtime.core import ArmState, Image, Observation
from zetta.runtime.errors import SpecMismatch, suggest

Float32: TypeAlias = npt.NDArray[np.float32]
CameraName: TypeAlias = Literal["agentview", "wrist"]

CAMERAS: Final[tuple[CameraName, CameraName]] = ("agentview", "wrist")
PICTURE: Final = 256
"""Height and width of both pictures of an observation, pixels."""
TOP: Final = 16
"""First row of the halved scene picture that is kept."""
AGENT_SHAPE: Final = (96, 128)
WRIST_SHAPE: Final = (96, 96)
PROPRIO: Final = 11
"""Length of the proprioception vector."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """The two pictures as the network takes them."""

    agent: Image
    """Shape (96, 128, 3)."""
    wrist: Image
    """Shape (96, 96, 3)."""


def network_inputs(observation: Observation) -> Pixels:
    """Return the network's pictures of `observation`.

    Raises:
        SpecMismatch: a camera is missing or its picture is not 256 x 256.
    """
    return Pixels(
        agent=shrink_agent(_picture(observation, "agentview")),
        wrist=shrink_wrist(_picture(observation, "wrist")),
    )


def shrink_agent(picture: Image) -> Image:
    """Average 2 x 2 pixels of a (256, 256, 3) picture and keep 96 rows. Shape (96, 128, 3)."""
    rows = picture[2 * TOP : 2 * (TOP + AGENT_SHAPE[0])].astype(np.uint16)
    pairs = rows[0::2] + rows[1::2]
    total = pairs[:, 0::2] + pairs[:, 1::2]
    return ((total + 2) >> 2).astype(np.uint8)


def shrink_wrist(picture: Image) -> Image:
    """Average areas of 8/3 x 8/3 pixels of a (256, 256, 3) picture. Shape (96, 96, 3)."""
    rows = _eight_to_three(picture.astype(np.uint16))
    both = _eight_to_three(rows.transpose(1, 0, 2)).transpose(1, 0, 2)
    return np.ascontiguousarray(((both + 32) >> 6).astype(np.uint8))


def _eight_to_three(picture: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Turn every 8 rows into 3, in eighths: the weights of one output row add up to 8."""
    height, width, channels = picture.shape
    r = picture.reshape(height // 8, 8, width, channels)
    out = np.empty((height // 8, 3, width, channels), dtype=np.uint16)
    out[:, 0] = 3 * (r[:, 0] + r[:, 1]) + 2 * r[:, 2]
    out[:, 1] = r[:, 2] + 3 * (r[:, 3] + r[:, 4]) + r[:, 5]
    out[:, 2] = 2 * r[:, 5] + 3 * (r[:, 6] + r[:, 7])
    return out.reshape(height // 8 * 3, width, channels)


def network_px(camera: CameraName, uv: npt.ArrayLike) -> Float32:
    """Carry points of a 256 x 256 picture over into the network's picture.

    Args:
        camera: whose picture.
        uv: column and row, where pixel `i` covers `i` to `i + 1`. Shape (..., 2).

    >>> network_px("agentview", [128.0, 64.0]).tolist()
    [64.0, 16.0]
    """
    points = np.asarray(uv, dtype=np.float64)
    if camera == "agentview":
        scaled = points / 2.0 - np.array([0.0, TOP])
    else:
        scaled = points * (WRIST_SHAPE[1] / PICTURE)
    return np.asarray(scaled, dtype=np.float32)


def inside_px(camera: CameraName, px: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say which points lie in the network's picture. Shape (..., 2) to (...)."""
    height, width = AGENT_SHAPE if camera == "agentview" else WRIST_SHAPE
    points = np.asarray(px)
    # A comparison with NaN is false, so unknown points are outside.
    return np.asarray(((points >= 0) & (points < np.array([width, height]))).all(-1))


def proprio_vector(arm: ArmState) -> Float32:
    """Return what the network is told about an arm, in SI units.

    Position (3), first two columns of the hand's rotation matrix, one after the other (6),
    opening (1), opening rate (1). Shape (11,).
    """
    columns = Rotation.from_quat(np.asarray(arm.ee_quat)).as_matrix()[:, :2].T.ravel()
    gripper = np.array([arm.gripper_opening, arm.gripper_velocity])
    vector: Float32 = np.concatenate([arm.ee_pos, columns, gripper]).astype(np.float32)
    return vector


def _picture(observation: Observation, name: CameraName) -> Image:
    picture = observation.images.get(name)
    if picture is None:
        raise SpecMismatch(
            f"the observation holds no picture of the camera {name!r}; "
            f"{suggest(name, observation.images)}"
        )
    if picture.shape != (PICTURE, PICTURE, 3) or picture.dtype != np.uint8:
        raise SpecMismatch(
            f"the picture of {name!r} has shape {picture.shape} and type {picture.dtype}; "
            f"expected ({PICTURE}, {PICTURE}, 3) uint8"
        )
    return picture
