"""Demonstrations: read, written, chosen and shown."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.primitives.agent import model_drives as d
from zetta.primitives.agent.demonstration_choice import Ranked, choose, chooser
from zetta.primitives.agent.demonstration_messages import (
    ACKNOWLEDGED,
    ShownLimits,
    demonstration_messages,
)
from zetta.primitives.agent.demonstration_writing import (
    DrivenTurn,
    Origin,
    failed_attempt,
    key_turns,
    small_pictures,
    write_demonstration,
)
from zetta.primitives.agent.demonstrations import (
    Demonstration,
    SceneKey,
    read_demonstration,
    read_library,
)
from zetta.primitives.agent.records import Answer, Picture
from zetta.primitives.command_results import CommandResult, GraspEvidence
from zetta.runtime.core import Init, Sampled, Scene, Task
from zetta.runtime.errors import ConfigError

PUBLISHED: dict[str, Any] = {
    "task": "click_bell",
    "instruction": "Use the left arm to press the bell.",
    "kind": "task",
    "source": {"task": "click_bell", "task_config": "demo_clean", "seed": 100019, "sides": "L"},
    "arm_note": "the LEFT arm pressed the bell, which was on the left",
    "grasps": {"left": {"object": "bell", "x": -23.81}},
    "frames": [
        {
            "turn": 1, "label": "turn 1", "images": ["frame001_top.jpg"], "state": "LEFT (-30)",
            "plan": "go above the bell", "commands": ["left move y +17.5", "left point down"],
            "failed": [], "effect": "moved", "scene": "a bell", "source_index": None,
        },
        {
            "turn": 2, "label": "turn 2", "images": [], "state": "", "plan": "press",
            "commands": ["left move z -8"], "failed": [{"command": "left move z -8", "why": "hit"}],
            "effect": "", "unknown": {"is": "left alone"},
        },
    ],
}  # fmt: skip


def put(folder: Path, content: object = PUBLISHED, grey: int = 90) -> Path:
    folder.mkdir(parents=True)
    (folder / "demo.json").write_text(json.dumps(content))
    image = d.picture(value=grey).image
    Image.fromarray(image).save(folder / "frame001_top.jpg")
    return folder


def changed(**fields: object) -> dict[str, object]:
    return {**PUBLISHED, **fields}


# --------------------------------------------------------------------------- reading


def test_the_published_shape_is_read_and_unknown_fields_are_left_alone(tmp_path: Path) -> None:
    shown = read_demonstration(put(tmp_path / "a"))
    assert shown.instruction == "Use the left arm to press the bell."
    assert shown.grasps == (("left", "bell"),)
    assert shown.scene.is_same(SceneKey("robotwin", "7", 100019, name="click_bell"))
    assert [frame.turn for frame in shown.frames] == [1, 2]
    assert shown.frames[1].failed == ("left move z -8: hit",)
    assert shown.frames[0].images == ("frame001_top.jpg",)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ([], "holds an empty list; expected an object"),
        (changed(task=None), "task is missing"),
        (changed(instruction=" "), "instruction is an empty text"),
        (changed(kind="film"), "kind is 'film'"),
        (changed(frames=[]), "frames is an empty list"),
        (changed(frames=[3]), r"frames\[0\] is a number"),
        (changed(frames=[{"turn": "one"}]), r"frames\[0\]: turn is a text"),
        (changed(frames=[{"turn": True}]), "turn is true or false"),
        (changed(frames=[{"turn": 1, "commands": "wait"}]), "commands is a text"),
        (changed(frames=[{"turn": 1, "commands": [7]}]), "commands holds a number"),
        (changed(frames=[{"turn": 1, "images": ["../x.jpg"]}]), "no plain file name"),
        (changed(frames=[{"turn": 1, "images": ["gone.jpg"]}]), "'gone.jpg' is not in"),
        (changed(frames=[{"turn": 1}] * 500), "expected 400 at most"),
        (changed(source={"seed": "x"}), "seed is a text"),
        (changed(grasps=[]), "grasps is an empty list"),
        (changed(failed_attempt={"commands": 1}), "commands is a number"),
    ],
)
def test_a_damaged_file_is_told_in_one_sentence(tmp_path: Path, content: object, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as error:
        read_demonstration(put(tmp_path / "a", content))
    assert "\n" not in str(error.value)


def test_what_is_no_json_is_told(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    (folder / "demo.json").write_bytes(b"\xff{")
    with pytest.raises(ConfigError, match="cannot read the demonstration"):
        read_demonstration(folder)
    with pytest.raises(ConfigError, match=r"no demo\.json under"):
        read_library(tmp_path / "nowhere")


def test_half_a_character_does_not_reach_a_request(tmp_path: Path) -> None:
    shown = read_demonstration(put(tmp_path / "a", changed(arm_note="a\ud800b")))
    assert shown.arm_note == "a?b"


# --------------------------------------------------------------------------- writing


def driven(index: int, *commands: str, failed: bool = False, pictures: bool = True) -> DrivenTurn:
    results = tuple(
        CommandResult(
            text, not failed, "contact" if failed else "reached",
            "something stopped the hand" if failed else "it moved", moved=(0.01, 0.0, -0.05),
            grasp=GraspEvidence("held", 0.03, 0.0, lifted=True) if "gripper" in text else None,
        )
        for text in commands
    )  # fmt: skip
    shown = (d.picture("front"), d.picture("wrist/left", 30)) if pictures else ()
    return DrivenTurn.of(f"state {index}", shown, Answer(commands, plan=f"plan {index}"), results)


ORIGIN = Origin(
    "put the red block into the basket", SceneKey("libero_goal", "3", 11, name="put_the_bowl"),
    True, "the task's own checker", "m", versions=(("libero", "0.1"),),
)  # fmt: skip


def test_a_success_is_written_and_reads_back(tmp_path: Path) -> None:
    turns = [driven(0, "move x +5"), driven(1, "move z -5", failed=True), driven(2, "gripper 0")]
    lost = failed_attempt([driven(0, "pick red block", failed=True)], "turn limit")
    shown = write_demonstration(tmp_path / "new", turns, ORIGIN, lost)
    assert read_demonstration(tmp_path / "new") == shown
    assert shown.instruction == "put the red block into the basket"
    assert [frame.turn for frame in shown.frames] == [1, 2, 3]
    assert shown.frames[1].failed == ("move z -5: contact: something stopped the hand",)
    assert shown.frames[2].label == "turn 3: gripper 0"
    assert "moved by (+1.0, +0.0, -5.0) cm" in shown.frames[2].effect
    assert "held" in shown.frames[2].effect
    assert shown.frames[0].images == ("frame001_front.jpg", "frame001_wrist-left.jpg")
    assert shown.attempt == lost
    source = json.loads((tmp_path / "new" / "demo.json").read_text())["source"]
    assert source["evidence"] == "the task's own checker"
    assert source["agent"] == "m"
    assert set(source["versions"]) == {"libero", "zetta"}
    assert shown.scene.is_same(SceneKey("libero_goal", "3", 11))
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_what_was_refused_is_told_as_failed(tmp_path: Path) -> None:
    refused = DrivenTurn.of("state", (), Answer(("fly",)), (), ("nothing was carried out: 'fly'",))
    shown = write_demonstration(tmp_path / "new", [refused, driven(1, "pick red block")], ORIGIN)
    assert shown.frames[0].commands == ("fly",)
    assert shown.frames[0].failed == ("nothing was carried out: 'fly'",)
    assert failed_attempt([refused], "limit").failed == ("nothing was carried out: 'fly'",)


def test_the_end_has_a_frame_of_its_own_where_it_was_seen(tmp_path: Path) -> None:
    origin = replace(ORIGIN, evidence="checker", ended=small_pictures([d.picture("front")]))
    shown = write_demonstration(tmp_path / "new", [driven(0, "wait")], origin)
    assert shown.frames[-1].label == "the end (checker)"
    assert shown.frames[-1].images == ("frame002_front.jpg",)


def test_only_a_verified_success_is_written(tmp_path: Path) -> None:
    turns = [driven(0, "done")]
    for origin in (replace(ORIGIN, success=False), replace(ORIGIN, evidence=" ")):
        with pytest.raises(ConfigError, match="verified success"):
            write_demonstration(tmp_path / "new", turns, origin)
    with pytest.raises(ConfigError, match="no turns"):
        write_demonstration(tmp_path / "new", [], ORIGIN)
    with pytest.raises(ConfigError, match="needs its instruction"):
        write_demonstration(tmp_path / "new", turns, replace(ORIGIN, scene=SceneKey()))
    with pytest.raises(ConfigError, match="exists"):
        write_demonstration(tmp_path, turns, ORIGIN)


def test_key_turns_are_ends_hand_changes_and_filled_gaps() -> None:
    commands = ["move x +1"] * 40
    commands[7], commands[30] = "gripper close", "Place the bowl on the plate"
    turns = [driven(k, text, pictures=False) for k, text in enumerate(commands)]
    keys = key_turns(turns)
    assert len(keys) == 12
    assert {0, 7, 30, 39} <= set(keys)
    assert max(b - a for a, b in itertools.pairwise(keys)) <= 6
    assert key_turns(turns[:3]) == [0, 1, 2]
    assert key_turns(turns[:1]) == [0]


def test_many_key_turns_are_all_told_but_few_have_pictures(tmp_path: Path) -> None:
    turns = [driven(k, "gripper 0.5") for k in range(20)]
    shown = write_demonstration(tmp_path / "new", turns, ORIGIN)
    assert len(shown.frames) == 20
    assert sum(bool(frame.images) for frame in shown.frames) == 12
    assert shown.frames[0].images
    assert shown.frames[-1].images


# --------------------------------------------------------------------------- choosing


def library(tmp_path: Path) -> tuple[Demonstration, ...]:
    tasks = {
        "bell": "Use the left arm to press the bell.",
        "block": "Put the blue block into the basket.",
        "bowl": "Put the bowl on the plate.",
        "drawer": "Open the top drawer.",
    }
    for k, (name, words) in enumerate(tasks.items()):
        source = {"suite": "s", "task": name, "seed": k}
        put(tmp_path / name, changed(task=name, instruction=words, source=source))
    return read_library(tmp_path)


def test_the_nearest_instruction_comes_first_and_the_order_is_always_the_same(
    tmp_path: Path,
) -> None:
    found = library(tmp_path)
    ranked = choose(found, "put the red block into the basket", (), 8)
    assert ranked[0].demonstration.task == "block"
    assert ranked[1].demonstration.task == "bowl"
    again = choose(tuple(reversed(found)), "put the red block into the basket", (), 8)
    assert [r.demonstration.task for r in again] == [r.demonstration.task for r in ranked]
    assert all(0.0 <= r.words <= 1.0 and r.view == 0.0 for r in ranked)


def test_of_equal_instructions_the_likest_first_picture_wins(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (48, 64, 3), dtype=np.uint8) for _ in range(2)]
    for name, image in zip("ab", images, strict=True):
        Image.fromarray(image).resize((640, 480)).save(put(tmp_path / name) / "frame001_top.jpg")
    ranked = choose(
        read_library(tmp_path), "press", (d.picture("front"), Picture("top", images[1])), 2
    )
    assert ranked[0].demonstration.folder.name == "b"
    assert ranked[0].view > 0.9
    assert ranked[1].view < 0.5


def test_nothing_of_the_driven_scene_is_ever_shown(tmp_path: Path) -> None:
    found = library(tmp_path)
    same = SceneKey("s", "block", 1)
    ranked = choose(found, "put the blue block into the basket", (), 8, same)
    assert "block" not in [r.demonstration.task for r in ranked]
    other = choose(found, "put the blue block into the basket", (), 8, SceneKey("s", "block", 2))
    assert other[0].demonstration.task == "block"


def test_a_scene_is_known_by_suite_task_and_start() -> None:
    task = Task("libero_goal", 3, "put it down", 300)
    init, drawn = SceneKey.of(Scene(task, Init(4), 9)), SceneKey.of(Scene(task, Sampled(), 9))
    assert init.is_same(SceneKey.of(Scene(task, Init(4), 77)))
    assert not init.is_same(SceneKey.of(Scene(task, Init(5), 9)))
    assert not drawn.is_same(SceneKey.of(Scene(task, Sampled(), 10)))
    assert drawn.is_same(SceneKey("libero_goal", "3"))
    assert not drawn.is_same(SceneKey("libero_spatial", "3", 9))
    assert not SceneKey().is_same(SceneKey())


@pytest.mark.parametrize("count", [-1, 9])
def test_more_than_eight_are_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(ConfigError, match="expected 0 to 8"):
        choose((), "x", (), count)
    with pytest.raises(ConfigError, match="expected 0 to 8"):
        chooser((), count)


# --------------------------------------------------------------------------- showing


def test_a_demonstration_is_one_message_and_one_line_of_the_model(tmp_path: Path) -> None:
    lost = {"commands": ["left gripper 0"], "failed": ["left gripper 0: empty"], "ended": "limit"}
    shown = read_demonstration(put(tmp_path / "a", changed(failed_attempt=lost)))
    user, model = demonstration_messages([shown])
    assert (user.author, user.stable, model.author) == ("user", True, "model")
    assert model.parts == (ACKNOWLEDGED,)
    assert [type(part) for part in user.parts] == [str, bytes, str]
    text = user.text
    for words in (
        "Do not copy their numbers", "WHAT WENT WRONG", "left gripper 0: empty", "WHAT WORKED",
        "left move y +17.5; left point down", "failed: left move z -8",
    ):  # fmt: skip
        assert words in text
    assert text.index("WHAT WENT WRONG") < text.index("WHAT WORKED") < text.index("turn 1")
    assert demonstration_messages([]) == ()


def test_pictures_are_shared_out_and_frames_are_bounded(tmp_path: Path) -> None:
    frames = [{"turn": k, "images": ["frame001_top.jpg"]} for k in range(60)]
    shown = read_demonstration(put(tmp_path / "a", changed(frames=frames)))
    user, _ = demonstration_messages([shown, shown], ShownLimits(frames=10, pictures=6))
    assert sum(isinstance(part, bytes) for part in user.parts) == 6
    assert user.text.count("[turn ") == 20
    bare, _ = demonstration_messages([shown], ShownLimits(pictures=0))
    assert len(bare.parts) == 1


def test_a_chooser_puts_primers_first_and_tells_what_it_chose(tmp_path: Path) -> None:
    put(tmp_path / "z", changed(kind="primer", instruction="How commands work."))
    put(tmp_path / "a")
    told: list[Ranked] = []
    pick = chooser(read_library(tmp_path), 1, chosen=told.extend)
    text = pick(d.turn())[0].text
    assert text.index("How commands work.") < text.index("press the bell")
    assert [r.demonstration.folder.name for r in told] == ["a"]
    assert chooser(read_library(tmp_path), 0)(d.turn()) == ()
