"""The primitives on a simulated Panda, with estimates from truth and without pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from zetta.primitives.grasps import PANDA
from zetta.primitives.motions_gripper import Grip
from zetta.primitives.robot import Robot
from zetta.runtime.core import Estimate, Init, Look, Motion, Outcome, Scene, Sense

if TYPE_CHECKING:
    from zetta.sims.libero.env import LiberoEnv

pytestmark = [pytest.mark.libero, pytest.mark.slow]
pytest.importorskip("libero", reason="needs LIBERO: pip install 'zetta[libero]'")

INIT = 12


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    from zetta.sims.libero.env import LiberoEnv

    made = LiberoEnv("libero_goal", 0)
    yield made
    made.close()


def see(env: LiberoEnv, names: Mapping[str, str], t: float) -> dict[str, Estimate]:
    """Return what the simulator knows about the things that play a role."""
    marks = {mark.name: mark for mark in env.landmarks()}
    return {
        role: Estimate(role, m.position, m.extent, m.yaw, 1.0, t, "oracle")
        for role, name in names.items()
        if (m := marks.get(name)) is not None
    }


def drive(
    env: LiberoEnv,
    goal: list[str],
    names: Mapping[str, str],
    recovery: Callable[[Robot], Motion],
    most: int,
) -> tuple[bool, Outcome | None]:
    """Run a recovery; return whether `goal` held at some tick, and how the recovery ended."""
    step = env.reset(Scene(env.task, Init(INIT), 0))
    env.control.env.parsed_problem["goal_state"] = [goal]
    motion = recovery(Robot(env.spec.action, hand=PANDA))
    wish, seen = next(motion), {}
    for _ in range(most):
        while isinstance(wish, Look):
            wanted = {role: names[role] for role in wish.roles if role in names}
            seen |= see(env, wanted, step.proprio.t)
            try:
                wish = motion.send(Sense(step.proprio, dict(seen)))
            except StopIteration as stop:
                return False, stop.value
        step = env.step(wish)
        if step.success:
            return True, None
        try:
            wish = motion.send(Sense(step.proprio, dict(seen)))
        except StopIteration as stop:
            return False, stop.value
    return False, None


def test_a_bowl_is_taken_by_its_rim_and_set_on_the_plate_within_the_budget(env: LiberoEnv) -> None:
    def carry(robot: Robot) -> Motion:
        outcome = yield from robot.grasp("object")
        assert outcome.completed, outcome.reason
        return (yield from robot.place("receptacle"))

    names = {"object": "black bowl", "receptacle": "plate"}

    assert drive(env, ["on", "akita_black_bowl_1", "plate_1"], names, carry, 154) == (True, None)


def test_a_drawer_is_pulled_open(env: LiberoEnv) -> None:
    goal = ["open", "wooden_cabinet_1_middle_region"]
    names = {"part": "handle of middle drawer"}

    assert drive(env, goal, names, lambda robot: robot.pull("part"), 120) == (True, None)


def test_a_stove_is_turned_on(env: LiberoEnv) -> None:
    names = {"part": "knob of stove"}

    assert drive(env, ["turnon", "flat_stove_1"], names, lambda r: r.turn("part"), 120)[0]


def test_a_bowl_that_is_held_by_its_rim_is_not_taken_for_lost(env: LiberoEnv) -> None:
    lost: list[bool] = []

    def take_and_carry(robot: Robot) -> Motion:
        outcome = yield from robot.grasp("object")
        watch = Grip(robot._arm)
        for _ in range(4):
            yield from robot.move_by(0.0, 0.05, 0.02)
            lost.append(watch.lost())
        return outcome

    goal = ["on", "akita_black_bowl_1", "plate_1"]
    _, outcome = drive(env, goal, {"object": "black bowl"}, take_and_carry, 250)

    assert outcome is not None
    assert outcome.completed
    assert lost == [False] * 4
