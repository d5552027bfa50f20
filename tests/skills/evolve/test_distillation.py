"""Skills out of what an agent did: what is kept, what is refused, and that the drafts are sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.primitives.command_lines import ARMS, commands
from zetta.critics.parameters import parse_parameters
from zetta.primitives.command_grammar import command_text
from zetta.primitives.command_results import CommandResult, GraspEvidence, StopReason
from zetta.primitives.roles import parse_instruction
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.critic_templates import TEMPLATES
from zetta.skills.evolve.distillation import Success, distilled, successful_attempt
from zetta.skills.evolve.distilled_steps import steps_of
from zetta.skills.evolve.screen import ScreenResult, screen
from zetta.skills.package import load_skill
from zetta.skills.program import analyse_program

CUBE = "put the red cube on the green plate"
DRAWER = "put the bowl in the top drawer"


def came(text: str, ticks: int = 30, stop: StopReason = "reached") -> CommandResult:
    return CommandResult(text, stop == "reached", stop, "as it came", ticks=ticks)


def success(instruction: str, *lines: str, arms: tuple[str, ...] = ("arm",)) -> Success:
    return Success(instruction, arms, tuple(came(line) for line in lines))


def refusal(instruction: str, *lines: str, arms: tuple[str, ...] = ("arm",)) -> str:
    with pytest.raises(ConfigError) as caught:
        distilled(success(instruction, *lines, arms=arms))
    return str(caught.value)


def screened(draft: Draft, folder: Path) -> ScreenResult:
    return screen(draft, folder, (), (), "vision", 120, secrets=("toy_pick", 271828))


def calls(draft: Draft) -> list[str]:
    lines = draft.files["recovery.py"].splitlines()
    return [line.partition("yield from robot.")[2] for line in lines if "yield from" in line]


# --------------------------------------------------------------------------- what is kept


def test_only_what_follows_the_last_failure_is_kept() -> None:
    results = (came("pick cup"), came("pick bowl", stop="slipped"), came("home"), came("wait 1 s"))

    assert [result.text for result in successful_attempt(results)] == ["home", "wait 1 s"]
    assert successful_attempt(results[:2]) == ()
    assert successful_attempt(results[2:]) == results[2:]


def test_success_within_the_last_command_completes_it() -> None:
    ended = came("place on plate", stop="interrupted")

    assert successful_attempt((came("pick bowl"), ended)) == (came("pick bowl"), ended)
    assert successful_attempt((ended, came("pick bowl"))) == (came("pick bowl"),)


@pytest.mark.parametrize(
    ("instruction", "line", "call"),
    [
        (CUBE, "pick red cube", 'grasp("object")'),
        (CUBE, "pick the red cube", 'grasp("object")'),
        (CUBE, "go above green plate", 'above("receptacle")'),
        (CUBE, "go above red cube", 'above("object")'),
        (CUBE, "go to red cube grasp", 'descend("object")'),
        (CUBE, "place on green plate", 'place("receptacle")'),
        (DRAWER, "place in top drawer", 'place("receptacle")'),
        (CUBE, "gripper open", "open()"),
        (CUBE, "gripper close", "close()"),
        (CUBE, "move x 3.25 z -5", "move_by(0.0325, 0.0, -0.05)"),
        (CUBE, "move z -9 until contact", "until_contact(0.0, 0.0, -0.09)"),
        (CUBE, "rotate yaw -90", "turn_by(-1.5708)"),
        (CUBE, "point down", "point_down()"),
        (CUBE, "wait 0.5", "hold(0.5)"),
        ("open the top drawer", "open top drawer", 'pull("part")'),
        ("close the microwave", "close microwave", 'press("part")'),
        ("turn on the stove", "turn on stove", 'turn("part")'),
        ("turn off the stove", "turn off the stove", 'turn("part")'),
        (
            "push the plate to the front of the stove", "push plate to front of the stove",
            'push("object")',
        ),
        (
            "put the bowl next to the plate on the tray", "pick bowl next to plate",
            'grasp("object")',
        ),
    ],
)  # fmt: skip
def test_command_is_a_call_and_the_draft_passes_the_screen(
    tmp_path: Path, instruction: str, line: str, call: str
) -> None:
    draft = distilled(success(instruction, line))

    assert calls(draft) == [call]
    result = screened(draft, tmp_path / "candidate")
    assert result.problems == ()
    package = load_skill(tmp_path / "candidate" / draft.name)
    assert package.page.provenance.author == "distilled from an agent's episode"
    assert package.page.provenance.made_by == "episode"
    assert package.notices == ()
    assert package.fits(parse_instruction(instruction))


def test_done_is_no_part_of_a_recovery() -> None:
    assert calls(distilled(success(CUBE, "pick red cube", "done"))) == ['grasp("object")']
    assert "nothing to keep" in refusal(CUBE, "done")
    assert "nothing to keep" in refusal(CUBE)


def test_what_follows_a_grasp_needs_the_thing_in_the_hand() -> None:
    text = distilled(success(CUBE, "pick red cube", "place on green plate")).files["recovery.py"]

    assert 'taken = yield from robot.grasp("object")\n    if not taken:\n        return\n' in text


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("home", "'home': a recovery has no such primitive"),
        ("policy 20", "'policy 20 ticks': a recovery has no such primitive"),
        ("skill regrasp", "'skill regrasp': a recovery has no such primitive"),
        ("base move x 5", "'base move x 5 cm': a recovery has no such primitive"),
        ("pick blue cube", "'blue cube' plays no such role in the instruction, which names object"),
        ("pick green plate", "'green plate' plays no such role"),
        ("pick red cube on the left", "plays no such role"),
        ("place on table", "plays no such role"),
        ("place in green plate", "and this is another way"),
        ("push red cube to table", "is not the receptacle of the instruction"),
        ("open top drawer", "'handle of top drawer' plays no such role"),
        ("move x 3 in gripper", "not of the gripper"),
        ("rotate yaw 3 in camera", "not of the camera"),
        ("rotate roll 3", "about the vertical and no other axis"),
        ("point forward", "points the hand down and no other way"),
        ("gripper half", "opens the gripper wide or closes it"),
    ],
)
def test_command_without_counterpart_is_refused_by_name(line: str, reason: str) -> None:
    said = refusal(CUBE, "pick red cube", line)

    assert reason in said
    assert "\n" not in said


def test_all_that_is_refused_is_named_at_once() -> None:
    said = refusal(CUBE, "home", "pick red cube", "policy 5", "home")

    assert said.count("'home'") == 1
    assert "'policy 5 ticks'" in said
    assert "pick" not in said


def test_a_part_is_worked_as_the_instruction_says() -> None:
    assert "asks for something else" in refusal("turn on the stove", "turn off stove")
    assert "asks for something else" in refusal("open the top drawer", "close top drawer")


def test_recovery_moves_the_first_arm_alone() -> None:
    arms = ("left", "right")
    draft = distilled(success(CUBE, "left pick red cube", "wait", arms=arms))

    assert calls(draft) == ['grasp("object")', "hold(0.5)"]
    assert "moves the arm 'left' alone" in refusal(CUBE, "right pick red cube", arms=arms)
    assert "no such primitive" in refusal(CUBE, "both: left home | right home", arms=arms)


# --------------------------------------------------------------------------- the draft


@pytest.mark.parametrize(
    ("instruction", "lines", "name", "critic"),
    [
        (
            CUBE, ("pick red cube", "place on green plate"), "repeat-grasp-place",
            "closed on nothing",
        ),
        (CUBE, ("place on green plate",), "repeat-place", "comes no nearer to the receptacle"),
        (CUBE, ("move z 10", "move z 5"), "repeat-move-by", "told to move and does not"),
        ("open the top drawer", ("open top drawer",), "repeat-pull", "told to move and does not"),
    ],
)  # fmt: skip
def test_name_and_trigger_fit_how_the_recovery_begins(
    instruction: str, lines: tuple[str, ...], name: str, critic: str
) -> None:
    draft = distilled(success(instruction, *lines))

    assert draft.name == name
    assert critic in draft.files["critic.py"]
    assert f'SKILL = "{name}"' in draft.files["critic.py"]


def test_trigger_is_chosen_among_the_templates(tmp_path: Path) -> None:
    for template in TEMPLATES:
        draft = distilled(success(CUBE, "pick red cube"), "take", template.name)
        assert template.doc in draft.files["critic.py"]
        assert screened(draft, tmp_path / template.name).problems == ()


def test_trigger_must_exist_and_see_what_the_instruction_names() -> None:
    drawer = success("open the top drawer", "open top drawer")
    with pytest.raises(ConfigError, match="did you mean 'stalled'"):
        distilled(drawer, critic="staled")
    with pytest.raises(ConfigError, match="no template of a critic 'xyzzy'; known: arrived-empty"):
        distilled(drawer, critic="xyzzy")
    with pytest.raises(ConfigError, match="watches the object"):
        distilled(drawer, critic="closed-on-nothing")


def test_recovery_may_take_twice_the_ticks_within_bounds() -> None:
    for ticks, most in ((3, 60), (44, 90), (400, 300)):
        draft = distilled(Success(CUBE, ("arm",), (came("pick red cube", ticks),)))
        assert f"max_ticks: {most}\n" in draft.files["SKILL.md"]


def test_hand_back_is_what_the_last_grip_comes_to() -> None:
    def reentry(*results: CommandResult, instruction: str = CUBE) -> str:
        text = distilled(Success(instruction, ("arm",), results)).files["recovery.py"]
        return text.rpartition("return ")[2].strip()

    opened = "now(w.holding) < 0.5 and now(w.closed_for) < 0.01"
    held = GraspEvidence("held", 0.03, 0.001)
    closed = CommandResult("gripper close", True, "reached", "it holds", grasp=held)
    assert reentry(came("pick red cube"), came("move z 5")) == "now(w.holding) > 0.5"
    assert reentry(came("pick red cube"), came("place on green plate")) == opened
    assert reentry(came("gripper open"), came("move z 5")) == opened
    assert reentry(closed) == "now(w.holding) > 0.5"
    assert reentry(came("gripper close")) == "now(w.closed_for) > 0.0"
    assert reentry(came("move z 5")) == "True"


def test_an_instruction_that_nobody_understands_is_refused() -> None:
    assert "is understood" in refusal("blorp", "move z 5")


@given(st.data())
def test_whatever_an_agent_did_becomes_a_sound_program_or_is_refused(data: st.DataObject) -> None:
    arms = data.draw(st.sampled_from([("arm",), ARMS]))
    given_commands = data.draw(st.lists(commands(arms), min_size=1, max_size=6))
    lines = list(map(command_text, given_commands))
    try:
        draft = distilled(success("put the bowl on the plate", *lines, arms=arms))
    except ConfigError:
        return
    parameters, problems = parse_parameters(draft.files["params.toml"])
    assert problems == ()
    checked = analyse_program(draft.files["recovery.py"], "recovery.py", SIGNALS, parameters)
    assert not isinstance(checked, tuple), checked


def test_steps_keep_their_order() -> None:
    roles = parse_instruction(CUBE)
    assert [step.primitive for step in steps_of((), roles, "")] == []
