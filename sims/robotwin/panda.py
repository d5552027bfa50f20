"""Our own two-arm robot for RoboTwin: two Pandas side by side, which need no download.

The chain, the limits and the masses are Franka's published ones; shapes are read from the package
`mani_skill`, which lies beside RoboTwin and is not imported. The files that RoboTwin wants to read
are written when an environment is made. RoboTwin's own robot (aloha-agilex) has other arms, so a
result on this one is not comparable with a published one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from zetta.runtime.errors import InfraError
from zetta.sims.libero.scratch import scratch_folder

NAME = "two-pandas"
ARM_JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
HAND, CAMERA = "panda_hand", "camera"
"""Links: the hand (z approach, y finger axis) and the wrist camera."""
GRIP_M = 0.1034
"""From the hand's frame to between the fingertips, along its approach."""
HOME = (0.0, -0.643, 0.0, -2.618, 0.0, 1.974, np.pi / 4)
"""Joints at the beginning, radians: hands point down, 0.35 m over the near half of the table."""
APART_M, BASE_Y, BASE_Z = 0.44, -0.47, 0.74
"""Bases stand so far apart, at the table's near edge and the height of its top: each arm reaches
every place where a block may lie."""
_H = np.pi / 2
_CHAIN = (
    ((0.0, 0.0, 0.333), 0.0, (-2.8973, 2.8973), 87.0),
    ((0.0, 0.0, 0.0), -_H, (-1.7628, 1.7628), 87.0),
    ((0.0, -0.316, 0.0), _H, (-2.8973, 2.8973), 87.0),
    ((0.0825, 0.0, 0.0), _H, (-3.0718, -0.0698), 87.0),
    ((-0.0825, 0.384, 0.0), -_H, (-2.8973, 2.8973), 12.0),
    ((0.0, 0.0, 0.0), _H, (-0.0175, 3.7525), 12.0),
    ((0.088, 0.0, 0.0), _H, (-2.8973, 2.8973), 12.0),
)
"""By joint: place and roll in the link before it, range in radians, torque in Nm.
Source: Franka's documentation (Denavit-Hartenberg parameters, limits of the Panda)."""
_FINGER_BOXES = (
    ((0.0, 0.0185, 0.011), 0.0, (0.022, 0.015, 0.020)),
    ((0.0, 0.0159, 0.02835), np.pi / 6, (0.0175, 0.007, 0.0235)),
    ((0.0, 0.00758, 0.04525), 0.0, (0.0175, 0.0152, 0.0185)),
)
"""Mount, diagonal and rubber tip of a finger: place, roll and size, metres."""
_CAMERA_PLACE, _CAMERA_TILT = (0.10, 0.0, -0.02), np.radians(25.0)
"""Of the wrist camera in the hand's frame, and its turn towards the fingers."""
_MASS = 1.0
"""RoboTwin sets every link's mass to 1 kg."""


def embodiment() -> tuple[Path, dict[str, object]]:
    """Write what RoboTwin reads about this robot, once; return its folder and its settings.

    Raises:
        InfraError: the shapes are not installed, or the folder cannot be written.
    """
    urdf = _urdf(_shapes())
    digest = hashlib.sha256(urdf.encode()).hexdigest()[:12]
    # RoboTwin takes the third folder above for the root of its assets.
    folder = scratch_folder("robotwin") / digest / "assets" / "embodiments" / NAME
    files = {
        "panda.urdf": urdf,
        "panda.srdf": _srdf(),
        # Read, and unused, where motions are planned by mplib.
        "curobo_left_tmp.yml": "robot_cfg: {}\n",
        "curobo_right_tmp.yml": "robot_cfg: {}\n",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            unfinished = folder / f".{name}.{os.getpid()}"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder / name)
    except OSError as error:
        raise InfraError(f"cannot write the robot's files to {folder}: {error}") from error
    return folder, settings()


def settings() -> dict[str, object]:
    """Return the settings that RoboTwin reads of a robot, by its names."""
    grippers = [{"base": FINGERS[0], "mimic": [[FINGERS[1], 1.0, 0.0]]}] * 2
    table: dict[str, object] = {
        "urdf_path": "panda.urdf",
        "srdf_path": "panda.srdf",
        "joint_stiffness": 1000,
        "joint_damping": 200,
        "gripper_stiffness": 1000,
        "gripper_damping": 100,
        "move_group": [HAND, HAND],
        "ee_joints": ["panda_hand_joint", "panda_hand_joint"],
        "arm_joints_name": [list(ARM_JOINTS)] * 2,
        "gripper_name": grippers,
        "gripper_bias": GRIP_M,
        "gripper_scale": [0.0, 0.04],
        "homestate": [[float(q) for q in HOME]] * 2,
        # RoboTwin's hands approach along x; ours along z, with the fingers along y in both.
        "delta_matrix": [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
        # From the frame that SAPIEN gives a fixed joint to that of the hand.
        "global_trans_matrix": [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
        "robot_pose": [[0.0, BASE_Y, BASE_Z, 0.70710678, 0.0, 0.0, 0.70710678]],
        "planner": "mplib_RRT",
        "grasp_perfect_direction": ["front_right", "front_left"],
        "static_camera_list": [
            {
                "name": "head_camera",
                "type": "D435",
                "position": [-0.032, -0.45, 1.35],
                "forward": [0, 0.6, -0.8],
                "left": [-1, 0, 0],
            }
        ],
    }
    return json.loads(json.dumps(table))  # type: ignore[no-any-return]


def _shapes() -> Path:
    spec = find_spec("mani_skill")
    if spec is None or spec.origin is None:
        raise InfraError(
            "the shapes of the Panda (package mani_skill) are missing; install them with: "
            "zetta sims install robotwin --again"
        )
    folder = "assets/robots/panda/franka_description/meshes"
    return Path(spec.origin).parent / folder


def _urdf(shapes: Path) -> str:
    robot = Element("robot", name="panda")
    for i in range(8):
        link = _link(robot, f"panda_link{i}")
        _mesh(link, "visual", shapes / "visual" / f"link{i}.glb")
        _mesh(link, "collision", shapes / "collision" / f"link{i}.stl")
    for i, (place, roll, limits, torque) in enumerate(_CHAIN):
        kind, names = "revolute", (f"panda_link{i}", f"panda_link{i + 1}")
        joint = _joint(robot, ARM_JOINTS[i], kind, names, place, (roll, 0.0, 0.0))
        SubElement(joint, "axis", xyz="0 0 1")
        _limit(joint, limits, torque, 2.175)
    hand = _link(robot, HAND)
    _mesh(hand, "visual", shapes / "visual" / "hand.glb")
    _mesh(hand, "collision", shapes / "collision" / "hand.stl")
    _joint(
        robot, "panda_hand_joint", "fixed", ("panda_link7", HAND), (0, 0, 0.107), (0, 0, -_H / 2)
    )
    for side, sign, joint_name in zip(("left", "right"), (1.0, -1.0), FINGERS, strict=True):
        _finger(robot, shapes, f"panda_{side}finger", sign, joint_name)
    _link(robot, CAMERA)
    # SAPIEN's cameras look along x with z up: ours look along the approach, the fingers below.
    tilt = -_H - _CAMERA_TILT
    _joint(robot, "camera_joint", "fixed", (HAND, CAMERA), _CAMERA_PLACE, (np.pi, tilt, 0.0))
    return ElementTree.tostring(robot, encoding="unicode")


def _finger(robot: Element, shapes: Path, name: str, sign: float, joint_name: str) -> None:
    link = _link(robot, name)
    turn = (0.0, 0.0, 0.0 if sign > 0 else np.pi)
    _mesh(link, "visual", shapes / "visual" / "finger.glb", turn)
    for (x, y, z), roll, size in _FINGER_BOXES:
        shape = SubElement(link, "collision")
        SubElement(shape, "origin", xyz=_text((x, sign * y, z)), rpy=_text((sign * roll, 0, 0)))
        SubElement(SubElement(shape, "geometry"), "box", size=_text(size))
    joint = _joint(robot, joint_name, "prismatic", (HAND, name), (0.0, 0.0, 0.0584))
    SubElement(joint, "axis", xyz=_text((0.0, sign, 0.0)))
    _limit(joint, (0.0, 0.04), 100.0, 0.2)


def _link(robot: Element, name: str) -> Element:
    link = SubElement(robot, "link", name=name)
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "mass", value=repr(_MASS))
    SubElement(inertial, "inertia", ixx="0.01", iyy="0.01", izz="0.01", ixy="0", ixz="0", iyz="0")
    return link


def _mesh(link: Element, use: str, path: Path, rpy: tuple[float, ...] = (0.0, 0.0, 0.0)) -> None:
    shape = SubElement(link, use)
    SubElement(shape, "origin", xyz="0 0 0", rpy=_text(rpy))
    SubElement(SubElement(shape, "geometry"), "mesh", filename=str(path))


def _joint(
    robot: Element,
    name: str,
    kind: str,
    links: tuple[str, str],
    xyz: tuple[float, ...],
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0),
) -> Element:
    joint = SubElement(robot, "joint", name=name, type=kind)
    SubElement(joint, "origin", xyz=_text(xyz), rpy=_text(rpy))
    SubElement(joint, "parent", link=links[0])
    SubElement(joint, "child", link=links[1])
    return joint


def _limit(joint: Element, limits: tuple[float, float], effort: float, velocity: float) -> None:
    lower, upper = map(repr, limits)
    SubElement(
        joint, "limit", lower=lower, upper=upper, effort=repr(effort), velocity=repr(velocity)
    )


def _srdf() -> str:
    """Return which links may touch: neighbours, the hand's parts, and what never can."""
    robot = Element("robot", name="panda")
    for one, other in _touching():
        SubElement(robot, "disable_collisions", link1=one, link2=other, reason="Default")
    return ElementTree.tostring(robot, encoding="unicode")


def _touching() -> Iterator[tuple[str, str]]:
    links = [f"panda_link{i}" for i in range(8)]
    yield from itertools.pairwise(links)
    ends = (HAND, "panda_leftfinger", "panda_rightfinger")
    for link in links[3:]:
        yield from ((link, end) for end in ends)
    yield from ((one, other) for i, one in enumerate(ends) for other in ends[i + 1 :])
    yield from ((links[i], links[j]) for i, j in ((0, 2), (1, 3), (2, 4), (3, 5), (3, 6), (4, 6)))
    yield from ((links[i], links[7]) for i in (3, 4, 5))


def _text(numbers: tuple[float, ...]) -> str:
    return " ".join(repr(float(n)) for n in numbers)
