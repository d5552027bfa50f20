"""Command lines: what they mean, what is clipped, what is refused, and that they print the same."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.primitives.command_lines import ARMS, commands, kinds, problem_of, strange_line
from zetta.primitives.command_grammar import FORMS, GRAMMAR, ROWS, command_text, parse_command
from zetta.primitives.commands import (
    BaseMove,
    BaseTurn,
    Both,
    Close,
    Command,
    Done,
    GoAbove,
    GoToGrasp,
    Gripper,
    Home,
    Move,
    Open,
    Parsed,
    Pick,
    Place,
    Point,
    Push,
    Rotate,
    RunPolicy,
    RunSkill,
    TurnKnob,
    Wait,
)
from zetta.primitives.commands_document import commands_table
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals_document import with_table

ONE = ("arm",)


def parsed(text: str, *arms: str) -> Parsed:
    return parse_command(text, arms or ONE)


def refusal(text: str, *arms: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_command(text, arms or ONE)
    return str(caught.value)


# --------------------------------------------------------------------------- meaning


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("move x 3 y -2 z -5", Move((0.03, -0.02, -0.05))),
        ("move z 5 cm", Move((0.0, 0.0, 0.05))),
        ("move y 1.25cm x 2", Move((0.02, 0.0125, 0.0))),
        ("move x 3 in gripper", Move((0.03, 0.0, 0.0), "gripper")),
        ("move x 3 cm in camera", Move((0.03, 0.0, 0.0), "camera")),
        ("move x 3 in camera Front_1", Move((0.03, 0.0, 0.0), "camera", "Front_1")),
        ("move z -9 until contact", Move((0.0, 0.0, -0.09), until_contact=True)),
        (
            "move z -9 in camera wrist until contact",
            Move((0.0, 0.0, -0.09), "camera", "wrist", True),
        ),
        ("move x 1 in camera until contact", Move((0.01, 0.0, 0.0), "camera", "", True)),
        ("rotate yaw 45 degrees", Rotate("yaw", math.radians(45.0))),
        ("rotate roll -30deg in gripper", Rotate("roll", math.radians(-30.0), "gripper")),
        ("rotate pitch 5 in camera top", Rotate("pitch", math.radians(5.0), "camera", "top")),
        ("point down", Point("down")),
        ("point DOWN45", Point("down45")),
        ("gripper open", Gripper(1.0)),
        ("gripper closed", Gripper(0.0)),
        ("gripper close", Gripper(0.0)),
        ("gripper half", Gripper(0.5)),
        ("gripper .25", Gripper(0.25)),
        ("home", Home()),
        ("wait", Wait()),
        ("wait 2 s", Wait(2.0)),
        ("done", Done()),
        ("go above the red mug", GoAbove("red mug")),
        ("go to the bowl next to the plate grasp", GoToGrasp("bowl next to the plate")),
        ("pick the black bowl", Pick("black bowl")),
        ("pick up the alphabet_soup", Pick("alphabet soup")),
        ("place on the plate", Place("plate")),
        ("place in the top drawer", Place("top drawer", "in")),
        ("place on the left of the plate", Place("left of the plate")),
        ("open top drawer", Open("top drawer")),
        ("close the microwave", Close("microwave")),
        ("turn on the stove", TurnKnob("stove")),
        ("turn off stove", TurnKnob("stove", on=False)),
        ("push the plate to the front of the stove", Push("plate", "front of the stove")),
        ("push bowl next to the cup to next to the bin",
         Push("bowl next to the cup", "next to the bin")),
        ("push the bowl to the left of the cup to the bin",
         Push("bowl to the left of the cup", "bin")),
        ("push the bowl to the bin to the left of the cup",
         Push("bowl", "bin to the left of the cup")),
        ("policy 20", RunPolicy(20)),
        ('policy 20 ticks "Grasp the  mug"', RunPolicy(20, "Grasp the mug")),
        ('policy 5 "a # b | c: ü"  # why', RunPolicy(5, "a # b | c: ü")),
        ('policy 5 "stop here.".', RunPolicy(5, "stop here.")),
        ("skill regrasp", RunSkill("regrasp")),
        ("base move x -30 cm", BaseMove("x", -0.3)),
        ("base turn 45 deg", BaseTurn(math.radians(45.0))),
    ],
)  # fmt: skip
def test_line_means_what_it_says(text: str, command: Command) -> None:
    assert parsed(text) == Parsed(command)
    assert parsed(f"  {text.upper() if chr(34) not in text and 'amera' not in text else text} . ")
    assert parse_command(command_text(command), ONE).command == command


def test_blanks_comment_point_and_case_do_not_matter() -> None:
    wanted = Parsed(Move((0.03, 0.0, -0.05), until_contact=True))
    for text in (
        "MOVE  X 3\tZ -5 CM until CONTACT.",
        "  arm move x 3 z -5 until contact # a comment. \n",
        "Arm Move x +3.00 z -5.0 until contact ...",
    ):
        assert parsed(text) == wanted


def test_every_example_of_the_table_is_of_its_form_and_every_record_has_one() -> None:
    seen = {type(parsed(form.example).command) for form in FORMS}

    assert seen | {Both} == kinds()
    for form in FORMS:
        assert form.example.split()[: len(form.words)] == list(form.words)
        assert form.syntax.split()[: len(form.words)] == list(form.words)
        assert parsed(form.example).notices == ()


# --------------------------------------------------------------------------- arms


def test_one_arm_may_be_named_or_not_and_the_record_does_not_name_it() -> None:
    for text in ("home", "arm home", "Panda home"):
        assert parse_command(text, ["panda"]).command == Home()


def test_two_arms_must_be_named() -> None:
    assert parsed("left move x 5", *ARMS).command == Move((0.05, 0.0, 0.0), arm="left")
    assert parsed("RIGHT arm home", *ARMS).command == Home("right")
    said = refusal("move x 5", *ARMS)
    assert "no arm is named; expected 'left' or 'right'" in said


def test_left_and_right_are_understood_for_longer_names() -> None:
    arms = ("left_arm", "Robot-Right")
    assert parse_command("left home", arms).command == Home("left_arm")
    assert parse_command("right home", arms).command == Home("Robot-Right")
    assert parse_command("left_arm home", arms).command == Home("left_arm")
    assert parse_command("left home", ["left"]).command == Home()


def test_arm_that_is_not_there_is_named() -> None:
    assert "'left', which is no arm of this robot; known: arm" in refusal("left move x 5")
    assert "did you mean 'right'" in refusal("rigth home", *ARMS)
    assert "this robot has no arm" in refusal_without_arms("left home")
    assert "expected a robot with an arm" in refusal_without_arms("home")
    assert parse_command("base turn 5", []).command == BaseTurn(math.radians(5.0))


def refusal_without_arms(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_command(text, [])
    return str(caught.value)


def test_what_no_arm_does_takes_no_arm() -> None:
    assert "expected 'wait' alone" in refusal("left wait", *ARMS)
    assert "expected 'base move' alone" in refusal("arm base move x 5")


def test_both_joins_two_arms() -> None:
    wanted = Both(Move((0.2, 0.0, 0.0), arm="left"), Gripper(0.0, "right"))
    for text in (
        "both: left move x 35 | right gripper close",
        "BOTH left move x 35|right gripper closed.",
        "both : left move x 35 cm | right gripper 0",
    ):
        both = parsed(text, *ARMS)
        assert both == Parsed(wanted, ("left: x 35 cm was clipped to 20 cm",))
    assert command_text(wanted) == "both: left move x 20 cm | right gripper close"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("both: left home | left move x 5", "names the arm 'left' twice"),
        ("both: left home", "got 0 '|'"),
        ("both: left home | right home | left home", "got 2 '|'"),
        ("both: left home |", "a command is missing"),
        ("both: left home | wait 1", "expected commands of arms"),
        ("both: left home | home", "no arm is named"),
        ("both: left home | both: left home", "got 'both'"),
        ("both:", "got 0 '|'"),
        ("both", "got 0 '|'"),
        ("left home | right home", "'|' where the command should end"),
    ],
)
def test_both_refuses_anything_else(text: str, reason: str) -> None:
    assert reason in refusal(text, *ARMS)


def test_both_needs_two_arms() -> None:
    assert "'both' needs two arms" in refusal("both: home | home")


# --------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("text", "command", "notices"),
    [
        ("move x 35 z -20.001", Move((0.2, 0.0, -0.2)), (
            "x 35 cm was clipped to 20 cm", "z -20.001 cm was clipped to -20 cm")),
        ("move y 1.23456", Move((0.0, 0.0123, 0.0)), ("y 1.23456 cm was rounded to 1.23 cm",)),
        ("rotate yaw -400", Rotate("yaw", math.radians(-90.0)), (
            "yaw -400 deg was clipped to -90 deg",)),
        ("rotate roll 12.34", Rotate("roll", math.radians(12.3)), (
            "roll 12.34 deg was rounded to 12.3 deg",)),
        ("gripper 7", Gripper(1.0), ("the opening 7 was clipped to 1",)),
        ("gripper -0.2", Gripper(0.0), ("the opening -0.2 was clipped to 0",)),
        ("gripper 0.333", Gripper(0.33), ("the opening 0.333 was rounded to 0.33",)),
        ("wait 60", Wait(5.0), ("the time 60 s was clipped to 5 s",)),
        ("wait -1", Wait(0.0), ("the time -1 s was clipped to 0 s",)),
        ("policy 5000", RunPolicy(200), ("the ticks 5000 ticks was clipped to 200 ticks",)),
        ("policy 0", RunPolicy(1), ("the ticks 0 ticks was clipped to 1 ticks",)),
        ("policy 7.6", RunPolicy(8), ("the ticks 7.6 ticks was rounded to 8 ticks",)),
        ("base move y 80", BaseMove("y", 0.5), ("y 80 cm was clipped to 50 cm",)),
        ("base turn 180", BaseTurn(math.radians(90.0)), (
            "the turn 180 deg was clipped to 90 deg",)),
        ("move x -0.001", Move((0.0, 0.0, 0.0)), ("x -0.001 cm was rounded to 0 cm",)),
    ],
)  # fmt: skip
def test_numbers_are_clipped_and_rounded_and_that_is_told(
    text: str, command: Command, notices: tuple[str, ...]
) -> None:
    assert parsed(text) == Parsed(command, notices)


@pytest.mark.parametrize(
    "number",
    ["nan", "inf", "-inf", "1e9", "1e999", "0x10", "1_0", "٣", "½", "3,5", "--3", "- 3", "", "five",
     "9" * 13, "1.2.3", "−5"],
)  # fmt: skip
def test_what_is_no_plain_number_is_refused(number: str) -> None:
    for text in (f"move x {number}", f"wait x{number}", f"policy {number or '-'}"):
        assert refusal(text)


def test_wrong_units_are_refused() -> None:
    assert "the unit 'mm'" in refusal("move x 5mm")
    assert "'m' where the command should end" in refusal("move x 0.05 m")
    assert "the unit 'rad'" in refusal("rotate yaw 1rad")
    assert "it has no unit" in refusal("gripper 1cm")


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it holds no command"),
        ("   ", "it holds no command"),
        ("# nothing", "it holds no command"),
        ("...", "it holds no command"),
        ("wait\nwait", "control character U+000A"),
        ("wa\x00it", "control character U+0000"),
        ("wait \x1b[2J", "control character U+001B"),
        ("wait \ud800", "control character U+D800"),
        ("wаit", "the character U+0430"),
        ("wait " + "1" * 10_000, "10,005 characters; at most 300"),
        ("mve x 5", "did you mean 'move'"),
        ("xyzzy 1", "got 'xyzzy'; expected a command; known: arm, base, both, "),
        ("arm", "got an end; expected a command"),
        ("go beneath bowl", "expected one of these after 'go'; known: above, to"),
        ("turn the stove on", "expected one of these after 'turn'; known: off, on"),
        ("move", "the line ends; expected an axis: x, y, z"),
        ("move 5", "got '5'; expected an axis"),
        ("move x", "the line ends; expected a number for x"),
        ("move x 5 x 6", "the axis 'x' twice"),
        ("move x 5 quickly", "'quickly' where the command should end"),
        ("move x 5 in hand", "got 'hand'; expected a frame"),
        ("move x 5 in camera ü", "U+00FC"),
        ("move x 5 in camera a,b", "expected the name of a camera"),
        ("move x 5 until", "where the command should end"),
        ("rotate yow 5", "did you mean 'yaw'"),
        ("rotate yaw 5 until contact", "'until' where the command should end"),
        ("point down20", "did you mean 'down"),
        ("gripper opn", "did you mean 'open'"),
        ("gripper", "the line ends"),
        ("pick", "no thing is named"),
        ("pick up the", "no thing is named"),
        ("pick on the plate", "says where, and names no thing"),
        ("pick bowl next to", "does not say of what"),
        ("place on bowl in the", "does not say of what"),
        ("pick bowl's rim", "letters, digits, blanks and hyphens"),
        ("pick bowl, then plate", "letters, digits, blanks and hyphens"),
        ("place plate", "expected how it is to lie; known: in, on"),
        ("go to bowl", "does not end with 'grasp'"),
        ("go to grasp", "no thing is named"),
        ("push bowl", "does not say where to"),
        ("push next to bowl", "does not say where to"),
        ("push bowl to", "does not say where to"),
        ("open gripper", "did you mean 'gripper open'"),
        ("close the hand", "did you mean 'gripper close'"),
        ('policy 5 "grasp', "a quotation mark has no partner"),
        ("policy 5 grasp", "expected the instruction in quotation marks"),
        ('policy "grasp"', "expected a plain number for the ticks"),
        ("skill", "expected the name of a skill"),
        ("skill ../x y", "expected the name of a skill"),
        ("base move z 5", "expected an axis; known: x, y"),
        ("base", "expected one of these after 'base'"),
        ("done now", "'now' where the command should end"),
        ("home left", "'left' where the command should end"),
    ],
)
def test_refusal_says_what_was_got_and_what_was_expected(text: str, reason: str) -> None:
    said = refusal(text)

    assert reason in said
    assert "\n" not in said
    assert said.isprintable()
    assert len(said) < 600


# --------------------------------------------------------------------------- properties


@given(st.data())
def test_text_of_a_command_reads_back_as_the_command(data: st.DataObject) -> None:
    for arms in (ONE, ARMS):
        command = data.draw(commands(arms))
        text = command_text(command)

        assert parse_command(text, arms) == Parsed(command)
        assert command_text(parse_command(text, arms).command) == text
        assert problem_of(command) == ""


def test_command_off_the_grid_is_printed_as_its_neighbour() -> None:
    assert command_text(Move((0.012345, -1e-9, 0.0))) == "move x 1.23 cm"
    assert command_text(Rotate("yaw", -1e-9)) == "rotate yaw 0 deg"
    assert command_text(RunPolicy(3, 'say "hi"')) == "policy 3 ticks \"say 'hi'\""


def check_strange_lines(count: int, seed: int) -> int:
    """Read random lines; return how many were understood."""
    draw, understood, said = random.Random(seed), 0, ""
    for _ in range(count):
        line, arms = strange_line(draw), draw.choice([ONE, ARMS])
        try:
            command = parse_command(line, arms).command
        except ConfigError as error:
            said += str(error)
            continue
        understood += 1
        assert problem_of(command) == "", line
        if len(text := command_text(command)) <= 300:
            assert parse_command(text, arms) == Parsed(command), line
    assert said.isprintable()
    return understood


def test_strange_lines_are_refused_or_within_the_limits() -> None:
    assert check_strange_lines(5_000, seed=1) > 400


@pytest.mark.slow
def test_a_hundred_thousand_strange_lines_are_refused_or_within_the_limits() -> None:
    assert check_strange_lines(100_000, seed=2) > 8_000


# --------------------------------------------------------------------------- the help

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_document_says_what_the_grammar_says() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")

    assert document == with_table(document, commands_table()), (
        "run python -m zetta.primitives.commands_document docs/commands.md"
    )
    plain = document.replace("\\|", "|")
    for line in GRAMMAR.splitlines():
        assert line.strip() in plain


def test_help_names_every_form_and_every_limit() -> None:
    assert all(f"{form.usage}\n    {form.says}\n" in GRAMMAR for form in FORMS)
    assert "both: <command> | <command>\n" in GRAMMAR
    assert all(parsed(row.example, *ARMS).notices == () for row in ROWS if "both" in row.usage)
    for limit in ("20 cm", "90 deg", "5 s", "200 control ticks", "50 cm", "300 characters"):
        assert limit in GRAMMAR
