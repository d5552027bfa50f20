"""Privileged reading of a live ManiSkill world: actors, articulations, names and shapes.

Everything here is simulator truth, in the world frame, metres and radians; no policy or critic
sees it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from zetta.runtime.core import Array, Landmark, Truth, read_only
from zetta.sims.boxes import narrow_box
from zetta.sims.maniskill.tasks import ManiSkillTask
from zetta.sims.sapien_chain import matrix

_SCENERY: Final = ("ground", "table-workspace")
_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


class ManiSkillWorld:
    """What a ManiSkill environment holds after a reset."""

    def __init__(self, env: Any, task: ManiSkillTask) -> None:
        """Find its things; a reset makes others."""
        self._env, self._task = env, task
        self._actors = {
            name: actor for name, actor in env.scene.actors.items() if name not in _SCENERY
        }
        robot = env.agent.robot
        self._others = [a for a in env.scene.articulations.values() if a is not robot]

    def truth(self, success: bool) -> Truth:
        """Return where everything is, and whether the goal holds."""
        joints = {
            f"{other.name}/{joint.name}": float(place)
            for other in self._others
            for joint, place in zip(other.active_joints, other.get_qpos()[0], strict=True)
        }
        return Truth(
            objects={name: read_only(_pose(actor)) for name, actor in self._actors.items()},
            predicates={f"solved {self._task.name}": success},
            joints=joints,
        )

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for."""
        things = self._task.things or {n: (n.replace("_", " ").lower(),) for n in self._actors}
        found = []
        for name, names in things.items():
            center, extent, yaw = narrow_box(_points(self._actors[name]))
            found.append(
                Landmark(names[0], names[1:], read_only(center), read_only(extent), float(yaw))
            )
        return tuple(found)

    def pose(self) -> Array:
        """Return the state of everything that can move. Shape (N,)."""
        return read_only(self._env.get_state()[0].numpy())

    def show(self, pose: Array) -> None:
        """Put everything where a pose of this task says."""
        import torch

        self._env.set_state(torch.tensor(pose[None], dtype=torch.float32))


def _pose(actor: Any) -> Array:
    pose = actor.pose.raw_pose[0].numpy().astype(np.float64)
    return np.concatenate([pose[:3], np.roll(pose[3:], -1)])  # wxyz -> xyzw


def _points(actor: Any) -> Array:
    """Return corners of an actor's shapes in the world. Shape (N, 3)."""
    entity = actor._objs[0]
    place = matrix(entity.pose)
    shapes = [s for part in entity.components for s in getattr(part, "collision_shapes", ())]
    points = [_transformed(place, _transformed(matrix(s.local_pose), _own(s))) for s in shapes]
    if points:
        return np.concatenate(points)
    for part in entity.components:  # what nothing touches is only drawn
        if getattr(part, "render_shapes", None):
            low, high = np.asarray(part.compute_global_aabb_tight(), np.float64)
            return np.asarray((low + high) / 2 + _CORNERS * (high - low) / 2)
    return place[None, :3, 3]


def _own(shape: Any) -> Array:
    """Return points on a collision shape in its own frame. Shape (N, 3)."""
    if hasattr(shape, "vertices"):
        return np.asarray(shape.vertices, np.float64) * np.asarray(shape.scale, np.float64)
    if hasattr(shape, "half_size"):
        return np.asarray(_CORNERS * np.asarray(shape.half_size, np.float64))
    across = float(getattr(shape, "radius", 0.0))
    along = float(getattr(shape, "half_length", 0.0))
    if type(shape).__name__.endswith("Capsule"):
        along += across
    half = np.array([along or across, across, across])
    return np.asarray(_CORNERS * half)


def _transformed(pose: Array, points: Array) -> Array:
    return np.asarray(points @ pose[:3, :3].T + pose[:3, 3])
