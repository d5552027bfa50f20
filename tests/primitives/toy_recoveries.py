"""Recoveries on the toy in tests: a robot, the oracle's eyes, and the loop of an episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from zetta.primitives.grasps import HANDS
from zetta.primitives.localize.oracle import OracleFinder
from zetta.primitives.localize.role_localizer import RoleLocalizer
from zetta.primitives.robot import Robot
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.core import (
    Array,
    EnvSpec,
    EpisodeResult,
    Init,
    Layout,
    Motion,
    Outcome,
    Scene,
    Sense,
    Step,
    Tick,
)
from zetta.runtime.loop import Episode
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_faults import ToyFaults

Recovery: TypeAlias = Callable[[Robot], Motion]


@dataclass
class Recorder:
    """Keeps what was done and felt at every tick."""

    ticks: list[Tick] = field(default_factory=list)

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Need nothing."""

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Keep the tick."""
        self.ticks.append(tick)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Need nothing."""


@dataclass
class Run:
    """What a recovery came to."""

    env: ToyEnv
    result: EpisodeResult
    outcome: Outcome | None
    """None when the episode ended before the recovery did."""
    ticks: list[Tick]

    @property
    def hand(self) -> Array:
        """Where the hand is at the end."""
        return self.env.observe().proprio.arms[0].ee_pos

    @property
    def opening(self) -> float:
        """How wide the fingers are at the end."""
        return self.env.observe().proprio.arms[0].gripper_opening


def perform(
    recovery: Recovery,
    suite: str = "toy_pick",
    index: int = 0,
    layout: Layout | None = None,
    seed: int = 0,
    faults: ToyFaults | None = None,
    arm: int = 0,
    eyes: bool = True,
) -> Run:
    """Run `recovery` in a toy scene until it or the episode ends."""
    env = ToySimulator().make(suite, index, faults=faults)
    scene = Scene(env.toy.task, layout or Init(0), seed)
    outcomes: list[Outcome] = []

    def motion() -> Motion:
        spec = env.spec
        robot = Robot(spec.action, arm, spec.control_hz, hand=HANDS["toy"])
        outcome = yield from recovery(robot)
        outcomes.append(outcome)
        return outcome

    recorder = Recorder()
    result = Episode(
        env,
        scene,
        MotionOnly(motion, "skill:test"),
        localizer=RoleLocalizer(OracleFinder(env.landmarks)) if eyes else None,
        sinks=[recorder],
    ).run()
    return Run(env, result, outcomes[0] if outcomes else None, recorder.ticks)


def grasp_and_place(robot: Robot) -> Motion:
    """Take the object, and set it down on the receptacle."""
    outcome = yield from robot.grasp("object")
    if not outcome.completed:
        return outcome
    outcome = yield from robot.place("receptacle")
    yield from robot.hold(0.3)
    return outcome


def fed(motion: Motion, sense: Sense, most: int = 200) -> Outcome:
    """Feed a motion the same sense again and again, as an arm that does not move at all would.

    Raises:
        TimeoutError: it goes on for more than `most` yields.
    """
    next(motion)
    for _ in range(most):
        try:
            motion.send(sense)
        except StopIteration as stop:
            return Outcome(stop.value.completed, stop.value.reason)
    raise TimeoutError(f"still going after {most} yields")
