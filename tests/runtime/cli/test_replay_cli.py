"""`zetta replay` draws what was logged: at any size, in step, and without a trace in the log."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image as Pillow

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.replay import Manner, drawing, render_episode
from zetta.runtime.core import Image
from zetta.runtime.episode_log import read_episode
from zetta.runtime.picture_sizes import PictureSize, pictures_of
from zetta.runtime.pictures import OVERLAYS


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a logged episode under the starter bundle."""
    folder = tmp_path_factory.mktemp("logged") / "run"
    args = ("--policy", "toy/reach-exact", "--bundle", "starter", "--out", str(folder))
    assert leave("run", "--sim", "toy", *args) == 0
    return folder / "episodes" / "000"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def frames_of(path: Path, height: int, width: int) -> list[Image]:
    """Return the pictures of a film."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path)]
    decoded = subprocess.run(
        [*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True
    )
    return list(np.frombuffer(decoded.stdout, np.uint8).reshape(-1, height, width, 3))


def test_drawing_at_two_sizes_leaves_the_log_as_it_was(episode: Path) -> None:
    before = {path.name: path.read_bytes() for path in episode.iterdir()}
    record = read_episode(episode)

    for size in ("64", "200x96"):
        args = ("--size", size, "--every", "10", "--video", f"{size}.mp4")
        assert leave("replay", str(episode), *args) == 0

    assert {path.name: path.read_bytes() for path in episode.iterdir()} == before
    again = read_episode(episode)
    assert again.header.result == record.header.result
    assert again.poses is not None
    assert record.poses is not None
    assert np.array_equal(again.poses, record.poses)


@pytest.mark.parametrize("every", [1, 3])
def test_frame_i_of_a_film_is_tick_i_times_every_at_the_rate_of_the_robot(
    episode: Path, every: int
) -> None:
    size = PictureSize(96, 128)
    manner = Manner(("front",), size, every, overlay="none")
    film = render_episode(episode, Path("film.mp4"), manner)
    record = read_episode(episode)
    assert record.poses is not None

    frames = frames_of(Path("film.mp4"), film.height, film.width)
    _, seconds = imageio_ffmpeg.count_frames_and_secs("film.mp4")
    assert len(frames) == film.frames == -(-len(record.ticks) // every) + 1
    assert film.fps == record.header.spec.control_hz / every
    assert seconds == pytest.approx(len(frames) / film.fps, abs=0.011)  # told in hundredths
    with drawing(record) as env:
        for i, frame in enumerate(frames):
            env.show(record.poses[min(i * every, len(record.ticks))])  # type: ignore[attr-defined]
            (drawn,) = pictures_of(env, ("front",), size)
            assert np.abs(frame.astype(int) - drawn.astype(int)).mean() < 6.0


def test_a_film_says_who_drove_or_nothing_at_all(episode: Path) -> None:
    heights = []
    for overlay in OVERLAYS:
        manner = Manner(("front",), PictureSize(96), every=20, overlay=overlay)
        heights.append(render_episode(episode, Path(f"{overlay}.mp4"), manner).height)

    assert heights == [96, 128, 160]


def test_a_strip_takes_the_size_of_each_camera(episode: Path) -> None:
    args = ("--strip", "s.png", "--count", "3", "--size", "96", "--camera", "front")
    assert leave("replay", str(episode), *args) == 0

    with Pillow.open("s.png") as strip:
        assert strip.size == (3 * 128 + 2 * 4, 96 + 2 * 32)


def test_the_answer_declares_the_rate_and_the_size(
    episode: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--size", "64", "--every", "4", "--video", "f.mp4", "--json")
    assert leave("replay", str(episode), *args) == 0

    film = json.loads(capsys.readouterr().out)["film"]
    assert film["fps"] == 5.0
    assert film["every"] == 4
    assert film["cameras"] == ["front", "wrist"]
    assert (film["width"], film["height"]) == (160, 96)


def test_an_existing_file_is_replaced_only_when_told(
    episode: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.png").write_bytes(b"mine")

    assert leave("replay", str(episode), "--strip", "s.png") == 1
    assert "add --force" in capsys.readouterr().err
    assert Path("s.png").read_bytes() == b"mine"
    assert leave("replay", str(episode), "--strip", "s.png", "--force") == 0
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--size", "huge"), "expected WIDTHxHEIGHT"),
        (("--size", "9x9"), "16 to 4096"),
        (("--overlay", "sorce"), "did you mean 'source'"),
        (("--render", "fats"), "did you mean 'fast'"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_anything_is_written(
    episode: Path, args: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("replay", str(episode), "--video", "f.mp4", *args) == 1

    assert words in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_the_help_has_a_heading_for_each_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("replay", "--help") == 0

    text = capsys.readouterr().out
    places = [text.index(f"\n{heading}:") for heading in ("What is shown", "How it is drawn")]
    assert places == sorted(places)
    assert places[0] < text.index("--video") < places[1] < text.index("--size")
