"""`zetta arms calibrate`, from pictures on disk to the file that a set-up is read with."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
)
from tests.hw_drivers.test_arms_cli import run
from zetta.hw_drivers.arm import ArmReading
from zetta.hw_drivers.arm_record_file import (
    RecordingHeader,
    columns_of,
    read_recording,
    row_of,
    write_header,
)
from zetta.hw_drivers.arm_setup import CalibratedCamera, read_setup
from zetta.hw_drivers.calibration_file import read_calibration, rows, write_calibration
from zetta.hw_drivers.calibration_hand import Mount
from zetta.hw_drivers.calibration_pairs import shots_of
from zetta.hw_drivers.calibration_poses import apart, inverse, transform
from zetta.hw_drivers.camera_stream import CameraPublisher
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.runtime.tracking import quat_of_rotvec

pytest.importorskip("cv2", reason="needs OpenCV (pip install 'zetta[cameras]')")

WRIST = transform(np.array([0.1, -0.2, 1.5]), np.array([0.05, 0.0, -0.06]))
TABLE = transform(np.array([3.0, 0.1, 0.2]), np.array([0.5, 0.0, 0.02]))
FIXED = transform(np.array([2.0, 0.3, 0.2]), np.array([0.9, 0.1, 0.5]))
HELD = transform(np.array([0.2, 1.2, 0.2]), np.array([0.0, 0.02, 0.05]))
T_WORLD_BASE = transform(np.zeros(3), np.array([0.1, 0.2, 0.0]))

SETUP = """
name = "bench"
base_pos = [0.1, 0.2, 0.0]
[cameras.eye]
source = "zmq:tcp://127.0.0.1:5704"
height = 480
width = 640
mount = "{mount}"
intrinsics = {intrinsics}
T_parent_cam = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
"""


def setup_file(folder: Path, mount: Mount = "world", exact: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "arm.toml"
    rough = [[500, 0, 320], [0, 500, 240], [0, 0, 1]]
    path.write_text(SETUP.format(mount=mount, intrinsics=K.tolist() if exact else rough))
    return path


def pose_of(T: Array) -> tuple[list[float], list[float]]:
    from zetta.hw_drivers.calibration_poses import vector

    x, y, z = vector(T)[:3].tolist()
    return T[:3, 3].tolist(), list(quat_of_rotvec((x, y, z)))


def write_pairs(folder: Path, boards: Sequence[Array], hands: Sequence[Array]) -> Path:
    folder.mkdir()
    lines = []
    for index, (T, hand) in enumerate(zip(boards, hands, strict=True)):
        Pillow.fromarray(picture(T, seed=index)).save(folder / f"{index}.png", compress_level=1)
        pos, quat = pose_of(hand)
        lines.append(json.dumps({"file": f"{index}.png", "ee_pos": pos, "ee_quat": quat}))
    (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def answer(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> Any:
    assert run("arms", "calibrate", *argv, "--json") == code
    return json.loads(capsys.readouterr().out)


def test_board_is_drawn_and_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "board.pdf"
    said = answer(capsys, "board", "--out", str(file), "--squares", "9x6", "--square-mm", "28")
    assert (said["width_mm"], said["height_mm"], said["paper"]) == (252.0, 168.0, "A4")
    assert file.read_bytes().startswith(b"%PDF")
    assert (
        "exists already" in answer(capsys, "board", "--out", str(file), code=1)["error"]["message"]
    )
    assert "7x5" in answer(capsys, "board", "--squares", "7", code=1)["error"]["message"]


def test_intrinsics_then_extrinsics_give_a_file_that_the_set_up_is_read_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, out = setup_file(tmp_path, "wrist", exact=False), tmp_path / "calibration.toml"
    shown = tmp_path / "pictures"
    shown.mkdir()
    for index, T in enumerate(board_poses(10)):
        Pillow.fromarray(picture(T, seed=index)).save(shown / f"{index}.png", compress_level=1)
    Pillow.fromarray(np.zeros((HEIGHT, WIDTH, 3), np.uint8)).save(shown / "dark.png")
    camera = ("--setup", str(setup), "--camera", "eye", "--out", str(out))
    said = answer(capsys, "intrinsics", str(shown), *camera)
    np.testing.assert_allclose(said["intrinsics"], K, atol=3.0)
    assert [r["name"] for r in said["rejected"]] == ["dark"]

    boards = board_poses(8, seed=5)
    pairs = write_pairs(tmp_path / "pairs", boards, hand_poses(WRIST, TABLE, "wrist", boards))
    said = answer(capsys, "extrinsics", str(pairs), *camera)
    assert said["left_out_px"] < 0.6
    assert len(said["pairs"]) == 8
    found = read_setup(setup, out).cameras["eye"]
    assert apart(np.array(found.T_parent_cam), WRIST)[1] < 0.002
    np.testing.assert_allclose(found.intrinsics, K, atol=3.0)
    text = out.read_text()
    assert "# error" in text
    assert run("arms", "calibrate", "extrinsics", str(pairs), *camera) == 0
    assert "px left out" in capsys.readouterr().out


def test_fixed_camera_is_written_in_the_world(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, out = setup_file(tmp_path), tmp_path / "measured.toml"
    setup.write_text('calibration = "measured.toml"\n' + setup.read_text())
    with pytest.raises(ConfigError, match=r"measured\.toml"):
        read_setup(setup)  # it names what is not measured yet
    boards = board_poses(8, seed=6)
    pairs = write_pairs(tmp_path / "pairs", boards, hand_poses(FIXED, HELD, "world", boards))
    said = answer(capsys, "extrinsics", str(pairs), "--setup", str(setup), "--camera", "eye")
    assert said["file"] == str(out)
    found = np.array(read_setup(setup).cameras["eye"].T_parent_cam)
    assert apart(found, T_WORLD_BASE @ FIXED)[1] < 0.002


def test_touched_corners_place_a_fixed_camera(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, out = setup_file(tmp_path), tmp_path / "calibration.toml"
    (T_cam_board,) = board_poses(1)
    shown = tmp_path / "pictures"
    shown.mkdir()
    Pillow.fromarray(picture(T_cam_board)).save(shown / "0.png")
    places = BOARD.points() @ TABLE[:3, :3].T + TABLE[:3, 3]
    touched = tmp_path / "touched.toml"
    touched.write_text(
        "[corners]\n" + "".join(f"{c} = {places[c].tolist()}\n" for c in (0, 5, 18, 23))
    )
    camera = ("--setup", str(setup), "--camera", "eye", "--out", str(out))
    said = answer(capsys, "extrinsics", str(shown), *camera, "--touched", str(touched))
    assert said["left_out_mm"] < 0.1
    found = np.array(read_setup(setup, out).cameras["eye"].T_parent_cam)
    assert apart(found, T_WORLD_BASE @ TABLE @ inverse(T_cam_board))[1] < 0.003
    touched.write_text("[corners]\n0 = [1, 2]\n")
    said = answer(capsys, "extrinsics", str(shown), *camera, "--touched", str(touched), code=1)
    assert "is no corner" in said["error"]["message"]


def test_bad_geometry_is_one_sentence_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, out = setup_file(tmp_path, "wrist"), tmp_path / "calibration.toml"
    boards = board_poses(3)
    pairs = write_pairs(tmp_path / "pairs", boards, hand_poses(WRIST, TABLE, "wrist", boards))
    camera = ("--setup", str(setup), "--camera", "eye", "--out", str(out))
    said = answer(capsys, "extrinsics", str(pairs), *camera, code=1)
    assert "3 different poses of the hand" in said["error"]["message"]
    assert not out.exists()
    said = answer(capsys, "extrinsics", str(tmp_path), *camera, code=1)
    assert "no recording" in said["error"]["message"]
    wrong = (*camera[:2], "--camera", "ear", *camera[4:])
    assert (
        "no camera 'ear'"
        in answer(capsys, "extrinsics", str(pairs), *wrong, code=1)["error"]["message"]
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"file": "0.png"}', "line 1 of"),
        ('{"file": "0.png", "ee_pos": [0, 0, "a"], "ee_quat": [0, 0, 0, 1]}', "no number"),
        ('{"file": "0.png", "ee_pos": [0, 0, 0], "ee_quat": [0, 0, 0, 2]}', "no pose"),
    ],
)
def test_line_of_pairs_that_is_none_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "pairs.jsonl").write_text(line + "\n")
    with pytest.raises(ConfigError, match=said):
        shots_of(tmp_path, "eye")


# ---------------------------------------------------------------------- recordings


def recording(
    folder: Path,
    hands: Sequence[Array],
    still_s: float = 1.0,
    start: Array | None = None,
) -> Path:
    """Write a recording of a hand that goes from place to place, with a picture each 0.1 s."""
    facts = SimpleSide().facts
    folder.mkdir()
    (folder / "eye").mkdir()
    state, t, number, at, move_s = [], 0.0, 0, [], 0.5
    reading = SimpleSide().read()
    for before, hand in zip([hands[0] if start is None else start, *hands], hands, strict=False):
        for step in range(round((still_s + move_s) * 100)):
            share = min(1.0, step / (100 * move_s))
            shown = hand if share >= 1.0 else before
            pos = (1 - share) * before[:3, 3] + share * hand[:3, 3]
            _, quat = pose_of(shown)
            number += 1
            moved: ArmReading = replace(reading, ee_pos=pos, ee_quat=np.array(quat))
            state.append(row_of(t, number, 0, moved).tobytes())
            if step % 10 == 5:
                at.append(t)
            t += 0.01
    (folder / "states.f64").write_bytes(b"".join(state) + b"torn")
    for index, when in enumerate(at):
        Pillow.new("RGB", (8, 8)).save(folder / "eye" / f"{index:06d}.jpg")
        with (folder / "eye.jsonl").open("a") as file:
            file.write(json.dumps({"file": f"{index:06d}.jpg", "t": when}) + "\n")
    with (folder / "eye.jsonl").open("a") as file:
        file.write('{"file": "0000')
    write_header(folder, RecordingHeader("tcp://x:1", facts, columns_of(facts), ("eye",), "now"))
    return folder


def test_one_picture_is_taken_of_each_place_where_the_hand_stood_still(tmp_path: Path) -> None:
    hands = [
        transform(np.array([0.1 * i, 0.0, 0.0]), np.array([0.4, 0.05 * i, 0.3])) for i in range(4)
    ]
    folder = recording(tmp_path / "rec", hands)
    read = read_recording(folder)
    assert not read.header.complete
    assert len(read.rows) == 600
    shots = shots_of(folder, "eye")
    assert len(shots) == len(hands)
    for shot, hand in zip(shots, hands, strict=True):
        assert apart(shot.T_base_ee, hand)[1] < 1e-6
    with pytest.raises(ConfigError, match="no pictures of 'ear'"):
        shots_of(folder, "ear")


def test_recording_of_an_arm_that_never_rests_is_refused(tmp_path: Path) -> None:
    hands = [transform(np.zeros(3), np.array([0.4, 0.2 * (i % 2), 0.3])) for i in range(3)]
    with pytest.raises(ConfigError, match="never still"):
        shots_of(recording(tmp_path / "rec", hands, 0.2, hands[1]), "eye")


# ---------------------------------------------------------------------- live, and the file


def test_live_views_are_taken_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zetta.runtime.cli.arms_calibrate_views.LOOK_EVERY_S", 0.0)
    publisher = CameraPublisher("tcp://127.0.0.1:*", "eye")
    over = threading.Event()
    boards = board_poses(12)
    pictures = [picture(T, seed=i) for i, T in enumerate(boards)]

    def show() -> None:
        import time

        while not over.is_set():
            for image in pictures:
                publisher.send(Frame(image, time.monotonic()))
                if over.wait(0.1):
                    return

    thread = threading.Thread(target=show)
    thread.start()
    try:
        setup = setup_file(tmp_path)
        setup.write_text(setup.read_text().replace("tcp://127.0.0.1:5704", publisher.endpoint))
        camera = ("--setup", str(setup), "--camera", "eye", "--out", str(tmp_path / "c.toml"))
        said = answer(capsys, "intrinsics", *camera, "--views", "9")
    finally:
        over.set()
        thread.join()
        publisher.close()
    np.testing.assert_allclose(said["intrinsics"], K, atol=4.0)
    assert len(said["views"]) == 9


def test_other_cameras_and_their_notes_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "calibration.toml"
    one = CalibratedCamera(480, 640, rows(K), rows(np.eye(4)))
    other = replace(one, T_parent_cam=rows(WRIST))
    write_calibration(path, "front", one, ["first"])
    write_calibration(path, 'od"d name', other, ["second", "third"])
    write_calibration(path, "front", other, ["again"])
    assert read_calibration(path).cameras == {"front": other, 'od"d name': other}
    text = path.read_text()
    assert ["# again" in text, "# first" in text, "# third" in text] == [True, False, True]
    path.write_text("[cameras.front]\nheight = 1\n")
    with pytest.raises(ConfigError, match="cannot read the calibrations"):
        read_calibration(path)


def test_help_of_every_command_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[Callable[[], int]] = [
        lambda: run("arms", "--help"),
        lambda: run("arms", "calibrate", "--help"),
        lambda: run("arms", "calibrate", "extrinsics", "--help"),
        lambda: run("arms", "record", "--help"),
    ]
    assert [command() for command in commands] == [0, 0, 0, 0]
    assert "print" in capsys.readouterr().out
