"""Motions on parts, against a hand that moves as it is told and a part on a rail or a pivot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from zetta.primitives.grasps import PANDA, PIN_FINGERS
from zetta.primitives.motions_frames import DOWN, facing, matrix_of, travel_of, turned
from zetta.primitives.parts import TWIST
from zetta.primitives.robot import Robot
from zetta.runtime.core import (
    Action,
    ArmState,
    Array,
    Estimate,
    HeightGrid,
    Look,
    Motion,
    Outcome,
    Proprio,
    Sense,
)
from zetta.sims.toy import action_spec

Constraint = Callable[["Bench", Array], Array]
"""What the world makes of a wanted position of the hand."""


@dataclass
class Bench:
    """A hand in free space and one part; `constrain` says what the part does to the hand."""

    estimates: dict[str, Estimate]
    constrain: Constraint
    grip: float = 0.0
    """Opening at which the fingers meet something."""
    position: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.5]))
    rotation: Array = field(default_factory=lambda: facing(travel_of(0.0), DOWN))
    opening: float = 0.08
    ticks: int = 0
    heights: HeightGrid | None = None
    lowest: float = math.inf

    @property
    def holding(self) -> bool:
        """Whether the fingers have closed on something."""
        return self.grip > 0.0 and self.opening <= self.grip + 1e-9

    def sense(self) -> Sense:
        quat = _quat(self.rotation)
        state = ArmState(self.position, quat, np.zeros(5), self.opening)
        return Sense(Proprio(self.ticks / 20.0, (state,)), dict(self.estimates), self.heights)

    def step(self, action: Action) -> None:
        wanted = self.position + 0.6 * 0.05 * action[:3]
        turn = 0.6 * 0.5 * action[3:6]
        angle = float(np.linalg.norm(turn))
        if angle > 1e-9:
            self.rotation = turned(self.rotation, turn / angle, angle)
        self.position = self.constrain(self, wanted)
        self.opening = min(max(self.opening - 0.008 * action[6], self.grip), 0.08)
        self.lowest = min(self.lowest, float(self.position[2]))
        self.ticks += 1

    def run(self, motion: Motion) -> Outcome:
        """Drive the motion to its end; estimates are as old as their look."""
        wish = next(motion)
        while self.ticks < 400:
            if isinstance(wish, Look):
                t = self.ticks / 20.0
                self.estimates |= {r: replace(self.estimates[r], t=t) for r in wish.roles}
            else:
                self.step(wish)
            try:
                wish = motion.send(self.sense())
            except StopIteration as stop:
                outcome = stop.value
                assert isinstance(outcome, Outcome)
                return outcome
        raise TimeoutError


def _quat(rotation: Array) -> Array:
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(rotation).as_quat())


def robot() -> Robot:
    return Robot(action_spec(), hand=PIN_FINGERS)


def estimate(role: str, position: tuple[float, float, float], size: Array, yaw: float) -> Estimate:
    return Estimate(role, np.array(position), size, yaw, 1.0, 0.0, "oracle")


BAR = np.array([0.016, 0.088, 0.016])
OUT = math.radians(90.0)
"""The drawers of these tests open along +y."""


def drawer(slide: float) -> Bench:
    """Return a drawer whose bar can be pulled `slide` metres along +y."""
    start = 0.1

    def constrain(bench: Bench, wanted: Array) -> Array:
        bar = bench.estimates["part"].position
        if bench.holding and np.linalg.norm(bench.position - bar) < 0.03:
            y = min(max(float(bar[1] + wanted[1] - bench.position[1]), start), start + slide)
            moved = np.array([0.0, y - bar[1], 0.0])
            bench.estimates["part"] = replace(bench.estimates["part"], position=bar + moved)
            return np.asarray(bench.position + moved)
        return wanted

    return Bench({"part": estimate("part", (0.0, start, 0.45), BAR, OUT)}, constrain, grip=0.016)


def test_a_drawer_is_pulled_along_the_outward_axis_as_far_as_it_shall() -> None:
    bench = drawer(0.30)
    outcome = bench.run(robot().pull("part"))

    assert outcome.completed
    assert bench.estimates["part"].position[1] == pytest.approx(0.1 + PANDA.longest_pull, abs=0.03)
    assert outcome.reason.startswith("pulled it open by 1")
    assert bench.position[1] > bench.estimates["part"].position[1] + 0.05, "the hand is clear of it"


def test_a_drawer_that_stops_early_is_told_with_how_far_it_came() -> None:
    assert drawer(0.08).run(robot().pull("part")) == Outcome(True, "pulled it open by 8.0 cm")


def test_a_locked_drawer_is_no_success() -> None:
    outcome = drawer(0.0).run(robot().pull("part"))

    assert outcome == Outcome(False, "it did not open: the handle moved 0.0 cm")


def test_a_bar_that_the_fingers_miss_is_no_success() -> None:
    bench = drawer(0.3)
    bench.grip = 0.0

    assert bench.run(robot().pull("part")) == Outcome(False, "closed on nothing")


def pushed(shut: float, start: float = 0.25) -> Bench:
    """Return an open drawer at y = `start` that can be pushed to y = `shut`."""

    def constrain(bench: Bench, wanted: Array) -> Array:
        part = bench.estimates["part"]
        level = abs(wanted[2] - part.position[2]) < 0.04 and abs(wanted[0]) < 0.05
        if level and wanted[1] < part.position[1] + 0.02:
            y = max(float(wanted[1]) - 0.02, shut)
            bench.estimates["part"] = replace(part, position=np.array([0.0, y, part.position[2]]))
            return np.array([wanted[0], y + 0.02, wanted[2]])
        return wanted

    return Bench({"part": estimate("part", (0.0, start, 0.45), BAR, OUT)}, constrain)


def test_a_drawer_is_pushed_shut_until_it_stops() -> None:
    bench = pushed(0.1)
    outcome = bench.run(robot().press("part"))

    assert outcome.completed
    assert "until it stopped" in outcome.reason
    assert bench.estimates["part"].position[1] == pytest.approx(0.1)


def test_a_push_that_nothing_stops_is_no_success() -> None:
    outcome = pushed(-2.0).run(robot().press("part"))

    assert not outcome.completed
    assert "nothing stopped the hand" in outcome.reason


def knob(most: float) -> tuple[Bench, Callable[[], float]]:
    """Return a knob that can be turned by `most` radians, and how far the hand turned it."""
    size = np.array([0.024, 0.06, 0.04])
    bench = Bench({"part": estimate("part", (0.1, 0.05, 0.3), size, 0.4)}, lambda b, w: w, 0.024)
    before: list[float] = []

    def angle() -> float:
        return math.atan2(float(bench.rotation[1, 1]), float(bench.rotation[0, 1]))

    def constrain(_: Bench, wanted: Array) -> Array:
        if bench.holding:
            before.append(angle())
            turned_by = (before[-1] - before[0] + math.pi) % (2.0 * math.pi) - math.pi
            if turned_by > most:
                bench.rotation = turned(bench.rotation, np.array([0.0, 0.0, 1.0]), most - turned_by)
        return wanted

    bench.constrain = constrain
    return bench, lambda: (angle() - before[0] + math.pi) % (2.0 * math.pi) - math.pi


def test_a_knob_is_pinched_across_its_ridge_and_twisted_counter_clockwise() -> None:
    bench, turned_by = knob(3.0)
    outcome = bench.run(robot().turn("part"))

    assert outcome.completed
    assert turned_by() == pytest.approx(TWIST, abs=0.35)
    assert bench.lowest == pytest.approx(0.3 + 0.02 - 0.008, abs=0.01)
    np.testing.assert_allclose(matrix_of(_quat(bench.rotation))[:, 2], DOWN, atol=0.05)


def test_a_knob_is_twisted_clockwise_to_turn_something_off() -> None:
    bench, turned_by = knob(3.0)
    outcome = bench.run(Robot(action_spec(), hand=PIN_FINGERS, clockwise=True).turn("part"))

    assert outcome.completed
    assert turned_by() == pytest.approx(-TWIST, abs=0.35)


def test_a_knob_that_sticks_is_no_success() -> None:
    bench, _ = knob(0.1)
    outcome = bench.run(robot().turn("part"))

    assert not outcome.completed
    assert outcome.reason.startswith("twisted it by ")


def plate(heights: HeightGrid | None = None) -> Bench:
    """Return a plate that a finger inside its rim takes along."""

    def constrain(bench: Bench, wanted: Array) -> Array:
        part = bench.estimates["object"]
        offset = (wanted - part.position) * [1.0, 1.0, 0.0]
        inside, low = 0.06, wanted[2] < part.position[2] + 0.02
        length = float(np.linalg.norm(offset))
        if low and inside < length < 0.12:
            shift = offset * (1.0 - inside / length)
            bench.estimates["object"] = replace(part, position=part.position + shift)
        return wanted

    return Bench(
        {
            "object": estimate("object", (0.0, 0.1, 0.31), np.array([0.14, 0.14, 0.02]), 0.0),
            "receptacle": estimate("receptacle", (0.15, -0.1, 0.3), np.zeros(3), 0.0),
        },
        constrain,
        heights=heights,
    )


def test_a_plate_is_dragged_from_inside_its_rim_to_the_place() -> None:
    bench = plate()
    outcome = bench.run(robot().push("object"))

    assert outcome.completed
    np.testing.assert_allclose(bench.estimates["object"].position[:2], [0.15, -0.1], atol=0.02)
    assert bench.position[2] > 0.35


def test_a_thing_in_the_way_is_seen_before_anything_is_touched() -> None:
    heights = np.full((60, 60), 0.3)
    heights[36:42, 27:33] = 0.36
    bench = plate(HeightGrid(np.array([-0.3, -0.3]), 0.01, heights, 0.0))
    outcome = bench.run(robot().push("object"))

    assert outcome == Outcome(False, "something stands in the way; carry it instead")
    assert bench.ticks == 0
