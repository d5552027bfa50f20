"""Where a fixed camera is, from corners of a lying board that the hand has touched.

The touches tell where the board lies in the arm's base, a picture where the camera is over the
board. It needs no board on the hand, and is as good as the touching.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.hw_drivers.calibration_board import Board, Seen
from zetta.hw_drivers.calibration_hand import board_pose
from zetta.hw_drivers.calibration_intrinsics import MIN_CORNERS
from zetta.hw_drivers.calibration_poses import inverse, projected
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

MIN_TOUCHED: Final = 4
MIN_WIDE_M: Final = 0.02
"""How far touched corners must lie off one line, as a standard deviation."""
FARTHEST_MM: Final = 10.0
"""A touch that is farther off was of another corner, or the board moved."""


@dataclass(frozen=True, slots=True)
class TouchError:
    """How well one touch fits, and how well the others foretell it."""

    corner: int
    mm: float
    left_out_mm: float


@dataclass(frozen=True, slots=True)
class TouchedPlacement:
    """Where the camera is."""

    T_base_cam: Array
    """Shape (4, 4)."""
    T_base_board: Array
    touches: tuple[TouchError, ...]
    rms_mm: float
    left_out_mm: float
    rms_px: float
    """Of the board in the picture."""


def calibrate_touched(
    touched: Mapping[int, Array], seen: Sequence[Seen], board: Board, K: Array
) -> TouchedPlacement:
    """Find the pose of a fixed camera.

    Args:
        touched: where the grip site was when it touched each corner, base frame, metres. (3,).
        seen: the lying board in one or more pictures of the same place.
        board: as it was printed.
        K: pinhole matrix. Shape (3, 3).

    Raises:
        ConfigError: too few touches, all on a line, one that is far off, or no picture.
    """
    points = board.points()
    unknown = [corner for corner in touched if not 0 <= corner < board.corners]
    if unknown:
        raise ConfigError(f"the board has the corners 0 to {board.corners - 1}, got {unknown}")
    if len(touched) < MIN_TOUCHED:
        raise ConfigError(
            f"{len(touched)} touched corners are too few; touch {MIN_TOUCHED} or more"
        )
    there = np.stack([points[corner] for corner in touched])
    here = np.stack([np.asarray(place, np.float64) for place in touched.values()])
    spread = np.linalg.svd(there - there.mean(axis=0), compute_uv=False) / math.sqrt(len(there))
    if spread[1] < MIN_WIDE_M:
        raise ConfigError("the touched corners lie on one line; touch some beside it as well")
    T_base_board = registered(there, here)
    touches = _judged(list(touched), there, here, T_base_board)
    worst = max(touches, key=lambda t: t.left_out_mm)
    if worst.left_out_mm > FARTHEST_MM:
        raise ConfigError(
            f"the touch of corner {worst.corner} is {worst.left_out_mm:.0f} mm from where the "
            "others put it; was it another corner, or did the board move?"
        )
    usable = [s for s in seen if len(s.ids) >= MIN_CORNERS]
    if not usable:
        raise ConfigError("the board was not found in any picture of the camera")
    best = max(usable, key=lambda s: len(s.ids))
    T_cam_board = board_pose(best, points[best.ids], K)
    off = projected(K, T_cam_board, points[best.ids]) - best.pixels
    return TouchedPlacement(
        T_base_cam=T_base_board @ inverse(T_cam_board),
        T_base_board=T_base_board,
        touches=touches,
        rms_mm=math.sqrt(float(np.mean([t.mm**2 for t in touches]))),
        left_out_mm=math.sqrt(float(np.mean([t.left_out_mm**2 for t in touches]))),
        rms_px=math.sqrt(float((off**2).sum(axis=1).mean())),
    )


def registered(there: Array, here: Array) -> Array:
    """Return the rigid motion that best takes points `there` to `here` (Kabsch). Shape (4, 4).

    >>> square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    >>> registered(square, square + [0.0, 0.0, 0.5])[:3, 3].round(6).tolist()
    [0.0, 0.0, 0.5]
    """
    middle, goal = there.mean(axis=0), here.mean(axis=0)
    U, _, Vt = np.linalg.svd((there - middle).T @ (here - goal))
    mirror = np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T))])
    T = np.eye(4)
    T[:3, :3] = Vt.T @ mirror @ U.T
    T[:3, 3] = goal - T[:3, :3] @ middle
    return T


def _judged(corners: list[int], there: Array, here: Array, T: Array) -> tuple[TouchError, ...]:
    judged = []
    for index, corner in enumerate(corners):
        rest = np.arange(len(corners)) != index
        without = registered(there[rest], here[rest])
        off, alone = (
            1000.0 * float(np.linalg.norm(M[:3, :3] @ there[index] + M[:3, 3] - here[index]))
            for M in (T, without)
        )
        judged.append(TouchError(corner, off, alone))
    return tuple(judged)
