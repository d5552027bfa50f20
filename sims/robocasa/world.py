"""Privileged reading of a live kitchen: objects, fixtures, their joints and handles.

Everything here is simulator truth, in the world frame, metres and radians; no policy or critic sees
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zetta.runtime.core import Array, Landmark, Truth, read_only
from zetta.sims.boxes import narrow_box
from zetta.sims.mujoco_bodies import corners, geoms_of, poses

_ROBOT = ("robot0_", "gripper0_", "mobilebase0_")
_VISUAL_GROUP = 1


class KitchenWorld:
    """What one scene of RoboCasa holds."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name
        self._model, self._data = inner.sim.model._model, inner.sim.data._data
        self._bodies = {name: int(body) for name, body in inner.obj_body_id.items()}
        joints = [self._model.joint(j) for j in range(self._model.njnt)]
        self._joints = tuple(
            (joint.name, int(joint.qposadr[0]))
            for joint in joints
            if joint.type[0] in (2, 3) and not joint.name.startswith(_ROBOT)  # slides and hinges
        )

    def truth(self) -> Truth:
        """Return where everything is, and whether the goal holds."""
        data = self._data
        return Truth(
            objects=poses(data, self._bodies),
            predicates={f"solved {self._name}": bool(self._inner._check_success())},
            joints={name: float(data.qpos[address]) for name, address in self._joints},
        )

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return the objects of the task, and the handles of what is to be opened or closed."""
        found = [self._object(name) for name in self._bodies]
        found += self._handles()
        return tuple(found)

    def pose(self) -> Array:
        """Return all joint positions. Shape (N,)."""
        return read_only(self._data.qpos)

    def show(self, pose: Array) -> None:
        """Put every joint where a pose of this scene says; the simulation's places follow."""
        self._data.qpos[:] = pose

    @property
    def fixture(self) -> Any | None:
        """The fixture that a task of drawers or doors is about; None in others."""
        drawer = getattr(self._inner, "drawer", None)
        return getattr(self._inner, "fxtr", None) if drawer is None else drawer

    def doors(self) -> Iterator[tuple[str, int, Array]]:
        """Yield each door or drawer of the task's fixture: its joint, its body, its handle."""
        fixture = self.fixture
        if fixture is None:
            return
        for name, _ in self._joints:
            if name.startswith(f"{fixture.name}_"):
                body = int(self._model.jnt_bodyid[self._model.joint(name).id])
                yield name, body, self._handle_points(body)

    def _handles(self) -> Iterator[Landmark]:
        side = getattr(self._inner, "drawer_side", "")
        for name, body, points in self.doors():
            if not len(points):
                continue
            kind = "drawer" if "slide" in name else "door"
            center = (points.min(axis=0) + points.max(axis=0)) / 2
            out = self._outward(body)
            yaw = float(np.arctan2(out[1], out[0]))
            along = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
            flat = points[:, :2] @ along.T
            extent = [*(flat.max(axis=0) - flat.min(axis=0)), np.ptp(points[:, 2])]
            part = f"{side} drawer" if kind == "drawer" and side else _door_name(name)
            names = (f"handle of {part}", f"handle of {kind}", f"handle of cabinet {kind}")
            yield Landmark(names[0], names[1:], read_only(center), read_only(extent), yaw)

    def _outward(self, body: int) -> Array:
        """Return the horizontal direction in which a front looks, as it is turned now."""
        # RoboCasa's fronts look along -y of their bodies.
        return np.asarray(-self._data.xmat[body].reshape(3, 3)[:, 1])

    def _object(self, name: str) -> Landmark:
        center, extent, yaw = narrow_box(self._points(self._geoms(self._bodies[name])))
        said = self._inner.get_obj_lang(name)
        return Landmark(
            said, (name.replace("_", " "),), read_only(center), read_only(extent), float(yaw)
        )

    def _handle_points(self, body: int) -> Array:
        names = ((g, self._model.geom(g).name) for g in self._geoms(body))
        return self._points([g for g, name in names if "handle" in name])

    def _geoms(self, body: int) -> list[int]:
        """Return the visible geoms of a body and its parts."""
        seen = geoms_of(self._model, body, _VISUAL_GROUP)
        return [geom for geom in seen if self._model.geom_rgba[geom, 3] > 0.0]

    def _points(self, geoms: list[int]) -> Array:
        """Return corners of the boxes about geoms. Shape (8 * len(geoms), 3)."""
        return corners(self._model, self._data, geoms)


def _door_name(joint: str) -> str:
    for side in ("left", "right"):
        if f"{side}door" in joint:
            return f"{side} cabinet door"
    return "cabinet door"
