"""What a model is told about the arms: named parts of proprioception, one after the other.

A part is a name of `PARTS`, or `joint_pos:J` with the number of joints, and may begin with the
index of an arm: `1.ee_pos` is the second arm's hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import ArmState, Array, Proprio
from zetta.runtime.errors import SpecMismatch, suggest

PARTS: Final[Mapping[str, tuple[int, Callable[[ArmState], Array]]]] = {
    "ee_pos": (3, lambda arm: arm.ee_pos),
    "ee_quat_xyzw": (4, lambda arm: arm.ee_quat),
    "ee_axis_angle": (3, lambda arm: Rotation.from_quat(np.asarray(arm.ee_quat)).as_rotvec()),
    "ee_rotation_6d": (6, lambda arm: _rotation_6d(arm)),
    "gripper_opening": (1, lambda arm: np.array([arm.gripper_opening])),
    "gripper_velocity": (1, lambda arm: np.array([arm.gripper_velocity])),
    "gripper_fingers": (2, lambda arm: np.array([0.5, -0.5]) * arm.gripper_opening),
}
"""Length and content of each part, SI units.

`ee_rotation_6d` is the first two columns of the rotation matrix, one after the other;
`gripper_fingers` are the two opposite finger positions that LIBERO reports.
"""
BASE: Final = "base"
"""Pose of a mobile base, `x y yaw`."""
JOINTS: Final = "joint_pos"


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    arm: int
    size: int


class ProprioParts:
    """The vector that a model takes, composed of named parts."""

    def __init__(self, names: Sequence[str]) -> None:
        """Read the names.

        Raises:
            SpecMismatch: one of them is unknown.
        """
        self._parts = [_part(name) for name in names]
        self.size = sum(part.size for part in self._parts)

    def __call__(self, proprio: Proprio) -> Array:
        """Return the vector. Shape (size,).

        Raises:
            SpecMismatch: this robot has no such arm, joints or base.
        """
        return np.concatenate([_values(part, proprio) for part in self._parts])


def _part(text: str) -> _Part:
    head, dot, tail = text.partition(".")
    arm, name = (head, tail) if dot else ("0", text)
    base, _, count = name.partition(":")
    known = (*PARTS, f"{JOINTS}:7", BASE)
    if not arm.isdecimal() or (count and base != JOINTS):
        raise SpecMismatch(f"the state has the part {text!r}; {suggest(name, known)}")
    if base == JOINTS and count.isdecimal() and int(count) > 0:
        return _Part(JOINTS, int(arm), int(count))
    if name == BASE:
        return _Part(BASE, 0, 3)
    if name not in PARTS:
        raise SpecMismatch(f"the state has the part {text!r}; {suggest(name, known)}")
    return _Part(name, int(arm), PARTS[name][0])


def _values(part: _Part, proprio: Proprio) -> Array:
    if part.name == BASE:
        if proprio.base is None:
            raise SpecMismatch("the policy is told the pose of a base, and this robot has none")
        return np.asarray(proprio.base)
    if part.arm >= len(proprio.arms):
        raise SpecMismatch(
            f"the policy is told of the arm {part.arm}, and this robot has {len(proprio.arms)}"
        )
    arm = proprio.arms[part.arm]
    if part.name != JOINTS:
        return np.asarray(PARTS[part.name][1](arm))
    if len(arm.joint_pos) != part.size:
        raise SpecMismatch(
            f"the policy is told of {part.size} joints, and this arm has {len(arm.joint_pos)}"
        )
    return np.asarray(arm.joint_pos)


def _rotation_6d(arm: ArmState) -> Array:
    return np.asarray(Rotation.from_quat(np.asarray(arm.ee_quat)).as_matrix()[:, :2].T.ravel())
