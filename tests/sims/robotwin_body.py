"""A robot of boxes in the place of RoboTwin's own: one body with two arms of six joints.

RoboTwin's own robot needs a download. What the adapter asks of such a body, it asks of this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import yaml

SIDES = (("left", -0.25), ("right", 0.25))
_JOINTS = (
    ("0 0 0.10", "0 0 1"), ("0 0 0.10", "0 1 0"), ("0 0 0.30", "0 1 0"),
    ("0 0 0.25", "1 0 0"), ("0 0 0.05", "0 1 0"), ("0 0 0.05", "0 0 1"),
)  # fmt: skip
"""Place on the link before and axis of each joint of an arm that stands upright."""
HOME = (0.0, 0.6, 1.3, 0.0, 1.24, 0.0)
"""Bends the arm ahead until its hand points down."""


def write(root: Path) -> None:
    """Write the robot where RoboTwin's downloads would lie."""
    folder = root / "assets" / "embodiments" / "aloha-agilex"
    folder.mkdir(parents=True)
    (folder / "body.urdf").write_text(_urdf(), encoding="utf-8")
    (folder / "config.yml").write_text(yaml.safe_dump(_settings()), encoding="utf-8")
    for side, _ in SIDES:
        (folder / f"curobo_{side}_tmp.yml").write_text("robot_cfg: {}\n", encoding="utf-8")


def _urdf() -> str:
    robot = Element("robot", name="body")
    _link(robot, "base", "0.1 0.1 0.1")
    for side, x in SIDES:
        before = "base"
        for i, (place, axis) in enumerate(_JOINTS):
            name = f"{side}_link{i + 1}"
            _link(robot, name, "0.03 0.03 0.04")
            # The base's x axis points ahead, so the arms stand beside each other along its y.
            at = f"0 {-x} 0.10" if i == 0 else place
            _joint(robot, f"{side}_joint{i + 1}", "revolute", before, name, at, axis)
            before = name
        _link(robot, f"{side}_hand", "0.03 0.03 0.03")
        _joint(robot, f"{side}_hand_joint", "fixed", before, f"{side}_hand", "0 0 0.05", "")
        for finger, sign in (("a", 1.0), ("b", -1.0)):
            name = f"{side}_finger_{finger}"
            _link(robot, name, "0.01 0.01 0.05")
            joint, axis = f"{name}_joint", f"0 {sign} 0"
            _joint(robot, joint, "prismatic", f"{side}_hand", name, "0 0 0.06", axis)
        _link(robot, f"{side}_camera", "0.01 0.01 0.01")
        _joint(robot, f"{side}_eye", "fixed", f"{side}_hand", f"{side}_camera", "0.08 0 0", "")
    return tostring(robot, encoding="unicode")


def _link(robot: Element, name: str, size: str) -> None:
    link = SubElement(robot, "link", name=name)
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "mass", value="1.0")
    SubElement(inertial, "inertia", ixx="0.01", iyy="0.01", izz="0.01", ixy="0", ixz="0", iyz="0")
    for use in ("visual", "collision"):
        SubElement(SubElement(SubElement(link, use), "geometry"), "box", size=size)


def _joint(
    robot: Element, name: str, kind: str, parent: str, child: str, place: str, axis: str
) -> None:
    joint = SubElement(robot, "joint", name=name, type=kind)
    SubElement(joint, "origin", xyz=place, rpy="0 0 0")
    SubElement(joint, "parent", link=parent)
    SubElement(joint, "child", link=child)
    if axis:
        SubElement(joint, "axis", xyz=axis)
        low, high = ("-3.0", "3.0") if kind == "revolute" else ("0.0", "0.04")
        SubElement(joint, "limit", lower=low, upper=high, effort="100", velocity="3")


def _settings() -> dict[str, object]:
    return {
        "urdf_path": "body.urdf",
        "joint_stiffness": 1000,
        "joint_damping": 200,
        "gripper_stiffness": 1000,
        "gripper_damping": 100,
        "move_group": [f"{side}_hand" for side, _ in SIDES],
        "ee_joints": [f"{side}_hand_joint" for side, _ in SIDES],
        "arm_joints_name": [[f"{side}_joint{i + 1}" for i in range(6)] for side, _ in SIDES],
        "gripper_name": list(_grippers()),
        "gripper_bias": 0.10,
        "gripper_scale": [0.0, 0.04],
        "homestate": [list(HOME)] * 2,
        "delta_matrix": [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
        "global_trans_matrix": [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
        "robot_pose": [[0.0, -0.65, 0.75, 0.70710678, 0.0, 0.0, 0.70710678]],
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


def _grippers() -> Iterator[dict[str, object]]:
    for side, _ in SIDES:
        mimic = [[f"{side}_finger_b_joint", 1.0, 0.0]]
        yield {"base": f"{side}_finger_a_joint", "mimic": mimic}
