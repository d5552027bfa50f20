"""Rows for a client that executes them blindly, from a policy whose rows need to be tracked.

A `target_pose` says where the hand should be, and is tracked from where it is, at every tick. A
foreign client takes displacements and sends no proprioception between two questions. So the hand
is followed in thought: at each tick it covers a share of what it was commanded, which the
convention declares.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zetta.runtime.core import ActionSpec, ArmState, Array, Proprio, read_only
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.states import product
from zetta.runtime.tracking import ARM_SIZE, converter, quat_of_rotvec


class Ahead:
    """Turns the chunks of one policy into rows of one convention.

    Raises:
        SpecMismatch: the two cannot be converted into each other.
    """

    def __init__(self, action: ActionSpec, convention: Convention) -> None:
        self._convert = converter(action, convention.action)
        self._tracked = action.kind == "target_pose" != convention.action.kind
        self._scale = np.array(convention.action.scale) * convention.response

    def rows(self, actions: Array, proprio: Proprio) -> Array:
        """Return the rows of the convention. Shape (H, A).

        Args:
            actions: the policy's rows. Shape (H, A).
            proprio: what was sensed when it was asked.
        """
        made = []
        for row in np.asarray(actions, dtype=np.float64):
            made.append(self._convert(row, proprio))
            if self._tracked:
                proprio = self._moved(proprio, made[-1])
        return np.stack(made)

    def _moved(self, proprio: Proprio, command: Array) -> Proprio:
        size = ARM_SIZE * len(proprio.arms)
        moves = (command * self._scale)[:size].reshape(-1, ARM_SIZE)
        arms = zip(proprio.arms, moves, strict=True)
        return replace(proprio, arms=tuple(_moved_arm(arm, move) for arm, move in arms))


def _moved_arm(arm: ArmState, move: Array) -> ArmState:
    x, y, z = move[3:6].tolist()
    turn = np.array(quat_of_rotvec((x, y, z)))
    return replace(
        arm,
        ee_pos=read_only(arm.ee_pos + move[:3]),
        ee_quat=read_only(product(turn, np.asarray(arm.ee_quat))),
    )
