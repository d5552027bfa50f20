"""What is looked at before a command is followed: the command, the reading, the joints."""

from __future__ import annotations

import hashlib
import math
from typing import Final

import numpy as np

from zetta.hw_drivers.arm_limits import GripperLimits, Limits
from zetta.hw_drivers.decisions import Command, CommandKind, Grip, Reading
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import SpecMismatch

CLOCK_SLACK: Final = 1e-3
"""Seconds that a reading may seem to come from the future."""
RANGE_SLACK: Final = 0.02
"""Radians that a measured joint may lie beyond its range before the arm is stopped."""
UNIT_TOLERANCE: Final = 1e-3
"""A quaternion may be so far from unit length before it counts as no rotation."""
POSE_SIZE: Final = 6


def checked_command(command: Command, kind: CommandKind, joints: int) -> Command:
    """Return a command with private finite numbers of the right length.

    Raises:
        SpecMismatch: it is none.
    """
    if not isinstance(command, Command) or command.kind != kind:
        given = command.kind if isinstance(command, Command) else type(command).__name__
        raise SpecMismatch(f"this arm takes {kind} commands, got {given!r:.40}")
    size = POSE_SIZE if kind == "target_pose" else joints
    try:
        values = read_only(command.values)
    except (TypeError, ValueError, OverflowError):
        raise SpecMismatch(f"a {kind} is {size} numbers, got no numbers") from None
    if values.shape != (size,):
        raise SpecMismatch(
            f"a {kind} is {size} numbers, got shape {values.shape}; nothing is padded"
        )
    if not np.isfinite(values).all():
        raise SpecMismatch(f"a {kind} is {size} finite numbers, got {values.tolist()}")
    return Command(kind, values, _checked_grip(command.grip))


def _checked_grip(grip: Grip | None) -> Grip | None:
    if grip is None:
        return None
    if not isinstance(grip, Grip):
        raise SpecMismatch(f"a grip is opening, speed and force, got {type(grip).__name__}")
    numbers = (grip.opening, grip.speed, grip.force)
    plain = all(isinstance(n, int | float | np.floating) for n in numbers)
    if not plain or not all(math.isfinite(n) for n in numbers):
        raise SpecMismatch(f"a grip is three finite numbers, got {numbers!r:.80}")
    if grip.speed <= 0.0 or grip.force <= 0.0:
        raise SpecMismatch(
            f"a grip has speed and force above 0, got {grip.speed:g} m/s and {grip.force:g} N"
        )
    return Grip(*(float(n) for n in numbers))


def confined_grip(grip: Grip | None, limits: GripperLimits) -> tuple[Grip | None, list[str]]:
    """Return a grip within limits, and what was lowered."""
    if grip is None:
        return None, []
    near = Grip(
        min(max(grip.opening, 0.0), limits.opening),
        min(grip.speed, limits.speed),
        min(grip.force, limits.force),
    )
    reasons = []
    if near.opening != grip.opening:
        reasons.append(f"the gripper opens 0 to {limits.opening:g} m, {grip.opening:g} was asked")
    if near.speed != grip.speed:
        reasons.append(f"gripper speed limit {limits.speed:g} m/s, {grip.speed:g} was asked")
    if near.force != grip.force:
        reasons.append(f"gripper force limit {limits.force:g} N, {grip.force:g} was asked")
    return near, reasons


def reading_fault(state: Reading, now: float, limits: Limits) -> str:
    """Say why a reading cannot be relied on, or nothing."""
    if not math.isfinite(state.t) or state.t > now + CLOCK_SLACK:
        return f"the reading is of {state.t:g} s and now is {now:g} s: not one clock"
    age = now - state.t
    if age > limits.timing.stale:
        return f"the reading is {1000 * age:.0f} ms old, at most {1000 * limits.timing.stale:.0f}"
    sizes = {"position": (state.ee_pos, 3), "orientation": (state.ee_quat, 4)}
    sizes["joints"] = (state.joint_pos, len(limits.joints))
    for name, (values, size) in sizes.items():
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (size,) or not np.isfinite(array).all():
            return f"the reading's {name} should be {size} finite numbers"
    if not abs(float(np.linalg.norm(state.ee_quat)) - 1.0) <= UNIT_TOLERANCE:
        return "the reading's orientation is no rotation: its length is not 1"
    return ""


def joint_trouble(
    joints: Array, t: float, before: tuple[float, Array] | None, limits: Limits
) -> str:
    """Say which measured joint is out of its range or too fast, or nothing."""
    out = np.maximum(limits.joint_low - joints, joints - limits.joint_high)
    worst = int(np.argmax(out))
    if out[worst] > RANGE_SLACK:
        return (
            f"{limits.joints[worst]} is {out[worst]:.3g} rad beyond its range; "
            "bring it back by hand, then clear"
        )
    if before is None or t <= before[0]:
        return ""
    # Stamps jitter: a short interval would make noise look like speed.
    interval = max(t - before[0], 0.5 * limits.timing.tick)
    excess = np.abs(joints - before[1]) / interval / limits.joint_speed
    worst = int(np.argmax(excess))
    if excess[worst] > 1.0:
        return f"{limits.joints[worst]} moves at {excess[worst]:.2g} times its published speed"
    return ""


def command_token(command: Command) -> str:
    """Return the name of a command for its approval: equal commands have equal names."""
    grip = command.grip
    numbers = [] if grip is None else [grip.opening, grip.speed, grip.force]
    digest = hashlib.sha256(command.kind.encode())
    digest.update(np.array([*command.values.tolist(), *numbers]).tobytes())
    return digest.hexdigest()[:16]
