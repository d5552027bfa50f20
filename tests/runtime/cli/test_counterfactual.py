"""`zetta replay --counterfactual` on the toy, with a planted fault and the skill that mends it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Pillow

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.counterfactual import Brancher
from zetta.runtime.cli.planted_fix import FAULT, NAME, POLICY, write_fix
from zetta.runtime.episode_log import POSES, TICKS, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.loop import Episode

AT = 80
"""A tick of the failing episode at which what was held lies on the table."""


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    return int(left.value.code or 0)


def run(folder: Path, *more: str) -> Path:
    """Run the toy scene in which the planted fault makes the policy fail, and return the log."""
    # The fault freezes the camera: what is seen with it would mislead the skill as well.
    args = ["--sim", "toy", "--policy", POLICY, "--sensing", "oracle", "--init", "sampled"]
    args += ["--seed", "2", "--option", f"toy_faults={FAULT}", "--out", str(folder), *more]
    assert leave("run", *args) == 0
    return folder / "episodes" / "000"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("failed") / "run")


@pytest.fixture(scope="module")
def fix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fix(tmp_path_factory.mktemp("fix"))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    capsys.readouterr()


def ask(
    capsys: pytest.CaptureFixture[str], episode: Path, *args: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    quick = ("--seeds", "1", "--size", "32", "--every", "40", "--count", "2")
    assert leave("replay", str(episode), "--counterfactual", *args, *quick, "--json") == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def same_actions(one: LoggedEpisode, other: LoggedEpisode, ticks: int) -> bool:
    pairs = list(zip(one.ticks[:ticks], other.ticks[:ticks], strict=True))
    return all(a.source == b.source and np.array_equal(a.action, b.action) for a, b in pairs)


# ------------------------------------------------------------------ what it shows


def test_the_right_skill_would_have_solved_a_failed_episode(
    failed: Path, fix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf")

    as_it_was, with_skill = answer["branches"]
    assert (as_it_was["successes"], as_it_was["n"]) == (0, 1)
    assert (with_skill["successes"], with_skill["n"]) == (1, 1)
    assert answer["exactness"] == {
        "ticks": AT, "first": None, "action": 0.0, "state": 0.0, "equal": True,
    }  # fmt: skip
    assert answer["evidence"] is False
    assert "not evidence" in answer["note"]
    assert answer["continuations"][1]["sources"][f"skill:{NAME}"] == 32
    assert json.loads(Path("cf/counterfactual.json").read_text())["branches"] == answer["branches"]


def test_the_branch_without_a_change_is_the_log_action_for_action_and_state_for_state(
    failed: Path, fix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf")
    log = read_episode(failed)
    one, other = (read_episode(Path(each["log"])) for each in answer["continuations"])

    assert answer["as_logged"] is True
    assert len(one.ticks) == len(log.ticks)
    assert same_actions(one, log, len(log.ticks))
    assert one.poses is not None
    assert log.poses is not None
    assert other.poses is not None
    assert np.array_equal(one.poses, log.poses)
    assert same_actions(other, log, AT)
    assert np.array_equal(other.poses[: AT + 1], log.poses[: AT + 1])
    assert other.ticks[AT].source == f"skill:{NAME}"
    assert one.header.run.options["counterfactual"] == f"unchanged from tick {AT} on"


def test_the_pictures_show_both_on_one_time_axis(
    failed: Path, fix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf", "--camera", "front")

    film = answer["film"]
    assert film["fps"] == 20.0 / 40
    assert film["frames"] == (160 - (AT - 40)) // 40 + 1
    assert film["width"] == 2 * 48 + 16  # 43 pixels each, up to a multiple of 16
    strip = next(path for path in answer["pictures"] if path.endswith(".png"))
    with Pillow.open(strip) as picture:
        assert picture.size == (3 * 43 + 2 * 4, 32 + 2 * (32 + 32))


def test_a_person_reads_a_table_and_that_it_is_no_evidence(
    failed: Path, fix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--counterfactual", str(AT), "--skill", str(fix), "--seeds", "2", "--every", "40")
    assert leave("replay", str(failed), *args, "--out", "cf") == 0

    out = capsys.readouterr().out
    assert f"with {NAME}  2/2     1 " in out
    assert "80 ticks repeated, every action and state equal to the log" in out
    assert "a diagnosis of one scene, not evidence" in out


def test_critics_of_the_bundle_go_on_watching_in_both_branches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solved = run(tmp_path / "starter", "--bundle", "starter")
    answer = ask(capsys, solved, "10", "--skill", "regrasp", "--out", "cf")

    assert answer["as_logged"] is True
    drove = set(answer["continuations"][0]["sources"])
    assert "skill:pick-up-again" in drove
    refused = ask(capsys, solved, "70", "--skill", "regrasp", code=1)
    assert "skill:pick-up-again drives at tick 70" in refused["error"]["message"]
    assert "choose tick 59 or tick 91" in refused["error"]["message"]


def test_where_nothing_can_be_copied_each_branch_is_run_from_the_reset(
    failed: Path, fix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_copy(self: Episode) -> None:
        raise ConfigError("the policy keeps no state")

    monkeypatch.setattr(Episode, "snapshot", no_copy)
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf")

    assert answer["as_logged"] is True
    assert [branch["successes"] for branch in answer["branches"]] == [0, 1]
    other = read_episode(Path(answer["continuations"][1]["log"]))
    assert same_actions(other, read_episode(failed), AT)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("160", "--skill", "FIX"), "has the ticks 0-159, got --counterfactual 160"),
        (("-1", "--skill", "FIX"), "has the ticks 0-159"),
        (("80", "--skill", "regasp"), "did you mean 'regrasp'"),
        (("80", "--skill", "FIX", "--sensing", "proprio"), "this run stops at 'proprio'"),
        (("80", "--skill", "FIX", "--sensing", "visio"), "did you mean 'vision'"),
        (("80",), "--counterfactual TICK and --skill NAME go together"),
        (("80", "--skill", "FIX", "--video", "x.mp4"), "draws into its folder"),
        (("80", "--skill", "open-drawer"), "does not fit the instruction"),
    ],
)
def test_what_cannot_be_asked_is_said_and_leaves_nothing_behind(
    failed: Path,
    fix: Path,
    args: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(fix) if arg == "FIX" else arg for arg in args]

    refused = ask(capsys, failed, *given, code=1)
    assert words in refused["error"]["message"]
    assert list(Path().iterdir()) == []


def test_a_skill_that_cannot_start_at_the_tick_is_refused_with_a_tick_at_which_it_can(
    failed: Path, fix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picky = tmp_path / "picky" / NAME
    shutil.copytree(fix, picky)
    program = picky / "recovery.py"
    text = program.read_text().replace("now(w.object_confidence) >= p.seen", "now(w.holding) > 0.5")
    program.write_text(text)

    refused = ask(capsys, failed, "0", "--skill", str(picky), code=1)["error"]["message"]
    assert f"the skill '{NAME}' does not start at tick 0: its precondition does not hold" in refused
    first = int(refused.rpartition(" ")[2])
    signals = read_episode(failed).ticks[first].proprio.arms[0].gripper_opening
    assert 0 < first < 60
    assert signals < 0.06  # the fingers have closed on something
    assert ask(capsys, failed, str(first), "--skill", str(picky), "--out", "cf")["as_logged"]
    assert not Path("runs").exists()


def test_episodes_that_nothing_repeats_are_refused(
    failed: Path, fix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expert = tmp_path / "expert"
    args = ("--policy", "oracle/expert", "--sensing", "oracle", "--out", str(expert))
    assert leave("run", "--sim", "toy", *args) == 0
    refused = ask(capsys, expert, "3", "--skill", str(fix), code=1)
    assert "no policy drove it" in refused["error"]["message"]

    branch = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf")["continuations"][1]
    refused = ask(capsys, Path(branch["log"]), str(AT), "--skill", str(fix), code=1)
    assert "it is a branch of another one" in refused["error"]["message"]


@pytest.fixture
def altered(failed: Path, tmp_path: Path) -> Path:
    """Return a log whose states are 1 mm off from tick 30 on, and its action at tick 50."""
    copy = tmp_path / "altered"
    shutil.copytree(failed, copy)
    with np.load(copy / POSES) as saved:
        poses = saved["poses"]
    poses[30:, 1] += 0.001
    np.savez_compressed(copy / POSES, poses=poses)
    table = pq.read_table(copy / TICKS)
    rows = table.column("action").to_pylist()
    rows[50][0] += 0.25
    place, kind = table.column_names.index("action"), table.schema.field("action")
    changed = table.set_column(place, kind, pa.array(rows, kind.type))
    pq.write_table(changed, copy / TICKS)
    return copy


def test_an_episode_that_does_not_come_out_again_is_refused_with_the_difference(
    altered: Path, fix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = ask(capsys, altered, str(AT), "--skill", str(fix), code=1)["error"]["message"]
    assert "from tick 30 on it differs from the log" in refused
    assert "actions by up to 0.25 and states by up to 0.001" in refused

    answer = ask(capsys, altered, str(AT), "--skill", str(fix), "--inexact", "--out", "cf")
    assert answer["exactness"]["equal"] is False
    assert answer["exactness"]["first"] == 30
    assert answer["as_logged"] is False


# ------------------------------------------------------------------ the folder


def test_the_same_again_runs_only_what_is_missing(
    failed: Path, fix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = (str(AT), "--skill", str(fix), "--out", "cf")
    first = ask(capsys, failed, *question)
    lost = Path("cf/branches/with-the-skill-0")
    shutil.rmtree(lost)
    (lost.parent / ".with-the-skill-0.partial-abc").mkdir()
    kept = Path("cf/branches/as-it-was-0/ticks.parquet")
    before = kept.stat().st_mtime_ns

    again = ask(capsys, failed, *question)
    assert {**again, "command": ""} == {**first, "command": ""}
    assert kept.stat().st_mtime_ns == before
    assert sorted(path.name for path in lost.parent.iterdir()) == ["as-it-was-0", lost.name]

    monkeypatch.setattr(Brancher, "begin", lambda self: pytest.fail("nothing is left to run"))
    assert ask(capsys, failed, *question)["branches"] == first["branches"]
    other = ask(capsys, failed, "81", "--skill", str(fix), "--out", "cf", code=1)
    assert "answers another question (another tick)" in other["error"]["message"]


def test_an_error_of_the_machinery_is_tried_again_and_is_no_score(
    failed: Path, fix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, broken = Brancher._run, [0]

    def run_or_break(self: Brancher, branch: Any, seed: int | None, log: Path) -> None:
        broken[0] += branch == "with the skill"
        if branch == "with the skill" and broken[0] < limit:
            log.mkdir(parents=True)
            raise InfraError("the worker went away")
        real(self, branch, seed, log)

    monkeypatch.setattr(Brancher, "_run", run_or_break)
    limit = 99
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf", code=1)
    told = answer["branches"][1]
    assert (told["successes"], told["n"], told["errors"]) == (0, 0, 1)
    assert "the worker went away" in answer["continuations"][1]["error"]
    assert broken[0] == 2

    limit = 4
    answer = ask(capsys, failed, str(AT), "--skill", str(fix), "--out", "cf")
    assert answer["branches"][1]["successes"] == 1
