"""The kinematic chain of an arm, read from a SAPIEN articulation: forward, inverse, and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import InfraError

SITE = "grip"
_TURNS = ("revolute", "revolute_unwrapped", "continuous")
_DAMPING = 1e-4
_ROUNDS = 4
"""Rounds of the search for a displacement; a tick's is small."""
_REST_PULL = 0.02
"""How much of the way to its rest an arm that can lie otherwise goes in a round."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A joint of the chain, and what it turns."""

    name: str
    before: Array
    """Pose of the joint in the link before it; it turns about its own x axis. Shape (4, 4)."""
    after: Array
    """From the joint's frame to the next link's. Shape (4, 4)."""
    moves: bool


class Chain:
    """One arm from its base to its grip site.

    Attributes:
        low: least joint positions, radians. Shape (J,).
        high: greatest ones. Shape (J,).
    """

    def __init__(self, hand_joint: Any, arm_joints: list[Any], T_hand_grip: Array) -> None:
        """Read the chain that ends at what `hand_joint` carries.

        Raises:
            InfraError: the arm is no bare chain of its joints.
        """
        self._names = tuple(str(joint.name) for joint in arm_joints)
        self._links = _links(hand_joint, self._names)
        self._grip = T_hand_grip
        limits = np.array([joint.limits[0] for joint in arm_joints], np.float64)
        self.low, self.high = limits[:, 0], limits[:, 1]

    def forward(self, joints: Array) -> tuple[Array, Array]:
        """Return the grip site in the base's frame (4, 4), and its Jacobian (6, J) there."""
        pose, axes, places, at = np.eye(4), [], [], 0
        for link in self._links:
            pose = pose @ link.before
            if link.moves:
                axes.append(pose[:3, 0])
                places.append(pose[:3, 3])
                pose = pose @ _about_x(float(joints[at]))
                at += 1
            pose = pose @ link.after
        pose = pose @ self._grip
        turns = np.array(axes)
        moves = np.cross(turns, pose[:3, 3] - np.array(places))
        return pose, np.concatenate([moves.T, turns.T])

    def toward(self, joints: Array, goal: Array, rest: Array) -> Array:
        """Return joints nearer to a pose of the grip site in the base's frame. Shape (J,).

        Args:
            joints: where to begin. Shape (J,).
            goal: pose of the grip site. Shape (4, 4).
            rest: joints that it is drawn to where the pose leaves a choice. Shape (J,).
        """
        found = np.array(joints, np.float64)
        for _ in range(_ROUNDS):
            pose, jacobian = self.forward(found)
            turn = Rotation.from_matrix(goal[:3, :3] @ pose[:3, :3].T).as_rotvec()
            error = np.concatenate([goal[:3, 3] - pose[:3, 3], turn])
            square = jacobian @ jacobian.T + _DAMPING * np.eye(6)
            inverse = jacobian.T @ np.linalg.inv(square)
            free = np.eye(len(found)) - inverse @ jacobian
            found += inverse @ error + free @ (_REST_PULL * (rest - found))
            found = np.clip(found, self.low, self.high)
        return found

    def model(self, T_world_base: Array) -> ArmModel:
        """Return the chain as data, its base at a place in the world."""
        root = ElementTree.Element("mujoco", model="arm")
        ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
        place = ElementTree.SubElement(root, "worldbody")
        carried, at = np.eye(4), 0
        for link in self._links:
            carried = carried @ link.before
            if not link.moves:
                carried = carried @ link.after
                continue
            place = _body(place, link.name, carried, (self.low[at], self.high[at]))
            carried, at = link.after, at + 1
        offset = np.round((carried @ self._grip)[:3, 3], 9)
        turn = _wxyz((carried @ self._grip)[:3, :3])
        ElementTree.SubElement(place, "site", name=SITE, pos=_text(offset), quat=_text(turn))
        return ArmModel(
            mjcf=ElementTree.tostring(root, encoding="unicode"),
            joints=self._names,
            site=SITE,
            low=read_only(self.low),
            high=read_only(self.high),
            T_world_base=read_only(T_world_base),
        )


def matrix(pose: Any) -> Array:
    """Return a pose of SAPIEN as a matrix. Shape (4, 4)."""
    turn = np.roll(np.asarray(pose.q, np.float64), -1)  # wxyz -> xyzw
    result = np.eye(4)
    result[:3, :3] = Rotation.from_quat(turn).as_matrix()
    result[:3, 3] = np.asarray(pose.p, np.float64)
    return result


def _links(hand_joint: Any, names: tuple[str, ...]) -> tuple[_Link, ...]:
    links, joint = [], hand_joint
    while joint is not None and joint.parent_link is not None:
        moves = str(joint.name) in names
        if not moves and str(joint.type) != "fixed":
            raise InfraError(
                f"the arm is no bare chain of {', '.join(names)}: {joint.name} stands out"
            )
        if moves and str(joint.type) not in _TURNS:
            raise InfraError(f"the joint {joint.name} is {joint.type}, expected one that turns")
        before, after = matrix(joint.pose_in_parent), matrix(joint.pose_in_child)
        back: Array = np.linalg.inv(after).astype(np.float64)
        links.append(_Link(str(joint.name), before, back, moves))
        joint = joint.parent_link.joint
    found = tuple(link.name for link in reversed(links) if link.moves)
    if found != names:
        raise InfraError(f"the chain of the arm has the joints {found}, expected {names}")
    return tuple(reversed(links))


def _body(parent: Any, name: str, pose: Array, limits: tuple[float, float]) -> Any:
    body = ElementTree.SubElement(
        parent,
        "body",
        name=f"after {name}",
        pos=_text(np.round(pose[:3, 3], 9)),
        quat=_text(_wxyz(pose[:3, :3])),
    )
    # A moving body must have a mass; kinematics asks for none in particular.
    ElementTree.SubElement(body, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
    ElementTree.SubElement(
        body, "joint", name=name, type="hinge", axis="1 0 0", range=_text(np.array(limits))
    )
    return body


def _wxyz(turn: Array) -> Array:
    return np.round(np.roll(Rotation.from_matrix(turn).as_quat(canonical=True), 1), 9)


def _about_x(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _text(numbers: Array) -> str:
    return " ".join(repr(float(n)) for n in numbers)
