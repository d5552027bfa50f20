"""The episode view tells what the log holds, and the film is in step with it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.runtime.dashboard.board_parts import (
    age,
    board_at,
    browser,
    indexed,
    until,
    write_episode,
    write_run,
)
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.dashboard import draw_command
from zetta.runtime.cli.dashboard_bundles import BundleExplainer
from zetta.runtime.cli.home import home_library
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.dashboard.board import Handed
from zetta.runtime.dashboard.episodes import film_key, in_ascii
from zetta.runtime.dashboard.films import Films
from zetta.runtime.dashboard.records import EpisodeRow
from zetta.runtime.dashboard.series import thinned
from zetta.runtime.episode_log import POSES, LoggedEpisode, read_episode
from zetta.skills.bundle_folders import Member
from zetta.skills.library_history import Author
from zetta.skills.package_files import read_files
from zetta.skills.shelf import library_folder
from zetta.skills.user_library import UserLibrary


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One episode in which a skill had the robot."""
    folder = tmp_path_factory.mktemp("runs")
    assembler = Assembler("zetta run --sim toy --bundle starter")
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy="toy/reach", bundle="starter")
    assembler.assemble(spec, folder / "run" / "episodes" / "000").episode.run()
    assembler.close()
    return folder


@pytest.fixture(scope="module")
def log(runs: Path) -> LoggedEpisode:
    return read_episode(runs / "run" / "episodes" / "000")


@pytest.fixture
def client(runs: Path, tmp_path: Path) -> Iterator[TestClient]:
    board = board_at(runs, tmp_path, Handed(explainer=BundleExplainer()))
    with browser(board) as client:
        yield client


def only(client: TestClient) -> str:
    return str(client.get("/api/episodes").json()["rows"][0]["id"])


def test_episode_tells_who_drove_when_and_what_was_said(
    client: TestClient, log: LoggedEpisode
) -> None:
    told = client.get(f"/api/episodes/{only(client)}").json()

    drove = [s["source"] for s in told["stretches"] for _ in range(s["first"], s["last"] + 1)]
    assert drove == [tick.source for tick in log.ticks]
    assert "skill:regrasp" in drove
    said = [(v["tick"], v["critic"], v["reason"]) for v in told["verdicts"]]
    assert said == [(t.index, v.critic, v.reason) for t in log.ticks for v in t.verdicts]
    assert told["header"]["run"]["sensing"] == "vision"
    assert told["header"]["run"]["versions"]["zetta"]


def test_lines_have_the_values_of_the_log(client: TestClient, log: LoggedEpisode) -> None:
    names = ["gripper_opening", "ee_speed", "action.dz", "arm.ee_pos.y", "arm.opening"]
    answer = client.get(f"/api/episodes/{only(client)}/series", params={"name": names}).json()

    expected = {
        "gripper_opening": [tick.signals["gripper_opening"] for tick in log.ticks],
        "ee_speed": [tick.signals["ee_speed"] for tick in log.ticks],
        "action.dz": [tick.action[2] for tick in log.ticks],
        "arm.ee_pos.y": [tick.proprio.arms[0].ee_pos[1] for tick in log.ticks],
        "arm.opening": [tick.proprio.arms[0].gripper_opening for tick in log.ticks],
    }
    for name, values in expected.items():
        line = answer["lines"][name]
        assert line["ticks"] == [tick.index for tick in log.ticks]
        got = [np.nan if value is None else value for value in line["values"]]
        np.testing.assert_array_equal(got, values)
    assert answer["lines"]["ee_speed"]["values"][0] is None  # unknown at tick 0


def test_every_signal_has_its_level_and_truth_is_no_signal(
    client: TestClient, log: LoggedEpisode
) -> None:
    told = client.get(f"/api/episodes/{only(client)}").json()

    lines = {line["name"]: line for line in told["lines"]}
    assert set(log.ticks[0].signals) <= set(lines)
    assert lines["object_offset"]["level"] == "vision"
    assert lines["gripper_opening"]["level"] == "proprio"
    assert lines["dispersion"]["level"] == "policy"
    assert not any("predicate" in name or "truth" in name for name in lines)


@pytest.mark.parametrize("name", ["nonsense", "arm.ee_pos.w", "action.", "../truth", "verdicts"])
def test_a_line_that_is_not_there_is_refused(client: TestClient, name: str) -> None:
    answer = client.get(f"/api/episodes/{only(client)}/series", params={"name": name})

    assert answer.status_code == 400
    assert "no line" in answer.json()["error"]


def test_why_shows_the_code_with_what_it_saw(client: TestClient, log: LoggedEpisode) -> None:
    at, verdict = next((t.index, v) for t in log.ticks for v in t.verdicts)
    asked = {"tick": str(at), "critic": verdict.critic}
    told = client.get(f"/api/episodes/{only(client)}/why", params=asked).json()

    assert told["same"]
    assert verdict.reason in told["source"].splitlines()[told["decided"] - 1]
    assert told["level"] == "vision"
    seen = {note["text"]: note["value"] for note in told["annotations"]}
    assert seen["now(w.object_confidence)"] == verdict.evidence["object_confidence"]
    assert seen["p.near"] == told["parameters"]["near"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"tick": "1", "critic": "regrap"}, "did you mean 'regrasp'"),
        ({"tick": "-1", "critic": "regrasp"}, "whole number"),
        ({"critic": "regrasp"}, "whole number"),
    ],
)
def test_why_refuses_in_words(client: TestClient, asked: dict[str, str], said: str) -> None:
    answer = client.get(f"/api/episodes/{only(client)}/why", params=asked)

    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_why_finds_the_version_of_a_library_that_was_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    library, me = UserLibrary(home_library()), Author("ada", "zetta skills promote")
    library.promote(Member(read_files(library_folder() / "regrasp")), me)
    folder = tmp_path / "runs" / "000"
    assembler = Assembler()
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy="toy/reach", bundle="library")
    assembler.assemble(spec, folder).episode.run()
    assembler.close()
    record = read_episode(folder)
    at = next(tick.index for tick in record.ticks if tick.verdicts)
    assert BundleExplainer().explain(record, "regrasp", at).same

    library.promote(Member(read_files(library_folder() / "reseat")), me)
    assert BundleExplainer().explain(record, "regrasp", at).same

    facts = replace(record.header.run, bundle_digest="0" * 64)
    strange = replace(record, header=replace(record.header, run=facts))
    assert not BundleExplainer().explain(strange, "regrasp", at).same


def test_thinning_keeps_every_peak() -> None:
    values = np.sin(np.arange(100_000) / 500.0)
    values[54_321], values[77_777] = 9.0, -9.0
    ticks, kept = thinned(np.arange(100_000), values)

    assert len(kept) <= 4000
    assert {54_321, 77_777} <= set(ticks.tolist())
    assert (np.diff(ticks) > 0).all()


# ------------------------------------------------------------------ film


def with_a_flash(folder: Path, flash: int) -> LoggedEpisode:
    """Let nothing move in a log but at one tick, at which everything is elsewhere."""
    record = read_episode(folder)
    assert record.poses is not None
    poses = np.repeat(record.poses[:1], len(record.poses), axis=0)
    poses[flash] = record.poses[flash]
    np.savez_compressed(folder / POSES, poses=poses)
    return read_episode(folder)


def frame_at(film: Path, seconds: float) -> np.ndarray:
    """Return the frame that begins at a time, without its caption. Shape (height, width, 3)."""
    # It gives the first frame that begins at this time or later.
    start = max(0.0, seconds - 1e-3)
    reader = imageio_ffmpeg.read_frames(str(film), input_params=["-ss", f"{start:.6f}"])
    size = next(reader)["size"]
    frame = np.frombuffer(next(reader), dtype=np.uint8).reshape(size[1], size[0], 3)
    reader.close()
    return frame[:-32].astype(np.int16)


def test_an_episode_made_anew_in_the_place_of_another_has_a_film_of_its_own(
    tmp_path: Path,
) -> None:
    log = write_run(tmp_path / "runs" / "one", "s") / "episodes" / "000"
    indexer, store = indexed(tmp_path / "runs", tmp_path / "cache")
    before = EpisodeRow(**store.rows("SELECT * FROM episodes")[0])
    log.rename(tmp_path / "old")  # a folder that was deleted could leave its inode to the new one
    write_episode(log)
    age(log.parent, 1.0)
    indexer.lap()
    after = EpisodeRow(**store.rows("SELECT * FROM episodes")[0])

    assert before.id == after.id
    assert film_key(before) != film_key(after)


def test_a_page_of_a_log_that_is_damaged_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "sss")
    half, odd, letters = (run / "episodes" / f"{n:03d}" / "episode.json" for n in range(3))
    half.write_text('{"half', encoding="utf-8")
    odd.write_text(odd.read_text().replace('"complete": true', '"complete": [1]'))
    letters.write_text(letters.read_text().replace('"instruction": "', '"instruction": "\\ud800'))
    with browser(board_at(tmp_path / "runs", tmp_path / "cache")) as client:
        rows = client.get("/api/episodes", params={"sort": "name"}).json()["rows"]
        told = {r["name"]: client.get(f"/api/episodes/{r['id']}") for r in rows}
        film = next(f"/api/episodes/{r['id']}/film" for r in rows if r["name"] == "000")
        assert client.get(film).status_code == 400

    assert {answer.status_code for answer in told.values()} == {200}
    assert "Unterminated string" in told["000"].json()["row"]["error"]
    assert "complete" in told["001"].json()["problem"]
    assert told["002"].json()["row"]["instruction"].startswith("?")


def test_an_answer_may_hold_half_letters() -> None:
    assert json.loads(bytes(in_ascii({"said": "\ud800"}).body)) == {"said": "\ud800"}


def test_frame_of_a_tick_is_at_its_time(runs: Path, tmp_path: Path) -> None:
    flash = 60
    source, folder = runs / "run" / "episodes" / "000", tmp_path / "runs" / "run" / "episodes" / "0"
    folder.mkdir(parents=True)
    for path in source.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    record = with_a_flash(folder, flash)
    films = Films(tmp_path / "films", draw_command)
    board = board_at(tmp_path / "runs", tmp_path / "cache", films=films)
    with browser(board) as client:
        address = f"/api/episodes/{only(client)}/film"
        assert client.get(address).json()["state"] == "absent"
        assert client.get(f"{address}.mp4").status_code == 404
        client.get(address, params={"draw": "1"})
        until(lambda: client.get(address).json()["state"] not in ("waiting", "drawing"))
        assert client.get(address).json()["state"] == "ready"
        part = client.get(f"{address}.mp4", headers={"Range": "bytes=0-99"})
        assert (part.status_code, len(part.content)) == (206, 100)
        film = tmp_path / "film.mp4"
        film.write_bytes(client.get(f"{address}.mp4").content)
    assert not list(folder.glob("*.mp4")), "a log stays as it was written"

    hz = record.header.spec.control_hz
    still = frame_at(film, 0.0)
    apart = {
        tick: float(np.abs(frame_at(film, tick / hz) - still).mean())
        for tick in (flash - 2, flash - 1, flash, flash + 1, flash + 2)
    }
    assert apart[flash] > 5 * max(apart[tick] for tick in apart if tick != flash)
    facts = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(film), "-vf", "showinfo", "-f", "null", "-"],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    times = [float(text) for text in re.findall(r"pts_time:\s*([\d.]+)", facts)]
    np.testing.assert_allclose(times, np.arange(len(record.ticks) + 1) / hz, atol=1e-4)


def test_why_there_is_no_film_is_said(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "run" / "episodes" / "0"
    folder.mkdir(parents=True)
    for path in (runs / "run" / "episodes" / "000").iterdir():
        if path.name != POSES:
            (folder / path.name).write_bytes(path.read_bytes())
    with browser(board_at(tmp_path / "runs", tmp_path / "cache")) as client:
        film = client.get(f"/api/episodes/{only(client)}/film", params={"draw": "1"}).json()
        told = client.get(f"/api/episodes/{only(client)}").json()

    assert film["state"] == "failed"
    assert "no poses" in film["why"]
    assert told["film"] == film["why"]
    assert told["lines"]


def test_a_process_that_cannot_draw_says_why(runs: Path, tmp_path: Path) -> None:
    def refusing(log: Path, film: Path) -> tuple[str, ...]:
        said = '{"error": {"kind": "InfraError", "message": "there is no EGL display"}}'
        return ("sh", "-c", f"echo '{said}'; exit 1")

    films = Films(tmp_path / "films", refusing)
    with browser(board_at(runs, tmp_path, films=films)) as client:
        address = f"/api/episodes/{only(client)}/film"
        client.get(address, params={"draw": "1"})
        until(lambda: client.get(address).json()["state"] == "failed")
        assert client.get(address).json()["why"] == "there is no EGL display"


def test_drawing_ends_with_the_server(runs: Path, tmp_path: Path) -> None:
    alive = tmp_path / "alive"

    def endless(log: Path, film: Path) -> tuple[str, ...]:
        return ("sh", "-c", f"echo 'video: 3/40' >&2; touch {alive}; sleep 600")

    films = Films(tmp_path / "films", endless)
    films.want("a", runs)
    until(alive.exists)
    assert films.state("a").progress == "video: 3/40"
    child = films._child
    assert child is not None
    films.close()
    assert child.poll() is not None


def test_old_films_make_room_for_new_ones(tmp_path: Path) -> None:
    def writing(log: Path, film: Path) -> tuple[str, ...]:
        return ("sh", "-c", f"head -c 1000 /dev/zero > {film}")

    films = Films(tmp_path / "films", writing, most=2500)
    for key in ("a", "b", "c"):
        films.want(key, tmp_path)
        until(lambda key=key: films.state(key).state == "ready")
    until(lambda: films.state("a").state == "absent")
    assert films.state("b").state == films.state("c").state == "ready"
    films.close()
