"""Bounded closed-loop motions of one arm, as generators over what is sensed.

Whether a motion arrived, stalled or met something is detected from proprioception at every tick
and told as it happened. Every motion has a bound in ticks. Other arms hold still meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.primitives.grasps import HandGeometry
from zetta.primitives.motions_frames import angle_between, downward, limited, matrix_of
from zetta.primitives.motions_progress import SHRINKS, Pace, Progress
from zetta.primitives.motions_reach import Reach
from zetta.primitives.rates import per_tick_at, ticks_at
from zetta.runtime.core import Action, ActionSpec, ArmState, Array, Estimate, Look, Outcome, Sense
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.tracking import ARM_SIZE, GAIN, converter

_T = TypeVar("_T")
Steps: TypeAlias = Generator[Action | Look, Sense, _T]
"""Part of a motion, with a result of its own."""

PATIENCE_S = 0.5
"""Time without progress after which a motion counts as stalled."""
WITHIN = 0.006
"""A point is reached within this distance, metres."""
TURN_WITHIN = 0.06
"""An orientation is reached within this angle, radians."""
_NEAR_END = 0.003
"""A way is done within this distance of its end, metres."""
SURE = 0.3
"""An estimate of less confidence counts as not found."""


class Arm:
    """One arm while a motion drives it: what it senses, and its moves of one tick.

    Attributes:
        sense: what was sensed last.
        hand: geometry of the gripper.
    """

    def __init__(
        self, action: ActionSpec, index: int, control_hz: float, hand: HandGeometry
    ) -> None:
        """Bind to arm `index` of an action convention.

        Raises:
            SpecMismatch: the convention has no poses in the world frame, or not so many arms.
        """
        if action.frame != "world":
            raise SpecMismatch(
                f"motions act in the world frame, the actions are in {action.frame!r}; "
                "choose an environment whose actions are in the world frame"
            )
        if not 0 <= ARM_SIZE * (index + 1) <= action.arms_size:
            raise SpecMismatch(
                f"got arm {index}, but an action of {action.size} numbers drives "
                f"{action.arms_size // ARM_SIZE} arms of {ARM_SIZE}"
            )
        size = action.size
        poses = replace(
            action, kind="target_pose", low=(-math.inf,) * size, high=(math.inf,) * size
        )
        self._convert = converter(poses, action)
        self._action, self._index, self._hz = action, index, control_hz
        own = slice(ARM_SIZE * index, ARM_SIZE * index + 3)
        self._step = min(s * h for s, h in zip(action.scale[own], action.high[own], strict=True))
        self._row: Array | None = None
        self._told: tuple[float, ...] | None = None
        self._gripper = action.gripper_open
        self.hand = hand
        self.sense: Sense

    # ------------------------------------------------------------------ what is sensed

    def start(self) -> Steps[None]:
        """Sense the present; the first time, note how the grippers are commanded.

        A gripper's last command cannot be sensed: where nobody told it, one that opens or is open
        is taken to be commanded open, any other to hold what it holds.
        """
        self.sense = yield Look(())
        if self._row is None:
            arms = self.sense.proprio.arms
            grippers = self._told or [self._command(self._seems_closed(state)) for state in arms]
            self._gripper = grippers[self._index]
            rows = [self._pose_row(s, g) for s, g in zip(arms, grippers, strict=True)]
            self._row = np.concatenate([*rows, self._action.rest])  # (A,)

    def told(self, grippers: Sequence[float]) -> None:
        """Note how the grippers of all arms are commanded; where the other arms are counts anew."""
        self._told, self._row = tuple(grippers), None

    def look(self, *roles: str) -> Steps[None]:
        """Refresh the estimates of `roles` and what stands where."""
        self.sense = yield Look(roles)

    @property
    def closing(self) -> bool:
        """Whether the gripper is commanded to close."""
        wide, shut = self._action.gripper_open, self._action.gripper_close
        return abs(self._gripper - shut) < abs(self._gripper - wide)

    @closing.setter
    def closing(self, closing: bool) -> None:
        self._gripper = self._command(closing)

    def command_gripper(self, share: float) -> None:
        """Command the gripper between open (share 1) and closed (share 0) from now on."""
        wide, shut = self._action.gripper_open, self._action.gripper_close
        self._gripper = shut + share * (wide - shut)

    @property
    def state(self) -> ArmState:
        """What the arm's own sensors report."""
        return self.sense.proprio.arms[self._index]

    @property
    def position(self) -> Array:
        """Position of the grip site, world frame. Shape (3,)."""
        return self.state.ee_pos

    @property
    def rotation(self) -> Array:
        """Orientation of the hand. Shape (3, 3)."""
        return matrix_of(self.state.ee_quat)

    @property
    def opening(self) -> float:
        """Distance between the fingers, metres."""
        return self.state.gripper_opening

    def estimate(self, role: str) -> Estimate | None:
        """Return where the thing of `role` is believed to be, or None when it is not known."""
        found = self.sense.estimates.get(role)
        return found if found is not None and found.confidence >= SURE else None

    @property
    def reach(self) -> Reach | None:
        """How far the arm is stretched now; None for an arm of which that need not be minded."""
        return None if self.hand.reach is None else self.hand.reach(self.state)

    def ticks(self, seconds: float) -> int:
        """Return the number of ticks in `seconds`, at least one."""
        return max(1, round(seconds * self._hz))

    def progress(self, seconds: float = PATIENCE_S) -> Progress:
        """Return a watch on an error that should shrink."""
        return Progress(self.ticks(seconds), self.per_tick(SHRINKS))

    def pace(self) -> Pace:
        """Return a watch on the speed of the hand."""
        return Pace(self._hz)

    def per_tick(self, metres: float) -> float:
        """Return what a speed of so many metres in a tick of 20 Hz makes in one of this arm."""
        return per_tick_at(self._hz, metres)

    def lasting(self, ticks: int) -> int:
        """Return so many ticks of 20 Hz in ticks of this arm."""
        return ticks_at(self._hz, ticks)

    # ------------------------------------------------------------------ moves

    def toward(self, position: Array, rotation: Array, speed: float = 1.0) -> Steps[None]:
        """Move one tick toward a pose, at most with the share `speed` of full speed."""
        step = limited(position - self.position, speed * self._step / GAIN)
        reach = self.reach
        if reach is not None:
            step = reach.bent(step)
        assert self._row is not None  # start() came first
        first = ARM_SIZE * self._index
        self._row[first : first + 3] = self.position + step
        self._row[first + 3 : first + 6] = Rotation.from_matrix(rotation).as_rotvec()
        self._row[first + 6] = self._gripper
        self.sense = yield self._convert(self._row, self.sense.proprio)

    def wait(self, position: Array, rotation: Array, ticks: int) -> Steps[None]:
        """Hold a pose: the commanded one, because holding the present one drifts."""
        for _ in range(ticks):
            yield from self.toward(position, rotation)

    def _command(self, closing: bool) -> float:
        return self._action.gripper_close if closing else self._action.gripper_open

    def _seems_closed(self, state: ArmState) -> bool:
        if abs(state.gripper_velocity) > 0.01:
            return state.gripper_velocity < 0.0
        return state.gripper_opening < 0.9 * self.hand.opening

    def _pose_row(self, state: ArmState, gripper: float) -> Array:
        turn = Rotation.from_quat(state.ee_quat).as_rotvec()
        return np.concatenate([state.ee_pos, turn, [gripper]])


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a way to a pose ended."""

    reached: bool
    short: float
    """Metres left."""
    moved: float
    """Metres from where it began."""
    turn_left: float
    """Radians left."""
    stalled: bool
    """It no longer got nearer; otherwise the time was up."""

    def outcome(self, what: str = "the point") -> Outcome:
        """Return it as an outcome that says what happened."""
        if self.reached:
            return Outcome(True, f"reached {what}, {cm(self.short)} from it")
        left = cm(self.short)
        if self.turn_left > TURN_WITHIN:
            left += f" and {math.degrees(self.turn_left):.0f} degrees"
        why = "stalled" if self.stalled else "time was up"
        return Outcome(False, f"{why} {left} short of {what} after {cm(self.moved)}")


def cm(metres: float) -> str:
    """Return a length as text.

    >>> cm(0.0231)
    '2.3 cm'
    """
    return f"{100.0 * metres:.1f} cm"


def go(
    arm: Arm,
    goal: Array,
    rotation: Array,
    *,
    within: float = WITHIN,
    turn_within: float = TURN_WITHIN,
    speed: float = 1.0,
    seconds: float = 4.0,
) -> Steps[Arrival]:
    """Move until near a pose; stop when no longer getting nearer."""
    start, progress = arm.position, arm.progress()
    for left in range(arm.ticks(seconds), -1, -1):
        short = float(np.linalg.norm(goal - arm.position))
        turn = angle_between(rotation, arm.rotation)
        moved = float(np.linalg.norm(arm.position - start))
        reached = short < within and turn < turn_within
        stalled = progress.stalled(short + 0.1 * turn)
        if reached or stalled or left == 0:
            return Arrival(reached, short, moved, turn, stalled)
        yield from arm.toward(goal, rotation, speed)
    raise AssertionError("the last round returns")


@dataclass(frozen=True, slots=True)
class Contact:
    """How a search for contact ended."""

    touched: bool
    moved: float
    """Metres along the direction asked for."""


def probe(
    arm: Arm, displacement: Array, rotation: Array, speed: float = 0.5, seconds: float = 4.0
) -> Steps[Contact]:
    """Move along `displacement` until something stops the hand (`Pace`) or the way is done."""
    length = float(np.linalg.norm(displacement))
    if length < _NEAR_END:
        return Contact(False, 0.0)
    along, start = displacement / length, arm.position
    pace, moved = arm.pace(), 0.0
    for _ in range(arm.ticks(seconds)):
        left = length - moved
        if left <= _NEAR_END:
            return Contact(False, moved)
        yield from arm.toward(start + along * min(moved + 0.1, length), rotation, speed)
        before, moved = moved, float((arm.position - start) @ along)
        if pace.stopped(moved - before, left):
            return Contact(True, max(0.0, moved))
    return Contact(False, max(0.0, moved))


def move_to(arm: Arm, goal: Array, what: str = "the point") -> Steps[Outcome]:
    """Move the grip site to `goal` with the present orientation."""
    return (yield from go(arm, goal, arm.rotation, turn_within=0.2)).outcome(what)


def move_by(arm: Arm, displacement: Array) -> Steps[Outcome]:
    """Move by a displacement in the world."""
    return (yield from move_to(arm, arm.position + displacement, "the end of the move"))


def turn_to(arm: Arm, rotation: Array, what: str) -> Steps[Outcome]:
    """Turn the hand where it is."""
    arrival = yield from go(arm, arm.position, rotation, within=0.03)
    if arrival.reached:
        return Outcome(True, f"{what}, {math.degrees(arrival.turn_left):.0f} degrees off")
    return arrival.outcome("the orientation")


def point_down(arm: Arm) -> Steps[Outcome]:
    """Turn the hand until it points straight down, by the shortest way."""
    return (yield from turn_to(arm, downward(arm.rotation), "the hand points down"))


def until_contact(arm: Arm, displacement: Array) -> Steps[Outcome]:
    """Move until something stops the hand; completed when it was stopped."""
    rotation = arm.rotation
    contact = yield from probe(arm, displacement, rotation)
    yield from arm.toward(arm.position, rotation)
    if contact.touched:
        return Outcome(True, f"contact after {cm(contact.moved)}")
    return Outcome(False, f"no contact within {cm(contact.moved)}")


def hold(arm: Arm, seconds: float) -> Steps[Outcome]:
    """Stay where the hand is."""
    if seconds > 0.0:
        yield from arm.wait(arm.position, arm.rotation, arm.ticks(seconds))
    return Outcome(True, f"held for {seconds:g} s")


def retreat(arm: Arm, height: float) -> Steps[Outcome]:
    """Rise straight up, with the present orientation; three quarters of it will do."""
    goal = arm.position + np.array([0.0, 0.0, height])
    arrival = yield from go(arm, goal, arm.rotation, within=max(WITHIN, 0.15 * height))
    if arrival.reached:
        return Outcome(True, f"rose {cm(arrival.moved)}")
    return arrival.outcome("the height")


def names(roles: Sequence[str]) -> str:
    """Return roles as text for a reason."""
    return " and ".join(f"the {role}" for role in roles)


def fly(arm: Arm, goal: Array, rotation: Array, way: float) -> Steps[Arrival]:
    """Move to a point, at least at the height `way` until near it: up, over, down."""
    start, progress = arm.position, arm.progress()
    for left in range(arm.ticks(5.0), -1, -1):
        offset = goal - arm.position
        short, aside = float(np.linalg.norm(offset)), float(np.linalg.norm(offset[:2]))
        turn = angle_between(rotation, arm.rotation)
        reached = short < 0.012 and turn < 0.15
        rise = max(0.0, way - float(arm.position[2])) if aside > 0.06 else 0.0
        stalled = progress.stalled(short + 2.0 * rise + 0.1 * turn)
        if reached or stalled or left == 0:
            moved = float(np.linalg.norm(arm.position - start))
            return Arrival(reached, short, moved, turn, stalled)
        target = goal.copy()
        if aside > 0.06:
            target[2] = max(float(goal[2]), way)
            if arm.position[2] < way - 0.04:
                target[:2] = arm.position[:2]
        yield from arm.toward(target, rotation)
    raise AssertionError("the last round returns")
