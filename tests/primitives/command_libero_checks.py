"""Commands on a simulated Panda, with estimates from truth."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from random_commands import command

from zetta.primitives import commands as c
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.grasps import PANDA
from zetta.primitives.roles import parse_instruction
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Array, Init, Motion, Outcome, RunSpec, Scene
from zetta.runtime.drivers import ActionCheck, MotionDriver
from zetta.runtime.errors import ZettaError
from zetta.runtime.workspace import Box

if TYPE_CHECKING:
    from zetta.sims.libero.env import LiberoEnv

pytestmark = [pytest.mark.libero, pytest.mark.timeout(300)]
pytest.importorskip("libero", reason="needs LIBERO: pip install 'zetta[libero]'")

THINGS = ("black bowl", "plate", "cream cheese", "middle drawer", "fish")


class Bench:
    """A LIBERO scene and an executor in it."""

    def __init__(self, env: LiberoEnv, bounded: bool = False) -> None:
        self.env, self.places = env, list[Array]()
        self.step = env.reset(Scene(env.task, Init(3), 0))
        start = self.step.proprio.arms[0].ee_pos
        x, y, z = (float(n) for n in start)
        room = Box((x - 0.10, y - 0.25, z - 0.22), (x + 0.25, y + 0.25, z + 0.12))
        self.room = room if bounded else None
        roles = parse_instruction("put the black bowl on the plate")
        spec = RunSpec("libero", "libero_goal", 0, Init(3), sensing="oracle")
        self.sight = Sight(spec, env, roles)
        self.executor = Executor(
            Equipment(
                env.spec.action, env.spec.arms, env.spec.control_hz, self.sight.bind,
                hand=PANDA, errands=roles.steps, workspace=self.room,
            )
        )  # fmt: skip

    def do(self, wanted: c.Command) -> CommandResult:
        """Carry one command out."""
        results: list[CommandResult] = []

        def motion() -> Motion:
            results.append((yield from self.executor.run(c.Parsed(wanted))))
            return Outcome(True)

        driver = MotionDriver(motion(), "agent:test", self.env, self.sight)
        check = ActionCheck(self.env.spec.action, "agent:test")
        while not isinstance(wish := driver.next_action(self.step.proprio), Outcome):
            self.step = self.env.step(check(wish))
            self.places.append(self.step.proprio.arms[0].ee_pos)
        return results[0]


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    from zetta.sims.libero.env import LiberoEnv

    made = LiberoEnv("libero_goal", 0)
    yield made
    made.close()


def test_moves_and_turns_end_where_they_should(env: LiberoEnv) -> None:
    made = Bench(env)
    for wanted in (
        c.Move((0.05, 0.10, -0.08)), c.Rotate("yaw", math.radians(45)), c.Point("down30"),
        c.Move((0.0, 0.0, 0.05), "gripper"), c.Home(),
    ):  # fmt: skip
        result = made.do(wanted)
        assert result.completed, result.summary
        assert result.error is not None
        assert result.error < 0.008, result.summary
        assert result.turn_error is not None
        assert result.turn_error < 0.06, result.summary


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.75, 1.0])
def test_the_fingers_open_to_a_share_though_they_only_know_open_and_close(
    env: LiberoEnv, share: float
) -> None:
    made = Bench(env)
    result = made.do(c.Gripper(share))
    made.do(c.Move((0.0, 0.03, 0.0)))

    assert result.completed, result.summary
    assert made.step.proprio.arms[0].gripper_opening == pytest.approx(0.08 * share, abs=0.007)


def test_a_descent_onto_the_table_ends_early_and_is_felt_as_contact(env: LiberoEnv) -> None:
    made = Bench(env)
    made.do(c.Move((0.0, 0.0, -0.12)))
    result = made.do(c.Move((0.0, 0.0, -0.20)))

    assert (result.completed, result.stop) == (False, "contact")
    assert "the descent ended early" in result.detail


def test_a_bowl_is_picked_placed_and_no_longer_held(env: LiberoEnv) -> None:
    made = Bench(env)
    picked = made.do(c.Pick("black bowl"))
    raised = made.do(c.Move((0.0, 0.0, 0.05)))
    placed = made.do(c.Place("plate"))

    assert picked.completed, picked.summary
    for result in (picked, raised):
        assert result.grasp is not None
        assert (result.grasp.grip, result.grasp.lifted) == ("held", True), result.summary
    assert placed.completed, placed.summary
    assert made.executor.grasps[0].grip == "open"
    marks = {mark.name: mark.position for mark in env.landmarks()}
    assert np.linalg.norm((marks["black bowl"] - marks["plate"])[:2]) < 0.03


def test_random_commands_stay_in_the_workspace(env: LiberoEnv) -> None:
    made, rng = Bench(env, bounded=True), random.Random(4)
    assert made.room is not None
    for _ in range(25):
        wanted = command(rng, ("",), THINGS)
        try:
            result = made.do(wanted)
        except ZettaError:
            continue
        assert result.detail, wanted
    outside = [place - made.room.nearest(place) for place in made.places]

    assert len(outside) > 200
    assert float(np.abs(outside).max()) <= 0.01
