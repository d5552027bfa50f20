"""The dry run: what is accepted stays inside, what is refused says why and offers what passes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.primitives.command_frames import turned_by, world_displacement
from zetta.primitives.commands import (
    DIRECTIONS,
    TURNS,
    ArmCommand,
    BaseMove,
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
from zetta.primitives.dry_run import DryRun, DryWorld, check_turn
from zetta.primitives.dry_run_reach import DryArm, Pose
from zetta.primitives.grasps import PIN_FINGERS
from zetta.primitives.motions_frames import DOWN, facing, matrix_of
from zetta.runtime.core import ArmState, Array, Camera, Estimate, Proprio
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.workspace import Box

BOX = Box((-0.2, -0.3, 0.41), (0.2, 0.3, 0.74))
QUAT = np.array([1.0, 0.0, 0.0, 0.0])
"""Points down, fingers along world y."""


def a_state(x: float = -0.1, y: float = 0.0, z: float = 0.64) -> ArmState:
    return ArmState(np.array([x, y, z]), QUAT, np.zeros(5), 0.08)


def felt(*arms: ArmState) -> Proprio:
    return Proprio(0.0, arms or (a_state(),))


def an_arm(name: str = "arm", box: Box | None = BOX) -> DryArm:
    return DryArm(name, a_state(), box, None, PIN_FINGERS)


TOY = DryWorld((an_arm(),), text=str)
TWO = DryWorld((an_arm("left"), an_arm("right")), text=str)


def check(*commands: Command, world: DryWorld = TOY, start: Proprio | None = None) -> DryRun:
    start = felt(*(a_state() for _ in world.arms)) if start is None else start
    return check_turn([Parsed(command) for command in commands], start, world)


def moved(dx: float, dy: float = 0.0, dz: float = 0.0) -> Move:
    return Move((dx, dy, dz))


def end_of(run: DryRun, arm: int = 0) -> Pose:
    pose = run.predictions[-1].poses[arm]
    assert pose is not None
    return pose


# --------------------------------------------------------------------------- moves and turns


def test_a_turn_is_followed_from_command_to_command() -> None:
    run = check(moved(0.1), moved(0.0, 0.1), Gripper(0.0), moved(0.1), Wait(), Done())
    assert run.passed
    assert len(run.predictions) == 6
    assert end_of(run).position == pytest.approx([0.1, 0.1, 0.64])


def test_the_first_failure_is_told_and_the_commands_before_it_are_fine() -> None:
    run = check(moved(0.15), moved(0.2))
    assert run.failure is not None
    assert run.failure.index == 1
    assert run.failure.stop == "limit"
    assert len(run.predictions) == 1
    assert run.failure.alternative == moved(0.15)
    assert "5.0 cm above x 20.0 cm" in run.failure.sentence
    assert "reaches at most" in run.failure.sentence


def test_where_nothing_nearer_is_possible_it_says_so() -> None:
    run = check(moved(0.1), start=felt(a_state(x=0.2)))
    assert run.failure is not None
    assert run.failure.alternative is None
    assert "cannot go that way at all" in run.failure.sentence


def test_arms_that_are_not_felt_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(SpecMismatch, match="got 1 arms felt and 2 to check"):
        check_turn([], felt(), TWO)


def test_a_hand_that_is_outside_may_come_back_but_not_go_on() -> None:
    outside = felt(a_state(x=0.25))
    assert check(moved(-0.02), start=outside).passed
    assert check(moved(0.0, 0.1), start=outside).passed
    assert not check(moved(0.02), start=outside).passed


def test_a_move_of_the_gripper_follows_the_turns_before_it() -> None:
    along = Move((0.0, 0.0, 0.2), "gripper")
    assert check(Point("forward"), along).passed
    assert end_of(check(Point("forward"), along)).position == pytest.approx([0.1, 0.0, 0.64])
    assert end_of(check(along)).position == pytest.approx([-0.1, 0.0, 0.44])


def test_a_camera_at_the_wrist_moves_with_the_hand() -> None:
    pose = np.eye(4)
    pose[:3, :3] = facing(np.array([0.0, -1.0, 0.0]), DOWN)  # its x is world x
    pose[:3, 3] = [-0.1, 0.0, 0.7]
    camera = Camera("wrist", np.eye(3), pose)
    right = Move((0.1, 0.0, 0.0), "camera")
    fixed = replace(TOY, cameras={"wrist": camera})
    moving = replace(fixed, wrist_cameras=("wrist",))
    turn = Rotate("yaw", math.pi / 2.0)
    assert end_of(check(turn, right, world=fixed)).position == pytest.approx([0.0, 0.0, 0.64])
    assert end_of(check(turn, right, world=moving)).position == pytest.approx([-0.1, 0.1, 0.64])


def test_a_move_until_contact_needs_room_only_and_what_follows_is_not_foreseen() -> None:
    down = Move((0.0, 0.0, -0.2), until_contact=True)
    run = check(moved(0.0, 0.0, -0.15), down, Gripper(0.0), moved(0.0, 0.0, 0.2))
    assert run.passed
    assert run.predictions[1].poses == (None,)
    assert any("where contact will be" in note for note in run.notes)
    stuck = check(down, start=felt(a_state(z=0.412)))
    assert stuck.failure is not None
    assert stuck.failure.stop == "limit"


def test_home_is_known_even_after_something_unknown() -> None:
    run = check(Move((0.0, 0.0, -0.1), until_contact=True), Home(), moved(0.1))
    assert end_of(run).position == pytest.approx([0.0, 0.0, 0.64])


@pytest.mark.parametrize(
    ("command", "words", "alternative"),
    [
        (moved(0.35), "35.0 cm along one axis", moved(0.2)),
        (Rotate("yaw", math.radians(120)), "120 degrees", Rotate("yaw", math.radians(90))),
        (Gripper(1.5), "expected 0 to 1", Gripper(1.0)),
        (RunPolicy(500), "expected 1 to 200", RunPolicy(200)),
        (moved(math.nan), "not finite", None),
        (Rotate("yaw", math.inf), "not finite", None),
    ],
)
def test_limits_of_a_command_hold_whatever_the_robot(
    command: Command, words: str, alternative: Command | None
) -> None:
    run = check(command, world=replace(TOY, policy=True))
    assert run.failure is not None
    assert run.failure.stop == "limit"
    assert words in run.failure.sentence
    assert run.failure.alternative == alternative


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (BaseMove("x", 0.2), "mobile base"),
        (RunPolicy(20), "needs a policy"),
        (RunSkill("regrasp"), "not loaded"),
        (Move((0.01, 0.0, 0.0), arm="left"), "arm that is not there; .*arm"),
        (Move((0.01, 0.0, 0.0), "camera"), "no camera is calibrated"),
    ],
)
def test_what_the_robot_has_not_is_refused(command: Command, words: str) -> None:
    run = check(command)
    assert run.failure is not None
    assert run.failure.stop == "refused"
    assert run.failure.alternative is None
    assert re.search(words, run.failure.sentence)


def test_what_the_robot_has_is_let_through_and_leaves_the_pose_unknown() -> None:
    world = replace(TOY, base=True, policy=True, skills=("regrasp",))
    for command in (BaseMove("x", 0.2), RunPolicy(20), RunSkill("regrasp")):
        run = check(command, moved(0.2), world=world)
        assert run.passed
        assert run.predictions[0].poses == (None,)


# --------------------------------------------------------------------------- two arms


def test_two_arms_must_be_named() -> None:
    run = check(moved(0.01), world=TWO)
    assert run.failure is not None
    assert "name one of left, right" in run.failure.sentence
    assert check(replace(moved(0.01), arm="left"), world=TWO).passed


def test_both_arms_are_followed_and_the_one_that_fails_is_shortened() -> None:
    left, right = replace(moved(0.1), arm="left"), replace(moved(0.0, 0.2), arm="right")
    run = check(Both(left, right), world=TWO)
    assert end_of(run, 0).position == pytest.approx([0.0, 0.0, 0.64])
    assert end_of(run, 1).position == pytest.approx([-0.1, 0.2, 0.64])
    for order in ((left, right), (right, left)):
        again = check(Both(*order), Both(*order), world=TWO)
        assert again.failure is not None
        shorter = replace(right, displacement=(0.0, 0.1, 0.0))
        swapped = tuple(shorter if one is right else one for one in order)
        assert again.failure.alternative == Both(*swapped)


def test_one_arm_cannot_do_both() -> None:
    run = check(Both(replace(moved(0.1), arm="left"), Gripper(0.0, "left")), world=TWO)
    assert run.failure is not None
    assert run.failure.stop == "refused"


# --------------------------------------------------------------------------- things

MUG = Estimate(
    "mug", np.array([0.0, 0.1, 0.45]), np.array([0.05, 0.05, 0.1]), 0.0, 0.9, 0.0, "vision"
)
FAR = replace(MUG, position=np.array([0.6, 0.1, 0.45]))
UNSURE = replace(MUG, confidence=0.1)


def seeing(**things: Estimate) -> DryWorld:
    return replace(TOY, where=things.get)


def test_the_hand_is_expected_over_a_thing_that_is_seen() -> None:
    run = check(GoAbove("mug"), moved(0.0, 0.0, 0.1), world=seeing(mug=MUG))
    above = run.predictions[0].poses[0]
    assert above is not None
    assert above.estimated
    assert above.position == pytest.approx([0.0, 0.1, 0.58])
    assert end_of(run).estimated
    assert end_of(run).position == pytest.approx([0.0, 0.1, 0.68])


def test_a_grasp_ends_at_the_thing_and_a_pick_above_it() -> None:
    grasp = end_of(check(GoToGrasp("mug"), world=seeing(mug=MUG)))
    assert grasp.position[:2] == pytest.approx([0.0, 0.1], abs=0.01)
    assert 0.43 < grasp.position[2] < 0.5
    lifted = end_of(check(Pick("mug"), Place("mug"), world=seeing(mug=MUG)))
    assert lifted.position[2] > 0.5


@pytest.mark.parametrize("command", [GoAbove("mug"), GoToGrasp("mug"), Pick("mug"), Place("mug")])
def test_a_thing_that_is_too_far_is_refused(command: Command) -> None:
    run = check(command, world=seeing(mug=FAR))
    assert run.failure is not None
    assert run.failure.stop == "limit"
    assert "mug is too far" in run.failure.sentence


@pytest.mark.parametrize("where", [{}, {"mug": UNSURE}])
def test_what_is_not_seen_is_not_found(where: dict[str, Estimate]) -> None:
    run = check(moved(0.01), Pick("mug"), world=seeing(**where))
    assert run.failure is not None
    assert (run.failure.index, run.failure.stop) == (1, "not found")


def test_what_may_come_to_light_within_the_turn_is_let_through() -> None:
    world = seeing(drawer=MUG)
    run = check(Open("drawer"), Pick("mug"), moved(0.2), world=world)
    assert run.passed
    assert any("is not known" in note for note in run.notes)


@pytest.mark.parametrize(
    "command", [Open("mug"), Close("mug"), TurnKnob("mug"), Push("mug", "mug")]
)
def test_parts_are_checked_against_the_workspace_only(command: Command) -> None:
    assert check(command, world=seeing(mug=MUG)).passed
    assert not check(command, world=seeing(mug=FAR)).passed


def test_without_eyes_things_are_let_through() -> None:
    run = check(Pick("mug"), moved(0.2))
    assert run.passed
    assert run.predictions[0].poses == (None,)


# --------------------------------------------------------------------------- properties

small = st.integers(-20, 20).map(lambda cm: cm / 100.0)
arm_commands: st.SearchStrategy[ArmCommand] = st.one_of(
    st.builds(
        Move,
        st.tuples(small, small, small),
        st.sampled_from(("world", "gripper")),
        until_contact=st.just(False),
    ),
    st.builds(
        Rotate,
        st.sampled_from(TURNS),
        st.integers(-90, 90).map(math.radians),
        st.sampled_from(("world", "gripper")),
    ),
    st.builds(Point, st.sampled_from(DIRECTIONS)),
    st.builds(Home),
    st.builds(Gripper, st.floats(0.0, 1.0)),
)
starts = st.builds(a_state, st.floats(-0.2, 0.2), st.floats(-0.3, 0.3), st.floats(0.41, 0.74)).map(
    felt
)


def holds_what_it_promises(commands: Sequence[Command], start: Proprio, world: DryWorld) -> None:
    """Check what is true of every dry run that knows all poses."""
    run = check_turn([Parsed(command) for command in commands], start, world)
    arm = world.arms[0]
    before = (np.array(start.arms[0].ee_pos), matrix_of(start.arms[0].ee_quat))
    for command, prediction in zip(commands, run.predictions, strict=False):
        pose = prediction.poses[0]
        assert pose is not None
        assert arm.workspace is not None
        assert arm.workspace.holds(pose.position, 1e-5)
        assert_is_the_end(command, before, pose)
        if arm.kinematics is not None:
            assert pose.joints is not None
            there, _ = arm.kinematics.forward(pose.joints)
            assert float(np.linalg.norm(there - pose.position)) < 0.0101
        before = (pose.position, pose.rotation)
    if run.failure is None:
        assert len(run.predictions) == len(commands)
        return
    assert len(run.predictions) == run.failure.index
    if run.failure.alternative is not None:
        instead = [*commands[: run.failure.index], run.failure.alternative]
        assert check_turn([Parsed(command) for command in instead], start, world).passed


def assert_is_the_end(command: Command, before: tuple[Array, Array], pose: Pose) -> None:
    position, rotation = before
    if isinstance(command, Move):
        position = position + world_displacement(command, rotation)
    if isinstance(command, Rotate):
        rotation = turned_by(command, rotation)
    if isinstance(command, Move | Rotate | Gripper):
        np.testing.assert_allclose(pose.position, position, atol=1e-9)
        np.testing.assert_allclose(pose.rotation, rotation, atol=1e-9)


@given(starts, st.lists(arm_commands, min_size=1, max_size=4))
@settings(deadline=None)
def test_on_the_toy_accepted_poses_are_inside_and_alternatives_pass(
    start: Proprio, commands: list[ArmCommand]
) -> None:
    holds_what_it_promises(commands, start, TOY)
