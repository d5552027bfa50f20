"""What leaves the toy world: proprioception, truth, poses to draw, and snapshots.

A pose is one flat vector: seconds, then `x y z`, quaternion xyzw, opening and its rate for each
arm, then `x y z yaw` for each thing. Everything that can be seen or felt follows from it.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import ArmState, Array, Proprio, Truth
from zetta.runtime.errors import SpecMismatch
from zetta.sims.toy_physics import CONTROL_HZ, REST, Arm, Body, World, carrying_radius
from zetta.sims.toy_tasks import TABLE_Z, ToyTask

ARM_WIDTH = 9
THING_WIDTH = 4
_BASE_X = -0.45
_LINK = 0.42
"""Length of both links of the make-believe arm that `joint_pos` describes."""


def pose_of(world: World) -> Array:
    """Return the flat pose of the present moment."""
    values = [world.tick / CONTROL_HZ]
    for arm in world.arms:
        values += [arm.x, arm.y, arm.z, *arm.quat, arm.opening, arm.opening_rate]
    for body in world.bodies:
        values += [body.x, body.y, body.z, body.yaw]
    return np.array(values)


def check_pose(toy: ToyTask, pose: Array) -> Array:
    """Return `pose` as float64.

    Raises:
        SpecMismatch: it does not belong to this task's world.
    """
    array = np.array(pose, dtype=np.float64)
    size = 1 + ARM_WIDTH * len(toy.arms) + THING_WIDTH * len(toy.things)
    if array.shape != (size,):
        raise SpecMismatch(
            f"a pose of {toy.task.suite} task {toy.task.index} has {size} numbers, "
            f"got shape {array.shape}; use one logged from the same task"
        )
    return array


def frozen(array: Array) -> Array:
    """Make a fresh array read-only where it is: cheaper than a read-only copy."""
    array.flags.writeable = False
    return array


def arm_rows(toy: ToyTask, pose: Array) -> Array:
    """Return the arms' part of a pose. Shape (arms, 9)."""
    return pose[1 : 1 + ARM_WIDTH * len(toy.arms)].reshape(-1, ARM_WIDTH)


def thing_rows(toy: ToyTask, pose: Array) -> Array:
    """Return the things' part of a pose. Shape (things, 4)."""
    return pose[1 + ARM_WIDTH * len(toy.arms) :].reshape(-1, THING_WIDTH)


def proprio_of(toy: ToyTask, pose: Array, shift: tuple[float, float] = (0.0, 0.0)) -> Proprio:
    """Return what the robot feels at `pose`; `shift` falsifies every reported position."""
    frozen(pose)
    arms = []
    for row in arm_rows(toy, pose):
        x, y, z = float(row[0]) + shift[0], float(row[1]) + shift[1], float(row[2])
        position = row[:3] if shift == (0.0, 0.0) else frozen(np.array([x, y, z]))
        joints = frozen(np.array(_joints(x, y, z, row)))
        arms.append(ArmState(position, row[3:7], joints, float(row[7]), float(row[8])))
    return Proprio(float(pose[0]), tuple(arms))


def _joints(x: float, y: float, z: float, row: Array) -> tuple[float, ...]:
    """Return base turn, shoulder, elbow, wrist and roll of a two-link arm reaching `x y z`."""
    qx, qy, qz, qw = (float(v) for v in row[3:7])
    turn = math.atan2(y, x - _BASE_X)
    reach, rise = math.hypot(x - _BASE_X, y), z - TABLE_Z
    distance = min(math.hypot(reach, rise), 2.0 * _LINK)
    elbow = 2.0 * math.acos(distance / (2.0 * _LINK))
    shoulder = math.atan2(rise, reach) + elbow / 2.0
    roll = math.atan2(2.0 * (qx * qy - qz * qw), 2.0 * (qx * qx + qz * qz) - 1.0)
    return (turn, shoulder, -elbow, elbow - shoulder, roll)


def truth_of(toy: ToyTask, world: World, pose: Array) -> Truth:
    """Return simulator truth: positions as quaternions and the goal's predicates."""
    rows = thing_rows(toy, pose)
    objects = np.zeros((len(rows), 7))
    objects[:, :3] = rows[:, :3]
    objects[:, 5] = np.sin(rows[:, 3] / 2.0)
    objects[:, 6] = np.cos(rows[:, 3] / 2.0)
    frozen(objects)
    named = {name: objects[i] for i, name in enumerate(toy.names)}
    goals = {text: holds(world, item, target) for text, item, target in toy.goal_pairs}
    return Truth(named, goals)


def holds(world: World, item: int, target: int) -> bool:
    """Tell whether thing `item` lies on thing `target`, released and at rest."""
    body, under = world.bodies[item], world.bodies[target]
    if world.held_by(item) >= 0 or max(body.moved, under.moved) > REST:
        return False
    near = under.distance(body.x, body.y) <= carrying_radius(under.thing)
    return near and abs(body.bottom - under.top) < 0.002


def lost(toy: ToyTask, world: World) -> bool:
    """Tell whether something the goal needs has left the table for good."""
    return any(
        world.bodies[item].z < TABLE_Z or world.bodies[target].z < TABLE_Z
        for _, item, target in toy.goal_pairs
    )


# --------------------------------------------------------------------------- snapshots


class _Meta(TypedDict):
    digest: str
    tick: int
    slip_pending: bool
    hold_left: int
    generator: dict[str, object]
    held: list[int]
    max_steps: int
    instruction: str
    ended: str


_ARM_FIELDS = (
    "x", "y", "z", "vx", "vy", "vz", "opening", "opening_rate", "drive", "force", "hold_across",
    "hold_z", "hold_yaw",
)  # fmt: skip
_BODY_FIELDS = ("x", "y", "z", "yaw", "vz", "moved")


@dataclass(frozen=True, slots=True)
class Session:
    """What an episode remembers beside the world itself."""

    max_steps: int
    instruction: str
    ended: str
    """Why the episode is over; empty while it runs."""
    frozen: Array | None
    """Pose that a frozen camera repeats."""


def pack(world: World, digest: str, session: Session) -> bytes:
    """Return the whole world as bytes; `digest` names version and model."""
    meta: _Meta = {
        "digest": digest,
        "tick": world.tick,
        "slip_pending": world.slip_pending,
        "hold_left": world.hold_left,
        "generator": dict(world.rng.bit_generator.state),
        "held": [arm.held for arm in world.arms],
        "max_steps": session.max_steps,
        "instruction": session.instruction,
        "ended": session.ended,
    }
    buffer = io.BytesIO()
    arms = [[float(getattr(a, f)) for f in _ARM_FIELDS] + list(a.quat) for a in world.arms]
    bodies = [[float(getattr(b, f)) for f in _BODY_FIELDS] for b in world.bodies]
    np.savez(
        buffer,
        meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
        arms=np.array(arms),
        bodies=np.array(bodies),
        pending=np.array(world.pending),
        frozen=np.zeros(0) if session.frozen is None else session.frozen,
    )
    return buffer.getvalue()


def unpack(world: World, digest: str, snapshot: bytes) -> Session:
    """Put the world into the state of `snapshot` and return the rest of it.

    Raises:
        SpecMismatch: it is no snapshot, or one of another version or another model.
    """
    arrays, meta = _read(snapshot)
    if meta["digest"] != digest:
        raise SpecMismatch(
            f"the snapshot was taken from {meta['digest']}, this is {digest}; "
            "restore it in an environment of the same task and version"
        )
    for arm, row in zip(world.arms, arrays["arms"].tolist(), strict=True):
        _assign(arm, _ARM_FIELDS, row)
        arm.quat = (row[-4], row[-3], row[-2], row[-1])
    for body, row in zip(world.bodies, arrays["bodies"].tolist(), strict=True):
        _assign(body, _BODY_FIELDS, row)
    for arm, held in zip(world.arms, meta["held"], strict=True):
        arm.held = int(held)
    world.tick, world.slip_pending = int(meta["tick"]), bool(meta["slip_pending"])
    world.hold_left = int(meta["hold_left"])
    world.rng.bit_generator.state = meta["generator"]
    world.pending = [tuple(row) for row in arrays["pending"].tolist()]
    repeated = arrays["frozen"] if arrays["frozen"].size else None
    return Session(meta["max_steps"], meta["instruction"], meta["ended"], repeated)


def _read(snapshot: bytes) -> tuple[dict[str, Array], _Meta]:
    try:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays["meta"].tobytes())
        return arrays, meta
    except UNREADABLE as error:
        raise SpecMismatch(
            f"{len(snapshot)} bytes are no snapshot of the toy ({error}); "
            "pass what snapshot() returned, unchanged"
        ) from None


def _assign(target: Arm | Body, names: tuple[str, ...], row: list[float]) -> None:
    for name, value in zip(names, row, strict=False):
        setattr(target, name, value)
