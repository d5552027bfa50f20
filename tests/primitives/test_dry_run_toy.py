"""The dry run against the toy: what it accepts in free space is reached by who carries it out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Command, Move, Parsed, Rotate
from zetta.primitives.dry_run import DryWorld, check_turn
from zetta.primitives.grasps import PIN_FINGERS
from zetta.primitives.robot import Robot
from zetta.primitives.roles import Errand
from zetta.runtime.cli.dry_arms import dry_arms
from zetta.runtime.core import Init, Look, Scene, Sense, Step
from zetta.sims.toy import ToyEnv, ToySimulator


def equipment_of(env: ToyEnv) -> Equipment:
    def robot(errand: Errand, arm: int) -> Robot:
        raise AssertionError("no command here is about a thing")

    return Equipment(
        env.spec.action, env.spec.arms, env.spec.control_hz, robot, PIN_FINGERS, say=str,
        workspace=env.workspace(0),
    )  # fmt: skip


def carry_out(env: ToyEnv, step: Step, executor: Executor, command: Command) -> CommandResult:
    running = executor.run(Parsed(command))
    wish = next(running)
    try:
        while True:
            if not isinstance(wish, Look):
                step = env.step(wish)
            wish = running.send(Sense(step.proprio))
    except StopIteration as end:
        result = end.value
    assert isinstance(result, CommandResult)
    return result


def a_command(rng: np.random.Generator) -> Command:
    if rng.random() < 0.3:
        return Rotate("yaw", math.radians(float(rng.integers(-4, 5)) * 15.0))
    x, y, z = rng.uniform(-0.2, 0.2, 3).round(2).tolist()
    return Move((x, y, z))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_accepted_is_reached_where_it_was_predicted(seed: int) -> None:
    env, rng = ToySimulator().make("toy_pick", 0), np.random.default_rng(seed)
    step = env.reset(Scene(env.toy.task, Init(seed)))
    world = DryWorld(dry_arms(env, step.proprio), text=str)
    executor = Executor(equipment_of(env))
    accepted = 0
    for _ in range(12):
        command, felt = a_command(rng), env.observe().proprio
        run = check_turn([Parsed(command)], felt, world)
        if run.failure is not None:
            assert run.failure.stop == "limit"
            continue
        pose = run.predictions[0].poses[0]
        assert pose is not None
        if pose.position[2] < 0.5:  # there the things are in the way
            continue
        accepted += 1
        step = Step(felt, False, False, False)
        assert carry_out(env, step, executor, command).completed
        ended = env.observe().proprio.arms[0].ee_pos
        assert float(np.linalg.norm(ended - pose.position)) < 0.02
    assert accepted >= 3


def test_each_arm_of_the_toy_is_bounded_by_its_own_box() -> None:
    env = ToySimulator().make("toy_two_arm", 0)
    home = env.reset(Scene(env.toy.task, Init(0))).proprio
    left, right = dry_arms(env, home)
    assert (left.name, right.name) == ("left", "right")
    assert left.workspace != right.workspace
    assert left.kinematics is None
    run = check_turn(
        [Parsed(Move((0.0, -0.2, 0.0), arm="left"))], home, DryWorld((left, right), text=str)
    )
    assert run.failure is None  # 17 cm to the left, its room goes 5 cm beyond the middle
    again = [Parsed(Move((0.0, -0.2, 0.0), arm="left"))] * 2
    assert check_turn(again, home, DryWorld((left, right), text=str)).failure is not None
