"""Frames of commands: what x, y and z of the world, the hand and a picture mean."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from zetta.primitives.command_frames import (
    camera_of,
    pointing,
    turned_by,
    world_displacement,
)
from zetta.primitives.commands import DIRECTIONS, FRAMES, TURNS, Move, Rotate
from zetta.primitives.motions_frames import DOWN, angle_between, downward, facing
from zetta.runtime.core import Array, Camera
from zetta.runtime.errors import ConfigError

HAND = facing(np.array([0.0, -1.0, 0.0]), DOWN)
"""Points down, fingers along world y."""

rotations = st.integers(0, 2**32 - 1).map(
    lambda seed: np.asarray(Rotation.random(rng=np.random.default_rng(seed)).as_matrix())
)


def a_camera(rotation: Array, name: str = "front") -> Camera:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    return Camera(name, np.eye(3), pose)


FRONT = a_camera(np.column_stack([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]))
"""Looks along -x, its picture's right is world y, up in it is up."""


def test_a_move_in_the_world_is_its_own_displacement() -> None:
    move = Move((0.1, -0.02, 0.03))
    assert world_displacement(move, HAND).tolist() == [0.1, -0.02, 0.03]


def test_z_of_the_gripper_is_where_the_hand_points_and_y_where_the_fingers_close() -> None:
    ahead = world_displacement(Move((0.0, 0.0, 0.05), "gripper"), HAND)
    np.testing.assert_allclose(ahead, [0.0, 0.0, -0.05])
    along = world_displacement(Move((0.0, 0.05, 0.0), "gripper"), HAND)
    np.testing.assert_allclose(along, [0.0, -0.05, 0.0])


def test_a_camera_moves_right_up_and_away_as_its_picture_shows() -> None:
    move = Move((0.01, 0.02, 0.03), "camera")
    np.testing.assert_allclose(world_displacement(move, HAND, FRONT), [-0.03, 0.01, 0.02])


def test_a_turn_about_the_view_looks_clockwise() -> None:
    turn = Rotate("yaw", math.pi / 2.0, "camera")
    after = turned_by(turn, np.eye(3), FRONT)
    # Right in the picture is world y; a quarter clockwise, it points down.
    np.testing.assert_allclose(after @ [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], atol=1e-12)


@given(rotations, rotations, st.sampled_from(FRAMES), st.sampled_from(TURNS), st.floats(-1.5, 1.5))
def test_a_turn_turns_by_its_angle_in_every_frame(
    hand: Array, view: Array, frame: str, turn: str, angle: float
) -> None:
    asked = Rotate(turn, angle, frame)  # type: ignore[arg-type]
    after = turned_by(asked, hand, a_camera(view))
    assert angle_between(after, hand) == pytest.approx(abs(angle), abs=1e-6)
    np.testing.assert_allclose(after @ after.T, np.eye(3), atol=1e-9)


@given(rotations, rotations, st.sampled_from(FRAMES))
def test_a_move_keeps_its_length_in_every_frame(hand: Array, view: Array, frame: str) -> None:
    move = Move((0.03, -0.07, 0.11), frame)  # type: ignore[arg-type]
    length = float(np.linalg.norm(world_displacement(move, hand, a_camera(view))))
    assert length == pytest.approx(float(np.linalg.norm(move.displacement)))


@given(rotations)
def test_down_is_the_downward_orientation_that_motions_take(hand: Array) -> None:
    if np.linalg.norm(hand[:2, 1]) < 0.25:
        return
    np.testing.assert_allclose(pointing("down", hand), downward(hand), atol=1e-9)


@given(rotations, st.sampled_from(DIRECTIONS), st.floats(-math.pi, math.pi))
def test_a_preset_points_there_whatever_the_hand_did_before(
    hand: Array, direction: str, yaw: float
) -> None:
    ahead = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    after = pointing(direction, hand, ahead)  # type: ignore[arg-type]
    tilt = {"down": 0.0, "forward": 90.0}.get(direction)
    tilt = float(direction.removeprefix("down")) if tilt is None else tilt
    assert after[2, 2] == pytest.approx(-math.cos(math.radians(tilt)), abs=1e-9)
    assert after[:, 2] @ ahead == pytest.approx(math.sin(math.radians(tilt)), abs=1e-9)
    assert np.linalg.det(after) == pytest.approx(1.0)
    again = pointing(direction, after, ahead)  # type: ignore[arg-type]
    np.testing.assert_allclose(again, after, atol=1e-9)


def test_an_unnamed_camera_is_the_first_one_and_an_unknown_one_is_named() -> None:
    cameras = {"front": FRONT, "wrist": a_camera(np.eye(3), "wrist")}
    assert camera_of(Move((0.0, 0.0, 0.1), "camera"), cameras) is FRONT
    assert camera_of(Move((0.0, 0.0, 0.1), "camera", "wrist"), cameras) is cameras["wrist"]
    assert camera_of(Move((0.0, 0.0, 0.1)), cameras) is None
    with pytest.raises(ConfigError, match=r"no camera .wirst..*wrist"):
        camera_of(Rotate("roll", 0.1, "camera", "wirst"), cameras)
    with pytest.raises(ConfigError, match="no camera is calibrated"):
        camera_of(Move((0.0, 0.0, 0.1), "camera"), {})
    with pytest.raises(ConfigError, match="needs a camera"):
        world_displacement(Move((0.0, 0.0, 0.1), "camera"), HAND)
