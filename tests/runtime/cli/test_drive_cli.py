"""`zetta drive` as a user meets it, on the toy world; models are scripted ones behind real HTTP."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fake_llm import Answer, serving, silent, status, text
from zetta.primitives.agent.demonstrations import read_library
from zetta.primitives.agent.drive_log import read_summary, read_turns
from zetta.runtime.cli import main as cli
from zetta.runtime.episode_log import read_episode

SOLVED = ("--init", "2")
"""A scene of the toy in which nothing slips."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def leave(*args: str) -> int:
    """Run `zetta drive` on the toy in this process and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(("drive", "--sim", "toy", *args))
    assert isinstance(left.value.code, int)
    return left.value.code


def answer_of(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    assert leave("--json", *args) == code
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, dict)
    return answer


def only(answer: dict[str, Any]) -> dict[str, Any]:
    (episode,) = answer["episodes"]
    assert isinstance(episode, dict)
    return episode


def says(*commands: str, **more: str) -> Answer:
    return text(json.dumps({"scene": "", "plan": "", "commands": list(commands), **more}))


# --------------------------------------------------------------------------- without a model


def test_the_scripted_agent_solves_and_the_evidence_agrees(
    capsys: pytest.CaptureFixture[str],
) -> None:
    episode = only(answer_of(capsys, *SOLVED))
    assert episode["success"]
    assert episode["success_at_end"]
    assert episode["verified"]
    assert (episode["agent"], episode["turns"], episode["commands"]) == ("scripted", 3, 2)
    assert set(episode["sources"]) == {"agent:scripted"}
    assert 0 < episode["first_success"] <= episode["ticks"]


def test_the_log_is_an_ordinary_episode_with_the_turns_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = Path(only(answer_of(capsys, *SOLVED))["log"])
    assert {tick.source for tick in read_episode(folder).ticks} == {"agent:scripted"}
    turns = read_turns(folder)
    assert [turn.answer.commands[0].split()[0] for turn in turns] == ["pick", "place", "done"]
    assert turns[0].results[0].grasp is not None
    assert turns[2].verification is not None
    assert read_summary(folder).ended == "done"
    assert not list(folder.parent.glob(".*drive.jsonl"))


def test_a_recorded_drive_replays_action_for_action(capsys: pytest.CaptureFixture[str]) -> None:
    first = only(answer_of(capsys, *SOLVED))
    record = Path(first["log"]) / "drive.jsonl"
    second = only(answer_of(capsys, *SOLVED, "--agent", f"replay:{record}"))
    before, after = (read_episode(Path(each["log"])) for each in (first, second))
    assert [t.action.tolist() for t in before.ticks] == [t.action.tolist() for t in after.ticks]


def test_a_published_budget_ends_an_episode_that_an_unlimited_one_goes_on_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("slow.txt").write_text("wait 5\nwait 5\nwait 5\n")
    slow = ("--agent", "replay:slow.txt")
    published = only(answer_of(capsys, *slow, "--steps", "published"))
    assert (published["reason"], published["ticks"]) == ("truncated", 160)
    unlimited = only(answer_of(capsys, *slow))
    assert unlimited["ticks"] == 300
    assert only(answer_of(capsys, *slow, "--steps", "50"))["ticks"] == 50


def test_a_skill_and_the_policy_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.txt").write_text("skill regrasp\npolicy 7\nskill nothing\n")
    given = ("--agent", "replay:c.txt", "--bundle", "starter", "--policy", "toy/reach")
    turns = read_turns(Path(only(answer_of(capsys, *SOLVED, *given))["log"]))
    assert turns[0].results[0].ticks > 0
    assert turns[1].results[0].ticks == 7
    assert "skill that is not loaded" in turns[2].refusals[0]


def test_a_person_who_errs_often_is_not_given_up_and_the_end_of_the_input_is_no_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "fly\n" * 8 + "pick red cube\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    episode = only(answer_of(capsys, *SOLVED, "--agent", "human"))
    assert episode["commands"] == 1
    assert episode["ended"] == "the input ended"


def test_the_state_tells_the_table_that_depth_shows_also_to_who_does_not_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (first, *_) = read_turns(Path(only(answer_of(capsys, *SOLVED))["log"]))
    assert "table: z 40.0 cm (seen in depth)" in first.state
    assert "red cube" in first.state


def test_without_a_policy_or_a_base_their_commands_are_refused_before_anything_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("c.txt").write_text("policy 7\nbase move x 10\nmove x 5 in camera nowhere\n")
    turns = read_turns(Path(only(answer_of(capsys, "--agent", "replay:c.txt"))["log"]))
    for turn, why in zip(turns, ("needs a policy", "mobile base", "no camera"), strict=False):
        assert why in turn.refusals[0]
        assert turn.results == ()


def test_a_person_gives_commands_line_by_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pick red cube; place on green plate\ndone\n"))
    episode = only(answer_of(capsys, *SOLVED, "--agent", "human"))
    assert episode["success"]
    assert episode["turns"] == 2


@pytest.mark.parametrize("end", ["input", "Ctrl-C"])
def test_the_pictures_of_a_person_go_with_the_command(tmp_path: Path, end: str) -> None:
    pictures = tmp_path / "tmp"
    pictures.mkdir()
    command = [sys.executable, "-m", "zetta.runtime.cli.main", "drive", "--sim", "toy"]
    with subprocess.Popen(
        [*command, "--agent", "human", "--out", "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(pictures)},
    ) as process:
        assert process.stderr is not None
        assert any("pictures (" in line for line in process.stderr)
        (folder,) = pictures.glob("zetta-drive-*")
        assert list(folder.glob("*.png"))
        if end == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60.0)
    assert process.returncode == (130 if end == "Ctrl-C" else 0)
    assert list(pictures.iterdir()) == []


# --------------------------------------------------------------------------- models


def test_a_model_behind_a_server_completes_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.json").write_text(json.dumps({"openai:m": {"input": 1.0, "output": 10.0}}))
    with serving(says("pick red cube", "place on green plate"), says("done")) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--option", "prices=prices.json")
        episode = only(answer_of(capsys, *SOLVED, *given))
    assert episode["success"]
    assert episode["verified"]
    assert episode["spent"]["requests"] == 2
    assert episode["spent"]["dollars"] == pytest.approx(2 * (1000 * 1.0 + 200 * 10.0) / 1e6)
    assert len(fake.pictures(0)) >= 1
    assert "put the red cube on the green plate" in fake.user_text(0)
    assert "holding something" in fake.user_text(1)


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ((text("I would rather talk about the weather."),), "could not be read"),
        ((text('{"commands": ["move x 5"'),), "could not be read"),
        ((says("jump over the table"),), "without a completed command"),
        ((says("done"),), "against the evidence"),
        ((says("wait"),), "the 5 turns are spent"),
    ],
)
def test_a_model_that_is_no_use_is_a_failed_episode_and_no_error(
    capsys: pytest.CaptureFixture[str], script: tuple[Answer, ...], ended: str
) -> None:
    with serving(*script) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--turns", "5")
        if "without" in ended:
            given = (*given[:-1], "20")
        episode = only(answer_of(capsys, *SOLVED, *given))
    assert episode["error"] is None
    assert not episode["success"]
    assert ended in episode["ended"]


def test_a_rate_limit_and_a_failing_server_are_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = (
        status(429, headers={"retry-after": "0"}),
        status(503, headers={"retry-after": "0"}),
        says("pick red cube", "place on green plate", "done"),
    )
    with serving(*script) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url)
        episode = only(answer_of(capsys, *SOLVED, *given))
    assert episode["success"]
    assert episode["spent"]["requests"] == 3


def test_the_arm_holds_while_a_model_is_silent_and_the_silence_is_survived(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = (silent, says("pick red cube", "place on green plate", "done"))
    with serving(*script) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--realtime")
        episode = only(answer_of(capsys, *SOLVED, *given, "--option", "silence_s=1"))
    assert episode["success"]
    folder = Path(episode["log"])
    held = read_turns(folder)[0].thought_ticks
    assert held >= 15  # a second at 20 Hz
    hands = [tick.proprio.arms[0].ee_pos for tick in read_episode(folder).ticks[:held]]
    assert max(abs(hand - hands[0]).max() for hand in hands) < 0.005


def test_a_server_that_never_answers_is_an_error_of_the_machinery(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(silent) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url)
        patience = ("--option", "silence_s=0.2", "--option", "total_s=0.5")
        episode = only(answer_of(capsys, *given, *patience, code=1))
    assert episode["error"].startswith(("InfraError", "Timeout"))
    assert not episode["success"]


def test_a_drive_ends_in_time_also_while_its_model_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(silent) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--seconds", "1")
        episode = only(answer_of(capsys, *given))
    assert episode["error"] is None
    assert episode["ended"] == "the 1 seconds are spent"


def test_a_spent_budget_of_tokens_ends_the_drive(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(says("wait")) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--tokens", "2000")
        episode = only(answer_of(capsys, *given))
    assert episode["ended"] == "the 2000 tokens are spent"
    assert episode["turns"] == 2


def test_a_model_thinks_while_the_last_motion_runs(capsys: pytest.CaptureFixture[str]) -> None:
    script = (says("move z 3"), says("pick red cube", "place on green plate", "done"))
    with serving(*script) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--think-ahead")
        episode = only(answer_of(capsys, *SOLVED, *given))
    assert episode["success"]
    assert [turn.ahead for turn in read_turns(Path(episode["log"]))] == [False, True]
    assert "still being carried out" in fake.user_text(1)


# --------------------------------------------------------------------------- demonstrations


def test_a_verified_success_is_kept_and_shown_to_the_next_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer_of(capsys, *SOLVED, "--save-demonstrations", "demos")
    (kept,) = read_library(Path("demos"))
    assert kept.instruction == "put the red cube on the green plate"
    with serving(says("pick red cube", "place on green plate", "done")) as fake:
        given = ("--agent", "openai:m", "--base-url", fake.url, "--demonstrations", "demos")
        answer_of(capsys, "--init", "3", *given)
        answer_of(capsys, *SOLVED, *given)
    assert "pick red cube" in fake.user_text(0)
    assert "pick red cube" not in fake.user_text(1)  # never the scene that is driven


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--agent", "scriptet"), "unknown agent"),
        (("--shots", "3"), "--shots is for models"),
        (("--seconds", "-1"), "--seconds is at least 0"),
        (("--policy", "nope"), "nope"),
        (("--save-demonstrations", "/proc/x"), "name another folder"),
        (("--agent", "replay:absent.txt"), "absent.txt"),
        (("--turns", "0"), "at least 1"),
        (("--overlays", "glitter"), "unknown overlay"),
        (("--steps", "soon"), "is a number"),
        (("--think-ahead",), "is for models"),
        (("--agent", "openai:m", "--base-url", "nowhere"), "expected one such as http"),
        (("--policy", "nope"), "unknown policy 'nope'; known: "),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], why: str
) -> None:
    assert leave(*args) == 1
    assert why in capsys.readouterr().err


def test_the_grammar_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--grammar") == 0
    assert "until contact" in capsys.readouterr().out
