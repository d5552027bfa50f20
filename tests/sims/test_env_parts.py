"""What the environments of simulators share: starts, boxes, cameras, bodies, experts."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.core import ArmState, Init, Proprio, Sampled, Scene, Step, Task
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.boxes import room_before
from zetta.sims.env_checks import SAMPLING_TRIES, first_unsolved, seeds_of
from zetta.sims.surveyed import landmark, surveyed
from zetta.sims.toy import ToySimulator

TASK = Task("suite", 0, "do it", 10)
ARM = ArmState(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(7), 0.0)


def came_to(success: bool = False, terminated: bool = False) -> Step:
    return Step(Proprio(0.0, (ARM,)), success, terminated, False)


def test_every_attempt_at_every_scene_draws_from_seeds_of_its_own() -> None:
    scenes = [Scene(TASK, Init(k), 0) for k in range(3)]
    scenes += [Scene(TASK, Sampled(), seed) for seed in range(3)]
    drawn = [seeds_of(scene, 50, attempt) for scene in scenes for attempt in range(3)]

    assert len(set(drawn)) == len(drawn)
    assert [seeds_of(scene, 50, attempt) for scene in scenes for attempt in range(3)] == drawn
    assert len(seeds_of(scenes[0], 50, 0, 2)) == 2
    with pytest.raises(ConfigError, match="has the inits 0-49, got"):
        seeds_of(Scene(TASK, Init(50), 0), 50, 0)


def test_a_scene_that_begins_solved_or_lost_is_laid_out_again() -> None:
    starts = [came_to(success=True), came_to(terminated=True), came_to()]

    assert first_unsolved(Scene(TASK, Sampled(), 1), lambda attempt: starts[attempt]) is starts[2]


def test_a_seed_whose_every_layout_begins_solved_is_given_up() -> None:
    tried: list[int] = []

    def lay_out(attempt: int) -> Step:
        tried.append(attempt)
        return came_to(success=True)

    with pytest.raises(InfraError, match="suite#0 with seed 7 began with its goal reached"):
        first_unsolved(Scene(TASK, Sampled(), 7), lay_out)
    assert tried == list(range(SAMPLING_TRIES))


def test_the_room_before_an_arm_turns_with_its_base() -> None:
    T_world_base = np.array(
        [[0.0, -1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    room = room_before(T_world_base, (0.2, 0.9), 0.5, (0.8, 1.4))

    assert room.low == (0.5, 2.2, 0.8)
    assert room.high == (1.5, 2.9, 1.4)


def test_an_expert_drives_environments_of_its_own_simulator_alone() -> None:
    env = ToySimulator().make("toy_pick", 0)

    assert surveyed(env, "toy", "Toy") is env
    with pytest.raises(ConfigError, match="ManiSkill's experts drive its environments, not a Toy"):
        surveyed(env, "maniskill", "ManiSkill")


def test_a_thing_is_found_by_its_name() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(0), 0))
    known = surveyed(env, "toy", "Toy").landmarks()

    found = landmark(surveyed(env, "toy", "Toy"), known[-1].name)
    assert found.name == known[-1].name
    assert np.array_equal(found.position, known[-1].position)
