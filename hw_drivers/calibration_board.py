"""The ChArUco board that cameras are calibrated with: drawing it to size, and finding it.

Its frame: x to the right, y down, z into the board, origin at the outer corner of the first square,
as OpenCV has it since 4.6. Corners are those between four squares, numbered row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow

from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError

INCH_MM: Final = 25.4
MARGIN_MM: Final = 10.0
FOOT_MM: Final = 14.0
"""Below the board, for the words and the ruler."""
RULER_MM: Final = 100.0
PAPERS: Final = {"A4": (297.0, 210.0), "A3": (420.0, 297.0), "A2": (594.0, 420.0)}
"""Landscape, millimetres."""
DICTIONARIES: Final = ("4x4_50", "4x4_100", "5x5_50", "5x5_100", "6x6_100", "6x6_250")


def opencv() -> Any:
    """Return OpenCV with its ArUco part.

    Raises:
        ConfigError: it is not installed, or too old.
    """
    try:
        import cv2
    except ImportError:
        raise ConfigError("calibration needs OpenCV; run: pip install 'zetta[cameras]'") from None
    if not hasattr(getattr(cv2, "aruco", None), "CharucoDetector"):
        raise ConfigError(
            f"calibration needs OpenCV 4.7 or newer with ArUco, got {cv2.__version__}; "
            "run: pip install -U 'zetta[cameras]'"
        )
    return cv2


@dataclass(frozen=True, slots=True)
class Board:
    """A board as it was printed and measured."""

    columns: int = 7
    """Squares from left to right."""
    rows: int = 5
    square_m: float = 0.035
    """Side of a square as it is on paper: measure it."""
    marker_m: float = 0.026
    """Side of a marker."""
    dictionary: str = "5x5_100"

    def __post_init__(self) -> None:
        if not (3 <= self.columns <= 30 and 3 <= self.rows <= 30):
            raise ConfigError(f"a board has 3 to 30 squares a side, got {self.text()}")
        if not 0.003 <= self.square_m <= 0.5 or not 0.4 <= self.marker_m / self.square_m <= 0.95:
            raise ConfigError(
                "squares measure 3 to 500 mm and markers 0.4 to 0.95 of that, got "
                f"{1000 * self.square_m:g} and {1000 * self.marker_m:g} mm"
            )
        if self.dictionary not in DICTIONARIES:
            raise ConfigError(
                f"unknown dictionary {self.dictionary!r}; known: {', '.join(DICTIONARIES)}"
            )
        if self.columns * self.rows // 2 > int(self.dictionary.rpartition("_")[2]):
            raise ConfigError(
                f"{self.dictionary} has too few markers for {self.columns} x {self.rows} squares"
            )

    @property
    def corners(self) -> int:
        """How many corners it has."""
        return (self.columns - 1) * (self.rows - 1)

    @property
    def size_mm(self) -> tuple[float, float]:
        """Width and height of all squares."""
        return 1000 * self.columns * self.square_m, 1000 * self.rows * self.square_m

    def points(self) -> Array:
        """Return the corners in the frame of the board, metres. Shape (corners, 3)."""
        grid = np.mgrid[1 : self.rows, 1 : self.columns]
        flat = np.stack([grid[1].ravel(), grid[0].ravel(), np.zeros(self.corners)], axis=1)
        return np.asarray(flat * self.square_m, np.float64)

    def text(self) -> str:
        """Return what it is, in words.

        >>> Board().text()
        '7 x 5 squares of 35 mm, markers 26 mm, 5x5_100'
        """
        return (
            f"{self.columns} x {self.rows} squares of {1000 * self.square_m:g} mm, markers "
            f"{1000 * self.marker_m:g} mm, {self.dictionary}"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """Corners of the board in one picture."""

    ids: npt.NDArray[np.int64]
    """Which ones. Shape (N,)."""
    pixels: Array
    """Where they are: x to the right, y down, the centre of the first pixel at 0. Shape (N, 2)."""


class Finder:
    """Finds one board in pictures."""

    def __init__(self, board: Board) -> None:
        """Prepare.

        Raises:
            ConfigError: OpenCV is missing or too old.
        """
        self._cv2 = opencv()
        self._detector: Any = self._cv2.aruco.CharucoDetector(_charuco(board))

    def find(self, image: Image) -> Seen:
        """Return what is seen of it, which may be nothing.

        Args:
            image: upright RGB. Shape (height, width, 3), uint8.
        """
        grey = self._cv2.cvtColor(image, self._cv2.COLOR_RGB2GRAY)
        pixels, ids, _, _ = self._detector.detectBoard(grey)
        if ids is None or pixels is None:
            return Seen(np.zeros(0, np.int64), np.zeros((0, 2)))
        return Seen(ids.reshape(-1).astype(np.int64), pixels.reshape(-1, 2).astype(np.float64))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page to print."""

    image: npt.NDArray[np.uint8]
    """Grey. Shape (height, width)."""
    dpi: float
    """At which the squares have exactly their size."""
    paper: str
    """`A4` and so on, landscape; or the size in millimetres."""


def draw_board(board: Board) -> npt.NDArray[np.uint8]:
    """Return the board alone, 100 pixels a square, for tests and screens. Grey."""
    return _squares(board, 100)


def draw_sheet(board: Board, dpi: float = 300.0) -> Sheet:
    """Draw a page with the board, what it is, and a ruler of 100 mm.

    Args:
        board: what to draw.
        dpi: about how many pixels an inch; changed a little so that squares are whole pixels.

    Raises:
        ConfigError: OpenCV is missing, or `dpi` makes no sense.
    """
    cv2 = opencv()
    side = round(1000 * board.square_m * dpi / INCH_MM)
    if not (72.0 <= dpi <= 1200.0 and side >= 10):
        raise ConfigError(f"print at 72 to 1200 dpi, with 10 pixels a square at least; got {dpi:g}")
    exact = side * INCH_MM / (1000 * board.square_m)
    need = board.size_mm[0] + 2 * MARGIN_MM, board.size_mm[1] + 2 * MARGIN_MM + FOOT_MM
    paper, size = next(
        ((n, s) for n, s in PAPERS.items() if need[0] <= s[0] and need[1] <= s[1]),
        (f"{need[0]:.0f} x {need[1]:.0f} mm", need),
    )
    width, height = (round(mm * exact / INCH_MM) for mm in size)
    page = np.full((height, width), 255, np.uint8)
    squares = _squares(board, side)
    left = (width - squares.shape[1]) // 2
    top = (height - squares.shape[0] - round(FOOT_MM * exact / INCH_MM)) // 2
    page[top : top + squares.shape[0], left : left + squares.shape[1]] = squares
    foot = top + squares.shape[0] + round(5 * exact / INCH_MM)
    ruler = round(RULER_MM * exact / INCH_MM)
    thick = max(1, round(0.3 * exact / INCH_MM))
    page[foot : foot + thick, left : left + ruler] = 0
    for at in (left, left + ruler - thick):
        page[foot - 6 * thick : foot + 6 * thick, at : at + thick] = 0
    words = (
        f"zetta: {board.text()}. Print at 100 %: the line is {RULER_MM:g} mm, "
        f"{board.columns} squares are {board.size_mm[0]:g} mm."
    )
    scale, below = exact / 300.0, foot + round(6 * exact / INCH_MM)
    cv2.putText(page, words, (left, below), cv2.FONT_HERSHEY_SIMPLEX, scale, 0, thick, cv2.LINE_AA)
    return Sheet(page, exact, paper)


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write a page as `.png` or `.pdf`, with its size.

    Raises:
        ConfigError: another ending, or the file cannot be written.
    """
    kind = path.suffix.lower()
    if kind not in (".png", ".pdf"):
        raise ConfigError(f"a board is written as .png or .pdf, got {path.name!r}")
    # Two colours, so that the PDF holds it without loss.
    page = Pillow.fromarray(sheet.image).convert("1", dither=Pillow.Dither.NONE)
    try:
        if kind == ".pdf":
            page.save(path, "PDF", resolution=sheet.dpi)
        else:
            page.save(path, "PNG", dpi=(sheet.dpi, sheet.dpi))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def _squares(board: Board, side: int) -> npt.NDArray[np.uint8]:
    size = (board.columns * side, board.rows * side)
    image: npt.NDArray[np.uint8] = _charuco(board).generateImage(size, None, 0, 1)
    return image


def _charuco(board: Board) -> Any:
    aruco = opencv().aruco
    words = aruco.getPredefinedDictionary(getattr(aruco, f"DICT_{board.dictionary.upper()}"))
    size = (board.columns, board.rows)
    return aruco.CharucoBoard(size, board.square_m, board.marker_m, words)
