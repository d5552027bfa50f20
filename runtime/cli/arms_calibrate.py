"""`zetta arms calibrate`: print a board, measure a camera, and find out where it is."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from zetta.hw_drivers.arm_record_file import read_picture
from zetta.hw_drivers.arm_setup import ArmSetup, CalibratedCamera, CameraSetup, declared_setup
from zetta.hw_drivers.calibration_board import Board, Finder, draw_sheet, write_sheet
from zetta.hw_drivers.calibration_file import known_camera, rows, write_calibration
from zetta.hw_drivers.calibration_hand import calibrate_hand
from zetta.hw_drivers.calibration_intrinsics import Gathering, calibrate_intrinsics
from zetta.hw_drivers.calibration_pairs import pairs_of, pictures_in
from zetta.hw_drivers.calibration_touch import calibrate_touched
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_calibrate_report import (
    intrinsics_json,
    intrinsics_notes,
    intrinsics_text,
    placement_json,
    placement_notes,
    placement_text,
    touched_json,
    touched_notes,
    touched_text,
)
from zetta.runtime.cli.arms_calibrate_views import views_of
from zetta.runtime.cli.arms_options import AsJson
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Measure what a camera sees and where it is (docs/calibration.md).",
)

DEFAULT_OUT: Final = Path("calibration.toml")
MM: Final = 1e-3

Squares = Annotated[str, typer.Option(help="Squares of the board, across and down.")]
SquareMm = Annotated[float, typer.Option(help="Side of a square as printed, measured, mm.")]
MarkerMm = Annotated[float, typer.Option(help="Side of a marker, mm; 0 for 26/35 of a square.")]
Dictionary = Annotated[str, typer.Option(help="Markers of the board.")]
SetupPath = Annotated[Path, typer.Option(help="Set-up (TOML) that declares the camera.")]
CameraName = Annotated[str, typer.Option(help="Name of the camera in the set-up.")]
Out = Annotated[
    Path | None,
    typer.Option(help="File of calibrations, others in it stay; default that of the set-up."),
]


@app.command("board")
def board(
    out: Annotated[Path, typer.Option(help="File to print: .pdf or .png.")] = Path("board.pdf"),
    squares: Squares = "7x5",
    square_mm: SquareMm = 35.0,
    marker_mm: MarkerMm = 0.0,
    dictionary: Dictionary = "5x5_100",
    dpi: Annotated[float, typer.Option(help="About how many dots an inch.")] = 300.0,
    as_json: AsJson = False,
) -> None:
    """Draw a board to print at 100 %, with a ruler to check that it was."""
    drawn = _board(squares, square_mm, marker_mm, dictionary)
    if out.exists():
        raise ConfigError(f"{out} exists already; choose another file")
    sheet = draw_sheet(drawn, dpi)
    write_sheet(sheet, out)
    width, height = drawn.size_mm
    if as_json:
        output.emit(
            {
                "file": str(out),
                "board": drawn.text(),
                "width_mm": width,
                "height_mm": height,
                "paper": sheet.paper,
                "dpi": sheet.dpi,
            }
        )
        return
    output.answer(f"{drawn.text()}: {width:g} x {height:g} mm on {sheet.paper}, in {out}")
    output.answer(
        "print it at 100 % (no fitting to the page), glue it to something flat, measure the "
        "squares, and give what you measured as --square-mm"
    )


@app.command("intrinsics")
def intrinsics(
    setup: SetupPath,
    camera: CameraName,
    pictures: Annotated[
        Path | None, typer.Argument(help="Folder of pictures, or a recording; none looks live.")
    ] = None,
    out: Out = None,
    squares: Squares = "7x5",
    square_mm: SquareMm = 35.0,
    marker_mm: MarkerMm = 0.0,
    dictionary: Dictionary = "5x5_100",
    views: Annotated[int, typer.Option(help="Live: how many views to take.")] = 20,
    within: Annotated[float, typer.Option(help="Live: seconds to take them in.")] = 180.0,
    as_json: AsJson = False,
) -> None:
    """Measure focal length and optical centre from pictures of the board, however it is held."""
    declared = declared_setup(setup)
    drawn = _board(squares, square_mm, marker_mm, dictionary)
    file = _file(out, declared)
    known = known_camera(declared, file, camera)
    gathering = Gathering(drawn)
    if pictures is None:
        views_of(declared, camera, gathering, views, within)
    else:
        paths = pictures_in(pictures, camera)
        with output.progress("pictures", len(paths)) as advance:
            for number, path in enumerate(paths, 1):
                gathering.add(path.stem, read_picture(path))
                advance(number, path.name)
    found = calibrate_intrinsics(gathering, drawn)
    if (found.height, found.width) != (known.height, known.width):
        raise ConfigError(
            f"the pictures are {found.width} x {found.height}, the set-up declares {camera} as "
            f"{known.width} x {known.height}; calibrate at the size that is used"
        )
    measured = CalibratedCamera(found.height, found.width, rows(found.K), known.T_parent_cam)
    write_calibration(file, camera, measured, intrinsics_notes(found))
    if as_json:
        output.emit({"camera": camera, "file": str(file), **intrinsics_json(found)})
    else:
        output.answer(intrinsics_text(found))
        output.answer(f"written to {file}; next: zetta arms calibrate extrinsics")


@app.command("extrinsics")
def extrinsics(
    pairs: Annotated[
        Path, typer.Argument(help="Recording (zetta arms record), or folder with pairs.jsonl.")
    ],
    setup: SetupPath,
    camera: CameraName,
    touched: Annotated[
        Path | None,
        typer.Option(help="File (TOML) of corners that the hand touched, for a lying board."),
    ] = None,
    out: Out = None,
    squares: Squares = "7x5",
    square_mm: SquareMm = 35.0,
    marker_mm: MarkerMm = 0.0,
    dictionary: Dictionary = "5x5_100",
    as_json: AsJson = False,
) -> None:
    """Find where a camera is: on the hand, or beside the arm.

    A wrist camera looks at a board that lies still. A fixed camera looks at a board that the hand
    holds, or, with --touched, at a lying one.
    """
    declared = declared_setup(setup)
    drawn = _board(squares, square_mm, marker_mm, dictionary)
    file = _file(out, declared)
    known = known_camera(declared, file, camera)
    case = _Case(declared, camera, known, drawn, file)
    if touched is None:
        _from_hand(case, pairs, as_json)
    else:
        _from_touches(case, pairs, touched, as_json)


@dataclass(frozen=True, slots=True)
class _Case:
    """Which camera is to be placed."""

    setup: ArmSetup
    name: str
    camera: CameraSetup
    board: Board
    out: Path

    @property
    def K(self) -> Array:
        return np.array(self.camera.intrinsics)

    def write(self, T_parent_cam: Array, notes: list[str]) -> None:
        """Write the pose in the frame that a set-up wants: of the world, or of the hand."""
        measured = CalibratedCamera(
            self.camera.height, self.camera.width, self.camera.intrinsics, rows(T_parent_cam)
        )
        write_calibration(self.out, self.name, measured, notes)


def _from_hand(case: _Case, pairs: Path, as_json: bool) -> None:
    found = calibrate_hand(
        pairs_of(pairs, case.name, Finder(case.board)), case.board, case.K, case.camera.mount
    )
    T = found.T_parent_cam
    if case.camera.mount == "world":
        T = case.setup.T_world_base.transform() @ T
    case.write(T, placement_notes(found))
    if as_json:
        output.emit({"camera": case.name, "file": str(case.out), **placement_json(found, T)})
    else:
        output.answer(placement_text(found, T, case.camera.mount))
        output.answer(f"written to {case.out}")


def _from_touches(case: _Case, pictures: Path, touched: Path, as_json: bool) -> None:
    if case.camera.mount != "world":
        raise ConfigError(
            "--touched places a fixed camera; for one at the wrist move the hand over a lying "
            "board and leave --touched out"
        )
    finder = Finder(case.board)
    seen = [finder.find(read_picture(p)) for p in pictures_in(pictures, case.name)[-5:]]
    found = calibrate_touched(read_touches(touched), seen, case.board, case.K)
    T = case.setup.T_world_base.transform() @ found.T_base_cam
    case.write(T, touched_notes(found))
    if as_json:
        output.emit({"camera": case.name, "file": str(case.out), **touched_json(found, T)})
    else:
        output.answer(touched_text(found, T))
        output.answer(f"written to {case.out}")


def read_touches(path: Path) -> dict[int, Array]:
    """Return where the grip site was at each touched corner: `[corners]`, `0 = [x, y, z]`.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    corners = plain.get("corners")
    if not isinstance(corners, dict) or set(plain) != {"corners"}:
        raise ConfigError(f"{path} holds one table [corners] with lines such as 0 = [x, y, z]")
    touched = {}
    for key, place in corners.items():
        numbers = isinstance(place, list) and all(isinstance(v, int | float) for v in place)
        if not key.isdecimal() or not numbers or len(place) != 3 or not np.isfinite(place).all():
            raise ConfigError(f"{path}: {key} = {place!r} is no corner with a place in metres")
        touched[int(key)] = np.array(place, np.float64)
    return touched


def _file(out: Path | None, setup: ArmSetup) -> Path:
    return out or (Path(setup.calibration) if setup.calibration else DEFAULT_OUT)


def _board(squares: str, square_mm: float, marker_mm: float, dictionary: str) -> Board:
    columns, _, down = squares.partition("x")
    if not (columns.isdecimal() and down.isdecimal() and len(squares) < 8):
        raise ConfigError(f"--squares is such as 7x5, got {squares!r}")
    marker = marker_mm or round(square_mm * 26 / 35, 3)
    return Board(int(columns), int(down), square_mm * MM, marker * MM, dictionary)
