"""The kinematic chain of an arm, read from a running MuJoCo simulation.

What is read is only what joints turn: body offsets, joint axes and ranges. No file of the
simulator is needed, and the result holds for the arm exactly as it was compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import InfraError

SITE = "grip"


def chain(model: Any, data: Any, joints: Sequence[int], hand: int, grip_site: int) -> ArmModel:
    """Return the chain from an arm's base to its grip site, with the base where it is now.

    Args:
        model: compiled model.
        data: its present state; positions must be up to date.
        joints: ids of the arm's hinge joints, from the base outwards.
        hand: id of the body whose orientation is that of the hand.
        grip_site: id of the site whose position is that of the hand; nothing moves between both.

    Raises:
        InfraError: the joints are not those of one chain that ends at the hand.
    """
    bodies = _bodies_between(model, int(model.jnt_bodyid[joints[0]]), hand)
    moved = {int(j) for b in bodies for j in _joints_of(model, b)}
    if moved != {int(j) for j in joints}:
        names = sorted(model.joint(j).name for j in moved ^ {int(j) for j in joints})
        raise InfraError(f"the arm is no bare chain of its joints: {', '.join(names)} stands out")
    root = ElementTree.Element("mujoco", model="arm")
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    place = ElementTree.SubElement(root, "worldbody")
    for body in bodies:
        place = _add_body(place, model, body)
    turn = data.xmat[hand].reshape(3, 3)
    offset = turn.T @ (data.site_xpos[grip_site] - data.xpos[hand])
    # Rounded: the last digits are those of the state, and equal arms shall have equal models.
    ElementTree.SubElement(place, "site", name=SITE, pos=_text(np.round(offset, 9)))
    ranges = model.jnt_range[list(joints)]
    return ArmModel(
        mjcf=ElementTree.tostring(root, encoding="unicode"),
        joints=tuple(str(model.joint(j).name) for j in joints),
        site=SITE,
        low=read_only(ranges[:, 0]),
        high=read_only(ranges[:, 1]),
        T_world_base=_base_pose(data, int(model.body_parentid[bodies[0]])),
    )


def _bodies_between(model: Any, first: int, last: int) -> list[int]:
    """Return the bodies of a chain, from the base outwards."""
    bodies = [last]
    while bodies[-1] != first:
        if bodies[-1] == 0:
            raise InfraError("the hand does not hang from the arm's first joint")
        bodies.append(int(model.body_parentid[bodies[-1]]))
    return bodies[::-1]


def _joints_of(model: Any, body: int) -> range:
    first = int(model.body_jntadr[body])
    return range(first, first + int(model.body_jntnum[body]))


def _add_body(parent: ElementTree.Element, model: Any, body: int) -> ElementTree.Element:
    element = ElementTree.SubElement(
        parent,
        "body",
        name=str(model.body(body).name),
        pos=_text(model.body_pos[body]),
        quat=_text(model.body_quat[body]),
    )
    # A moving body must have a mass; kinematics asks for none in particular.
    ElementTree.SubElement(element, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
    for joint in _joints_of(model, body):
        ElementTree.SubElement(
            element,
            "joint",
            name=str(model.joint(joint).name),
            type="hinge",
            pos=_text(model.jnt_pos[joint]),
            axis=_text(model.jnt_axis[joint]),
            range=_text(model.jnt_range[joint]),
        )
    return element


def _base_pose(data: Any, body: int) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = data.xmat[body].reshape(3, 3)
    pose[:3, 3] = data.xpos[body]
    return read_only(pose)


def _text(numbers: Array) -> str:
    return " ".join(repr(float(n)) for n in numbers)
