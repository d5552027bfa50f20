"""Standing still: what a robot is commanded while whoever drives has no action yet."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zetta.runtime.core import Action, ActionSpec, ArmState, Array, Proprio
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.tracking import ARM_SIZE, converter, rotvec_of_quat


class Holder:
    """Keeps a robot where it was when it began to hold, grippers as they were last commanded.

    The place is remembered: an arm that is told to stay where it is sinks a little with every tick.
    """

    def __init__(self, spec: ActionSpec) -> None:
        """Bind to an action convention."""
        self._spec = spec
        self._low, self._high = np.array(spec.low), np.array(spec.high)
        self._held: Array | None = None

    def action(self, proprio: Proprio, last: Action) -> Action:
        """Return the action that keeps the robot where it is; `last` is what it was told before.

        Raises:
            SpecMismatch: nobody knows how to stand still in this convention.
        """
        if self._held is None:
            self._held = self._place(proprio, last)
        return np.asarray(np.clip(self._row(proprio), self._low, self._high))

    def release(self) -> None:
        """Forget the place: somebody moves the robot."""
        self._held = None

    def _place(self, proprio: Proprio, last: Action) -> Array:
        """Return where the robot is, as a row of poses or joints. Shape (A,)."""
        spec = self._spec
        if spec.kind == "joint_velocity":
            still = np.concatenate([np.zeros(spec.arms_size), spec.rest])
            return np.where(["gripper" in name for name in spec.names], last, still)
        grippers = [float(last[i]) for i, name in enumerate(spec.names) if "gripper" in name]
        arms = ARM_SIZE * len(proprio.arms)
        if spec.kind in ("delta_pose", "target_pose") and spec.arms_size == arms:
            parts = [_pose(arm) for arm in proprio.arms]
        else:
            parts = [arm.joint_pos for arm in proprio.arms] if spec.kind == "joint_position" else []
        if len(grippers) != len(parts) or sum(len(p) + 1 for p in parts) != spec.arms_size:
            raise SpecMismatch(
                f"nobody knows how to stand still in {spec.kind} ({', '.join(spec.names)}), and "
                "whoever drives is late; use a faster policy, or actions that are poses or joints"
            )
        rows = [[*part, gripper] for part, gripper in zip(parts, grippers, strict=True)]
        return np.concatenate([*rows, spec.rest])

    def _row(self, proprio: Proprio) -> Action:
        assert self._held is not None  # action noted the place
        if self._spec.kind != "delta_pose":
            return self._held
        size = self._spec.size
        poses = replace(
            self._spec, kind="target_pose", low=(-math.inf,) * size, high=(math.inf,) * size
        )
        return converter(poses, self._spec)(self._held, proprio)


def _pose(arm: ArmState) -> Array:
    """Return position and axis-angle of the hand. Shape (6,)."""
    x, y, z, w = arm.ee_quat.tolist()
    return np.array([*arm.ee_pos, *rotvec_of_quat((x, y, z, w))])
