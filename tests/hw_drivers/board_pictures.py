"""Pictures of a board by a camera that is known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from zetta.hw_drivers.calibration_board import Board, draw_board
from zetta.hw_drivers.calibration_hand import Mount
from zetta.hw_drivers.calibration_poses import inverse, transform
from zetta.runtime.core import Array, Image

WIDTH, HEIGHT = 640, 480
K = np.array([[610.0, 0.0, 325.0], [0.0, 605.0, 236.0], [0.0, 0.0, 1.0]])
BOARD = Board()
FINE = 2
"""Pictures are drawn so many times larger and averaged, as a lens does."""
NOISE = 3.0


@cache
def _drawn(board: Board) -> Any:
    return draw_board(board)


def picture(T_cam_board: Array, board: Board = BOARD, seed: int = 0, bend: float = 0.0) -> Image:
    """Return what the camera sees, grey background, with noise.

    Args:
        T_cam_board: pose of the board in the optical frame.
        board: which one.
        seed: of the noise.
        bend: radial distortion k1 of the lens.
    """
    import cv2

    side = 100 / board.square_m
    to_board = np.array([[1 / side, 0, 0.5 / side], [0, 1 / side, 0.5 / side], [0, 0, 1]])
    flat = T_cam_board[:3, [0, 1, 3]]
    finer = np.array([[FINE, 0, 0.5 * (FINE - 1)], [0, FINE, 0.5 * (FINE - 1)], [0, 0, 1.0]])
    H = finer @ K @ flat @ to_board
    grey = cv2.warpPerspective(
        _drawn(board), H, (FINE * WIDTH, FINE * HEIGHT), flags=cv2.INTER_AREA, borderValue=120
    )
    grey = cv2.resize(grey, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    if bend:
        grey = _bent(grey, bend)
    noisy = grey + np.random.default_rng(seed).normal(0.0, NOISE, grey.shape)
    return np.repeat(np.clip(noisy, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)


def _bent(grey: Any, k1: float) -> Any:
    import cv2

    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    bent = np.stack([x.ravel(), y.ravel()], axis=1).reshape(-1, 1, 2)
    lens = np.array([k1, 0.0, 0.0, 0.0])
    straight = cv2.undistortPoints(bent, K, lens, P=K).reshape(HEIGHT, WIDTH, 2)
    return cv2.remap(
        grey,
        straight[..., 0].astype(np.float32),
        straight[..., 1].astype(np.float32),
        cv2.INTER_LINEAR,
        borderValue=120,
    )


def board_poses(count: int, seed: int = 0, tilt: float = 0.6) -> list[Array]:
    """Return poses of the board in the camera's frame, all over the picture."""
    rng = np.random.default_rng(seed)
    middle = np.array([BOARD.columns, BOARD.rows, 0.0]) * BOARD.square_m / 2
    poses = []
    for _ in range(count):
        depth = rng.uniform(0.4, 0.7)
        aim = np.array([rng.uniform(0.2, 0.8) * WIDTH, rng.uniform(0.25, 0.75) * HEIGHT, 1.0])
        place = np.linalg.inv(K) @ aim * depth
        T = transform(rng.uniform(-tilt, tilt, 3), place)
        T[:3, 3] -= T[:3, :3] @ middle
        poses.append(T)
    return poses


def hand_poses(
    T_parent_cam: Array, T_board: Array, mount: Mount, boards: Sequence[Array]
) -> list[Array]:
    """Return where the hand must be for the camera to see the board at `boards`."""
    if mount == "wrist":
        return [T_board @ inverse(T) @ inverse(T_parent_cam) for T in boards]
    return [T_parent_cam @ T @ inverse(T_board) for T in boards]


def shaken(T: Array, rng: np.random.Generator, rad: float, m: float) -> Array:
    """Return a pose as an arm reports it that is not exact."""
    return T @ transform(rng.normal(0.0, rad, 3), rng.normal(0.0, m, 3))
