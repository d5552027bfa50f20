from __future__ import annotations

import numpy as np
import pytest
from toy_episodes import REST, openings, solve, world

from zetta.runtime.core import Step
from zetta.runtime.errors import ConfigError
from zetta.sims.toy_faults import ToyFaults


def heights(steps: list[Step], name: str = "red_cube") -> list[float]:
    return [float(step.truth.objects[name][2]) for step in steps if step.truth]


def test_without_faults_the_expert_needs_one_attempt() -> None:
    _, steps = solve(world(faults=ToyFaults()))
    assert len(steps) < 60


def test_an_ordered_slip_drops_what_is_held_and_the_expert_grasps_again() -> None:
    _, undisturbed = solve(world())
    _, steps = solve(world(faults=ToyFaults(slip_at=25)))
    lifted = next(i for i, z in enumerate(heights(steps)) if z > 0.45)
    fallen = next(i for i, z in enumerate(heights(steps)) if i > lifted and z < 0.421)
    assert lifted >= 20
    assert openings(steps)[fallen] < 0.04
    assert steps[-1].success
    assert len(steps) > len(undisturbed) + 20


def test_slips_can_be_forbidden() -> None:
    lengths = [
        len(solve(world("toy_slip", seed=seed, faults=ToyFaults(slip_scale=0.0)))[1])
        for seed in range(5)
    ]
    assert max(lengths) < 60


def test_a_stuck_gripper_does_not_move_until_it_is_freed() -> None:
    faults = ToyFaults(gripper_stuck_at=2, gripper_stuck_for=10)
    env = world(faults=faults)
    width = openings([env.step(np.array([0, 0, 0, 0, 0, 0, 1.0])) for _ in range(20)])
    assert len(set(width[1:12])) == 1
    assert width[12] < width[11]


def test_a_knock_moves_the_thing_at_its_tick_only() -> None:
    env = world(faults=ToyFaults(knock_at=3, knock_object="blue_cube", knock_x=0.03, knock_y=-0.02))
    steps = [env.step(REST) for _ in range(6)]
    xy = np.array([step.truth.objects["blue_cube"][:2] for step in steps if step.truth])
    moved = np.diff(xy, axis=0)
    np.testing.assert_allclose(moved[2], [0.03, -0.02])
    assert not np.delete(moved, 2, axis=0).any()


def test_knocking_the_item_off_the_table_ends_the_episode_unsolved() -> None:
    env = world(faults=ToyFaults(knock_at=0, knock_x=-0.3))
    steps = []
    while not steps or not steps[-1].terminated:
        steps.append(env.step(REST))
        assert len(steps) < 20
    assert not steps[-1].success


def test_a_frozen_camera_repeats_its_picture_while_the_other_sees() -> None:
    env = world(faults=ToyFaults(camera_frozen_at=2))
    down = np.array([0.5, 0.5, -1.0, 0, 0, 0, -1.0])
    looks = []
    for _ in range(8):
        env.step(down)
        looks.append(env.observe(["front", "wrist"]).images)
    fronts = [look["front"].tobytes() for look in looks]
    assert fronts[0] != fronts[1]
    assert len(set(fronts[1:])) == 1
    assert len({look["wrist"].tobytes() for look in looks}) == len(looks)


def test_a_black_camera_shows_and_measures_nothing() -> None:
    env = world(faults=ToyFaults(camera="wrist", camera_black_at=1))
    assert env.observe(["wrist"]).images["wrist"].any()
    env.step(REST)
    seen = env.observe(["wrist", "front"], depth=True)
    assert not seen.images["wrist"].any()
    assert not seen.depth["wrist"].any()
    assert seen.images["front"].any()


def test_shifts_deceive_the_sensed_and_not_the_truth() -> None:
    honest = world()
    shifted = world(faults=ToyFaults(camera_shift_x=0.02, proprio_shift_y=-0.01))
    seen, told = honest.observe(["front"]), shifted.observe(["front"])
    np.testing.assert_array_equal(seen.images["front"], told.images["front"])
    moved = told.cameras["front"].T_world_cam - seen.cameras["front"].T_world_cam
    np.testing.assert_allclose(moved[:3, 3], [0.02, 0.0, 0.0])
    felt = told.proprio.arms[0].ee_pos - seen.proprio.arms[0].ee_pos
    np.testing.assert_allclose(felt, [0.0, -0.01, 0.0])
    for name, place in honest.truth().objects.items():
        np.testing.assert_array_equal(shifted.truth().objects[name], place)


def test_a_delay_shifts_the_whole_motion_by_its_ticks() -> None:
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 7))
    prompt, late = world(), world(faults=ToyFaults(action_delay=3))
    direct = [prompt.step(row).proprio.arms[0].ee_pos for row in rows]
    delayed = [late.step(row).proprio.arms[0].ee_pos for row in rows]
    np.testing.assert_array_equal(delayed[3:], direct[:-3])


def test_pending_actions_survive_a_snapshot() -> None:
    rows = np.random.default_rng(1).uniform(-1.0, 1.0, (12, 7))
    env = world(faults=ToyFaults(action_delay=3))
    for row in rows[:6]:
        env.step(row)
    snapshot = env.snapshot()
    onward = [env.step(row).proprio.arms[0].ee_pos for row in rows[6:]]
    other = world(faults=ToyFaults(action_delay=3))
    other.restore(snapshot)
    np.testing.assert_array_equal([other.step(r).proprio.arms[0].ee_pos for r in rows[6:]], onward)


def test_a_branch_may_be_continued_without_the_fault() -> None:
    faulty = world(faults=ToyFaults(knock_at=5, knock_x=-0.5))
    for _ in range(4):
        faulty.step(REST)
    sound = world()
    sound.restore(faulty.snapshot())
    assert solve(sound)[1][-1].success


def test_faults_are_read_from_text() -> None:
    options = {"slip_at": "40", "knock_y": "0.1", "camera": "wrist"}
    assert ToyFaults.from_options(options) == ToyFaults(slip_at=40, knock_y=0.1, camera="wrist")


@pytest.mark.parametrize(
    ("options", "hint"), [({"slip_att": "4"}, "slip_at"), ({"slip_at": "soon"}, "int")]
)
def test_bad_fault_options_are_refused(options: dict[str, str], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        ToyFaults.from_options(options)


def test_a_fault_on_an_unknown_thing_is_refused() -> None:
    env = world(faults=ToyFaults(knock_at=0, knock_object="red_cub"))
    with pytest.raises(ConfigError, match="red_cube"):
        env.step(REST)
