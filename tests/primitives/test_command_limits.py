from __future__ import annotations

import numpy as np
import pytest

from zetta.primitives.command_arms import set_gripper
from zetta.primitives.command_endings import Ending
from zetta.primitives.command_limits import Boundary, Box
from zetta.primitives.grasps import PIN_FINGERS
from zetta.primitives.motions import Arm
from zetta.runtime.core import Action, ArmState, Array, Look, Proprio, Sense
from zetta.sims.toy import action_spec

BOX = Box((-0.1, -0.1, 0.4), (0.1, 0.1, 0.6))
DOWN = np.array([1.0, 0.0, 0.0, 0.0])


def felt(t: float, *places: Array, opening: float = 0.08) -> Proprio:
    return Proprio(t, tuple(ArmState(p, DOWN, np.zeros(7), opening) for p in places))


def row(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> Action:
    return np.array([x, y, z, 0.0, 0.0, yaw, 1.0])


@pytest.fixture
def boundary() -> Boundary:
    return Boundary(BOX, action_spec(), 20.0)


def test_an_action_inside_passes_as_it_is(boundary: Boundary) -> None:
    boundary.feel(felt(0.0, np.array([0.0, 0.0, 0.5])))

    np.testing.assert_array_equal(boundary.bounded(row(0.5, -0.5, 1.0)), row(0.5, -0.5, 1.0))
    assert boundary.held_back == set()


def test_an_action_through_a_wall_ends_at_it_and_is_told(boundary: Boundary) -> None:
    boundary.feel(felt(0.0, np.array([0.08, 0.0, 0.5])))
    bounded = boundary.bounded(row(1.0, 1.0))  # 5 cm along x and y

    assert bounded[:3] == pytest.approx([0.4, 1.0, 0.0])
    assert boundary.held_back == {0}


def test_what_a_hand_coasts_counts_as_commanded(boundary: Boundary) -> None:
    boundary.feel(felt(0.0, np.array([0.03, 0.0, 0.5])))
    boundary.feel(felt(0.05, np.array([0.07, 0.0, 0.5])))  # 4 cm a tick, 3 cm before the wall

    assert boundary.bounded(row(1.0))[0] == pytest.approx(0.04)


def test_a_hand_that_would_coast_through_a_wall_brakes_and_does_not_turn(
    boundary: Boundary,
) -> None:
    boundary.feel(felt(0.0, np.array([0.05, 0.0, 0.5])))
    boundary.feel(felt(0.05, np.array([0.09, 0.0, 0.5])))
    bounded = boundary.bounded(row(1.0, yaw=0.2))

    assert bounded[0] < 0.0
    assert bounded[5] == 0.0


def test_a_hand_that_began_outside_is_not_pushed_in_but_goes_no_further(boundary: Boundary) -> None:
    boundary.feel(felt(0.0, np.array([0.2, 0.0, 0.5])))

    assert boundary.bounded(row(0.0))[0] == 0.0
    assert boundary.bounded(row(1.0))[0] == 0.0
    assert boundary.bounded(row(-1.0))[0] == -1.0


def test_a_fast_turn_is_slowed_down_and_a_thrown_hand_stops_turning(boundary: Boundary) -> None:
    boundary.feel(felt(0.0, np.array([0.0, 0.0, 0.5])))
    assert boundary.bounded(row(yaw=1.0))[5] == pytest.approx(0.6)  # 0.3 rad a tick

    boundary.feel(felt(0.05, np.array([0.0, 0.02, 0.5])))  # nobody sent it there
    assert boundary.bounded(row(yaw=1.0))[5] == 0.0


def test_each_arm_has_its_own_columns() -> None:
    boundary = Boundary(BOX, action_spec(("left", "right")), 20.0)
    boundary.feel(felt(0.0, np.array([0.1, 0.0, 0.5]), np.array([0.0, 0.0, 0.5])))
    bounded = boundary.bounded(np.concatenate([row(1.0), row(1.0)]))

    assert (bounded[0], bounded[7]) == (0.0, 1.0)
    assert boundary.held_back == {0}


def test_without_a_box_hands_go_anywhere() -> None:
    boundary = Boundary(None, action_spec(), 20.0)
    boundary.feel(felt(0.0, np.array([9.0, 0.0, 0.5])))

    np.testing.assert_array_equal(boundary.bounded(row(1.0, -1.0)), row(1.0, -1.0))


# --------------------------------------------------------------------------- grippers of all kinds


def opened(share: float, kind: str, start: float = 0.08) -> tuple[Ending, float]:
    """Set a made-up gripper; return how it ended and the opening a second later."""
    arm = Arm(action_spec(), 0, 20.0, PIN_FINGERS)

    def motion():  # type: ignore[no-untyped-def]
        yield from arm.start()
        ending = yield from set_gripper(arm, share)
        yield from arm.wait(arm.position, arm.rotation, 20)
        return ending

    steps, opening, t = motion(), start, 0.0
    wish = next(steps)
    while True:
        if not isinstance(wish, Look):
            command, t = float(wish[6]), t + 0.05
            wanted = {
                "width": 0.04 * (1.0 - command),
                "direction": opening - 0.02 * np.sign(command),
                "binary": 0.0 if command > 0.0 else 0.08,
            }[kind]
            opening += float(np.clip(wanted - opening, -0.006, 0.006))
            opening = min(max(opening, 0.0), 0.08)
        try:
            wish = steps.send(Sense(felt(t, np.array([0.0, 0.0, 0.5]), opening=opening)))
        except StopIteration as stop:
            return stop.value, opening


@pytest.mark.parametrize("kind", ["width", "direction"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_grippers_told_a_width_or_a_direction_open_to_a_share_and_stay(
    kind: str, share: float
) -> None:
    ending, opening = opened(share, kind)

    assert ending.completed
    assert ending.notices == ()
    assert opening == pytest.approx(0.08 * share, abs=0.006)


@pytest.mark.parametrize(("share", "opening", "word"), [(0.3, 0.0, "closed"), (0.6, 0.08, "open")])
def test_a_gripper_that_only_opens_and_closes_takes_the_nearest_and_says_so(
    share: float, opening: float, word: str
) -> None:
    ending, at = opened(share, "binary")

    assert at == pytest.approx(opening, abs=1e-6)
    assert ending.notices == (f"this gripper only opens and closes; {share:.2f} became {word}",)
