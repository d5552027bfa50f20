"""The chain of a Panda made from its published Denavit-Hartenberg table, and a five-joint arm."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from zetta.hw_drivers.frames import Pose, rotation
from zetta.hw_drivers.kinematic_chain import ChainSetup
from zetta.runtime.core import Array

# a, d, alpha of the modified convention (Craig), and the limits of the joint; from the FCI pages.
PANDA = (
    (0.0, 0.333, 0.0, -2.8973, 2.8973),
    (0.0, 0.0, -math.pi / 2, -1.7628, 1.7628),
    (0.0, 0.316, math.pi / 2, -2.8973, 2.8973),
    (0.0825, 0.0, math.pi / 2, -3.0718, -0.0698),
    (-0.0825, 0.384, -math.pi / 2, -2.8973, 2.8973),
    (0.0, 0.0, math.pi / 2, -0.0175, 3.7525),
    (0.088, 0.0, math.pi / 2, -2.8973, 2.8973),
)
FLANGE_M = 0.107
HOME = np.array((0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.785))
PANDA_SETUP = ChainSetup("panda.xml", "grip", tuple(f"joint{k}" for k in range(1, 8)))


def write_panda(folder: Path, base_pos: str = "0 0 0", base_euler: str = "0 0 0") -> Path:
    """Write the chain as MJCF, its base where it is asked for."""
    text = f'<site name="grip" pos="0 0 {FLANGE_M}"/>'
    for k, (a, d, alpha, low, high) in reversed(list(enumerate(PANDA, 1))):
        place = f"{a!r} {-math.sin(alpha) * d!r} {math.cos(alpha) * d!r}"
        text = (
            f'<body name="link{k}" pos="{place}" euler="{alpha!r} 0 0">{_MASS}'
            f'<joint name="joint{k}" axis="0 0 1" range="{low} {high}"/>{text}</body>'
        )
    path = folder / "panda.xml"
    path.write_text(
        f'<mujoco><compiler angle="radian" autolimits="true"/><worldbody>'
        f'<body name="base" pos="{base_pos}" euler="{base_euler}">{text}</body>'
        "</worldbody></mujoco>"
    )
    return path


def write_five(folder: Path) -> Path:
    """Write an arm of the order of an SO-101: pan, three joints in a plane, roll."""
    path = folder / "five.xml"
    text = '<joint name="roll" axis="1 0 0" range="-2.7 2.7"/><site name="grip" pos="0.1 0 0"/>'
    for name, axis, at in (
        ("roll", "", "0.06 0 0"),
        ("wrist", "0 1 0", "0.135 0 0"),
        ("elbow", "0 1 0", "0.03 0 0.113"),
        ("lift", "0 1 0", "0.03 0 0.055"),
        ("pan", "0 0 1", "0 0 0.06"),
    ):
        joint = f'<joint name="{name}" axis="{axis}" range="-1.9 1.9"/>' if axis else ""
        text = f'<body name="{name}" pos="{at}">{_MASS}{joint}{text}</body>'
    path.write_text(
        '<mujoco><compiler angle="radian" autolimits="true"/>'
        f"<worldbody>{text}</worldbody></mujoco>"
    )
    return path


def panda_pose(q: Array) -> Pose:
    """Return the flange by the table itself: independent of MuJoCo."""
    at = Pose(np.zeros(3), np.array((0.0, 0.0, 0.0, 1.0)))
    for (a, d, alpha, _, _), angle in zip(PANDA, q, strict=True):
        lean = Pose(np.array((a, 0.0, 0.0)), rotation(np.array((alpha, 0.0, 0.0))))
        turn = Pose(np.array((0.0, 0.0, d)), rotation(np.array((0.0, 0.0, float(angle)))))
        at = at @ lean @ turn
    return at @ Pose(np.array((0.0, 0.0, FLANGE_M)), np.array((0.0, 0.0, 0.0, 1.0)))


_MASS = '<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
