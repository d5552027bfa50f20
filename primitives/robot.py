"""The robot as a recovery sees it: one method for each primitive, each returns a motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from zetta.primitives import motions, motions_gripper, parts
from zetta.primitives.catalogue import check_call
from zetta.primitives.grasps import (
    PANDA,
    SIDE_DEPTH,
    Grasp,
    HandGeometry,
    Manner,
    Surroundings,
    top_of,
)
from zetta.primitives.motions import Arm, Steps, cm
from zetta.primitives.motions_carrying import (
    TRIES,
    Held,
    Load,
    Placement,
    carry,
    descend,
    goal_in,
    goal_on,
    load_of,
    plan,
    set_down,
    take,
)
from zetta.primitives.motions_frames import UP, downward, matrix_of, turned
from zetta.runtime.core import ActionSpec, ArmState, Array, Estimate, Motion, Outcome

LastSeen: TypeAlias = tuple[Estimate, ArmState]
"""Where a thing was, and the arm when it was seen there."""

_REGRIPPED = 0.006
"""Fingers that have moved by more than this, metres, hold something otherwise than before."""
_THICK = 0.02
"""Openings above this, metres, stay as they are while a thing is held."""
_LOOK_EVERY_S = 0.25
"""Time between looks while following something."""
_IN_HAND = 0.12
"""What is held has its middle within this distance of the grip site, metres."""
_SHIFTED = 0.015
"""A held thing that is seen further than this from where it was taken has tilted, metres."""


class Robot:
    """The primitives of one arm during one recovery.

    It remembers what one primitive finds out for the next: how the gripper is commanded and how
    the held thing lies in the hand. Make a new one for each recovery, with what was held `before`.
    """

    def __init__(
        self,
        action: ActionSpec,
        arm: int = 0,
        control_hz: float = 20.0,
        *,
        hand: HandGeometry = PANDA,
        placement: Placement = "on",
        clockwise: bool = False,
        before: Held | None = None,
        last_seen: Callable[[str], LastSeen | None] = lambda role: None,
    ) -> None:
        """Bind to an arm.

        Args:
            action: the environment's action convention.
            arm: which arm moves; the others hold still.
            control_hz: ticks per second.
            hand: geometry of the gripper.
            placement: whether the instruction puts things on or into the receptacle.
            clockwise: how the instruction wants a knob turned, seen from above.
            before: what the robot of the last recovery in this episode held; how it lay in the hand
                is still true if the fingers are as far apart as they were.
            last_seen: the last estimate of a role and the arm at that moment, for the size of what
                the hand now hides, and for how it lay in the hand.

        Raises:
            SpecMismatch: there is no such arm, or its actions are no poses in the world frame.
        """
        self._arm = Arm(action, arm, control_hz, hand)
        self._placement: Placement = placement
        self._clockwise = clockwise
        held = before or Held()
        self._load, self._gripped = held.load, held.opening
        self._last_seen = last_seen
        self._aimed: tuple[Estimate, Grasp] | None = None
        """What the hand last descended to."""

    def told(self, grippers: Sequence[float]) -> None:
        """Note how the grippers of all arms are commanded: it cannot be sensed."""
        self._arm.told(grippers)

    def forget_load(self) -> None:
        """Hear that what was held has been let go."""
        self._load = None

    @property
    def clockwise(self) -> bool:
        """Whether it twists a knob clockwise, seen from above."""
        return self._clockwise

    @property
    def held(self) -> Held:
        """How the thing in the hand lies there, for the next recovery."""
        return Held(self._load, self._gripped)

    # ------------------------------------------------------------------ proprioception

    def hold(self, seconds: float) -> Motion:
        """Stay where the hand is, with the present gripper command."""
        check_call("hold", seconds=seconds)
        return self._run(lambda arm: motions.hold(arm, seconds))

    def open(self) -> Motion:
        """Open the gripper and wait until it stands still."""
        return self._run(self._open)

    def close(self) -> Motion:
        """Close the gripper; completed when something is between the fingers."""
        return self._run(self._close)

    def move_by(self, dx: float, dy: float, dz: float) -> Motion:
        """Move the hand by a displacement in the world, metres."""
        check_call("move_by", dx=dx, dy=dy, dz=dz)
        return self._run(lambda arm: motions.move_by(arm, np.array([dx, dy, dz])))

    def turn_by(self, yaw: float) -> Motion:
        """Turn the hand about the vertical by `yaw` radians."""
        check_call("turn_by", yaw=yaw)
        return self._run(
            lambda arm: motions.turn_to(arm, turned(arm.rotation, UP, yaw), "the hand has turned")
        )

    def retreat(self, height: float = 0.10) -> Motion:
        """Rise straight up by `height` metres."""
        check_call("retreat", height=height)
        return self._run(lambda arm: motions.retreat(arm, height))

    def point_down(self) -> Motion:
        """Turn the hand until it points straight down."""
        return self._run(motions.point_down)

    def until_contact(self, dx: float, dy: float, dz: float) -> Motion:
        """Move by a displacement until something stops the hand; completed when it was stopped."""
        check_call("until_contact", dx=dx, dy=dy, dz=dz)
        return self._run(lambda arm: motions.until_contact(arm, np.array([dx, dy, dz])))

    # ------------------------------------------------------------------ vision

    def look(self, role: str) -> Motion:
        """Look where a thing is; completed when it was found."""
        check_call("look", role)
        return self._run(lambda arm: self._with(role, self._seen))

    def above(self, role: str, height: float = 0.08) -> Motion:
        """Go over a thing, `height` metres above its top."""
        check_call("above", role, height=height)
        return self._run(lambda arm: self._with(role, lambda thing: self._above(thing, height)))

    def descend(self, role: str) -> Motion:
        """Come down onto a thing, lined up as for grasping it."""
        check_call("descend", role)
        return self._run(lambda arm: self._with(role, self._descend))

    def grasp(self, role: str) -> Motion:
        """Look, go above, descend, close and lift; completed when the thing is held."""
        check_call("grasp", role)
        return self._run(lambda arm: self._grasp(role))

    def place(self, role: str) -> Motion:
        """Carry what is held over the receptacle, lower it, release and retreat."""
        check_call("place", role)
        return self._run(lambda arm: self._place(role))

    def follow(self, role: str, seconds: float) -> Motion:
        """Stay 8 cm above a thing and follow it as it moves."""
        check_call("follow", role, seconds=seconds)
        return self._run(lambda arm: self._follow(role, seconds))

    def pull(self, role: str) -> Motion:
        """Pinch a drawer's handle and pull it open."""
        check_call("pull", role)
        return self._run(lambda arm: self._with(role, lambda part: parts.pull(arm, part)))

    def press(self, role: str) -> Motion:
        """Push a drawer or a door shut until it stops."""
        check_call("press", role)
        return self._run(lambda arm: self._with(role, lambda part: parts.press(arm, part)))

    def turn(self, role: str) -> Motion:
        """Pinch a knob and twist it the way that the instruction wants."""
        check_call("turn", role)
        way = self._clockwise
        return self._run(lambda arm: self._with(role, lambda part: parts.turn(arm, part, way)))

    def push(self, role: str) -> Motion:
        """Push the object along the ground towards the receptacle."""
        check_call("push", role)
        return self._run(lambda arm: self._push(role))

    # ------------------------------------------------------------------ how

    def _run(self, steps: Callable[[Arm], Steps[Outcome]]) -> Motion:
        """Sense the present, then go on; nothing happens before the motion is run."""
        yield from self._arm.start()
        return (yield from steps(self._arm))

    def _with(self, role: str, steps: Callable[[Estimate], Steps[Outcome]]) -> Steps[Outcome]:
        """Look for `role` and go on with what was found."""
        yield from self._arm.look(role)
        thing = self._arm.estimate(role)
        if thing is None:
            return Outcome(False, f"the {role} was not found")
        return (yield from steps(thing))

    def _seen(self, thing: Estimate) -> Steps[Outcome]:
        yield from ()
        return Outcome(True, f"found the {thing.role}, confidence {thing.confidence:.2f}")

    def _above(self, thing: Estimate, height: float) -> Steps[Outcome]:
        arm = self._arm
        around = Surroundings(arm.sense.heights, thing, hand=arm.position, reach=arm.reach)
        goal = np.array([*thing.position[:2], top_of(thing) + height])
        if self._load is not None:
            goal -= self._load.middle(arm) - arm.position
            goal[2] += float(self._load.extent[2]) / 2.0
        way = around.way_over(arm.position, goal, arm.hand, 0.03)
        arrival = yield from motions.fly(arm, goal, downward(arm.rotation), way)
        return arrival.outcome(f"the point above the {thing.role}")

    def _descend(self, thing: Estimate) -> Steps[Outcome]:
        grasp, around = plan(self._arm, thing, (), self._arm.estimate("receptacle"))
        if grasp is None:
            return Outcome(False, f"the {thing.role} offers no grasp from above")
        self._aimed = (thing, grasp)
        return (yield from descend(self._arm, grasp, around)).outcome()

    def _open(self, arm: Arm) -> Steps[Outcome]:
        self._load = None
        return (yield from motions_gripper.release(arm, seconds=1.5))

    def _close(self, arm: Arm) -> Steps[Outcome]:
        outcome = yield from motions_gripper.close(arm)
        if outcome.completed and self._load is None and self._aimed is not None:
            thing, grasp = self._aimed
            if float(np.linalg.norm(arm.position - grasp.point)) < 0.03:
                self._load, self._gripped = load_of(arm, thing, grasp), arm.opening
        self._aimed = None
        return outcome

    def _grasp(self, role: str) -> Steps[Outcome]:
        arm, failed = self._arm, list[Manner]()
        self._load = None
        outcome = Outcome(False, "not tried")
        for attempt in range(TRIES):
            if attempt:
                yield from motions_gripper.release(arm)
                yield from motions.retreat(arm, 0.08)
            # Where it shall go says from which side it is best taken.
            yield from arm.look(role, "receptacle")
            thing = arm.estimate(role)
            if thing is None:
                return Outcome(False, f"the {role} was not found")
            place = arm.estimate("receptacle")
            outcome, self._load = yield from take(arm, thing, failed, place)
            if outcome.completed:
                self._gripped = arm.opening
                return outcome
        return Outcome(False, f"{outcome.reason} (tried {TRIES} grasps)")

    def _place(self, role: str) -> Steps[Outcome]:
        arm = self._arm
        if not (arm.closing and arm.opening > arm.hand.empty):
            return Outcome(False, "nothing is held")
        seen_at = arm.sense.proprio.t
        yield from arm.look(role, "object")
        place = arm.estimate(role) or self._where_it_was(role)
        if place is None:
            return Outcome(False, f"the {role} was not found")
        load = self._present_load(seen_at)
        if load is None:
            yield from self._show(place)
            load = self._present_load(seen_at) or self._guessed_load()
        held = (load.middle(arm), float(load.extent[:2].max()) / 2.0)
        heights = arm.sense.heights
        around = Surroundings(heights, place, held=held, hand=arm.position, reach=arm.reach)
        goal = goal_in(place, load, arm) if self._placement == "in" else goal_on(place)
        outcome = yield from carry(arm, load, goal, around)
        if not outcome.completed:
            return outcome
        outcome = yield from set_down(arm, load, goal)
        if outcome.completed:
            self._load = None
        return outcome

    def _where_it_was(self, role: str) -> Estimate | None:
        """Return where a receptacle was last seen: arm and load often hide it, and it stays."""
        seen = self._last_seen(role)
        return None if seen is None else seen[0]

    def _present_load(self, since: float) -> Load | None:
        """Return how what is held lies in the hand, remembered or seen; None if nobody knows."""
        arm, known = self._arm, self._load
        # A rim settles in the fingers by itself, so only the width of a thicker thing tells.
        thick = known is not None and self._gripped > _THICK
        if thick and abs(arm.opening - self._gripped) > _REGRIPPED:
            known = None  # something else is in the hand, or it lies otherwise
        thing = arm.estimate("object")
        if thing is not None and thing.t >= since:
            seen = load_of(arm, thing, None)
            away = float(np.linalg.norm(seen.offset))
            if known is None and away < _IN_HAND:
                return seen
            if known is not None and away < _IN_HAND:
                shift = float(np.linalg.norm((seen.middle(arm) - known.middle(arm))[:2]))
                return seen if shift > _SHIFTED else known
        return known

    def _show(self, place: Estimate) -> Steps[None]:
        """Carry what is held, however it lies, high over its place and look at it there."""
        arm, thing = self._arm, self._guessed_load()
        around = Surroundings(arm.sense.heights, place, hand=arm.position, reach=arm.reach)
        high = max(float(arm.position[2]), top_of(place) + 0.15)
        over = np.array([*place.position[:2], high])
        way = around.way_over(arm.position, over, arm.hand, float(thing.extent[2]))
        yield from motions.fly(arm, over, downward(arm.rotation), way)
        yield from arm.look("object")

    def _guessed_load(self) -> Load:
        """Return how a thing of known size lies in the hand if it was taken as usual."""
        arm, seen = self._arm, self._last_seen("object")
        if seen is None:
            return _some_load(arm.rotation)
        thing, then = seen
        in_hand = thing.position - then.ee_pos
        as_then = abs(arm.opening - then.gripper_opening) < _REGRIPPED
        if as_then and float(np.linalg.norm(in_hand)) < _IN_HAND:
            return Load(in_hand, thing.extent, matrix_of(then.ee_quat))
        if float(thing.extent[:2].min()) > arm.hand.widest:
            return _some_load(arm.rotation)
        below = float(thing.extent[2]) / 2.0 - min(SIDE_DEPTH, float(thing.extent[2]) / 2.0)
        return Load(np.array([0.0, 0.0, -below]), thing.extent, arm.rotation)

    def _follow(self, role: str, seconds: float) -> Steps[Outcome]:
        arm = self._arm
        due, every = arm.ticks(seconds), arm.ticks(_LOOK_EVERY_S)
        error = math.inf
        for tick in range(due):
            if tick % every == 0:
                yield from arm.look(role)
            thing = arm.estimate(role)
            if thing is None:
                return Outcome(False, f"the {role} was not found")
            goal = np.array([*thing.position[:2], top_of(thing) + 0.08])
            error = _horizontal(goal - arm.position)
            yield from arm.toward(goal, downward(arm.rotation))
        return Outcome(error < 0.03, f"{cm(error)} beside the {role} at the end")

    def _push(self, role: str) -> Steps[Outcome]:
        arm = self._arm
        yield from arm.look(role, "receptacle")
        thing, place = arm.estimate(role), arm.estimate("receptacle")
        if thing is None or place is None:
            missing = role if thing is None else "receptacle"
            return Outcome(False, f"the {missing} was not found")
        return (yield from parts.push(arm, thing, place))


def _some_load(rotation: Array) -> Load:
    """Return what is assumed of a thing of which nothing is known."""
    return Load(np.array([0.0, 0.0, -0.01]), np.full(3, 0.05), rotation)


def _horizontal(vector: Array) -> float:
    return float(np.linalg.norm(vector[:2]))
