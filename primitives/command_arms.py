"""What commands do with one arm alone: displace it, turn it, point it, bring it home, grip."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.primitives.command_endings import Ending
from zetta.primitives.command_results import StopReason
from zetta.primitives.motions import (
    TURN_WITHIN,
    WITHIN,
    Arm,
    Arrival,
    Steps,
    cm,
    fly,
    go,
    probe,
)
from zetta.primitives.motions_frames import angle_between, turned
from zetta.primitives.motions_gripper import STILL, release, squeeze
from zetta.runtime.core import ArmState, Array, HeightGrid
from zetta.runtime.workspace import Box

NEAR_ENOUGH = 0.015
"""A hand that gets no nearer has done what was asked within this distance, metres."""
TURNED_ENOUGH = math.radians(8.0)
"""The same for an orientation, radians."""
_MOVED, _TURNED = 0.005, math.radians(2.0)
"""A hand that does less than this did not move: metres, radians."""
_STOPPED_S = 0.25
"""Time after which a hand that is told to move on and does not counts as stopped."""
_STRETCHED = 0.005
"""An arm this near to its longest stretch gets no further, metres."""
_LEAD = 0.25
"""How far the goal of a turn runs ahead of the hand, radians."""
_ASTRAY = 0.02
"""A hand that has strayed this far from where it turns waits, metres."""
_TURN_PATIENCE_S = 1.0
_OPENING_NEAR = 0.006
"""A half-open gripper is as wanted within this, metres."""
_HOME_ROOM = 0.10
"""Height over what was seen at which an arm flies home, metres."""
_HOME_RISE = 0.20
"""It rises at most this far above both ends of its way, metres."""
_HAND_SEEN = 0.15
"""Within this distance of its grip site, a hand may be seen instead of the ground, metres."""


def displace(arm: Arm, way: Array, box: Box | None, until_contact: bool) -> Steps[Ending]:
    """Move the grip site by a displacement in the world, keeping the orientation."""
    start = arm.position
    if not until_contact:
        if box is not None and not box.holds(start + way):
            return _outside(box, start + way, way)
        return (yield from _straight(arm, way))
    share = 1.0 if box is None else box.share_inside(start, way)
    rotation = arm.rotation
    contact = yield from probe(arm, share * way, rotation)
    yield from arm.toward(arm.position, rotation)
    if contact.touched:
        return Ending(True, "contact", f"something stopped it after {cm(contact.moved)}", way)
    stop: StopReason = "limit" if share < 1.0 else "reached"
    where = " where the workspace ends" if share < 1.0 else ""
    detail = f"no contact within {cm(contact.moved)}{where}"
    return Ending(False, stop, detail, way)


def _outside(box: Box, goal: Array, way: Array) -> Ending:
    x, y, z = (100.0 * float(n) for n in goal)
    detail = (
        f"it would go to x {x:.1f}, y {y:.1f}, z {z:.1f} cm, outside of the workspace "
        f"({box}); it did not move"
    )
    return Ending(False, "limit", detail, way, float(np.linalg.norm(way)))


def _straight(arm: Arm, way: Array) -> Steps[Ending]:
    """Move straight to the end of a way; say how far it got and what kept it."""
    start, rotation = arm.position, arm.rotation
    arrival, stopped = yield from _travel(arm, start + way, rotation)
    near = arrival.short < NEAR_ENOUGH and arrival.turn_left < TURNED_ENOUGH
    if arrival.reached:
        done = f"{_went(arm, start)}, {cm(arrival.short)} off"
        return _ended(arrival, True, "reached", done, way)
    stop = _why(arm, stopped)
    off = f"{cm(arrival.short)} short"
    if arrival.turn_left > TURN_WITHIN:
        off += f" and {math.degrees(arrival.turn_left):.0f} degrees off"
    detail = f"{_went(arm, start)}, {off}: {_cause(stop, way)}"
    return _ended(arrival, near, stop, detail, way)


def _ended(
    arrival: Arrival, completed: bool, stop: StopReason, detail: str, asked: Array | None = None
) -> Ending:
    return Ending(completed, stop, detail, asked, arrival.short, arrival.turn_left)


def _went(arm: Arm, start: Array) -> str:
    x, y, z = (100.0 * float(n) for n in arm.position - start)
    if math.hypot(x, y, z) < 100.0 * _MOVED:
        return "it did not move"
    return f"moved x {x:+.1f}, y {y:+.1f}, z {z:+.1f} cm"


def _why(arm: Arm, stopped: bool) -> StopReason:
    reach = arm.reach
    if reach is not None:
        stretch = float(np.linalg.norm(reach.wrist - reach.shoulder))
        if stretch > reach.longest - _STRETCHED:
            return "limit"
    return "contact" if stopped else "timeout"


def _cause(stop: StopReason, way: Array) -> str:
    if stop == "limit":
        return "the arm is stretched out"
    if stop == "timeout":
        return "time was up"
    if float(way[2]) < -0.5 * float(np.linalg.norm(way)):
        return "the descent ended early, the hand or what it holds rests on something"
    return "something stopped it"


def _travel(
    arm: Arm, goal: Array, rotation: Array, seconds: float = 5.0
) -> Steps[tuple[Arrival, bool]]:
    """Move to a pose; return how it ended and whether something stopped the hand (`Pace`)."""
    start, pace, idle = arm.position, arm.pace(), 0
    short = float(np.linalg.norm(goal - start))
    turn_progress = arm.progress()
    for left in range(arm.ticks(seconds), -1, -1):
        turn = angle_between(rotation, arm.rotation)
        moved = float(np.linalg.norm(arm.position - start))
        reached = short < WITHIN and turn < TURN_WITHIN
        turning = short < WITHIN and not turn_progress.stalled(0.1 * turn)
        stopped = idle >= arm.ticks(_STOPPED_S) and not turning
        if reached or stopped or left == 0:
            return Arrival(reached, short, moved, turn, stopped), stopped
        yield from arm.toward(goal, rotation)
        before, short = short, float(np.linalg.norm(goal - arm.position))
        idle = idle + 1 if pace.stopped(before - short, before) else 0
    raise AssertionError("the last round returns")


# --------------------------------------------------------------------------- turning


def rotate(arm: Arm, axis: Array, angle: float) -> Steps[Ending]:
    """Turn the hand about an axis of the world through its grip site."""
    return (yield from turn_to(arm, turned(arm.rotation, axis, angle)))


def turn_to(arm: Arm, rotation: Array) -> Steps[Ending]:
    """Turn the hand where it is."""
    before = arm.rotation
    arrival = yield from _turn(arm, rotation)
    made = angle_between(before, arm.rotation)
    done = "it did not turn" if made < _TURNED else f"turned by {math.degrees(made):.0f} degrees"
    done += f", {math.degrees(arrival.turn_left):.0f} degrees off"
    if arrival.reached:
        return _ended(arrival, True, "reached", done)
    if arrival.short > WITHIN:
        done += f" and {cm(arrival.short)} from where it turns"
    near = arrival.short < NEAR_ENOUGH and arrival.turn_left < TURNED_ENOUGH
    stop: StopReason = "limit" if arrival.stalled else "timeout"
    why = "time was up"
    if arrival.stalled:
        why = "a joint is at its end, the arm is stretched out, or something is in the way"
    return _ended(arrival, near, stop, f"{done}: {why}")


def _turn(arm: Arm, rotation: Array, seconds: float = 6.0) -> Steps[Arrival]:
    """Turn where the hand is, so slowly that it stays there: it waits while it is off its place.

    Controllers that see to position and orientation apart lose the one over a fast turn.
    """
    spot, progress = arm.position, arm.progress(_TURN_PATIENCE_S)
    for left in range(arm.ticks(seconds), -1, -1):
        short = float(np.linalg.norm(spot - arm.position))
        turn = angle_between(rotation, arm.rotation)
        reached = short < WITHIN and turn < TURN_WITHIN
        stalled = progress.stalled(0.1 * turn + max(0.0, short - WITHIN))
        if reached or stalled or left == 0 or _overstretched(arm, rotation):
            return Arrival(reached, short, short, turn, stalled or left > 0)
        lead = _LEAD * float(np.clip(1.0 - short / _ASTRAY, 0.1, 1.0))
        yield from arm.toward(spot, _part_way(arm.rotation, rotation, lead))
    raise AssertionError("the last round returns")


def _overstretched(arm: Arm, rotation: Array) -> bool:
    """Say whether turning on would straighten the arm, from which it cannot bend again."""
    reach = arm.reach
    if reach is None:
        return False
    turn = _part_way(arm.rotation, rotation, _LEAD) @ arm.rotation.T
    wrist = arm.position + turn @ (reach.wrist - arm.position)
    now = float(np.linalg.norm(reach.wrist - reach.shoulder))
    then = float(np.linalg.norm(wrist - reach.shoulder))
    return then > max(now, reach.longest)


def _part_way(start: Array, end: Array, most: float) -> Array:
    """Return `end`, or an orientation on the way to it that is `most` radians from `start`."""
    way = Rotation.from_matrix(end @ start.T).as_rotvec()
    angle = float(np.linalg.norm(way))
    if angle <= most:
        return end
    return np.asarray(Rotation.from_rotvec(way * (most / angle)).as_matrix() @ start)


# --------------------------------------------------------------------------- home


def go_home(arm: Arm, home: ArmState, rotation: Array, way: float) -> Steps[Ending]:
    """Rise to the height `way`, go over the pose at which the episode began, and down to it."""
    asked = home.ee_pos - arm.position
    start = arm.position
    yield from fly(arm, home.ee_pos, rotation, way)
    arrival = yield from go(arm, home.ee_pos, rotation, seconds=2.0)
    near = arrival.short < NEAR_ENOUGH and arrival.turn_left < TURNED_ENOUGH
    if near:
        return _ended(arrival, True, "reached", f"at home, {cm(arrival.short)} off", asked)
    stop = _why(arm, arrival.stalled)
    detail = f"{_went(arm, start)}, {cm(arrival.short)} from home: {_cause(stop, asked)}"
    return _ended(arrival, False, stop, detail, asked)


def height_over(start: Array, end: Array, heights: HeightGrid | None, box: Box | None) -> float:
    """Return how high to fly between two points, over all that was seen anywhere there."""
    way = max(float(start[2]), float(end[2]))
    if heights is not None and np.isfinite(heights.heights).any():
        over = _highest_between(start, end, heights) + _HOME_ROOM
        # What is seen much higher is rather a rest of the arm than a thing to fly over.
        way = max(way, min(over, way + _HOME_RISE))
    return way if box is None else min(way, box.high[2])


def _highest_between(start: Array, end: Array, grid: HeightGrid) -> float:
    """Return the greatest height under the straight way, the hand at its start left out."""
    share = np.linspace(0.0, 1.0, 60)[:, None]
    spots = (start[:2] + share * (end - start)[:2])[:, None] + _AROUND  # (60, 9, 2)
    spots = spots.reshape(-1, 2)
    cells = np.floor((spots - grid.origin) / grid.cell).astype(np.int64)
    inside = ((cells >= 0) & (cells < grid.heights.shape)).all(axis=1)
    seen = grid.heights[cells[inside, 0], cells[inside, 1]]
    near = np.linalg.norm(spots[inside] - start[:2], axis=1) < _HAND_SEEN
    seen = seen[np.isfinite(seen) & ~(near & (seen > start[2] - 0.02))]
    return float(seen.max()) if len(seen) else -math.inf


_AROUND = np.array([(x, y) for x in (-0.06, 0.0, 0.06) for y in (-0.06, 0.0, 0.06)])


# --------------------------------------------------------------------------- the gripper


def set_gripper(arm: Arm, share: float) -> Steps[Ending]:
    """Open the fingers to a share of the widest opening, between open and closed.

    They close or open until they are there, and then the command is tried that keeps them: the
    middle one stops grippers that are told a direction, the proportional one those that are told
    a width. Where neither does, the nearest of open and closed is used.
    """
    wanted = share * arm.hand.opening
    position, rotation = arm.position, arm.rotation
    coast = 0.0
    for command in (0.5, 0.5, 0.5, 0.5, share):
        closing = arm.opening > wanted
        stopped = yield from _drive_fingers(arm, wanted, coast)
        if stopped and closing:
            # The grip stays closed around it.
            detail = f"the fingers stopped {cm(arm.opening)} apart: something is between them"
            return Ending(False, "contact", detail)
        let_go = arm.opening
        arm.command_gripper(command)
        yield from arm.wait(position, rotation, arm.ticks(0.5))
        if abs(arm.opening - wanted) <= _OPENING_NEAR:
            return Ending(True, "reached", f"the fingers are {cm(arm.opening)} apart")
        coast = abs(arm.opening - let_go)
    return (yield from _nearest(arm, share))


def _drive_fingers(arm: Arm, wanted: float, coast: float) -> Steps[bool]:
    """Close or open until `coast` before an opening, metres; return whether they stopped."""
    position, rotation = arm.position, arm.rotation
    arm.closing = arm.opening > wanted
    way = -1.0 if arm.closing else 1.0
    before, still, slow = arm.opening, 0, arm.per_tick(STILL)
    for tick in range(arm.ticks(2.0)):
        if tick and way * (wanted - arm.opening) <= coast:
            return False
        yield from arm.toward(position, rotation)
        still = still + 1 if abs(arm.opening - before) < slow else 0
        before = arm.opening
        if still >= arm.lasting(3) and tick >= arm.ticks(0.35):
            break
    return True


def _nearest(arm: Arm, share: float) -> Steps[Ending]:
    position, rotation = arm.position, arm.rotation
    if share < 0.5:
        grip = yield from squeeze(arm, position, rotation)
        word, opening = "closed", grip.opening
    else:
        yield from release(arm, seconds=1.5)
        word, opening = "open", arm.opening
    notice = f"this gripper only opens and closes; {share:.2f} became {word}"
    return Ending(True, "reached", f"the fingers are {cm(opening)} apart", notices=(notice,))
