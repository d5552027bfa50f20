"""What a robot feels, as other people's vectors of numbers, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from zetta.runtime.core import ArmState, Array, Proprio, read_only
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.foreign.conventions import Convention, Part, Sense

_UNKNOWN: Final = float("nan")
Felt = dict[tuple[Sense, int], Array]
"""Numbers by what they mean and of which arm; NaN where nobody said."""


def axis_angle(quat: Array) -> Array:
    """Return the axis-angle vector of a quaternion `xyzw` as it is signed. Shape (3,).

    The angle reaches up to 2 pi, because q and -q are kept apart: robosuite's own formula does so,
    and policies were trained on its numbers. Near a half turn this is what keeps them continuous.

    >>> axis_angle(np.array([1.0, 0.0, 0.0, 0.0])).round(3).tolist()
    [3.142, 0.0, 0.0]
    """
    w = min(1.0, max(-1.0, float(quat[3])))
    length = math.sqrt(1.0 - w * w)
    if math.isclose(length, 0.0):
        return np.zeros(3)
    return np.asarray(quat[:3] * 2.0 * math.acos(w) / length, dtype=np.float64)


def quaternion(vector: Array) -> Array:
    """Undo `axis_angle`, the sign included. Shape (4,), `xyzw`."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.array([0.0, 0.0, 0.0, 1.0])
    return np.array([*(vector / angle * math.sin(angle / 2)), math.cos(angle / 2)])


def vector(proprio: Proprio, parts: tuple[Part, ...], convention: Convention) -> Array:
    """Return the numbers of a state vector.

    Raises:
        SpecMismatch: the robot has other arms or joints, or no mobile base where one is needed.
    """
    if len(proprio.arms) != convention.arms:
        raise SpecMismatch(
            f"the robot has {len(proprio.arms)} arms and the convention {convention.name!r} "
            f"describes {convention.arms}"
        )
    pieces = [_numbers(proprio, part, convention) for part in parts]
    return np.concatenate(pieces)


def proprio(t: float, felt: Felt, convention: Convention) -> Proprio:
    """Return what a robot feels from the numbers of a request.

    What the protocol does not carry is NaN; joints are then none, and the gripper's velocity is 0.
    """
    base = felt.get(("base_pos", 0))
    pose = None
    if base is not None:
        turn = felt.get(("base_quat", 0), np.array([0.0, 0.0, 0.0, 1.0]))
        pose = read_only([base[0], base[1], 2.0 * math.atan2(turn[2], turn[3])])
    arms = tuple(_arm(felt, k, convention, pose) for k in range(convention.arms))
    return Proprio(t, arms, pose)


def add(felt: Felt, part: Part, numbers: Array, convention: Convention) -> None:
    """Put the numbers of one part where `proprio` finds them."""
    whole = Part(part.sense, part.arm)
    known = felt.setdefault((part.sense, part.arm), np.full(convention.size_of(whole), _UNKNOWN))
    if part.index is None:
        known[:] = numbers
    else:
        known[part.index] = numbers[0]


def _numbers(proprio: Proprio, part: Part, convention: Convention) -> Array:
    arm = proprio.arms[part.arm]
    if part.sense in ("ee_pos_base", "ee_quat_base", "base_pos", "base_quat"):
        numbers = _of_base(proprio, arm, part.sense, convention.base_height_m)
    else:
        numbers = _SENSES[part.sense](arm, convention.stroke_m)
    whole = Part(part.sense, part.arm)
    if numbers.shape != (convention.size_of(whole),):
        raise SpecMismatch(
            f"the robot has {numbers.size} numbers of {part.sense} and the convention "
            f"{convention.name!r} wants {convention.size_of(whole)}"
        )
    return numbers if part.index is None else numbers[part.index : part.index + 1]


def _share(arm: ArmState, stroke: float) -> float:
    return min(1.0, max(0.0, arm.gripper_opening / stroke))


_SENSES: Final[Mapping[Sense, Callable[[ArmState, float], Array]]] = {
    "ee_pos": lambda arm, _: np.array(arm.ee_pos),
    "ee_axis_angle": lambda arm, _: axis_angle(np.asarray(arm.ee_quat)),
    "joint_pos": lambda arm, _: np.array(arm.joint_pos),
    # We know the distance of the fingers, so both are put at half of it.
    "gripper_fingers": lambda arm, _: np.array([0.5, -0.5]) * arm.gripper_opening,
    "gripper_closed": lambda arm, stroke: np.array([1.0 - _share(arm, stroke)]),
    "gripper_opened": lambda arm, stroke: np.array([_share(arm, stroke)]),
}


def _of_base(proprio: Proprio, arm: ArmState, sense: Sense, height: float) -> Array:
    if proprio.base is None:
        raise SpecMismatch(f"the convention wants {sense}, and the robot has no mobile base")
    x, y, yaw = (float(n) for n in proprio.base)
    turn = np.array([0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)])
    if sense == "base_pos":
        return np.array([x, y, height])
    if sense == "base_quat":
        return turn
    if sense == "ee_pos_base":
        return _about_z(np.asarray(arm.ee_pos) - [x, y, height], -yaw)
    return product(turn * [-1.0, -1.0, -1.0, 1.0], np.asarray(arm.ee_quat))


def _arm(felt: Felt, k: int, convention: Convention, base: Array | None) -> ArmState:
    def get(sense: Sense) -> Array:
        size = convention.size_of(Part(sense, k))
        return felt.get((sense, k), np.full(size, _UNKNOWN))

    place, turn = get("ee_pos"), quaternion(get("ee_axis_angle"))
    if base is not None and ("ee_pos_base", k) in felt:
        x, y, yaw = (float(n) for n in base)
        origin = np.array([x, y, convention.base_height_m])
        place = origin + _about_z(get("ee_pos_base"), yaw)
        about = np.array([0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)])
        turn = product(about, get("ee_quat_base"))
    joints = felt.get(("joint_pos", k), np.zeros(0))
    return ArmState(
        read_only(place), read_only(turn), read_only(joints), _opening(felt, k, convention)
    )


def _opening(felt: Felt, k: int, convention: Convention) -> float:
    if ("gripper_fingers", k) in felt:
        left, right = felt["gripper_fingers", k]
        return float(left - right)
    if ("gripper_opened", k) in felt:
        return float(felt["gripper_opened", k][0]) * convention.stroke_m
    if ("gripper_closed", k) in felt:
        return (1.0 - float(felt["gripper_closed", k][0])) * convention.stroke_m
    return _UNKNOWN


def _about_z(v: Array, yaw: float) -> Array:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])


def product(a: Array, b: Array) -> Array:
    """Return the product of two quaternions `xyzw`: first `b`, then `a`. Shape (4,)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )
