"""`zetta skills distill` on the episode of a drive, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from zetta.primitives.agent.cockpit import TurnRecord
from zetta.primitives.agent.records import Answer
from zetta.primitives.command_results import CommandResult, StopReason
from zetta.runtime.cli import main as cli
from zetta.runtime.records import to_json
from zetta.skills.bundles import load_bundle
from zetta.skills.package import load_skill

Came: TypeAlias = tuple[str, StopReason]
TRIED: tuple[Came, ...] = (
    ("pick red cube", "slipped"), ("pick red cube", "reached"), ("move z 3 cm", "reached"),
)  # fmt: skip
PLACED: Came = ("place on green plate", "reached")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in an empty folder."""
    monkeypatch.chdir(tmp_path)


def leave(*args: str) -> int:
    """Run `zetta` and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    return int(left.value.code or 0)


def answer(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta … --json` and return its object."""
    capfd.readouterr()
    assert leave(*args, "--json") == code
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def refused(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    """Run a command that fails, and return its sentence."""
    sentence: str = answer(capfd, *args, code=1)["error"]["message"]
    return sentence


def episode(init: str = "1") -> Path:
    """Log a toy episode that is solved, unless it is that of init 0."""
    assert leave(
        "run", "--sim", "toy", "--bundle", "takeover", "--sensing", "oracle", "--init", init,
        "--no-video", "--out", f"run-{init}",
    ) == 0  # fmt: skip
    return Path(f"run-{init}/episodes/000")


def write_drive(folder: Path, *turns: tuple[Came, ...]) -> None:
    """Write by hand what an agent did."""
    lines = []
    for index, commands in enumerate(turns):
        answer = Answer(tuple(text for text, _ in commands), scene="a cube and a plate")
        results = tuple(
            CommandResult(text, stop == "reached", stop, "as it came", ticks=20)
            for text, stop in commands
        )
        record = TurnRecord(index, 40 * index, "the arm is at home", (), answer, results, (), 0)
        lines.append(json.dumps(to_json(record)) + "\n")
    (folder / "drive.jsonl").write_text("".join(lines), encoding="utf-8")


def test_drive_of_a_script_becomes_a_draft(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ("--sim", "toy", "--suite", "toy_pick", "--init", "1", "--sensing", "oracle")
    assert leave("drive", *asked, "--agent", "scripted", "--out", "drive") == 0
    found = answer(capfd, "skills", "distill", "drive/episodes/000", "--out", "drafts")

    assert found["skill"] == "repeat-grasp-place"
    assert load_skill(Path(found["path"])).digest == found["hash"]


def test_success_of_an_agent_becomes_a_draft(capfd: pytest.CaptureFixture[str]) -> None:
    folder = episode()
    write_drive(folder, TRIED, (PLACED,), ())
    found = answer(capfd, "skills", "distill", str(folder), "--out", "drafts")

    assert found["skill"] == "repeat-grasp-move-by-place"
    assert found["level"] == "vision"
    package = load_skill(Path(found["path"]))
    assert package.digest == found["hash"]
    assert package.recovery_source.count("yield from robot.") == 3
    assert "max_ticks: 120" in (package.folder / "SKILL.md").read_text()
    assert leave("skills", "check", found["path"]) == 0
    assert [p.name for p in load_bundle("drafts").packages] == [found["skill"]]
    assert answer(capfd, "skills", "distill", str(folder), "--out", "drafts") == found


def test_draft_solves_other_scenes_that_the_policy_does_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = episode()
    write_drive(folder, TRIED, (PLACED,))
    assert leave("skills", "distill", str(folder), "--out", "drafts") == 0
    asked = ("run", "--sim", "toy", "--policy", "toy/reach", "--init", "2", "--episodes", "2",
             "--sensing", "oracle", "--no-video")  # fmt: skip
    solved = [
        [each["success"] for each in answer(capfd, *asked, "--bundle", bundle)["episodes"]]
        for bundle in ("none", "drafts")
    ]
    assert solved == [[False, False], [True, True]]


def test_draft_is_called_and_triggered_as_asked(capfd: pytest.CaptureFixture[str]) -> None:
    folder = episode()
    write_drive(folder, TRIED, (PLACED,))
    asked = ("skills", "distill", str(folder), "--out", "drafts")
    assert leave(*asked, "--name", "bring-back", "--critic", "arrived-empty") == 0
    told = capfd.readouterr().out

    assert 'robot.place("receptacle")' in told
    assert "--author human --drafts drafts" in told
    critic = Path("drafts/bring-back/critic.py").read_text()
    assert "over the receptacle and the object is not in it" in critic
    assert "holds something else" in refused(capfd, *asked)
    assert "cannot be named 'Bring it'" in refused(
        capfd, "skills", "distill", str(folder), "--out", "other", "--name", "Bring it"
    )
    assert not Path("other").exists()


def test_what_is_no_success_is_not_repeated(capfd: pytest.CaptureFixture[str]) -> None:
    folder = episode("0")
    write_drive(folder, (PLACED,))
    assert "is no success" in refused(capfd, "skills", "distill", str(folder), "--out", "drafts")
    assert not Path("drafts").exists()


def test_command_without_counterpart_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    folder = episode()
    write_drive(folder, (("policy 40 ticks", "reached"), PLACED))
    said = refused(capfd, "skills", "distill", str(folder), "--out", "drafts")
    assert "'policy 40 ticks': a recovery has no such primitive" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no json\n", "no readable record of a drive"),
        ('{"results": []}\n', "no readable record of a drive"),
        ("", "nothing to keep"),
    ],
)
def test_record_that_is_none_is_refused(
    capfd: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    folder = episode()
    (folder / "drive.jsonl").write_text(text)
    assert why in refused(capfd, "skills", "distill", str(folder), "--out", "drafts")


def test_options_of_bundles_and_of_episodes_are_kept_apart(
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = episode()
    write_drive(folder, (PLACED,))
    asked = ("skills", "distill", str(folder), "--out", "drafts")
    assert "are for bundles" in refused(capfd, *asked, "--version", "abcd")
    (folder / "drive.jsonl").unlink()
    assert "has no drive.jsonl" in refused(capfd, *asked, "--critic", "stalled")
