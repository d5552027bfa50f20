"""Target poses become rows that a blind client can execute."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.core import ActionSpec, ArmState, Proprio, read_only
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.robots import GR00T_ROBOCASA, OPENPI_DROID, OPENPI_LIBERO
from zetta.runtime.foreign.states import product, quaternion
from zetta.runtime.policy_server.ahead import Ahead

TARGETS = ActionSpec(
    "target_pose",
    ("x", "y", "z", "rx", "ry", "rz", "gripper"),
    (-3.0,) * 3 + (-np.pi,) * 3 + (-1.0,),
    (3.0,) * 3 + (np.pi,) * 3 + (1.0,),
    (1.0,) * 7,
)
DOWN = np.array([1.0, 0.0, 0.0, 0.0])


def at(place: list[float], quat: np.ndarray = DOWN) -> Proprio:
    return Proprio(0.0, (ArmState(read_only(place), read_only(quat), read_only([]), 0.08),))


def executed(rows: np.ndarray, place: np.ndarray, quat: np.ndarray, c: Convention) -> list[Proprio]:
    """Execute rows blindly on an arm that covers the declared share of each."""
    seen = []
    for row in rows:
        move = row * np.array(c.action.scale) * c.response
        place, quat = place + move[:3], product(quaternion(move[3:6]), quat)
        seen.append(at(place.tolist(), quat))
    return seen


def test_a_blindly_executed_chunk_arrives_where_the_targets_are() -> None:
    goal = np.array([0.05, -0.03, 1.1, 2.9, 0.3, 0.0, 1.0])
    rows = Ahead(TARGETS, OPENPI_LIBERO).rows(np.tile(goal, (40, 1)), at([0.0, 0.0, 1.17]))
    assert rows.shape == (40, 7)
    assert np.abs(rows).max() <= 1.0
    assert (rows[:, 6] == 1.0).all()
    arm = executed(rows, np.array([0.0, 0.0, 1.17]), DOWN, OPENPI_LIBERO)[-1].arms[0]
    np.testing.assert_allclose(arm.ee_pos, goal[:3], atol=1e-3)
    aligned = abs(float(np.dot(arm.ee_quat, quaternion(goal[3:6]))))
    assert aligned == pytest.approx(1.0, abs=1e-4)


def test_without_following_the_hand_the_chunk_would_overshoot() -> None:
    goal = np.array([0.02, 0.0, 1.17, np.pi, 0.0, 0.0, -1.0])
    followed = Ahead(TARGETS, OPENPI_LIBERO).rows(np.tile(goal, (40, 1)), at([0.0, 0.0, 1.17]))
    assert abs(followed[-1, 0]) < 0.01 < followed[0, 0]


def test_displacements_pass_as_they_are() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (10, 7))
    same = Ahead(OPENPI_LIBERO.action, OPENPI_LIBERO).rows(rows, at([0.0, 0.0, 1.0]))
    assert np.array_equal(same, rows)


@pytest.mark.parametrize("convention", [OPENPI_DROID, GR00T_ROBOCASA], ids=["droid", "robocasa"])
def test_what_cannot_be_converted_is_refused_before_anybody_asks(convention: Convention) -> None:
    with pytest.raises(SpecMismatch):
        Ahead(TARGETS, convention)
