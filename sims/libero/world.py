"""Privileged reading of a live LIBERO simulation.

Everything here is simulator truth: it serves scripted experts, labels and diagnosis, and no
policy or critic ever sees it. Positions are metres in the world frame, rotations are matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import mujoco
import numpy as np
import numpy.typing as npt
from scipy.spatial import ConvexHull

from zetta.runtime.core import Array

Ints = npt.NDArray[np.int64]

_COLLISION_GROUP = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
"""LIBERO and robosuite put collision geoms into group 0 and pictures into group 1."""
_MAP_STEP = 0.01
_RAY_LAYERS = 64
"""How many ignored surfaces a downward ray may pass before it gives up."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One predicate of the task's goal, such as ``in soup_1 basket_1_contain_region``."""

    predicate: str
    subject: str
    target: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.predicate, self.subject, self.target) if part)


@dataclass(frozen=True, slots=True)
class Region:
    """A named box of the scene."""

    name: str
    center: Array
    rotation: Array
    """Columns are the box axes in the world. Shape (3, 3)."""
    half_size: Array
    parent: str
    """Object or fixture the region belongs to; empty for a part of the table."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A one-dimensional joint of an articulated part, as it is now."""

    name: str
    position: float
    axis: Array
    """Direction of growing position, world frame. Shape (3,)."""
    anchor: Array
    body: int


@dataclass(frozen=True, slots=True)
class HeightMap:
    """Heights of the scene seen from above on a square grid, some bodies left out."""

    origin: Array
    """World `x y` of cell (0, 0). Shape (2,)."""
    step: float
    heights: Array
    """Shape (N, N), first index along x; -inf where nothing is hit."""

    def highest(self, points: Array) -> float:
        """Return the greatest height under `points`, shape (M, 2); cells outside count as free."""
        cells = np.rint((points - self.origin) / self.step).astype(int)
        inside = np.all((cells >= 0) & (cells < self.heights.shape[0]), axis=1)
        if not inside.any():
            return -np.inf
        return float(self.heights[cells[inside, 0], cells[inside, 1]].max())


class World:
    """The present state of one LIBERO environment; make a new one after a hard reset."""

    def __init__(self, sim_env: Any, goals: tuple[Goal, ...] | None = None) -> None:
        """Read from `sim_env`, a LIBERO `ControlEnv`; `goals` replace those of its task."""
        self._goals = goals
        self._domain: Any = sim_env.env
        self._model: Any = sim_env.sim.model._model
        self._data: Any = sim_env.sim.data._data
        self._shapes: dict[int, tuple[Ints, Array]] = {}
        self._subtrees: dict[int, frozenset[int]] = {}
        robot = self._domain.robots[0]
        self._ee_site = int(robot.eef_site_id)
        self._finger_joints: list[int] = [int(i) for i in robot._ref_gripper_joint_pos_indexes]
        self._fingers = tuple(self._subtree(self._body(f"gripper0_{s}finger")) for s in _SIDES)
        robot_roots = [self._body(name) for name in ("robot0_base", "mount0_base")]
        self._robot = frozenset(b for root in robot_roots for b in self._subtree(root))
        self._geom_body: Ints = np.array(self._model.geom_bodyid, dtype=np.int64)

    # ------------------------------------------------------------------ robot

    @property
    def ee_pos(self) -> Array:
        """Position of the grip site. Shape (3,)."""
        return np.array(self._data.site_xpos[self._ee_site])

    @property
    def ee_rot(self) -> Array:
        """Orientation of the grip site: x along the fingers' travel, z out of the hand."""
        return np.array(self._data.site_xmat[self._ee_site]).reshape(3, 3)

    @property
    def opening(self) -> float:
        """Distance between the finger pads in metres."""
        return float(np.abs(self._data.qpos[self._finger_joints]).sum())

    @property
    def arm_joints(self) -> Array:
        """Arm joint positions in radians. Shape (7,)."""
        return np.array(self._data.qpos[self._domain.robots[0]._ref_joint_pos_indexes])

    @property
    def shoulder(self) -> Array:
        """Position of the arm's second joint, about which it reaches. Shape (3,)."""
        return np.array(self._data.xpos[self._body("robot0_link2")])

    @property
    def wrist(self) -> Array:
        """Position of the arm's wrist centre. Shape (3,)."""
        return np.array(self._data.xpos[self._body("robot0_link6")])

    def finger_axis(self) -> Array:
        """Horizontal unit vector from the right to the left finger. Shape (3,)."""
        left, right = (self._data.xpos[self._body(f"gripper0_{s}finger")] for s in _SIDES)
        axis = np.array(left - right)
        axis[2] = 0.0
        return cast(Array, axis / np.linalg.norm(axis))

    def gripped(self, name: str) -> bool:
        """Say whether both fingers touch the object."""
        touching = self._touching(self.body(name))
        return all(bool(touching & finger) for finger in self._fingers)

    def touching_robot(self, name: str) -> bool:
        """Say whether any part of the robot touches the object."""
        return bool(self._touching(self.body(name)) & self._robot)

    # ------------------------------------------------------------------ objects

    @property
    def movables(self) -> tuple[str, ...]:
        """Names of the free objects."""
        return tuple(self._domain.objects_dict)

    @property
    def fixtures(self) -> tuple[str, ...]:
        """Names of the fixtures that have a body of their own."""
        return tuple(n for n in self._domain.fixtures_dict if n in self._domain.obj_body_id)

    def body(self, name: str) -> int:
        """Return the body id of an object or a fixture.

        Raises:
            KeyError: no such object.
        """
        return int(self._domain.obj_body_id[name])

    def position(self, name: str) -> Array:
        """Return the body origin of an object, which need not be its middle. Shape (3,)."""
        return np.array(self._data.xpos[self.body(name)])

    def rotation(self, name: str) -> Array:
        """Return the orientation of an object. Shape (3, 3)."""
        return np.array(self._data.xmat[self.body(name)]).reshape(3, 3)

    def points(self, name: str) -> Array:
        """Return the corners of the object's collision geoms. Shape (N, 3)."""
        return self.body_points(self.body(name))

    def body_points(self, body: int) -> Array:
        """Return the corners of the collision geoms of a body and its children. Shape (N, 3)."""
        if body not in self._shapes:
            geoms = [g for b in sorted(self._subtree(body)) for g in self.geoms(b)]
            corners = [self._corners(g) for g in geoms]
            owner = np.repeat(geoms, [len(c) for c in corners])
            self._shapes[body] = (owner.astype(np.int64), np.concatenate(corners))
        owner, own = self._shapes[body]
        turns = self._data.geom_xmat[owner].reshape(-1, 3, 3)
        return cast(Array, np.einsum("nij,nj->ni", turns, own) + self._data.geom_xpos[owner])

    def bounds(self, name: str) -> tuple[Array, Array]:
        """Return the lowest and highest corner of the object's world-aligned box."""
        points = self.points(name)
        return points.min(axis=0), points.max(axis=0)

    def geoms(self, body: int) -> list[int]:
        """Return the collision geoms of one body, children left out."""
        model = self._model
        mine = np.flatnonzero(model.geom_bodyid == body)
        return [int(g) for g in mine if model.geom_contype[g] or model.geom_conaffinity[g]]

    def geom_center(self, geom: int) -> Array:
        """Return the centre of a geom. Shape (3,)."""
        return np.array(self._data.geom_xpos[geom])

    def geom_rotation(self, geom: int) -> Array:
        """Return the orientation of a geom. Shape (3, 3)."""
        return np.array(self._data.geom_xmat[geom]).reshape(3, 3)

    def geom_size(self, geom: int) -> Array:
        """Return MuJoCo's size of a geom: half extents of a box. Shape (3,)."""
        return np.array(self._model.geom_size[geom])

    # ------------------------------------------------------------------ regions, joints, goal

    def region(self, name: str) -> Region:
        """Return a region of the scene.

        Raises:
            KeyError: no such region.
        """
        site = self._domain.object_sites_dict[name]
        index = int(mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_SITE, name))
        return Region(
            name=name,
            center=np.array(self._data.site_xpos[index]),
            rotation=np.array(self._data.site_xmat[index]).reshape(3, 3),
            half_size=np.array(site.size, dtype=float),
            parent=site.parent_name if site.parent_name in self._domain.obj_body_id else "",
        )

    def is_region(self, name: str) -> bool:
        """Say whether `name` is a region rather than an object."""
        return name in self._domain.object_sites_dict

    def is_drawer(self, name: str) -> bool:
        """Say whether `name` is a region that moves with a joint of its own."""
        return self.is_region(name) and bool(self.region_joints(name))

    def region_joints(self, name: str) -> tuple[str, ...]:
        """Return the joints that open a region (a drawer) or move a fixture (a knob, a door)."""
        owner = self._domain.object_sites_dict if self.is_region(name) else None
        thing = owner[name] if owner is not None else self._domain.get_object(name)
        return tuple(joint for joint in thing.joints or () if self._is_single(joint))

    def joint(self, name: str) -> Joint:
        """Return a hinge or slide joint as it is now."""
        index = int(mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_JOINT, name))
        return Joint(
            name=name,
            position=float(self._data.qpos[self._model.jnt_qposadr[index]]),
            axis=np.array(self._data.xaxis[index]),
            anchor=np.array(self._data.xanchor[index]),
            body=int(self._model.jnt_bodyid[index]),
        )

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The predicates that make up the goal."""
        if self._goals is not None:
            return self._goals
        return tuple(Goal(*state) for state in self._domain.parsed_problem["goal_state"])

    def holds(self, goal: Goal) -> bool:
        """Say whether one goal predicate is true now."""
        state = [part for part in (goal.predicate, goal.subject, goal.target) if part]
        return bool(self._domain._eval_predicate(state))

    def success(self) -> bool:
        """Say whether all goal predicates are true now."""
        return all(self.holds(goal) for goal in self.goals)

    # ------------------------------------------------------------------ heights

    def top_height(self, x: float, y: float, z: float, ignore: frozenset[int]) -> float:
        """Return the height of the first surface below (x, y, z), or -inf.

        The robot and the bodies in `ignore` are looked through.
        """
        hit = np.zeros((1, 1), dtype=np.int32)
        down = np.array([0.0, 0.0, -1.0])
        for _ in range(_RAY_LAYERS):
            start = np.array([x, y, z])
            distance = mujoco.mj_ray(
                self._model, self._data, start, down, _COLLISION_GROUP, 1, -1, hit[0]
            )
            if distance < 0:
                return -np.inf
            z -= distance
            body = int(self._geom_body[hit[0, 0]])
            if body not in ignore and body not in self._robot:
                return float(z)
            z -= 1e-4
        return -np.inf

    def surface(self, x: float, y: float, ignore: str, z: float = 1.6) -> float:
        """Return the height of the surface at (x, y), the object `ignore` left out."""
        return self.top_height(x, y, z, self._subtree(self.body(ignore)))

    def corridor_height(self, start: Array, end: Array, half_width: float, ignore: str) -> float:
        """Return the greatest height met between two points, one object left out; -inf if none."""
        left_out = self._subtree(self.body(ignore))
        along = np.array(end[:2]) - np.array(start[:2])
        length = float(np.linalg.norm(along))
        across = np.array([-along[1], along[0]]) / max(length, 1e-9) * half_width
        spots = [
            np.array(start[:2]) + along * s + across * t
            for s in np.linspace(0.0, 1.0, 2 + int(length / 0.02))
            for t in (-1.0, -0.5, 0.0, 0.5, 1.0)
        ]
        top = max(float(start[2]), float(end[2])) + 1.0
        return max(self.top_height(float(x), float(y), top, left_out) for x, y in spots)

    def height_map(self, center: Array, half: float, z: float, ignore: str) -> HeightMap:
        """Scan the scene from height `z` on a 1 cm grid around `center`, one object left out."""
        step, n = _MAP_STEP, 2 * int(np.ceil(half / _MAP_STEP)) + 1
        origin = np.array(center[:2]) - half
        left_out = self._subtree(self.body(ignore))
        heights = np.array(
            [
                [
                    self.top_height(origin[0] + i * step, origin[1] + j * step, z, left_out)
                    for j in range(n)
                ]
                for i in range(n)
            ]
        )
        return HeightMap(origin=origin, step=step, heights=heights)

    # ------------------------------------------------------------------ internals

    def _is_single(self, joint: str) -> bool:
        """Say whether a joint has one degree of freedom: free objects have a joint, too."""
        index = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_JOINT, joint)
        kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
        return int(self._model.jnt_type[index]) in kinds

    def _body(self, name: str) -> int:
        return int(mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, name))

    def _subtree(self, root: int) -> frozenset[int]:
        if root not in self._subtrees:
            found = {root}
            for body in range(root + 1, self._model.nbody):
                if int(self._model.body_parentid[body]) in found:
                    found.add(body)
            self._subtrees[root] = frozenset(found)
        return self._subtrees[root]

    def _touching(self, root: int) -> frozenset[int]:
        """Return the bodies in contact with the subtree of `root`."""
        pairs = np.array(self._data.contact.geom[: self._data.ncon], dtype=np.int64).reshape(-1, 2)
        bodies = self._geom_body[pairs]
        mine = np.isin(bodies, list(self._subtree(root)))
        others = bodies[:, ::-1][mine & ~mine[:, ::-1]]
        return frozenset(int(b) for b in others)

    def _corners(self, geom: int) -> Array:
        """Return the corners of a geom in its own frame. Shape (N, 3)."""
        model, size = self._model, self.geom_size(geom)
        kind = int(model.geom_type[geom])
        if kind == int(mujoco.mjtGeom.mjGEOM_MESH):
            mesh = int(model.geom_dataid[geom])
            first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            corners = np.array(model.mesh_vert[first : first + count], dtype=float)
            # MuJoCo collides the hull of a mesh, so its other vertices say nothing.
            return corners[ConvexHull(corners).vertices] if count > 64 else corners
        if kind == int(mujoco.mjtGeom.mjGEOM_SPHERE):
            return np.asarray(size[0] * np.concatenate([np.eye(3), -np.eye(3)]))
        if kind in _ROUND_KINDS:
            reach = size[1] + (size[0] if kind == int(mujoco.mjtGeom.mjGEOM_CAPSULE) else 0.0)
            return ring_corners(size[0], reach)
        return box_corners(size)


_SIDES = ("left", "right")
_ROUND_KINDS = (int(mujoco.mjtGeom.mjGEOM_CYLINDER), int(mujoco.mjtGeom.mjGEOM_CAPSULE))


def box_corners(half: Array) -> Array:
    """Return the eight corners of a box with half extents `half`. Shape (8, 3).

    >>> box_corners(np.array([1.0, 2.0, 3.0])).max(axis=0).tolist()
    [1.0, 2.0, 3.0]
    """
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    return cast(Array, signs * half)


def ring_corners(radius: float, half_height: float) -> Array:
    """Return points on both rims of a cylinder along z. Shape (48, 3)."""
    angle = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    circle = np.stack([np.cos(angle) * radius, np.sin(angle) * radius], axis=1)  # (24, 2)
    ends = [np.column_stack([circle, np.full(24, z)]) for z in (half_height, -half_height)]
    return np.concatenate(ends)
