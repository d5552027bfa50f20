"""Where a camera is, from pictures of a board and the poses of the hand: hand-eye calibration.

Two cases with one equation. A camera at the wrist sees a board that lies still; a fixed camera sees
a board that the hand holds. In both a point of the board is seen at `inverse(X) G Z point`: `X` is
the wanted pose of the camera (in the hand, or in the base), `G` what the arm reports (base in the
hand, or hand in the base), and `Z` where the board is (in the base, or in the hand).

A closed form (`cv2.calibrateHandEye`) begins, and least squares over the pixels of all corners
finishes: pixels are what is measured, and their error is what is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from zetta.hw_drivers.calibration_board import Board, Seen, opencv
from zetta.hw_drivers.calibration_intrinsics import MIN_CORNERS, OUTLIER, Rejected
from zetta.hw_drivers.calibration_poses import (
    alike,
    apart,
    check_turns,
    inverse,
    transform,
    vector,
)
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

MIN_PAIRS: Final = 8
OUTLIER_PX: Final = 2.0
"""No pair with a smaller error is left out."""
METHODS: Final = ("PARK", "DANIILIDIS", "HORAUD")
"""Closed forms; the one with the smallest error begins."""
Mount: TypeAlias = Literal["world", "wrist"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One picture of the board, and where the hand was."""

    name: str
    T_base_ee: Array
    """Shape (4, 4)."""
    seen: Seen


@dataclass(frozen=True, slots=True)
class PairError:
    """How well one pair fits, and how well the others foretell it."""

    name: str
    rms_px: float
    rms_mm: float
    """The same across the line of sight, at the board's distance."""
    left_out_px: float
    """Of a fit to all others."""
    left_out_mm: float


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a camera is."""

    T_parent_cam: Array
    """In the frame of the hand for a wrist camera, in the arm's base for a fixed one. (4, 4)."""
    T_board: Array
    """Of the board: in the base for a wrist camera, in the hand for a fixed one. Shape (4, 4)."""
    pairs: tuple[PairError, ...]
    rejected: tuple[Rejected, ...]
    rms_px: float
    rms_mm: float
    left_out_px: float
    left_out_mm: float
    moves_mm: float
    """How far the camera moves at most when one pair is left out."""
    moves_deg: float


def calibrate_hand(
    pairs: Sequence[Pair],
    board: Board,
    K: Array,
    mount: Mount,
    rejected: Sequence[Rejected] = (),
) -> Placement:
    """Find the pose of a camera.

    Args:
        pairs: the board in pictures, and the hand.
        board: as it was printed.
        K: pinhole matrix. Shape (3, 3).
        mount: a wrist camera with the board lying still, or a fixed one with the board on the hand.
        rejected: pictures that are out already.

    Raises:
        ConfigError: too few pairs, poses from which nothing can be told, or nothing fits.
    """
    kept, out = _different(pairs, board, rejected)
    while True:
        check_turns([pair.T_base_ee for pair in kept], MIN_PAIRS)
        problem = _Problem(kept, board, K, mount)
        guess = problem.solve(problem.begin())
        errors = problem.errors(guess)
        worst, median = int(np.argmax(errors)), float(np.median(errors))
        if errors[worst] <= max(OUTLIER * median, OUTLIER_PX):
            break
        why = (
            f"its error of {errors[worst]:.1f} px is {errors[worst] / median:.1f} times that of "
            "the others; did the arm move, or the board slip?"
        )
        out.append(Rejected(kept.pop(worst).name, why))
    return _judged(problem, guess, tuple(out))


def _judged(problem: _Problem, found: Array, out: tuple[Rejected, ...]) -> Placement:
    """Add what leaving out each pair says."""
    errors, scale = problem.errors(found), problem.mm_per_px(found)
    T_cam = transform(found[:3], found[3:6])
    judged, moved = [], [(0.0, 0.0)]
    for index, pair in enumerate(problem.pairs):
        without = problem.solve(found, leave_out=index)
        moved.append(apart(T_cam, transform(without[:3], without[3:6])))
        alone = float(problem.errors(without)[index])
        mm = float(scale[index])
        judged.append(
            PairError(pair.name, float(errors[index]), errors[index] * mm, alone, alone * mm)
        )
    return Placement(
        T_parent_cam=T_cam,
        T_board=transform(found[6:9], found[9:]),
        pairs=tuple(judged),
        rejected=out,
        rms_px=_rms([e.rms_px for e in judged]),
        rms_mm=_rms([e.rms_mm for e in judged]),
        left_out_px=_rms([e.left_out_px for e in judged]),
        left_out_mm=_rms([e.left_out_mm for e in judged]),
        moves_mm=1000.0 * max(distance for _, distance in moved),
        moves_deg=math.degrees(max(angle for angle, _ in moved)),
    )


class _Problem:
    """The equation of all pairs; corners of all of them are rows of one array."""

    def __init__(self, pairs: Sequence[Pair], board: Board, K: Array, mount: Mount) -> None:
        self.pairs, self._K = tuple(pairs), K
        points = board.points()
        self._points = [points[pair.seen.ids] for pair in pairs]
        self._rows: Array = np.concatenate(self._points)
        self._pixels: Array = np.concatenate([pair.seen.pixels for pair in pairs])
        self._pair: npt.NDArray[np.intp] = np.repeat(
            np.arange(len(pairs)), [len(x) for x in self._points]
        )
        self._G: Array = np.stack(
            [inverse(p.T_base_ee) if mount == "wrist" else p.T_base_ee for p in pairs]
        )

    def begin(self) -> Array:
        """Return the best of the closed forms. Shape (12,): camera, then board."""
        cv2 = opencv()
        seen = [
            board_pose(p.seen, x, self._K) for p, x in zip(self.pairs, self._points, strict=True)
        ]
        tried = []
        for name in METHODS:
            R, t = self._closed(cv2, getattr(cv2, f"CALIB_HAND_EYE_{name}"), seen)
            if not (np.isfinite(R).all() and np.isfinite(t).all()):
                continue
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = R, t.reshape(3)
            boards = [inverse(G) @ X @ T for G, T in zip(self._G, seen, strict=True)]
            # The board that most agree with: one picture may have been read mirrored.
            Z = min(boards, key=lambda one: sum(apart(one, other)[1] for other in boards))
            guess = np.concatenate([vector(X), vector(Z)])
            tried.append((float(np.median(self.errors(guess))), tuple(guess.tolist())))
        if not tried:
            raise ConfigError("no camera pose fits these pictures; is the board the declared one?")
        return np.array(min(tried)[1])

    def _closed(self, cv2: Any, method: int, seen: Sequence[Array]) -> tuple[Array, Array]:
        ways = [inverse(G) for G in self._G]
        try:
            R, t = cv2.calibrateHandEye(
                [T[:3, :3] for T in ways],
                [T[:3, 3] for T in ways],
                [T[:3, :3] for T in seen],
                [T[:3, 3] for T in seen],
                method=method,
            )
        except cv2.error:
            return np.full((3, 3), np.nan), np.full(3, np.nan)
        return np.asarray(R, np.float64), np.asarray(t, np.float64)

    def solve(self, guess: Array, leave_out: int = -1) -> Array:
        """Return the least squares over all pixels, from `guess`. Shape (12,)."""
        kept = self._pair != leave_out

        def off(found: Array) -> Array:
            pixels: Array = self._off(found)[kept]
            return pixels.ravel()

        return np.asarray(least_squares(off, guess, x_scale="jac", max_nfev=200).x)

    def errors(self, found: Array) -> Array:
        """Return the error of each pair, pixels. Shape (pairs,)."""
        squares: Array = (self._off(found) ** 2).sum(axis=1)
        errors: Array = np.sqrt(self._mean(squares))
        return errors

    def mm_per_px(self, found: Array) -> Array:
        """Return what a pixel means at the board, millimetres. Shape (pairs,)."""
        focal = 0.5 * (self._K[0, 0] + self._K[1, 1])
        mm: Array = self._mean(self._seen(found)[:, 2]) * (1000.0 / focal)
        return mm

    def _mean(self, rows: Array) -> Array:
        """Return the mean of each pair's rows. Shape (pairs,)."""
        mean: Array = np.bincount(self._pair, rows) / np.bincount(self._pair)
        return mean

    def _seen(self, found: Array) -> Array:
        """Return all corners in the frames of their pictures. Shape (corners, 3)."""
        chains: Array = (
            inverse(transform(found[:3], found[3:6])) @ self._G @ transform(found[6:9], found[9:])
        )[self._pair]
        seen: Array = np.einsum("nij,nj->ni", chains[:, :3, :3], self._rows) + chains[:, :3, 3]
        return seen

    def _off(self, found: Array) -> Array:
        flat = self._seen(found) @ self._K.T
        return flat[:, :2] / np.maximum(flat[:, 2:], 1e-6) - self._pixels  # (corners, 2)


def board_pose(seen: Seen, points: Array, K: Array) -> Array:
    """Return the pose of the board in one picture, in the camera's frame. Shape (4, 4).

    Raises:
        ConfigError: none fits.
    """
    cv2 = opencv()
    try:
        good, turn, place = cv2.solvePnP(points, seen.pixels, K, None, flags=cv2.SOLVEPNP_IPPE)
    except cv2.error:
        good = False
    if not good:
        raise ConfigError("a picture of the board shows its corners on one line; turn the board")
    turn, place = cv2.solvePnPRefineLM(points, seen.pixels, K, None, turn, place)
    return transform(turn.reshape(3), place.reshape(3))


def _different(
    pairs: Sequence[Pair], board: Board, rejected: Sequence[Rejected]
) -> tuple[list[Pair], list[Rejected]]:
    kept: list[Pair] = []
    out = list(rejected)
    for pair in pairs:
        found = len(pair.seen.ids)
        near = next((k.name for k in kept if alike(k.T_base_ee, pair.T_base_ee)), "")
        if found < MIN_CORNERS:
            why = f"{found} of {board.corners} corners were found, {MIN_CORNERS} are needed"
            out.append(Rejected(pair.name, why))
        elif near:
            out.append(Rejected(pair.name, f"the hand was where it was in {near}"))
        else:
            kept.append(pair)
    return kept, out


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(sum(v * v for v in values) / len(values))
