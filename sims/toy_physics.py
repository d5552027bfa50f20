"""Physics of the toy world, one control tick at a time, in plain floats.

The contact geometry of every thing is an upright cylinder, that of a finger a small circle. This
is enough for what goes wrong on real arms: a finger lands on the thing, fingers close beside it
and push it away, an off-centre grasp slips, a careless release rolls off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from zetta.sims.toy_tasks import TABLE_HALF, TABLE_Z, ArmPlan, Thing

CONTROL_HZ = 20.0
DT = 1.0 / CONTROL_HZ
STEP_M = 0.05
"""Commanded metres per tick at full action."""
STEP_RAD = 0.5
"""Commanded radians per tick at full action."""
LAG = 0.4
"""Share of the last tick's motion that persists: the arm follows a command with a lag."""
OPENING_MAX = 0.08
OPENING_SPEED = 0.12
"""Finger speed in m/s: half open to closed takes about ten ticks."""
DRIVE_RAMP = 0.25
"""Change of the finger drive per tick: a reversal takes eight ticks."""
FORCE_RAMP = 0.25
"""Growth of the grip force per tick after contact."""
FINGER_RADIUS = 0.007
TIP = 0.010
"""The finger tips reach this far below the grip site."""
GRAVITY = 9.81
HOME_QUAT = (1.0, 0.0, 0.0, 0.0)
"""Gripper pointing down, xyzw: x forward, finger axis along world y."""
MAX_TILT_COS = 0.9
REACH = 0.85
"""A thing is between the fingers when it is off their middle by less than this share of its
radius, measured across the fingers."""
REST = 1e-4
"""A thing that moves less than this in a tick, in metres, is at rest."""


@dataclass(slots=True)
class Body:
    """A thing in motion. World frame, metres; `z` is the centre."""

    thing: Thing
    x: float
    y: float
    z: float
    yaw: float = 0.0
    vz: float = 0.0
    moved: float = 0.0
    """Metres moved in the last tick."""

    @property
    def top(self) -> float:
        """Height of the upper face."""
        return self.z + self.thing.half_height

    @property
    def bottom(self) -> float:
        """Height of the lower face."""
        return self.z - self.thing.half_height

    def distance(self, x: float, y: float) -> float:
        """Return the horizontal distance from the axis."""
        return math.hypot(self.x - x, self.y - y)


@dataclass(slots=True)
class Arm:
    """An arm in motion; its end effector is the grip site between the finger tips."""

    plan: ArmPlan
    x: float
    y: float
    z: float
    quat: tuple[float, float, float, float] = HOME_QUAT
    vx: float = 0.0
    vy: float = 0.0
    vz: float = 0.0
    opening: float = OPENING_MAX
    opening_rate: float = 0.0
    drive: float = 0.0
    """Finger drive in [-1, 1]; positive closes."""
    force: float = 0.0
    """Grip force in [0, 1]."""
    held: int = -1
    """Index of the held thing, or -1."""
    hold_across: float = 0.0
    """Offset of the held thing across the fingers, metres."""
    hold_z: float = 0.0
    hold_yaw: float = 0.0

    def finger_axis(self) -> tuple[float, float]:
        """Return the horizontal unit vector along which the fingers close."""
        x, y, z, w = self.quat
        fx, fy = 2.0 * (x * y - z * w), 1.0 - 2.0 * (x * x + z * z)
        norm = math.hypot(fx, fy)
        return (fx / norm, fy / norm) if norm > 1e-9 else (0.0, -1.0)

    def upright(self) -> bool:
        """Tell whether the gripper points down well enough to grasp."""
        x, y, _, _ = self.quat
        return 2.0 * (x * x + y * y) - 1.0 >= MAX_TILT_COS

    def fingers(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the centres `(x, y)` of both finger tips."""
        fx, fy = self.finger_axis()
        reach = self.opening / 2.0 + FINGER_RADIUS
        return (
            (self.x + fx * reach, self.y + fy * reach),
            (self.x - fx * reach, self.y - fy * reach),
        )


@dataclass(slots=True)
class World:
    """Everything that moves, and the generator of everything that is left to chance."""

    bodies: list[Body]
    arms: list[Arm]
    rng: np.random.Generator
    tick: int = 0
    slip_scale: float = 1.0
    slip_pending: bool = False
    """A slip was ordered and has not happened yet."""
    hold_left: int = -1
    """Ticks of holding, clear of any support, until a slip that was ordered; -1 for none."""
    stuck: bool = False
    """The fingers do not move."""
    pending: list[tuple[float, ...]] = field(default_factory=list)
    """Actions sent and not yet obeyed."""

    def held_by(self, index: int) -> int:
        """Return the arm that holds thing `index`, or -1."""
        for k, arm in enumerate(self.arms):
            if arm.held == index:
                return k
        return -1

    def advance(self, action: Sequence[float]) -> None:
        """Move everything by one tick; `action` has seven numbers for each arm."""
        before = [(b.x, b.y, b.z) for b in self.bodies]
        for k, arm in enumerate(self.arms):
            row = action[7 * k : 7 * k + 7]
            self._move(arm, row)
            self._grip(arm, row[6])
            self._carry(arm)
        self._push()
        self._fall()
        for body, (x, y, z) in zip(self.bodies, before, strict=True):
            body.moved = abs(body.x - x) + abs(body.y - y) + abs(body.z - z)
        self.tick += 1

    # ------------------------------------------------------------------ the arm

    def _move(self, arm: Arm, row: Sequence[float]) -> None:
        low, high, old_z = arm.plan.low, arm.plan.high, arm.z
        gain = (1.0 - LAG) * STEP_M
        x = min(max(arm.x + LAG * arm.vx + gain * row[0], low[0]), high[0])
        y = min(max(arm.y + LAG * arm.vy + gain * row[1], low[1]), high[1])
        z = min(max(arm.z + LAG * arm.vz + gain * row[2], low[2]), high[2])
        arm.vx, arm.vy = x - arm.x, y - arm.y
        arm.x, arm.y = x, y
        if row[3] or row[4] or row[5]:
            arm.quat = turned(arm.quat, row[3] * STEP_RAD, row[4] * STEP_RAD, row[5] * STEP_RAD)
        arm.z = max(z, self._lowest(arm, old_z))
        arm.vz = arm.z - old_z

    def _lowest(self, arm: Arm, old_z: float) -> float:
        """Return the lowest height the grip site may take: fingers and load rest on things."""
        lowest = arm.plan.low[2]
        tip = old_z - TIP + 1e-6
        if tip < self._highest() + STEP_M * 2:
            for fx, fy in arm.fingers():
                for index, body in enumerate(self.bodies):
                    if index == arm.held or body.top > tip:
                        continue
                    if body.distance(fx, fy) < body.thing.radius + FINGER_RADIUS:
                        lowest = max(lowest, body.top + TIP)
        if arm.held >= 0:
            load = self.bodies[arm.held]
            support = self.support(arm.held, load.x, load.y, load.bottom)
            lowest = max(lowest, support + load.thing.half_height - arm.hold_z)
        return lowest

    def _highest(self) -> float:
        return max(body.top for body in self.bodies)

    def _grip(self, arm: Arm, command: float) -> None:
        wanted = float(command > 0.0) - float(command < 0.0)
        arm.drive += min(max(wanted - arm.drive, -DRIVE_RAMP), DRIVE_RAMP)
        rate = 0.0 if self.stuck else arm.drive * OPENING_SPEED * DT
        old = arm.opening
        if rate > 0.0:
            self._close(arm, rate)
        elif rate < 0.0:
            arm.held, arm.force = -1, 0.0
            arm.opening = min(old - rate, OPENING_MAX)
        arm.opening_rate = (arm.opening - old) / DT

    def _close(self, arm: Arm, rate: float) -> None:
        if arm.held >= 0:
            arm.force = min(arm.force + FORCE_RAMP, 1.0)
            return
        wanted = max(arm.opening - rate, 0.0)
        index = self._between(arm)
        if index < 0:
            arm.opening = wanted
            return
        body = self.bodies[index]
        width = 2.0 * body.thing.radius
        fx, fy = arm.finger_axis()
        along = (body.x - arm.x) * fx + (body.y - arm.y) * fy
        room = max(max(wanted, width) / 2.0 - body.thing.radius, 0.0)
        kept = min(max(along, -room), room)
        body.x += (kept - along) * fx
        body.y += (kept - along) * fy
        arm.opening = max(wanted, width)
        if wanted <= width:
            arm.held, arm.force = index, FORCE_RAMP
            arm.hold_across = (body.x - arm.x) * fy - (body.y - arm.y) * fx
            arm.hold_z = body.z - arm.z
            arm.hold_yaw = body.yaw - math.atan2(fy, fx)

    def _between(self, arm: Arm) -> int:
        """Return the thing between the fingers, or -1."""
        if not arm.upright():
            return -1
        fx, fy = arm.finger_axis()
        for index, body in enumerate(self.bodies):
            if body.thing.fixed or self.held_by(index) >= 0:
                continue
            dx, dy = body.x - arm.x, body.y - arm.y
            if abs(body.z - arm.z) > body.thing.half_height + TIP / 2.0:
                continue
            # This tick's move may have brought a finger into the thing: its centre counts.
            inside = abs(dx * fx + dy * fy) <= arm.opening / 2.0
            fits = 2.0 * body.thing.radius <= arm.opening + 1e-3
            if inside and fits and abs(dx * fy - dy * fx) <= REACH * body.thing.radius:
                return index
        return -1

    def _carry(self, arm: Arm) -> None:
        if arm.held < 0:
            return
        body = self.bodies[arm.held]
        fx, fy = arm.finger_axis()
        body.x = arm.x + arm.hold_across * fy
        body.y = arm.y - arm.hold_across * fx
        body.z = arm.z + arm.hold_z
        body.yaw = arm.hold_yaw + math.atan2(fy, fx)
        body.vz = 0.0
        self._maybe_slip(arm, body)

    def _maybe_slip(self, arm: Arm, body: Body) -> None:
        support = self.support(arm.held, body.x, body.y, body.bottom)
        if body.bottom < support + 0.01:
            return
        self.hold_left = max(-1, self.hold_left - 1)
        forced = self.slip_pending or self.hold_left == 0
        self.slip_pending = False
        chance = self.slip_scale * slip_chance(arm, body.thing)
        if not forced and (chance <= 0.0 or self.rng.random() >= chance):
            return
        arm.held, arm.force = -1, 0.0
        body.x += float(self.rng.normal(0.0, 0.004))
        body.y += float(self.rng.normal(0.0, 0.004))

    # ------------------------------------------------------------------ the things

    def support(self, index: int, x: float, y: float, bottom: float) -> float:
        """Return the height of what would carry thing `index` at `x y`, at or below `bottom`."""
        inside = abs(x) <= TABLE_HALF[0] and abs(y) <= TABLE_HALF[1]
        height = TABLE_Z if inside and bottom > TABLE_Z - 0.01 else 0.0
        for other, body in enumerate(self.bodies):
            if other == index or body.top > bottom + 0.003 or body.top <= height:
                continue
            if self.held_by(other) < 0 and body.distance(x, y) <= carrying_radius(body.thing):
                height = body.top
        return height

    def _push(self) -> None:
        for arm in self.arms:
            if arm.z - TIP >= self._highest():
                continue
            for fx, fy in arm.fingers():
                self._shove(fx, fy, FINGER_RADIUS, arm.z - TIP, arm.held)
            if arm.held >= 0:
                load = self.bodies[arm.held]
                self._shove(load.x, load.y, load.thing.radius, load.bottom, arm.held)

    def _shove(self, x: float, y: float, radius: float, bottom: float, skip: int) -> None:
        """Push every loose thing out of the circle at `x y` that reaches down to `bottom`."""
        for index, body in enumerate(self.bodies):
            if index == skip or body.thing.fixed or bottom >= body.top - 0.001:
                continue
            overlap = body.thing.radius + radius - body.distance(x, y)
            if overlap <= 1e-9 or self.held_by(index) >= 0:
                continue
            displace(body, x, y, overlap)
            for other_index, other in enumerate(self.bodies):
                if other_index not in (index, skip) and self.held_by(other_index) < 0:
                    separate(body, other)

    def _fall(self) -> None:
        for index, body in enumerate(self.bodies):
            if body.thing.fixed or self.held_by(index) >= 0:
                continue
            support = self.support(index, body.x, body.y, body.bottom)
            if body.bottom <= support + 1e-9:
                body.vz = 0.0
                continue
            body.vz += GRAVITY * DT
            bottom = max(body.bottom - body.vz * DT, support)
            body.z = bottom + body.thing.half_height
            if bottom <= support:
                self._land(body)
            for other_index, other in enumerate(self.bodies):
                if other_index != index and not other.thing.fixed:
                    separate(other, body)

    def _land(self, body: Body) -> None:
        """A fall from more than about 5 cm does not end where it began."""
        if body.vz > 1.0:
            body.x += float(self.rng.normal(0.0, 0.004 * body.vz))
            body.y += float(self.rng.normal(0.0, 0.004 * body.vz))
        body.vz = 0.0


def slip_chance(arm: Arm, thing: Thing) -> float:
    """Return the chance per tick that `thing` slips out of the fingers of `arm`."""
    off = abs(arm.hold_across) / thing.radius
    weak = max(0.0, 0.75 - arm.force)
    slick = max(0.0, thing.slipperiness - 4.0) * 0.003
    return thing.slipperiness * (0.04 * off * off * off + 0.05 * weak) + slick


def carrying_radius(thing: Thing) -> float:
    """Return how far from its axis `thing` carries the centre of another."""
    return thing.radius * (0.9 if thing.fixed else 0.75)


def displace(body: Body, x: float, y: float, overlap: float) -> None:
    """Move `body` away from `x y` by `overlap` metres."""
    distance = body.distance(x, y)
    if distance < 1e-9:
        body.x += overlap
        return
    body.x += (body.x - x) / distance * overlap
    body.y += (body.y - y) / distance * overlap


def separate(first: Body, second: Body) -> None:
    """Move `second` out of `first` when they overlap at the same height."""
    if second.thing.fixed or first.bottom >= second.top - 1e-3:
        return
    if second.bottom >= first.top - 1e-3 or first.thing.fixed:
        return
    overlap = first.thing.radius + second.thing.radius - second.distance(first.x, first.y)
    if overlap > 1e-9:
        displace(second, first.x, first.y, overlap)


def turned(
    quat: tuple[float, float, float, float], rx: float, ry: float, rz: float
) -> tuple[float, float, float, float]:
    """Return `quat` (xyzw) turned by the axis-angle `rx ry rz`, in radians, of the world."""
    angle = math.sqrt(rx * rx + ry * ry + rz * rz)
    if angle < 1e-12:
        return quat
    s, aw = math.sin(angle / 2.0) / angle, math.cos(angle / 2.0)
    ax, ay, az = rx * s, ry * s, rz * s
    bx, by, bz, bw = quat
    x = aw * bx + ax * bw + ay * bz - az * by
    y = aw * by - ax * bz + ay * bw + az * bx
    z = aw * bz + ax * by - ay * bx + az * bw
    w = aw * bw - ax * bx - ay * by - az * bz
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return (x / norm, y / norm, z / norm, w / norm)
