"""An arm that follows, the sequences that a kernel sends to it, and what they must keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from zetta.hw_drivers.arm_limits import KeepOut, Limits, load_limits
from zetta.hw_drivers.decisions import Command, Decision
from zetta.hw_drivers.keep_out import meets
from zetta.hw_drivers.safety import SafetyKernel
from zetta.hw_drivers.tracks import OUTSIDE_AT_START
from zetta.runtime.core import Array
from zetta.runtime.tracking import quat_of_rotvec, rotation_between
from zetta.runtime.workspace import Box

PANDA = load_limits("panda")
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
HAND = np.array([0.45, 0.0, 0.3])
DOWN = np.array([3.0, 0.2, -0.1])
POINT = ("speed", "acceleration", "jerk")
TURN = ("turn", "spin", "twist")
TOLERANCE = 1e-6
"""Share of a limit that finite differences of what was sent may exceed it by: rounding, to the
third power of the rate, is smaller by far."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A reading."""

    t: float
    ee_pos: Array
    ee_quat: Array
    joint_pos: Array
    gripper_opening: float = 0.08


@dataclass
class FollowingArm:
    """Goes a share of the way to its target in each tick."""

    values: Array
    kind: str = "target_pose"
    share: float = 0.7
    joints: Array = field(default_factory=lambda: READY.copy())

    def __post_init__(self) -> None:
        self.now = self.values.copy()

    def reading(self, t: float) -> Measured:
        if self.kind == "joint_position":
            return Measured(t, HAND, np.array([0.0, 0.0, 0.0, 1.0]), self.now.copy())
        quat = np.array(quat_of_rotvec(tuple(self.now[3:])))
        return Measured(t, self.now[:3].copy(), quat, self.joints.copy())

    def take(self, decision: Decision) -> None:
        if decision.sent is None:
            return
        values = decision.sent.values
        if self.kind == "target_pose":
            self.now = np.array(
                [*(self.now[:3] + self.share * (values[:3] - self.now[:3])), *values[3:]]
            )
        else:
            self.now = self.now + self.share * (values - self.now)


def pose(position: Sequence[float] = tuple(HAND), rotvec: Sequence[float] = tuple(DOWN)) -> Command:
    return Command("target_pose", np.array([*position, *rotvec]))


Asker = Callable[[int, Array], tuple[Command | None, str]]
"""Given the tick and what was sent last: the command and its driver."""


def run(
    kernel: SafetyKernel,
    arm: FollowingArm,
    ask: Asker,
    ticks: int,
    period: Callable[[int], float] = lambda tick: 0.05,
) -> list[Decision]:
    """Return the decisions of a run on an arm that follows."""
    now, decisions, last = 0.0, [], arm.now.copy()
    for tick in range(ticks):
        command, driver = ask(tick, last)
        decision = kernel.admit(command, arm.reading(now), now, driver)
        arm.take(decision)
        decisions.append(decision)
        if decision.sent is not None:
            last = decision.sent.values
        now += period(tick)
    return decisions


def pieces(decisions: Sequence[Decision | None]) -> list[list[Decision]]:
    """Return the sequences that were sent, one row for each tick; None ends one."""
    found: list[list[Decision]] = []
    before: Decision | None = None
    for decision in decisions:
        if decision is None or decision.sent is None:
            before = None
            continue
        if before is not None and decision.tick == before.tick:
            assert np.array_equal(sent(decision), sent(before)), "one tick, two targets"
            continue
        if before is None:
            found.append([])
        elif decision.anew:  # missed ticks: from rest, where the last one ended
            found.append([before, before, before])
        found[-1].append(decision)
        before = decision
    return found


def sent(decision: Decision) -> Array:
    assert decision.sent is not None
    return decision.sent.values


def excesses(decisions: Sequence[Decision | None], limits: Limits = PANDA) -> dict[str, float]:
    """Return the greatest share of each limit that a sequence of poses used."""
    tick = limits.timing.tick
    worst = dict.fromkeys(
        ("speed", "acceleration", "jerk", "turn", "spin", "twist", "walls", "keep-out"), 0.0
    )
    for piece in pieces(decisions):
        poses = np.array([sent(d) for d in piece])
        points = poses[:, :3]
        turns = turn_steps(poses[:, 3:])
        for rows, rates, names in (
            (np.diff(points, axis=0), limits.translation, POINT),
            (turns, limits.rotation, TURN),
        ):
            for order, (name, limit) in enumerate(
                zip(names, (rates.velocity, rates.acceleration, rates.jerk), strict=True), start=1
            ):
                sizes = np.linalg.norm(rows, axis=1) / tick**order
                worst[name] = max(worst[name], float(sizes.max(initial=0.0)) / limit[0])
                # The sequence begins at rest: the difference before the first step is zero.
                rows = np.diff(rows, axis=0)
        # A hand that begins a little outside, or is believed to, comes in and not farther out.
        outside = [float(np.abs(limits.workspace.excess(p)).max()) for p in points]
        assert outside[0] <= OUTSIDE_AT_START
        worst["walls"] = max(worst["walls"], max(outside) - outside[0])
        if len(points) > 1:
            worst["keep-out"] += sum(meets(points, k.box) for k in limits.keep_out)
    return worst


def turn_steps(rotvecs: Array) -> Array:
    quats = [quat_of_rotvec(tuple(r)) for r in rotvecs]
    steps = [rotation_between(a, b) for a, b in pairwise(quats)]
    return np.array(steps).reshape(-1, 3)


def assert_safe(decisions: Sequence[Decision | None], limits: Limits = PANDA) -> None:
    worst = excesses(decisions, limits)
    assert worst.pop("walls") <= 1e-8
    assert worst.pop("keep-out") == 0
    assert max(worst.values()) <= 1.0 + TOLERANCE, worst


def with_keep_out(limits: Limits = PANDA) -> Limits:
    """Return limits with a post in the middle of the workspace."""
    post = KeepOut("post", Box((0.5, 0.08, 0.0), (0.56, 0.14, 0.5)))
    return replace(limits, keep_out=(*limits.keep_out, post))
