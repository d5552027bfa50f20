"""The agents that say what others say: a record, and a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zetta.primitives.agent.human_agent import HumanAgent
from zetta.primitives.agent.records import Turn
from zetta.primitives.agent.replay_agent import ReplayAgent
from zetta.primitives.command_results import CommandResult
from zetta.runtime.errors import ConfigError


def test_a_text_file_gives_one_command_a_turn_and_then_done(tmp_path: Path) -> None:
    path = tmp_path / "commands.txt"
    path.write_text("# open first\ngripper open\n\nmove z -5\n")
    agent = ReplayAgent(path)
    said = [agent.decide(Turn(index, "", "")).commands for index in range(3)]
    assert said == [("gripper open",), ("move z -5",), ("done",)]


def test_a_record_of_a_drive_gives_the_commands_of_each_turn(tmp_path: Path) -> None:
    path = tmp_path / "drive.jsonl"
    turns = [["pick bowl", "move z 5"], [], ["done"]]
    path.write_text("".join(json.dumps({"answer": {"commands": t}}) + "\n" for t in turns))
    agent = ReplayAgent(path)
    said = [agent.decide(Turn(index, "", "")).commands for index in range(4)]
    assert said == [("pick bowl", "move z 5"), (), ("done",), ("done",)]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("empty.txt", "# nothing\n", "holds no command"),
        ("drive.jsonl", "{}\n", "no record of a drive"),
        ("drive.jsonl", "not json\n", "no record of a drive"),
        ("drive.jsonl", '{"answer": {"commands": [1]}}\n', "lines of text"),
    ],
)
def test_a_file_without_commands_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=why):
        ReplayAgent(tmp_path / name)


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.txt"):
        ReplayAgent(tmp_path / "absent.txt")


def test_a_person_sees_what_came_of_the_last_commands_and_gives_several() -> None:
    told: list[str] = []
    agent = HumanAgent(lambda prompt: " gripper open ; move z -5;; ", told.append)
    agent.begin("put the bowl on the plate", ("arm",))
    result = CommandResult("pick bowl", False, "slipped", "closed on nothing")
    turn = Turn(3, "", "the arm is at home", results=(result,), remarks=("look closer",))
    assert agent.decide(turn).commands == ("gripper open", "move z -5")
    assert told[-3:] == [result.summary, "look closer", "the arm is at home"]


def test_a_person_may_ask_for_the_grammar_and_leave() -> None:
    told: list[str] = []
    lines = iter(["?", "HELP", "", "quit"])
    agent = HumanAgent(lambda prompt: next(lines), told.append, "move x CM")
    assert agent.decide(Turn(0, "", "")).leave == "the person left"
    assert told.count("move x CM") == 3


def test_the_end_of_the_input_is_no_done() -> None:
    def ask(prompt: str) -> str:
        raise EOFError

    answer = HumanAgent(ask, lambda text: None).decide(Turn(0, "", ""))
    assert (answer.commands, answer.leave) == ((), "the input ended")
