"""A kinematic copy of the expert's way to a grasp: labels without simulation.

The arm's answer to a command, `v' = 0.66 v + 0.0041 a` metres per tick for an action `a` in
[-1, 1], was fitted on demonstrations; turning answers in the same way, 0.041 rad per unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Array
from zetta.runtime.policies.tiny.data import HORIZON, Future
from zetta.runtime.policies.tiny.inputs import Float32
from zetta.sims.libero.expert_carrying import HOVER
from zetta.sims.libero.expert_motions import FUNNEL_RADIUS, delta_action, funnel_height

CARRY_OVER: Final = 0.66
METRES_PER_TICK: Final = 0.0041
RADIANS_PER_TICK: Final = 0.041
FAR: Final = 0.06
NEAR_GRASP: Final = 0.03
AT_GRASP: Final = 0.008


@dataclass(frozen=True, slots=True)
class Reach:
    """The way to one grasp from the present hand pose."""

    labels: Future
    phase: str


def reach(ee_pos: Array, ee_rot: Array, point: Array, facing: Array) -> Reach:
    """Label what the expert would do next to take hold at `point`.

    Args:
        ee_pos: present grip site. Shape (3,).
        ee_rot: its orientation. Shape (3, 3).
        point: grasp point. Shape (3,).
        facing: orientation at the grasp. Shape (3, 3).
    """
    start = np.asarray(ee_pos, np.float64)
    hand, turned = start.copy(), np.asarray(ee_rot, np.float64)
    speed, spin = np.zeros(3), np.zeros(3)
    path, rot = np.zeros((HORIZON, 3)), np.zeros((HORIZON, 3))
    close = np.zeros(HORIZON)
    closed = False
    phase = _phase(hand, point)
    for k in range(HORIZON):
        error = float(np.linalg.norm((hand - point)[:2]))
        closed = closed or (error < FUNNEL_RADIUS and abs(hand[2] - point[2]) < AT_GRASP)
        close[k] = closed
        action = delta_action(hand, turned, _target(hand, point, error, closed), facing, 0.0)
        speed = CARRY_OVER * speed + METRES_PER_TICK * action[:3]
        spin = CARRY_OVER * spin + RADIANS_PER_TICK * action[3:6]
        hand = hand + speed
        turned = Rotation.from_rotvec(spin).as_matrix() @ turned
        path[k] = hand - start
        rot[k] = Rotation.from_matrix(turned @ np.asarray(ee_rot, np.float64).T).as_rotvec()
    labels = Future(_f32(path), _f32(rot), _f32(close), np.ones(HORIZON, np.float32))
    return Reach(labels, phase)


def _target(hand: Array, point: Array, error: float, closed: bool) -> Array:
    if closed:
        return point
    target = np.array(point, dtype=np.float64)
    target[2] += funnel_height(error, FUNNEL_RADIUS, HOVER)
    if error > FAR and hand[2] < target[2] - 0.04:
        target[:2] = hand[:2]
    return target


def _phase(hand: Array, point: Array) -> str:
    error = float(np.linalg.norm((hand - point)[:2]))
    if error < FUNNEL_RADIUS and abs(hand[2] - point[2]) < AT_GRASP:
        return "close"
    return "descend" if error < NEAR_GRASP else "approach"


def _f32(array: Array) -> Float32:
    return np.asarray(array, np.float32)
