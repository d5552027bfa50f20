"""`zetta export` as a user meets it: answers, refusals, and going on after a kill."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

from tests.runtime.export.export_runs import drawn_again, log, logs, pictures_of, psnr
from zetta.runtime.cli import export_pictures
from zetta.runtime.cli import main as cli
from zetta.runtime.episode_log import POSES
from zetta.runtime.export import films, ledger
from zetta.runtime.pictures import drawn


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["export", *args])
    assert isinstance(left.value.code, int)
    return left.value.code


def answer(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert leave(*args, "--json") == 0
    out: dict[str, Any] = json.loads(capsys.readouterr().out)
    return out


def files(root: Path) -> dict[str, str]:
    """Return the digest of every file of an export; the marker holds the command."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in (".lock", "zetta.json")
    }


def test_the_answer_says_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episodes = logs(tmp_path / "run", 2)
    told = answer(
        capsys, str(tmp_path / "run"), "--lerobot", str(tmp_path / "out"), "--size", "32x32"
    )
    assert told["episodes"] == 2
    assert told["frames"] == sum(len(e.ticks) for e in episodes)
    assert told["cameras"] == ["front", "wrist"]
    assert told["skills"] == ["lift"]
    path = tmp_path / "out/videos/observation.images.front/chunk-000/file-000.mp4"
    assert pictures_of(path)[0].shape == (32, 32, 3)


def test_only_interventions_are_exported_with_their_own_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episode = log(tmp_path / "run", skills=(10,))
    told = answer(capsys, str(tmp_path / "run"), "--lerobot", str(tmp_path / "out"),
                  "--only", "interventions", "--margin", "2", "--camera", "front")  # fmt: skip
    assert told["frames"] == 9
    frames = pq.read_table(tmp_path / "out/data/chunk-000/file-000.parquet")
    assert frames.column("tick").to_pylist() == list(range(8, 17))
    assert frames.column("timestamp").to_pylist()[1] == pytest.approx(0.05)
    decoded = pictures_of(tmp_path / "out/videos/observation.images.front/chunk-000/file-000.mp4")
    assert len(decoded) == 9
    assert psnr(decoded[0], drawn_again(episode, "front")[8]) > 29.0


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


def test_an_interrupted_export_goes_on_and_comes_to_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs(tmp_path / "run")
    run, out = str(tmp_path / "run"), tmp_path / "out"
    answer(capsys, run, "--lerobot", str(tmp_path / "whole"))
    drawings = 0

    def dying(*args: Any) -> Any:
        nonlocal drawings
        drawings += 1
        for k, each in enumerate(drawn(*args)):
            if drawings == 3 and k == 4:
                raise Killed
            yield each

    monkeypatch.setattr(export_pictures, "drawn", dying)
    with pytest.raises(Killed):
        cli.main(["export", run, "--lerobot", str(out)])
    assert not (out / "meta").exists()
    assert not (out / "zetta.json").exists()
    told = answer(capsys, run, "--lerobot", str(out))
    assert told["kept"] == 2
    assert drawings == 4  # only the third episode was drawn anew
    assert files(out) == files(tmp_path / "whole")
    assert answer(capsys, run, "--lerobot", str(out))["kept"] == 3  # nothing is left to do
    assert drawings == 4


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_kill_while_parts_are_put_together_spoils_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    dies_at: int,
) -> None:
    logs(tmp_path / "run", 2)
    run, out = str(tmp_path / "run"), tmp_path / "out"
    answer(capsys, run, "--lerobot", str(tmp_path / "whole"))
    replaced = 0
    replace = Path.replace

    def dying(self: Path, target: Path) -> Path:
        nonlocal replaced
        if self.suffix == ".part" and "row.json" not in self.name and "plan" not in self.name:
            replaced += 1
            if replaced == dies_at:
                raise Killed
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dying)
        with pytest.raises(Killed):
            cli.main(["export", run, "--lerobot", str(out)])
    assert not (out / "zetta.json").exists()
    answer(capsys, run, "--lerobot", str(out))
    assert files(out) == files(tmp_path / "whole")
    assert not (out / ".export").exists()


def test_a_killed_process_leaves_finished_episodes_and_no_data_set(tmp_path: Path) -> None:
    logs(tmp_path / "run", 6)
    out = tmp_path / "out"
    args = ["export", str(tmp_path / "run"), "--lerobot", str(out)]
    # The program kills itself, so that nothing depends on the moment.
    program = f"""
import os, signal
from zetta.runtime.export import ledger
from zetta.runtime.cli.main import main
added, kept = [], ledger.Ledger.add
def add(self, number, write):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    kept(self, number, write)
ledger.Ledger.add = add
main({args!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env={**os.environ}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert sorted(p.name for p in (out / ".export/parts").iterdir()) == [
        f"{k:06d}" for k in range(3)
    ]
    assert not (out / "meta").exists()
    assert leave(*args[1:]) == 0
    assert (out / "zetta.json").exists()


def test_a_folder_that_holds_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs(tmp_path / "run", 1)
    run, out = str(tmp_path / "run"), tmp_path / "out"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    assert leave(run, "--lerobot", str(tmp_path / "full")) == 1
    assert "already holds mine.txt" in capsys.readouterr().err
    assert leave(run, "--lerobot", str(out), "--no-videos") == 0
    before = files(out)
    log(tmp_path / "run/episodes/009", init=5)
    for other in ((), ("--no-videos",), ("--no-videos", "--state", "ee_pos")):
        assert leave(run, "--lerobot", str(out), *other) == 1
        assert "an export of other episodes or options" in capsys.readouterr().err
    assert files(out) == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "got 0 of --lerobot"),
        (("--lerobot", "a", "--parquet", "b"), "got 2 of --lerobot"),
        (("--lerobot", "a", "--only", "intervention"), "did you mean 'interventions'?"),
        (("--lerobot", "a", "--size", "33"), "even sides"),
        (("--lerobot", "a", "--size", "big"), "WIDTHxHEIGHT"),
        (("--lerobot", "a", "--only", "interventions", "--margin", "-1"), "0 or greater"),
        (("--lerobot", "a", "--margin", "5"), "goes with --only"),
        (("--lerobot", "a", "--camera", "frnt"), "did you mean 'front'?"),
        (("--lerobot", "a", "--no-videos", "--state", "ee_po"), "did you mean 'ee_pos'"),
    ],
)
def test_a_wrong_wish_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path / "run")
    assert leave("run", *args) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_an_episode_without_poses_is_exported_without_pictures_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path / "run")
    (tmp_path / "run" / POSES).unlink()
    assert leave(str(tmp_path / "run"), "--lerobot", str(tmp_path / "out")) == 1
    assert "--no-videos exports the rest" in capsys.readouterr().err
    told = answer(capsys, str(tmp_path / "run"), "--lerobot", str(tmp_path / "out"), "--no-videos")
    assert told["cameras"] == []
    features = json.loads((tmp_path / "out/meta/info.json").read_text())["features"]
    assert not any(f["dtype"] == "video" for f in features.values())


def test_too_little_room_is_said_before_anything_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path / "run")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(ledger.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    assert leave(str(tmp_path / "run"), "--lerobot", str(tmp_path / "out")) == 1
    assert "make room" in capsys.readouterr().err


def test_a_disk_that_fills_keeps_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs(tmp_path / "run", 2)
    out = tmp_path / "out"
    write = pq.write_table

    def full(table: Any, where: Any, **more: Any) -> None:
        if "000001" in str(where):
            raise OSError(28, "No space left on device")
        write(table, where, **more)

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        assert leave(str(tmp_path / "run"), "--lerobot", str(out), "--no-videos") == 1
    assert "the same command goes on" in capsys.readouterr().err
    told = answer(capsys, str(tmp_path / "run"), "--lerobot", str(out), "--no-videos")
    assert told["kept"] == 1


def test_plain_parquet_holds_the_columns_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episodes = logs(tmp_path / "run", 2)
    answer(capsys, str(tmp_path / "run"), "--parquet", str(tmp_path / "out"), "--camera", "wrist")
    listed = pq.read_table(tmp_path / "out/episodes.parquet").to_pylist()
    assert [row["ticks"] for row in listed] == [len(e.ticks) for e in episodes]
    for k, episode in enumerate(episodes):
        made = pq.read_table(tmp_path / f"out/episodes/episode-{k:06d}.parquet")
        logged = pq.read_table(tmp_path / f"run/episodes/{k:03d}/ticks.parquet").to_pandas()
        assert_frame_equal(made.to_pandas()[list(logged.columns)], logged)  # NaN equals NaN
        assert made.column("skill").to_pylist() == [
            "lift" if t.source == "skill:lift" else "" for t in episode.ticks
        ]
        video = tmp_path / f"out/videos/episode-{k:06d}.wrist.mp4"
        assert len(pictures_of(video)) == len(episode.ticks)


def test_npz_has_the_arrays_that_users_of_gymnasium_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episode = log(tmp_path / "run")
    answer(capsys, str(tmp_path / "run"), "--gymnasium", str(tmp_path / "out"), "--no-videos")
    with np.load(tmp_path / "out/episodes/episode-000000.npz", allow_pickle=False) as made:
        assert np.array_equal(made["actions"], np.stack([t.action for t in episode.ticks]))
        assert len(made["observations/state"]) == len(episode.ticks)
        assert made["truncations"].tolist() == [*[False] * 23, True]
        assert not made["terminations"].any()
        assert made["infos/source"].tolist() == [t.source for t in episode.ticks]
        assert made["infos/intervention"].sum() == 5


def test_a_video_that_lost_a_picture_is_no_finished_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path / "run")
    add = films.Film.add
    monkeypatch.setattr(
        films.Film,
        "add",
        lambda self, i: None if self.frames == 9 and _lost(self) else add(self, i),
    )
    assert leave(str(tmp_path / "run"), "--lerobot", str(tmp_path / "out")) == 1
    assert "has 23 pictures, expected 24" in capsys.readouterr().err


_forgotten: set[int] = set()


def _lost(film: films.Film) -> bool:
    """Say once for each film that its next picture is lost."""
    lost = id(film) not in _forgotten
    _forgotten.add(id(film))
    return lost
