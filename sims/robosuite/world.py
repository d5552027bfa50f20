"""Privileged reading of a live robosuite simulation: bodies, joints, names and shapes.

Everything here is simulator truth, in the world frame, metres and radians; no policy or critic
sees it. What robosuite calls an object is a body with its parts; *placed* bodies are those that a
reset puts somewhere by changing the model: a door, the markers to be wiped, the pictures of things
in the bins where they belong.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from zetta.runtime.core import Array, Landmark, Truth, read_only
from zetta.sims.boxes import narrow_box
from zetta.sims.mujoco_bodies import corners, geoms_of, poses
from zetta.sims.robosuite.tasks import RobosuiteTask

_VISUAL = "Visual"
"""Beginning of names of pictures that show where a thing belongs."""
_COLLISION_GROUP = 0


class RobosuiteWorld:
    """What a robosuite environment holds."""

    def __init__(self, inner: Any, task: RobosuiteTask) -> None:
        self._inner, self._task = inner, task
        self._model, self._data = inner.sim.model._model, inner.sim.data._data
        listed = {thing.name: thing for thing in inner.model.mujoco_objects}
        self._bodies = {
            name: self._body(thing.root_body)
            for name, thing in listed.items()
            if not name.startswith(_VISUAL)
        }
        for name in ("peg", "hole"):
            if hasattr(inner, f"{name}_body_id"):
                self._bodies[name] = int(getattr(inner, f"{name}_body_id"))
        self._markers = list(getattr(inner.model.mujoco_arena, "markers", ()))
        self._joints = tuple(
            joint
            for thing in listed.values()
            for joint in thing.joints
            if self._model.joint(joint).type != mujoco.mjtJoint.mjJNT_FREE
        )
        still = [t.root_body for t in listed.values() if not self._is_loose(t)]
        marks = [marker.root_body for marker in self._markers]
        self._placed = [self._body(name) for name in (*still, *marks)]
        marked = {self._body(name) for name in marks}
        self._shades = [g for g in range(self._model.ngeom) if self._model.geom_bodyid[g] in marked]

    def truth(self) -> Truth:
        """Return where everything is, and which goals hold."""
        data = self._data
        return Truth(
            objects=poses(data, self._bodies),
            predicates=self._predicates(),
            joints={
                name: float(data.qpos[self._model.joint(name).qposadr[0]]) for name in self._joints
            },
        )

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for."""
        found = []
        for name, names in self._task.things.items():
            center, extent, yaw = narrow_box(self._points(self._bodies[name]))
            found.append(
                Landmark(names[0], names[1:], read_only(center), read_only(extent), float(yaw))
            )
        return tuple(found)

    def pose(self) -> Array:
        """Return joint positions, placed bodies and the shades of markers. Shape (N,)."""
        model = self._model
        placed = [np.concatenate([model.body_pos[b], model.body_quat[b]]) for b in self._placed]
        return read_only(
            np.concatenate([self._data.qpos, *placed, model.geom_rgba[self._shades, 3]])
        )

    def show(self, pose: Array) -> None:
        """Put everything where a pose of this task says; the simulation's places follow."""
        model, nq, placed = self._model, int(self._model.nq), len(self._placed)
        self._data.qpos[:] = pose[:nq]
        rows = pose[nq : nq + 7 * placed].reshape(-1, 7)
        for body, row in zip(self._placed, rows, strict=True):
            model.body_pos[body], model.body_quat[body] = row[:3], row[3:]
        model.geom_rgba[self._shades, 3] = pose[nq + 7 * placed :]

    @property
    def markers(self) -> list[Any]:
        """Return robosuite's marks on a table that is to be wiped."""
        return self._markers

    def _predicates(self) -> dict[str, bool]:
        inner = self._inner
        solved = bool(inner._check_success())
        for placed, things in (("objects_on_pegs", "nuts"), ("objects_in_bins", "objects")):
            if hasattr(inner, placed) and not inner.single_object_mode:
                names = [thing.name for thing in getattr(inner, things)]
                flags = getattr(inner, placed)
                return {f"placed {n}": bool(f) for n, f in zip(names, flags, strict=True)}
        return {f"solved {self._task.name}": solved}

    def _is_loose(self, thing: Any) -> bool:
        kinds = [self._model.joint(joint).type for joint in thing.joints]
        return mujoco.mjtJoint.mjJNT_FREE in kinds

    def _body(self, name: str) -> int:
        return int(self._model.body(name).id)

    def _points(self, body: int) -> Array:
        """Return corners of the boxes about the collision geoms of a body and its parts."""
        return corners(self._model, self._data, geoms_of(self._model, body, _COLLISION_GROUP))
