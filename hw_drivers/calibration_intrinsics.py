"""The intrinsics of a camera from pictures of a board: what was used, what was not, and how good.

A `CameraSetup` has a pinhole matrix and no lens distortion, so the matrix that is returned is the
pinhole that fits best. A second fit with distortion says how much that leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zetta.hw_drivers.calibration_board import Board, Finder, Seen, opencv
from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError

MIN_VIEWS: Final = 8
MIN_CORNERS: Final = 8
ALIKE_SHARE: Final = 0.02
"""Views whose corners differ by less of the picture's width, on average, are one."""
OUTLIER: Final = 3.0
"""A view with so many times the median error is left out."""
OUTLIER_PX: Final = 0.5
"""But none with a smaller error."""
CELLS: Final = 5
"""Coverage is counted in so many cells each way."""
MIN_COVERAGE: Final = 0.4
MIN_TILT_RAD: Final = math.radians(15.0)
"""The board must have been held at angles that differ by as much."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A picture that was not used."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ViewError:
    """How well one picture fits."""

    name: str
    corners: int
    rms_px: float


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """What was found."""

    height: int
    width: int
    K: Array
    """Pinhole matrix, pixels. Shape (3, 3)."""
    sigma: Array
    """Standard deviations of fx, fy, cx, cy, pixels. Shape (4,)."""
    rms_px: float
    views: tuple[ViewError, ...]
    rejected: tuple[Rejected, ...]
    coverage: float
    """Share of the picture's cells in which corners were seen."""
    rms_with_distortion_px: float
    """Of a second fit that knows lens distortion."""
    distortion_px: float
    """How far that lens bends a straight line at most, where the board was seen."""


@dataclass(frozen=True, slots=True)
class View:
    """The board in one picture."""

    name: str
    seen: Seen
    height: int
    width: int


class Gathering:
    """Views of one camera, each looked at as it comes."""

    def __init__(self, board: Board) -> None:
        """Prepare.

        Raises:
            ConfigError: OpenCV is missing or too old.
        """
        self._finder = Finder(board)
        self._board = board
        self.views: list[View] = []
        self.rejected: list[Rejected] = []

    def add(self, name: str, image: Image) -> str:
        """Take a picture, and return why not if it is of no use."""
        view = View(name, self._finder.find(image), *image.shape[:2])
        why = self._fault(view)
        if why:
            self.rejected.append(Rejected(name, why))
        else:
            self.views.append(view)
        return why

    def _fault(self, view: View) -> str:
        found = len(view.seen.ids)
        if found < MIN_CORNERS:
            return f"{found} of {self._board.corners} corners were found, {MIN_CORNERS} are needed"
        if self.views and (view.height, view.width) != (self.views[0].height, self.views[0].width):
            first = self.views[0]
            return f"it is {view.width} x {view.height}, others {first.width} x {first.height}"
        for other in self.views:
            if _difference(view.seen, other.seen) < ALIKE_SHARE * view.width:
                return f"too like {other.name}"
        return ""


def _difference(one: Seen, other: Seen) -> float:
    both, at, there = np.intersect1d(one.ids, other.ids, return_indices=True)
    if len(both) < MIN_CORNERS:
        return math.inf
    return float(np.linalg.norm(one.pixels[at] - other.pixels[there], axis=1).mean())


def coverage(views: Sequence[View]) -> float:
    """Return in which share of the picture's cells corners were seen."""
    hit = np.zeros((CELLS, CELLS), bool)
    for view in views:
        cells = (view.seen.pixels / (view.width, view.height) * CELLS).astype(int)
        x, y = np.clip(cells, 0, CELLS - 1).T
        hit[y, x] = True
    return float(hit.mean())


def calibrate_intrinsics(gathering: Gathering, board: Board) -> Intrinsics:
    """Fit the pinhole, leaving out what does not fit.

    Raises:
        ConfigError: too few views, too little of the picture covered, or the board always held at
            the same angle.
    """
    views, rejected = list(gathering.views), list(gathering.rejected)
    while True:
        _check_views(views, rejected)
        fit = _fit(views, board, distorted=False)
        errors = _errors(fit, views, board)
        worst = int(np.argmax(errors))
        median = float(np.median(errors))
        if errors[worst] <= max(OUTLIER * median, OUTLIER_PX):
            break
        why = (
            f"its error of {errors[worst]:.1f} px is {errors[worst] / median:.1f} times that of "
            "the others; was it blurred, or the board bent?"
        )
        rejected.append(Rejected(views.pop(worst).name, why))
    _check_tilt(fit)
    lens = _fit(views, board, distorted=True)
    first = views[0]
    return Intrinsics(
        height=first.height,
        width=first.width,
        K=fit.K,
        sigma=fit.sigma,
        rms_px=fit.rms,
        views=tuple(
            ViewError(v.name, len(v.seen.ids), float(e)) for v, e in zip(views, errors, strict=True)
        ),
        rejected=tuple(rejected),
        coverage=coverage(views),
        rms_with_distortion_px=lens.rms,
        distortion_px=_bend(lens, views),
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    rms: float
    K: Array
    distortion: Array
    turns: tuple[Array, ...]
    places: tuple[Array, ...]
    sigma: Array


def _fit(views: Sequence[View], board: Board, distorted: bool) -> _Fit:
    cv2 = opencv()
    none = cv2.CALIB_ZERO_TANGENT_DIST | cv2.CALIB_FIX_K1 | cv2.CALIB_FIX_K2
    flags = cv2.CALIB_FIX_K3 | (0 if distorted else none)
    points = board.points().astype(np.float32)
    try:
        rms, K, bends, turns, places, sigma, *_ = cv2.calibrateCameraExtended(
            [points[view.seen.ids] for view in views],
            [view.seen.pixels.astype(np.float32) for view in views],
            (views[0].width, views[0].height),
            None,
            None,
            flags=flags,
        )
    except cv2.error as error:
        raise ConfigError(f"no camera fits these pictures: {_short(error)}") from error
    return _Fit(
        float(rms), K, bends.reshape(-1), tuple(turns), tuple(places), sigma.reshape(-1)[:4]
    )


def _errors(fit: _Fit, views: Sequence[View], board: Board) -> Array:
    """Return the error of each view, pixels. Shape (views,)."""
    cv2, points = opencv(), board.points()
    errors = []
    for view, turn, place in zip(views, fit.turns, fit.places, strict=True):
        told, _ = cv2.projectPoints(points[view.seen.ids], turn, place, fit.K, fit.distortion)
        off = told.reshape(-1, 2) - view.seen.pixels
        errors.append(math.sqrt(float((off**2).sum(axis=1).mean())))
    return np.array(errors)


def _bend(lens: _Fit, views: Sequence[View]) -> float:
    """Return how far distortion moves the seen corners at most, pixels."""
    cv2 = opencv()
    seen = np.concatenate([view.seen.pixels for view in views])
    straight = cv2.undistortPoints(
        seen.reshape(-1, 1, 2), lens.K, lens.distortion, P=lens.K
    ).reshape(-1, 2)
    return float(np.linalg.norm(straight - seen, axis=1).max())


def _check_views(views: Sequence[View], rejected: Sequence[Rejected]) -> None:
    if len(views) < MIN_VIEWS:
        last = f"; {rejected[-1].name}: {rejected[-1].why}" if rejected else ""
        raise ConfigError(
            f"{len(views)} different views of the board are too few; take {MIN_VIEWS} at least, "
            f"20 are good{last}"
        )
    covered = coverage(views)
    if covered < MIN_COVERAGE:
        raise ConfigError(
            f"the board was seen in {100 * covered:.0f} % of the picture; bring it near and into "
            f"the corners until {100 * MIN_COVERAGE:.0f} % are covered"
        )


def _check_tilt(fit: _Fit) -> None:
    cv2 = opencv()
    normals = np.stack([cv2.Rodrigues(turn)[0][:, 2] for turn in fit.turns])
    apart = float(np.arccos(np.clip((normals @ normals.T).min(), -1.0, 1.0)))
    if apart < MIN_TILT_RAD:
        raise ConfigError(
            f"the board was held at angles that differ by {math.degrees(apart):.0f} degrees at "
            f"most, which does not tell the focal length; tilt it by "
            f"{math.degrees(MIN_TILT_RAD):.0f} and more, left, right, up and down"
        )


def _short(error: Any) -> str:
    return " ".join(str(error).split())[:120]
