"""Operations on articulated parts: drawers, knobs and doors.

Names used throughout: `out` is the direction in which a drawer opens, `axis` the hand's pointing
direction, `face` runs along the drawer's front.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Array
from zetta.sims.libero.expert_motions import (
    CLOSE,
    DOWN,
    FUNNEL_RADIUS,
    OPEN,
    UP,
    Arm,
    Progress,
    Steps,
    framed,
    funnel_height,
    nearer_sign,
    upright,
)
from zetta.sims.libero.world import Joint

OPEN_TILT = np.deg2rad(70.0)
"""Tilt of the hand from straight down when it pinches a drawer's bar."""
PUSH_TILT = np.deg2rad(45.0)
DRAWER_OPEN = -0.15
"""Slide position that counts as open with room to spare (the predicate asks for -0.14)."""
DRAWER_SHUT = 0.003
"""The predicate asks for more than zero."""
DOOR_SHUT = -0.003
"""Hinge position of a shut microwave; the predicate asks for more than -0.005."""
BAR_WIDTH = 0.008
"""An opening below this means that the fingers have slipped off a bar."""
TRIES = 3


def turned(rotation: Array, axis: Array, angle: float) -> Array:
    """Return `rotation` turned about a world axis."""
    return np.asarray(Rotation.from_rotvec(angle * axis).as_matrix() @ rotation)


class Drawer:
    """One drawer, handled by the bar on its front."""

    def __init__(self, arm: Arm, joint: str) -> None:
        self.arm = arm
        self.world = arm.world
        self.name = joint
        out = self.out
        self._bar = max(
            self.world.geoms(self._joint().body), key=lambda g: self.world.geom_center(g) @ out
        )

    @property
    def out(self) -> Array:
        """Direction in which the drawer opens. Shape (3,)."""
        return -self._joint().axis

    @property
    def position(self) -> float:
        """Slide position: about 0 when shut, -0.16 when wide open."""
        return self._joint().position

    def open(self, enough: float = DRAWER_OPEN) -> Steps:
        """Pinch the bar and pull until the slide is past `enough`."""
        for _ in range(TRIES):
            if self.position < enough:
                return True
            rotation = self._pinching()
            if not (yield from self.arm.reach(self._pinch_point, self._pinching, OPEN)):
                yield from self.arm.back_off(-0.08 * rotation[:, 2], rotation)
                continue
            if (yield from self.arm.squeeze(self._pinch_point, rotation)):
                yield from self._pull(rotation, enough)
            yield from self.arm.release(rotation, wide=0.05)
            yield from self.arm.back_off(-0.10 * rotation[:, 2] + 0.03 * UP, rotation)
        return self.position < enough

    def shut(self) -> Steps:
        """Push the bar with closed fingers until the slide is past zero."""
        progress = Progress()
        rotation = self._pushing()
        while self.position < DRAWER_SHUT:
            rotation = self._pushing()
            target, pushing = self._push_target(rotation)
            self.arm.intent.phase = "push" if pushing else "approach"
            self.arm.intent.focus = self._bar_center()
            distance = float(np.linalg.norm(target - self.world.ee_pos))
            if progress.stalled(abs(self.position) if pushing else 1.0 + distance, 60):
                return False
            yield self.arm.toward(target, rotation, CLOSE)
        yield from self.arm.back_off(0.06 * self.out, rotation, CLOSE)
        return True

    def _pull(self, rotation: Array, enough: float) -> Steps:
        self.arm.intent.phase = "pull"
        progress = Progress()
        while self.position > enough:
            point = self._pinch_point()
            self.arm.intent.focus = point
            slipped = self.world.opening < BAR_WIDTH
            if slipped or np.linalg.norm(self.world.ee_pos - point) > 0.035:
                return False
            if progress.stalled(self.position + 1.0, 15):
                return False
            yield self.arm.toward(point + 0.03 * self.out, rotation, CLOSE)
        return True

    def _push_target(self, rotation: Array) -> tuple[Array, bool]:
        """Return where to go, and whether that is the push itself."""
        bar, out, face = self._bar_center(), self.out, rotation[:, 0]
        offset = self.world.ee_pos - bar
        ahead, aside, above = float(offset @ out), float(offset @ face), float(offset[2])
        ready = abs(aside) < 0.025 and abs(above) < 0.02 and 0.0 < ahead < 0.09
        if ready and self.arm.turn_error(rotation) < 0.3:
            return bar + out * (ahead - 0.04), True
        error = float(np.hypot(aside, ahead - 0.05))
        height = funnel_height(error, FUNNEL_RADIUS, 0.12)
        return bar + 0.05 * out + UP * height, False

    def _joint(self) -> Joint:
        return self.world.joint(self.name)

    def _bar_center(self) -> Array:
        return self.world.geom_center(self._bar)

    def _pinch_point(self) -> Array:
        return self._bar_center() + 0.004 * self._pinching()[:, 2]

    def _pinching(self) -> Array:
        """Return the tilted orientation, one finger above and one below the bar."""
        out = self.out
        axis = -out * np.sin(OPEN_TILT) + DOWN * np.cos(OPEN_TILT)
        travel = out * np.cos(OPEN_TILT) - UP * np.sin(OPEN_TILT)
        return framed(nearer_sign(travel, self.world.ee_rot), axis)

    def _pushing(self) -> Array:
        """Return the tilted orientation with the hand's long side along the front."""
        out = self.out
        axis = -out * np.sin(PUSH_TILT) + DOWN * np.cos(PUSH_TILT)
        return framed(nearer_sign(np.cross(UP, out), self.world.ee_rot), axis)


class Knob:
    """The knob of a stove: a ridge on a disc that turns about the vertical."""

    ABOVE_PIVOT = 0.042
    """Height of the grip site above the joint's anchor while pinching the ridge."""
    LEAD = 0.25
    """How far the hand's turn leads the knob's, radians."""
    ON, OFF = 0.6, -0.001

    def __init__(self, arm: Arm, joint: str) -> None:
        self.arm = arm
        self.world = arm.world
        self.name = joint

    @property
    def position(self) -> float:
        """Angle of the knob in radians; the predicate `turnon` asks for 0.5."""
        return self.world.joint(self.name).position

    def turn(self, on: bool) -> Steps:
        """Pinch the ridge and twist it until the stove is on or off."""
        for _ in range(TRIES):
            if self._there(on):
                return True
            if (yield from self.arm.reach(self._point, self._pinching, OPEN, 0.10, 0.010, 0.06)):
                yield from self.arm.squeeze(self._point, self._pinching())
                yield from self._twist(on)
            rotation = self.world.ee_rot
            yield from self.arm.release(rotation, wide=0.05)
            yield from self.arm.back_off(0.12 * UP, rotation)
        return self._there(on)

    def _there(self, on: bool) -> bool:
        return self.position > self.ON if on else self.position < self.OFF

    def _twist(self, on: bool) -> Steps:
        self.arm.intent.phase = "twist"
        progress = Progress()
        start, held = self.position, self._pinching()
        while not self._there(on):
            angle = self.position - start + (self.LEAD if on else -self.LEAD)
            if progress.stalled(-self.position if on else self.position, 20):
                return False
            self.arm.intent.focus = self._point()
            yield self.arm.toward(self._point(), turned(held, UP, angle), CLOSE)
        return True

    def _point(self) -> Array:
        return self.world.joint(self.name).anchor + self.ABOVE_PIVOT * UP

    def _pinching(self) -> Array:
        """Return the downward orientation whose fingers close across the ridge."""
        joint = self.world.joint(self.name)
        centers = [self.world.geom_center(g) for g in self.world.geoms(joint.body)]
        raised = [c - joint.anchor for c in centers if c[2] > joint.anchor[2] + 0.015]
        along = max(raised, key=lambda v: float(np.linalg.norm(v[:2]))) * [1.0, 1.0, 0.0]
        travel = np.cross(UP, along / np.linalg.norm(along))
        return framed(nearer_sign(travel, self.world.ee_rot), DOWN)


class Door:
    """The door of a microwave, pushed shut from outside with closed fingers."""

    RADIUS = 0.17
    """Where to push, metres from the hinge."""
    ABOVE_CENTER = 0.035
    """Height of the grip site over the panel's middle; the hand stays above the door's top."""

    def __init__(self, arm: Arm, joint: str) -> None:
        self.arm = arm
        self.world = arm.world
        self.name = joint
        boxes = self.world.geoms(self.world.joint(joint).body)
        self._panel = max(boxes, key=lambda g: float(np.prod(self.world.geom_size(g))))

    @property
    def position(self) -> float:
        """Hinge angle: 0 when shut, negative when open."""
        return self.world.joint(self.name).position

    def shut(self) -> Steps:
        """Push until the hinge is past its closed mark."""
        progress = Progress()
        rotation = upright(self.world.ee_rot)
        while self.position < DOOR_SHUT:
            rotation = upright(self.world.ee_rot)
            target, pushing = self._push_target()
            self.arm.intent.phase = "push" if pushing else "approach"
            self.arm.intent.focus = self._at(0.0)
            distance = float(np.linalg.norm(target - self.world.ee_pos))
            if progress.stalled(-self.position if pushing else 4.0 + distance, 60):
                return False
            yield self.arm.toward(target, rotation, CLOSE)
        yield from self.arm.back_off(0.06 * self._outward(), rotation, CLOSE)
        return True

    def _push_target(self) -> tuple[Array, bool]:
        offset = self.world.ee_pos - self._at(0.0)
        outside = float(offset @ self._outward())
        aside = float(offset @ self._along())
        low = abs(float(offset[2])) < 0.025
        if low and abs(aside) < 0.05 and -0.06 < outside < 0.16:
            return self._at(-0.035), True
        start = self._at(0.12)
        error = float(np.linalg.norm((self.world.ee_pos - start)[:2]))
        height = 0.11 if error > 0.05 else funnel_height(error, 0.02, 0.11)
        target = start + UP * height
        if error > 0.06 and self.world.ee_pos[2] < target[2] - 0.03:
            target[:2] = self.world.ee_pos[:2]
        return target, False

    def _along(self) -> Array:
        """Return the horizontal direction from the hinge along the panel."""
        along = (self.world.geom_center(self._panel) - self.world.joint(self.name).anchor) * [
            1,
            1,
            0,
        ]
        return np.asarray(along / np.linalg.norm(along))

    def _outward(self) -> Array:
        """Return the panel's outer normal: shutting moves against it."""
        return np.cross(self._along(), UP)

    def _at(self, outside: float) -> Array:
        """Return the point to push at, shifted outward, at the height to push."""
        anchor = self.world.joint(self.name).anchor
        point = anchor + self._along() * self.RADIUS + self._outward() * outside
        point[2] = self.world.geom_center(self._panel)[2] + self.ABOVE_CENTER
        return np.asarray(point)
