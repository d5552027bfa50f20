"""Grasp choice and the motions' arithmetic, without a simulator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from zetta.sims.libero.expert_grasps import (
    MAX_WIDTH,
    Grasp,
    GripStyle,
    blockage,
    candidates,
    choose,
    finger_travel,
    overreach,
)
from zetta.sims.libero.expert_motions import (
    LONGEST_REACH,
    METRES_PER_UNIT,
    RADIANS_PER_UNIT,
    bent,
    delta_action,
    framed,
    funnel_height,
    upright,
)
from zetta.sims.libero.world import HeightMap, box_corners, ring_corners

ANGLES = st.floats(-3.1, 3.1)


def free_scene(obstacle: tuple[float, float, float] | None = None) -> HeightMap:
    """A flat table at height 0 around the origin, perhaps with one tall post."""
    step, half = 0.01, 0.2
    n = 1 + 2 * round(half / step)
    heights = np.zeros((n, n))
    if obstacle is not None:
        x, y, top = obstacle
        heights[round((x + half) / step), round((y + half) / step)] = top
    return HeightMap(np.array([-half, -half]), step, heights)


def box(x: float, y: float, z: float) -> np.ndarray:
    """Corners of a box of these full sizes standing on the table at the origin."""
    return box_corners(np.array([x, y, z]) / 2) + np.array([0, 0, z / 2])


def bowl() -> np.ndarray:
    return ring_corners(0.054, 0.025) + np.array([0, 0, 0.025])


def no_objection(grasp: Grasp) -> float:
    return 0.0


def test_free_narrow_object_is_taken_without_turning_the_hand() -> None:
    grasp = choose(box(0.05, 0.05, 0.08), free_scene(), GripStyle(), no_objection)
    assert grasp is not None
    assert grasp.yaw == 0.0
    assert not grasp.rim
    np.testing.assert_allclose(grasp.point[:2], 0.0, atol=1e-9)


def test_long_object_is_taken_across_its_short_side() -> None:
    grasp = choose(box(0.05, 0.12, 0.05), free_scene(), GripStyle(), no_objection)
    assert grasp is not None
    assert abs(np.rad2deg(grasp.yaw)) == pytest.approx(90, abs=30)
    assert grasp.width <= MAX_WIDTH


def test_wide_object_is_taken_by_its_rim_on_the_same_side_each_time() -> None:
    grasps = [
        choose(bowl() + np.array([dx, 0, 0]), free_scene(), GripStyle(), no_objection)
        for dx in (0, 0.01)
    ]
    assert all(g is not None and g.rim and g.side == 1 and g.yaw == 0.0 for g in grasps)


def test_rim_grasp_lies_inside_the_rim_along_the_fingers_travel() -> None:
    for grasp in candidates(bowl(), GripStyle(rim_inside=0.008)):
        from_middle = np.linalg.norm(grasp.point[:2])
        assert from_middle == pytest.approx(0.054 - 0.008, abs=2e-3)


def test_tilted_rim_is_taken_at_its_own_height() -> None:
    tilted = bowl() @ Rotation.from_euler("x", -15, degrees=True).as_matrix().T
    sides = {g.side: g for g in candidates(tilted, GripStyle()) if g.yaw == g.aside == 0.0}
    assert sides[1].point[2] < sides[-1].point[2]


def test_handle_of_a_mug_is_not_taken_for_its_rim() -> None:
    cup = ring_corners(0.042, 0.06) + np.array([0, 0, 0.06])
    handle = box_corners(np.array([0.005, 0.01, 0.02])) + np.array([0, 0.07, 0.04])
    grasps = list(candidates(np.concatenate([cup, handle]), GripStyle()))
    assert all(np.linalg.norm(g.point[:2]) < 0.042 and g.point[2] > 0.08 for g in grasps)


def test_post_beside_the_object_moves_or_turns_the_grasp() -> None:
    points = box(0.05, 0.04, 0.05)
    free = choose(points, free_scene(), GripStyle(), no_objection)
    scene = free_scene((0.0, 0.05, 0.2))
    blocked = choose(points, scene, GripStyle(), no_objection)
    assert free is not None
    assert blocked is not None
    assert blockage(free, scene) > 0.0
    assert blocked.blocked == 0.0


def test_objection_can_overrule_the_usual_side() -> None:
    grasp = choose(bowl(), free_scene(), GripStyle(), lambda g: 0.1 * (g.point[1] > 0))
    assert grasp is not None
    assert grasp.point[1] < 0.01


def test_style_restricts_the_fingers_travel() -> None:
    only_x = GripStyle(along=np.array([1.0, 0.0]))
    assert all(abs(finger_travel(g.yaw)[0]) >= 0.9 for g in candidates(bowl(), only_x))


@given(st.floats(0, 0.2), st.floats(0, 0.2))
def test_overreach_never_shrinks_with_distance(near: float, more: float) -> None:
    shoulder = np.array([0.0, 0.0, 0.3])
    close, far = np.array([0.6 + near, 0.0, 0.1]), np.array([0.6 + near + more, 0.0, 0.1])
    assert overreach(close, shoulder) <= overreach(far, shoulder)


@given(
    st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=3),
    st.lists(st.floats(-0.4, 0.4), min_size=3, max_size=3).filter(
        lambda v: np.linalg.norm(v) > 0.2
    ),
)
def test_steps_never_straighten_the_arm(move: list[float], toward: list[float]) -> None:
    step, reach = np.array(move), np.array(toward)
    kept = bent(step, reach)
    outward = reach / np.linalg.norm(reach)
    assert kept @ outward <= max(LONGEST_REACH - np.linalg.norm(reach), -0.03) + 1e-9
    np.testing.assert_allclose(np.cross(kept - step, reach), 0.0, atol=1e-9)
    if np.linalg.norm(reach) + step @ outward < LONGEST_REACH:
        np.testing.assert_array_equal(kept, step)


@given(ANGLES, ANGLES)
def test_upright_hand_points_down_and_turns_by_at_most_a_quarter(yaw: float, now: float) -> None:
    present = framed(np.array([-np.sin(now), np.cos(now), 0.0]), np.array([0.0, 0.0, -1.0]))
    wanted = upright(present, yaw)
    np.testing.assert_allclose(wanted[:, 2], [0, 0, -1], atol=1e-12)
    np.testing.assert_allclose(wanted @ wanted.T, np.eye(3), atol=1e-9)
    assert Rotation.from_matrix(wanted @ present.T).magnitude() <= np.pi / 2 + 1e-6


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.lists(st.floats(-1.7, 1.7), min_size=3, max_size=3),
)
def test_action_stays_in_bounds_and_points_at_the_target(
    move: list[float], turn: list[float]
) -> None:
    rotation = Rotation.from_rotvec(turn)
    action = delta_action(np.zeros(3), np.eye(3), np.array(move), rotation.as_matrix(), 1.0)
    assert np.all(np.abs(action) <= 1.0)
    assert action[6] == 1.0
    for part, wanted in ((action[:3], np.array(move)), (action[3:6], rotation.as_rotvec())):
        np.testing.assert_allclose(np.cross(part, wanted), 0.0, atol=1e-6)
        assert part @ wanted >= -1e-9


def test_action_undoes_a_small_error_without_overshoot() -> None:
    turn = Rotation.from_rotvec([0.0, 0.0, 0.1])
    action = delta_action(np.zeros(3), np.eye(3), np.full(3, 0.01), turn.as_matrix(), -1.0)
    assert np.all(action[:3] * METRES_PER_UNIT < 2 * 0.01)
    assert 0.1 < action[5] * RADIANS_PER_UNIT < 0.2


@given(st.floats(0, 0.3), st.floats(0, 0.3))
def test_funnel_rises_with_the_error_up_to_its_top(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0.0 <= funnel_height(low, 0.012, 0.1) <= funnel_height(high, 0.012, 0.1) <= 0.1
