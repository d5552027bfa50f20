"""A seven-joint arm as an environment tells it, without any simulator's files."""

from __future__ import annotations

import math

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import ArmState, Array

_LINKS = (
    ("0 0 0.333", "1 0 0 0", "-2.8973 2.8973"),
    ("0 0 0", "0.7071068 -0.7071068 0 0", "-1.7628 1.7628"),
    ("0 -0.316 0", "0.7071068 0.7071068 0 0", "-2.8973 2.8973"),
    ("0.0825 0 0", "0.7071068 0.7071068 0 0", "-3.0718 -0.0698"),
    ("-0.0825 0.384 0", "0.7071068 -0.7071068 0 0", "-2.8973 2.8973"),
    ("0 0 0", "0.7071068 0.7071068 0 0", "-0.0175 3.7525"),
    ("0.088 0 0", "0.7071068 0.7071068 0 0", "-2.8973 2.8973"),
)
"""Offset, turn and range of each joint (Franka Emika documentation)."""
HOME = np.array([0.0, -0.161, 0.0, -2.445, 0.0, 2.227, math.pi / 4.0])
NAMES = tuple(f"joint{n}" for n in range(1, 8))


def panda(base: tuple[float, float, float] = (-0.6, 0.0, 0.0)) -> ArmModel:
    """Return the chain of a Franka Panda that stands at `base`."""
    hand = '<site name="grip" pos="0 0 0.204" quat="0.9238795 0 0 -0.3826834"/>'
    for name, (pos, quat, bounds) in zip(NAMES[::-1], _LINKS[::-1], strict=True):
        hand = (
            f'<body pos="{pos}" quat="{quat}">'
            '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
            f'<joint name="{name}" axis="0 0 1" range="{bounds}"/>{hand}</body>'
        )
    ranges = np.array([[float(n) for n in bounds.split()] for _, _, bounds in _LINKS])
    pose = np.eye(4)
    pose[:3, 3] = base
    compiler = '<compiler angle="radian" autolimits="true"/>'
    return ArmModel(
        f"<mujoco>{compiler}<worldbody>{hand}</worldbody></mujoco>",
        NAMES,
        "grip",
        ranges[:, 0],
        ranges[:, 1],
        pose,
    )


def state_at(pose: tuple[Array, Array], joints: Array, opening: float = 0.08) -> ArmState:
    """Return what the arm's sensors report at a pose of the grip site."""
    from scipy.spatial.transform import Rotation

    position, rotation = pose
    return ArmState(position, Rotation.from_matrix(rotation).as_quat(), joints, opening)
