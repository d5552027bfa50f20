"""Calibration against pictures of a camera that is known exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from tests.hw_drivers.board_pictures import (
    BOARD,
    HEIGHT,
    WIDTH,
    K,
    board_poses,
    hand_poses,
    picture,
    shaken,
)
from zetta.hw_drivers.calibration_board import (
    Board,
    Finder,
    Seen,
    draw_board,
    draw_sheet,
    write_sheet,
)
from zetta.hw_drivers.calibration_hand import Mount, Pair, calibrate_hand
from zetta.hw_drivers.calibration_intrinsics import Gathering, calibrate_intrinsics
from zetta.hw_drivers.calibration_poses import apart, check_turns, inverse, projected, transform
from zetta.hw_drivers.calibration_touch import calibrate_touched
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

pytest.importorskip("cv2", reason="needs OpenCV (pip install 'zetta[cameras]')")

WRIST = transform(np.array([0.1, -0.2, 1.5]), np.array([0.05, 0.0, -0.06]))
TABLE = transform(np.array([3.0, 0.1, 0.2]), np.array([0.5, 0.0, 0.02]))
FIXED = transform(np.array([2.0, 0.3, 0.2]), np.array([0.9, 0.1, 0.5]))
HELD = transform(np.array([0.2, 1.2, 0.2]), np.array([0.0, 0.02, 0.05]))


@cache
def gathered(count: int = 14, tilt: float = 0.6, bend: float = 0.0) -> Gathering:
    gathering = Gathering(BOARD)
    for index, T in enumerate(board_poses(count, tilt=tilt)):
        gathering.add(f"v{index}", picture(T, seed=index, bend=bend))
    return gathering


def exact(T_cam_board: Array, seed: int, noise_px: float = 0.0) -> Seen:
    """Return corners without drawing a picture."""
    pixels = projected(K, T_cam_board, BOARD.points())
    pixels = pixels + np.random.default_rng(seed).normal(0.0, noise_px, pixels.shape)
    return Seen(np.arange(BOARD.corners), pixels)


def pairs(
    mount: Mount, boards: Sequence[Array], rad: float = 0.0, m: float = 0.0, noise_px: float = 0.1
) -> list[Pair]:
    X, Z = (WRIST, TABLE) if mount == "wrist" else (FIXED, HELD)
    rng = np.random.default_rng(1)
    hands = hand_poses(X, Z, mount, boards)
    return [
        Pair(f"p{i}", shaken(hand, rng, rad, m), exact(T, i, noise_px))
        for i, (hand, T) in enumerate(zip(hands, boards, strict=True))
    ]


# ---------------------------------------------------------------------- the board


def test_sheet_has_the_size_that_it_says(tmp_path: Path) -> None:
    sheet = draw_sheet(BOARD, dpi=150)
    assert sheet.paper == "A4"
    height, width = sheet.image.shape
    assert width / sheet.dpi * 25.4 == pytest.approx(297.0, abs=0.2)
    assert height / sheet.dpi * 25.4 == pytest.approx(210.0, abs=0.2)
    found = Finder(BOARD).find(np.repeat(sheet.image[:, :, None], 3, axis=2))
    assert len(found.ids) == BOARD.corners
    side = np.linalg.norm(found.pixels[1] - found.pixels[0])
    assert side / sheet.dpi * 0.0254 == pytest.approx(BOARD.square_m, rel=1e-3)
    write_sheet(sheet, tmp_path / "board.png")
    with Pillow.open(tmp_path / "board.png") as file:
        assert file.info["dpi"][0] == pytest.approx(sheet.dpi, rel=1e-3)
        assert file.size == (width, height)
    write_sheet(sheet, tmp_path / "board.pdf")
    box = (tmp_path / "board.pdf").read_bytes().split(b"/MediaBox")[1].split(b"]")[0]
    points = [float(word) for word in box.strip(b" [").split()]
    assert points[2] / 72.0 * 25.4 == pytest.approx(297.0, abs=0.2)
    with pytest.raises(ConfigError, match=r"\.png or \.pdf"):
        write_sheet(sheet, tmp_path / "board.svg")


def test_ruler_of_the_sheet_is_100_mm() -> None:
    sheet = draw_sheet(BOARD, dpi=150)
    dark = sheet.image < 128
    rows = [np.flatnonzero(row) for row in dark[int(0.9 * len(dark)) :]]
    lengths = [row[-1] - row[0] + 1 for row in rows if len(row) and np.ptp(row) == len(row) - 1]
    assert max(lengths) / sheet.dpi * 25.4 == pytest.approx(100.0, abs=0.2)


@pytest.mark.parametrize(
    ("board", "said"),
    [
        (lambda: Board(columns=2), "3 to 30 squares"),
        (lambda: Board(square_m=35.0), "3 to 500 mm"),
        (lambda: Board(marker_m=0.035), "0.4 to 0.95"),
        (lambda: Board(dictionary="7x7"), "unknown dictionary"),
        (lambda: Board(15, 15, dictionary="4x4_50"), "too few markers"),
    ],
)
def test_board_that_makes_no_sense_is_refused(board: type[Board], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        board()


def test_points_are_where_the_detector_sees_them() -> None:
    """Number and place of each corner are OpenCV's."""
    found = Finder(BOARD).find(np.repeat(draw_board(BOARD)[:, :, None], 3, axis=2))
    places = (found.pixels + 0.5) / 100 * BOARD.square_m
    assert found.ids.tolist() == list(range(BOARD.corners))
    np.testing.assert_allclose(places, BOARD.points()[:, :2], atol=2e-4)


# ---------------------------------------------------------------------- intrinsics


def test_intrinsics_are_recovered_from_noisy_pictures() -> None:
    found = calibrate_intrinsics(gathered(), BOARD)
    np.testing.assert_allclose(found.K, K, atol=2.5)
    assert found.rms_px < 0.15
    assert found.coverage > 0.8
    assert (found.height, found.width) == (HEIGHT, WIDTH)
    assert abs(found.K[0, 0] - K[0, 0]) < 5 * found.sigma[0]
    assert found.distortion_px < 1.0
    assert not found.rejected


def test_a_lens_that_bends_is_said() -> None:
    found = calibrate_intrinsics(gathered(bend=-0.15), BOARD)
    assert found.distortion_px > 3.0
    assert found.rms_with_distortion_px < 0.3 < found.rms_px


def test_pictures_of_no_use_are_named_with_their_reason() -> None:
    gathering = Gathering(BOARD)
    (T,) = board_poses(1)
    assert gathering.add("good", picture(T)) == ""
    assert gathering.add("again", picture(T, seed=1)) == "too like good"
    grey = np.full((HEIGHT, WIDTH, 3), 120, np.uint8)
    assert gathering.add("empty", grey).startswith("0 of 24 corners")
    cut = np.ascontiguousarray(picture(T)[:, : WIDTH - 40])
    assert gathering.add("cut", cut) == "it is 600 x 480, others 640 x 480"
    assert [r.name for r in gathering.rejected] == ["again", "empty", "cut"]


def test_view_that_does_not_fit_is_left_out() -> None:
    gathering = Gathering(BOARD)
    gathering.views = list(gathered().views)
    spoilt = gathering.views[3]
    off = np.random.default_rng(0).normal(0.0, 4.0, spoilt.seen.pixels.shape)
    seen = Seen(spoilt.seen.ids, spoilt.seen.pixels + off)
    gathering.views[3] = type(spoilt)("spoilt", seen, spoilt.height, spoilt.width)
    found = calibrate_intrinsics(gathering, BOARD)
    assert [r.name for r in found.rejected] == ["spoilt"]
    assert "blurred" in found.rejected[0].why
    np.testing.assert_allclose(found.K, K, atol=2.5)


def test_views_that_tell_nothing_are_refused() -> None:
    few = Gathering(BOARD)
    few.views = list(gathered().views[:5])
    with pytest.raises(ConfigError, match=r"5 different views .* too few"):
        calibrate_intrinsics(few, BOARD)
    middle = Gathering(BOARD)
    middle.views = [v for v in gathered().views[:1] for _ in range(9)]
    with pytest.raises(ConfigError, match=r"of the picture; bring it near"):
        calibrate_intrinsics(middle, BOARD)
    with pytest.raises(ConfigError, match="focal length"):
        calibrate_intrinsics(gathered(tilt=0.02), BOARD)


# ---------------------------------------------------------------------- hand and eye


@pytest.mark.parametrize("mount", ["wrist", "world"])
def test_camera_is_found_where_it_is(mount: Mount) -> None:
    found = calibrate_hand(pairs(mount, board_poses(12)), BOARD, K, mount)
    X, Z = (WRIST, TABLE) if mount == "wrist" else (FIXED, HELD)
    angle, distance = apart(found.T_parent_cam, X)
    assert math.degrees(angle) < 0.05
    assert distance < 0.0005
    assert apart(found.T_board, Z)[1] < 0.0005
    assert found.rms_px < 0.2
    assert found.rms_px <= found.left_out_px < 0.3
    assert found.rms_mm == pytest.approx(found.rms_px * 0.55 / 0.61, rel=0.3)


@pytest.mark.parametrize("mount", ["wrist", "world"])
def test_camera_is_found_with_an_arm_that_is_not_exact(mount: Mount) -> None:
    """0.5 mm and 0.1 degrees in each reading: about what a small arm does."""
    found = calibrate_hand(
        pairs(mount, board_poses(15), math.radians(0.1), 0.0005), BOARD, K, mount
    )
    angle, distance = apart(found.T_parent_cam, WRIST if mount == "wrist" else FIXED)
    assert math.degrees(angle) < 0.4
    assert distance < 0.004
    assert 0.2 < found.rms_px < found.left_out_px < 4.0
    assert found.moves_mm > 0.1


def test_pictures_alone_are_enough() -> None:
    """Through the detector as well, with wrist and noise."""
    boards = board_poses(10, seed=4)
    finder = Finder(BOARD)
    taken = [
        Pair(p.name, p.T_base_ee, finder.find(picture(T, seed=i)))
        for i, (p, T) in enumerate(zip(pairs("wrist", boards), boards, strict=True))
    ]
    found = calibrate_hand(taken, BOARD, K, "wrist")
    angle, distance = apart(found.T_parent_cam, WRIST)
    assert (math.degrees(angle) < 0.1, distance < 0.001) == (True, True)


def test_pair_that_does_not_fit_is_left_out_and_named() -> None:
    taken = pairs("wrist", board_poses(12))
    slipped = taken[5].T_base_ee @ transform(np.zeros(3), np.array([0.03, 0.0, 0.0]))
    taken[5] = Pair("slipped", slipped, taken[5].seen)
    taken.append(Pair("twice", taken[0].T_base_ee, taken[0].seen))
    taken.append(Pair("bare", taken[0].T_base_ee, Seen(np.arange(3), np.zeros((3, 2)))))
    found = calibrate_hand(taken, BOARD, K, "wrist")
    why = {r.name: r.why for r in found.rejected}
    assert set(why) == {"slipped", "twice", "bare"}
    assert "did the arm move" in why["slipped"]
    assert "where it was in p0" in why["twice"]
    assert apart(found.T_parent_cam, WRIST)[1] < 0.001


def test_poses_that_tell_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"5 different poses .* too few"):
        calibrate_hand(pairs("wrist", board_poses(5)), BOARD, K, "wrist")
    flat = [transform(np.array([0.0, 0.0, 0.0]), np.array([0.02 * i, 0.0, 0.4])) for i in range(9)]
    with pytest.raises(ConfigError, match="turned by at most 0 degrees"):
        calibrate_hand(pairs("wrist", flat), BOARD, K, "wrist")
    one_axis = [
        transform(np.array([0.0, 0.0, 0.12 * i]), np.array([0.01 * i, 0.0, 0.4])) for i in range(9)
    ]
    with pytest.raises(ConfigError, match="about one axis only"):
        calibrate_hand(pairs("wrist", one_axis), BOARD, K, "wrist")


def test_turns_about_two_axes_are_enough() -> None:
    turned = [
        transform(np.array([0.2 * (i % 3), 0.15 * i, 0.0]), np.array([0.4, 0.0, 0.3]))
        for i in range(9)
    ]
    check_turns(turned, 8)


# ---------------------------------------------------------------------- touched corners


def touches(noise_m: float, corners: Sequence[int] = (0, 5, 18, 23, 9)) -> dict[int, Array]:
    rng = np.random.default_rng(2)
    points = BOARD.points() @ TABLE[:3, :3].T + TABLE[:3, 3]
    return {c: points[c] + rng.normal(0.0, noise_m, 3) for c in corners}


def test_fixed_camera_is_found_by_touching_corners() -> None:
    (T_cam_board,) = board_poses(1)
    found = calibrate_touched(touches(0.0003), [exact(T_cam_board, 0, 0.1)], BOARD, K)
    angle, distance = apart(found.T_base_cam, TABLE @ inverse(T_cam_board))
    assert math.degrees(angle) < 0.3
    assert distance < 0.003
    assert 0.05 < found.rms_mm < found.left_out_mm < 2.0
    assert found.rms_px < 0.3


def test_touches_that_tell_nothing_are_refused() -> None:
    seen = [exact(board_poses(1)[0], 0)]
    with pytest.raises(ConfigError, match="3 touched corners are too few"):
        calibrate_touched(touches(0.0, (0, 5, 18)), seen, BOARD, K)
    with pytest.raises(ConfigError, match="on one line"):
        calibrate_touched(touches(0.0, (0, 1, 2, 3, 4)), seen, BOARD, K)
    with pytest.raises(ConfigError, match="corners 0 to 23"):
        calibrate_touched({**touches(0.0), 24: np.zeros(3)}, seen, BOARD, K)
    with pytest.raises(ConfigError, match="not found in any picture"):
        calibrate_touched(touches(0.0), [Seen(np.arange(2), np.zeros((2, 2)))], BOARD, K)
    wrong = touches(0.0, (0, 5, 18, 23, 9, 14))
    wrong[9] = wrong[9] + np.array([0.05, 0.0, 0.0])
    with pytest.raises(ConfigError, match="touch of corner 9"):
        calibrate_touched(wrong, seen, BOARD, K)
