"""The signals of one arm: where it is, how it moves, what it was told, what it has hold of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from zetta.runtime.core import ActionSpec, ArmState
from zetta.runtime.signals_gripper import NAN, GripperLimits, GripSignals
from zetta.runtime.tracking import ARM_SIZE, Quat, quat_of_rotvec, rotation_between

STALL_ASKED = 0.02
"""A stalled arm is asked for more than this, m/s, ..."""
STALL_MADE = 0.005
"""... and makes less than this, m/s."""
WANDER_FLOOR = 0.005
"""Smallest displacement that a path is compared with, metres."""


def gripper_column(spec: ActionSpec, arm: int) -> int | None:
    """Return where the gripper of an arm stands in an action, or None when it has none."""
    columns = [i for i, name in enumerate(spec.names) if name.endswith("gripper")]
    return columns[arm] if arm < len(columns) else None


def pose_column(spec: ActionSpec, arm: int) -> int | None:
    """Return where the pose of an arm begins in an action, or None when actions are no poses."""
    first = arm * ARM_SIZE
    poses = spec.kind in ("delta_pose", "target_pose") and spec.arms_size % ARM_SIZE == 0
    return first if poses and first < spec.arms_size else None


def closes(spec: ActionSpec, command: float) -> bool:
    """Say whether a gripper command lies beyond halfway from open to close."""
    middle = (spec.gripper_open + spec.gripper_close) / 2.0
    return command > middle if spec.gripper_close > spec.gripper_open else command < middle


@dataclass(slots=True)
class ArmMemory:
    """What is remembered from tick to tick."""

    t: float = NAN
    place: tuple[float, ...] = (NAN, NAN, NAN)
    quat: tuple[float, ...] = (NAN, NAN, NAN, NAN)
    joints: list[float] = field(default_factory=list)
    stalled_since: float = NAN
    path: float = 0.0
    """Length of the way since the episode began."""
    trail: list[tuple[float, ...]] = field(default_factory=list)
    """`path` and the place at each of the last ticks, oldest first, one second of them."""


class ArmSignals:
    """Computes the signals `ARM` of the registry for one arm, in that order."""

    def __init__(
        self, spec: ActionSpec, arm: int, control_hz: float, limits: GripperLimits | None = None
    ) -> None:
        self._spec = spec
        self._pose, self._gripper = pose_column(spec, arm), gripper_column(spec, arm)
        self._tick = 1.0 / control_hz
        self._second = max(round(control_hz), 1)
        self._world = spec.frame == "world"
        self._scale: tuple[float, ...] = (1.0,) * 6
        if self._pose is not None and spec.kind == "delta_pose":
            self._scale = tuple(spec.scale[self._pose : self._pose + 6])
        self.memory = ArmMemory()
        self.grip = GripSignals(limits, control_hz)

    def begin(self) -> None:
        """Forget the last episode."""
        self.memory = ArmMemory()
        self.grip.begin()

    def update(self, t: float, arm: ArmState, action: list[float] | None) -> tuple[float, ...]:
        """Return the signals of this tick.

        Args:
            t: time now.
            arm: as sensed now.
            action: the last command, all arms; None before the first.
        """
        m = self.memory
        x, y, z = place = tuple(arm.ee_pos.tolist())
        quat, joints = tuple(arm.ee_quat.tolist()), arm.joint_pos.tolist()
        dt = t - m.t
        if dt <= 0.0:  # a clock that stands still
            dt = self._tick
        dx, dy, dz = x - m.place[0], y - m.place[1], z - m.place[2]
        moved = math.sqrt(dx * dx + dy * dy + dz * dz)
        asked, turn, residual = self._asked(action, (dx, dy, dz))
        command = NAN
        if action is not None and self._gripper is not None:
            command = 1.0 if closes(self._spec, action[self._gripper]) else 0.0
        grip = self.grip.update(t, t - dt, arm.gripper_opening, z, command)
        stalled = self._stalled(t, dt, asked, moved)
        path, away = self._travelled(place, moved)
        turned = _angle(m.quat, quat)
        steps = [abs(now - old) for now, old in zip(joints, m.joints, strict=False)]
        m.t, m.place, m.quat, m.joints = t, place, quat, joints
        return (
            x, y, z, moved / dt, dz / dt, turned / dt, _tilt(quat), arm.gripper_opening, grip[0],
            max(steps) / dt if steps else NAN, asked / dt, turn / dt, command, residual / dt,
            stalled, path, away, path / max(away, WANDER_FLOOR), *grip[1:],
        )  # fmt: skip

    def _asked(
        self, action: list[float] | None, moved: tuple[float, float, float]
    ) -> tuple[float, float, float]:
        """Return the translation and turn asked for, and how far the translation was missed."""
        first = self._pose
        if action is None or first is None:
            return NAN, NAN, NAN
        row = [n * s for n, s in zip(action[first : first + 6], self._scale, strict=True)]
        ax, ay, az, rx, ry, rz = row
        if self._spec.kind == "target_pose":
            place, quat = self.memory.place, self.memory.quat
            ax, ay, az = ax - place[0], ay - place[1], az - place[2]
            turn = _angle(quat, quat_of_rotvec((rx, ry, rz)))
        else:
            turn = math.sqrt(rx * rx + ry * ry + rz * rz)
        ex, ey, ez = ax - moved[0], ay - moved[1], az - moved[2]
        missed = math.sqrt(ex * ex + ey * ey + ez * ez) if self._world else NAN
        return math.sqrt(ax * ax + ay * ay + az * az), turn, missed

    def _stalled(self, t: float, dt: float, asked: float, moved: float) -> float:
        m = self.memory
        # NaN compares false: what is unknown is no stall.
        if not (asked > STALL_ASKED * dt and moved < STALL_MADE * dt):
            m.stalled_since = NAN
            return 0.0
        if math.isnan(m.stalled_since):
            m.stalled_since = t - dt
        return t - m.stalled_since

    def _travelled(self, place: tuple[float, ...], moved: float) -> tuple[float, float]:
        """Return the way and the displacement of the last second."""
        m = self.memory
        if m.trail:
            m.path += moved
        m.trail.append((m.path, *place))
        if len(m.trail) > self._second + 1:
            del m.trail[0]
        path, x, y, z = m.trail[0]
        return m.path - path, math.dist((x, y, z), place)


def _angle(start: tuple[float, ...], end: Quat | tuple[float, ...]) -> float:
    """Return the angle between two orientations (xyzw), radians; NaN from NaN."""
    ax, ay, az, aw = start
    if ax != ax:
        return NAN
    bx, by, bz, bw = end
    x, y, z = rotation_between((ax, ay, az, aw), (bx, by, bz, bw))
    return math.sqrt(x * x + y * y + z * z)


def _tilt(quat: tuple[float, ...]) -> float:
    """Return the angle between the hand's z axis and straight down, radians."""
    x, y, z, w = quat
    across = 2.0 * math.hypot(x * z + y * w, y * z - x * w)
    return math.atan2(across, 2.0 * (x * x + y * y) - (x * x + y * y + z * z + w * w))
