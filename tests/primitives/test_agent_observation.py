"""What an agent is shown: pictures, captions, and the state in words and numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from overlay_scenes import SIZE, TABLE, arm, camera, found, picture

from zetta.primitives.agent.observation import (
    Progress,
    axis_words,
    compose,
    direction_words,
    turn_text,
)
from zetta.primitives.agent.records import Picture, Turn
from zetta.primitives.command_results import CommandResult, GraspEvidence
from zetta.primitives.localize.table import table_in
from zetta.primitives.overlays import NO_OVERLAYS, parse_overlays
from zetta.runtime.core import Init, Observation, Proprio, Scene
from zetta.sims.toy import ToySimulator

SEEN = Observation(
    Proprio(0.0, (arm(),)), "put it there", {"front": picture()}, {}, {"front": camera()}
)
RESULT = CommandResult("move x 5", False, "contact", "moved 2.1 of 5.0 cm", notices=("rounded",))


def test_the_state_tells_the_arm_the_table_the_things_and_the_steps() -> None:
    progress = Progress(
        {"arm": GraspEvidence("held", 0.021, 0.001, lifted=True)},
        {"arm": np.array([-0.05, 0.08, 0.78])},
        40,
        220,
    )
    _, state = compose(SEEN, ["arm"], TABLE, found(), progress=progress)
    assert state.splitlines() == [
        "arm: grip site x -5.0, y 8.0, z 58.0 cm, 18.0 cm above the table; "
        "hand points down, tilted 11 deg towards +x (approach 0.20, 0.00, -0.98); "
        "fingers close along y (axis 0.00, -1.00, 0.00); opening 6.0 cm; "
        "gripper held (2.1 cm between the fingers, closed on nothing it shows 0.1, it stayed "
        "through the lift); 20.0 cm from home (x -5.0, y 8.0, z 78.0 cm)",
        "table: z 40.0 cm (seen in depth); grid drawn for x -25 to 25, y -25 to 25 cm",
        "things found (middle; size along own axes):",
        "  1 red mug (x 5.0, y -15.0, z 45.0 cm), size 8.0 x 8.0 x 10.0 cm, turned 0 deg, "
        "top 10.0 cm above the table, confidence 0.90 (vision)",
        "  2 plate (x 10.0, y 12.0, z 40.6 cm), size 14.0 x 14.0 x 1.2 cm, turned 0 deg, "
        "top 1.2 cm above the table, confidence 0.90 (vision)",
        "  3 small can (x 11.0, y 13.0, z 44.0 cm), size 3.0 x 3.0 x 8.0 cm, turned 0 deg, "
        "top 8.0 cm above the table, confidence 0.90 (vision)",
        "control steps used: 40 of 220",
    ]


def test_what_is_not_known_is_not_spoken_of() -> None:
    _, state = compose(SEEN, ["arm"], replace(TABLE, source="declared"))
    assert "gripper " not in state
    assert "home" not in state
    assert "things found: none" in state
    assert "as declared" in state
    assert state.endswith("control steps used: 0")


def test_a_hand_at_home_is_said_to_be_there() -> None:
    progress = Progress(home={"arm": arm().ee_pos + 0.002})
    assert "; at home\n" in compose(SEEN, ["arm"], TABLE, progress=progress)[1]


def test_a_moving_base_is_told() -> None:
    proprio = replace(SEEN.proprio, base=np.array([1.0, -0.5, np.pi / 2]))
    _, state = compose(replace(SEEN, proprio=proprio), ["arm"], TABLE)
    assert "base: x 100.0 cm, y -50.0 cm, turned 90 deg" in state


def test_captions_tell_what_is_drawn_and_no_more() -> None:
    (shown,), _ = compose(SEEN, ["arm"], TABLE, found())
    assert shown.caption.startswith("front: lines every 10 cm on the table (z 40.0 cm)")
    assert "marks: 1 red mug (x 5.0, y -15.0, z 45.0 cm), 2 plate" in shown.caption
    assert "rulers" in shown.caption
    (shown,), _ = compose(SEEN, ["arm"], TABLE, found(), parse_overlays("jaw"))
    assert shown.caption == (
        "front: cyan: the line along which the fingers close, a bar at each finger"
    )
    (shown,), _ = compose(SEEN, ["arm"], TABLE, found(), NO_OVERLAYS)
    assert shown.caption == "front: nothing is drawn in"


def test_a_caption_says_when_the_hand_is_out_of_sight() -> None:
    away = replace(arm(), ee_pos=np.array([2.0, 2.0, 2.0]))
    seen = replace(SEEN, proprio=Proprio(0.0, (away,)))
    (shown,), _ = compose(seen, ["arm"], TABLE)
    assert "the grip site is not in this picture" in shown.caption
    assert "cyan" not in shown.caption


def test_a_picture_without_calibration_is_shown_as_it_is() -> None:
    (shown,), _ = compose(replace(SEEN, cameras={}), ["arm"], TABLE)
    assert np.array_equal(shown.image, picture())
    assert "no calibration" in shown.caption


def test_every_camera_and_every_arm_of_an_environment_is_shown() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_two_arm", 0)
    env.reset(Scene(simulator.task("toy_two_arm", 0), Init(0)))
    cameras = [c.name for c in env.spec.cameras]
    seen = env.observe(cameras, depth=True)
    table = table_in(seen)
    assert table is not None
    pictures, state = compose(seen, env.spec.arms, table)
    assert [p.name for p in pictures] == ["front", "left_wrist", "right_wrist"]
    assert all(max(p.image.shape) >= 512 for p in pictures)
    assert [line.split(":")[0] for line in state.splitlines()[:3]] == ["left", "right", "table"]


@pytest.mark.parametrize(
    ("approach", "words"),
    [
        ((0.0, 0.05, -0.9987), "points straight down"),
        ((0.0, -0.7071, -0.7071), "points down, tilted 45 deg towards -y"),
        ((0.5, 0.5, -0.7071), "points down, tilted 45 deg towards +x +y"),
        ((-1.0, 0.0, 0.0), "points level towards -x"),
        ((0.7071, 0.0, 0.7071), "points up, 45 deg above level, towards +x"),
        ((0.0, 0.0, 1.0), "points straight up"),
    ],
)
def test_where_a_hand_points_in_words(approach: tuple[float, ...], words: str) -> None:
    assert direction_words(np.array(approach)) == words


@pytest.mark.parametrize(
    ("travel", "words"),
    [
        ((1.0, 0.1, 0.0), "along x"),
        ((0.0, 0.0, -1.0), "along z"),
        ((0.7, -0.7, 0.0), "between x and -y"),
        ((0.0, -0.8, -0.6), "between y and z"),
    ],
)
def test_along_which_axis_fingers_close_in_words(travel: tuple[float, ...], words: str) -> None:
    unit = np.array(travel) / np.linalg.norm(travel)
    assert axis_words(unit) == axis_words(-unit) == words


def test_a_turn_as_text_has_every_section_in_order() -> None:
    turn = Turn(
        2,
        "put the mug on the plate",
        "arm: here\ntable: there",
        (RESULT,),
        ("`done` without evidence",),
        (Picture("front", np.zeros((2, 2, 3), np.uint8), "front: a view"),),
        "the mug is heavy",
        ("turn 1: looked", "turn 2: moved"),
        turns_left=43,
        commands_left=4,
    )
    assert turn_text(turn) == (
        "TASK: put the mug on the plate\n\n"
        "TURN: 3 of 45\n\n"
        "RESULTS OF THE LAST COMMANDS\n"
        "- move x 5: FAILED (contact): moved 2.1 of 5.0 cm; rounded\n\n"
        "REMARKS\n- `done` without evidence\n\n"
        "STATE\narm: here\ntable: there\n\n"
        "MEMORY: the mug is heavy\n\n"
        "HISTORY\n- turn 1: looked\n- turn 2: moved\n\n"
        "PICTURES\n- front: a view\n\n"
        "BUDGET: turns left, this one included: 43; commands in this answer: at most 4"
    )


def test_sections_with_nothing_to_say_are_left_out() -> None:
    text = turn_text(Turn(0, "wait", "arm: here", turns_left=1, commands_left=2))
    assert [line.partition(":")[0] for line in text.splitlines() if line] == [
        "TASK", "TURN", "STATE", "BUDGET",
    ]  # fmt: skip


def test_pictures_are_at_least_512_pixels_on_their_longer_side() -> None:
    (shown,), _ = compose(SEEN, ["arm"], TABLE)
    assert shown.image.shape == (2 * SIZE[1], 2 * SIZE[0], 3)
