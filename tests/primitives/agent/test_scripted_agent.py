"""The agent without a model: what it says next, and what it does about failures."""

from __future__ import annotations

import pytest

from zetta.primitives.agent.records import Answer, Turn
from zetta.primitives.agent.scripted_agent import TRIES, ScriptedAgent
from zetta.primitives.command_results import CommandResult, GraspEvidence
from zetta.runtime.errors import ConfigError

BOTH = "put both the alphabet soup and the tomato sauce in the basket"


def ok(text: str) -> CommandResult:
    return CommandResult(text, True, "reached", "as asked")


def failed(text: str) -> CommandResult:
    return CommandResult(text, False, "slipped", "closed on nothing")


def begun(instruction: str, arms: tuple[str, ...] = ("arm",)) -> ScriptedAgent:
    agent = ScriptedAgent()
    agent.begin(instruction, arms)
    return agent


def ask(agent: ScriptedAgent, *results: CommandResult, remarks: tuple[str, ...] = ()) -> Answer:
    return agent.decide(Turn(0, "", "", results=results, remarks=remarks))


def test_an_errand_is_a_pick_and_a_place_and_then_it_is_done() -> None:
    agent = begun("pick up the milk and place it in the basket")
    assert ask(agent).commands == ("pick milk",)
    assert ask(agent, ok("pick milk")).commands == ("place in basket",)
    assert ask(agent, ok("place in basket")).commands == ("done",)


def test_errands_are_done_in_their_order() -> None:
    agent = begun(BOTH)
    said = [ask(agent).commands[0]]
    while said[-1] != "done":
        said += ask(agent, ok(said[-1])).commands
    assert said == [
        "pick alphabet soup", "place in basket", "pick tomato sauce", "place in basket", "done",
    ]  # fmt: skip


def test_a_place_that_failed_begins_with_the_pick_again() -> None:
    agent = begun("put the bowl on the plate")
    ask(agent)
    ask(agent, ok("pick bowl"))
    assert ask(agent, failed("place on plate")).commands == ("pick bowl",)


def test_an_errand_is_given_up_after_its_tries_and_the_next_one_begins() -> None:
    agent = begun(BOTH)
    ask(agent)
    for _ in range(TRIES - 1):
        assert ask(agent, failed("pick alphabet soup")).commands == ("pick alphabet soup",)
    assert ask(agent, failed("pick alphabet soup")).commands == ("pick tomato sauce",)


def test_a_command_that_was_refused_counts_as_a_try() -> None:
    agent = begun("put the bowl on the plate")
    for _ in range(TRIES):
        assert ask(agent).commands or True
        answer = ask(agent, remarks=("nothing was carried out: out of reach",))
    assert answer.commands == ("done",)


def test_a_done_without_evidence_makes_it_try_that_errand_again() -> None:
    agent = begun(BOTH)
    ask(agent)
    for line in ("pick", "place", "pick"):
        ask(agent, ok(line))
    assert ask(agent, ok("place")).commands == ("done",)
    remark = "errand 2 is not done: the tomato sauce lies 12.0 cm beside the basket"
    assert ask(agent, remarks=(remark,)).commands == ("pick tomato sauce",)


def test_a_done_without_evidence_is_tried_again_only_so_often() -> None:
    agent = begun("put the bowl on the plate")
    ask(agent)
    remark = "errand 1 is not done: the bowl lies 9.0 cm beside the plate"
    for _ in range(TRIES):
        ask(agent, ok("pick"))
        assert ask(agent, ok("place")).commands == ("done",)
        assert ask(agent, remarks=(remark,)).commands == ("pick bowl",)
    ask(agent, ok("pick"))
    ask(agent, ok("place"))
    assert ask(agent, remarks=(remark,)).commands == ("done",)


@pytest.mark.parametrize(
    ("instruction", "line"),
    [
        ("open the middle drawer of the cabinet", "open middle drawer"),
        ("turn on the stove", "turn on stove"),
        ("push the plate to the front of the stove", "push plate to front of stove"),
        ("close the microwave", "close microwave"),
    ],
)
def test_parts_have_commands_of_their_own(instruction: str, line: str) -> None:
    assert ask(begun(instruction)).commands == (line,)


def test_with_two_arms_the_first_one_is_named() -> None:
    assert ask(begun("pick up the cup", ("left", "right"))).commands == ("left pick cup",)


def test_an_instruction_that_is_not_understood_is_refused_with_the_agents_name() -> None:
    with pytest.raises(ConfigError, match="agent 'scripted' cannot do this task"):
        begun("prepare a quick snack")


def test_what_is_not_seen_is_looked_for_again_with_the_arm_out_of_the_way() -> None:
    agent = begun("put the bowl on the plate")
    ask(agent)
    missed = CommandResult("pick bowl", False, "not found", "the object was not found")
    assert ask(agent, missed).commands == ("home", "pick bowl")
    assert ask(agent, ok("home"), failed("pick bowl")).commands == ("pick bowl",)


def test_a_hand_that_still_holds_places_again_and_one_that_must_pick_lets_go_first() -> None:
    held = GraspEvidence("held", 0.03, 0.002)
    agent = begun(BOTH)
    ask(agent)
    rise = (0.0, 0.0, 0.1)
    ask(agent, CommandResult("pick alphabet soup", True, "reached", "held", rise, grasp=held))
    stuck = CommandResult("place in basket", False, "timeout", "time was up", rise, grasp=held)
    for _ in range(TRIES - 1):
        assert ask(agent, stuck).commands == ("place in basket",)
    assert ask(agent, stuck).commands == ("gripper open", "pick tomato sauce")
