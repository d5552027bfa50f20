"""Things of other sizes, for training data: shapes are scaled in the compiled model and back.

Renamed objects of LIBERO-PRO are up to half as large again as those that a model has seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.landmarks import NamedWorld
from zetta.sims.libero.meshes import decimated

Ints = npt.NDArray[np.int64]
_GEOM_FIELDS = ("geom_pos", "geom_size", "geom_rbound", "geom_aabb")


class Scaler:
    """Scales the loose objects of one environment about their body origins."""

    def __init__(self, env: LiberoEnv, world: NamedWorld) -> None:
        self._env = env
        self._model: Any = env.control.env.sim.model._model
        self._drawn: Any = decimated(self._model)
        self._fields = {name: np.array(getattr(self._model, name)) for name in _GEOM_FIELDS}
        self._nodes = np.array(self._model.bvh_aabb)
        self._vertices = np.array(self._model.mesh_vert)
        self._drawn_vertices = np.array(self._drawn.mesh_vert)
        self._geoms = {thing: self._of(world.body(thing)) for thing in world.movables}
        self._factors = dict.fromkeys(self._geoms, 1.0)

    def scale(self, factors: dict[str, float]) -> None:
        """Give each named object its factor and every other one its own size again."""
        for thing in self._geoms:
            factor = factors.get(thing, 1.0)
            if factor != self._factors[thing]:
                self._apply(thing, factor)
                self._factors[thing] = factor

    def _of(self, body: int) -> Ints:
        return np.flatnonzero(self._model.geom_bodyid == body)

    def _apply(self, thing: str, factor: float) -> None:
        geoms = self._geoms[thing]
        for name, original in self._fields.items():
            getattr(self._model, name)[geoms] = original[geoms] * factor
        for mesh in self._meshes(geoms):
            self._scale_mesh(mesh, factor)
        body = int(self._model.geom_bodyid[geoms[0]])
        first, count = int(self._model.body_bvhadr[body]), int(self._model.body_bvhnum[body])
        self._scale_nodes(first, count, factor)

    def _meshes(self, geoms: Ints) -> set[int]:
        """Return the meshes of these geoms that no other geom shares."""
        ids = self._model.geom_dataid
        used = {int(ids[geom]) for geom in geoms if ids[geom] >= 0}
        return {mesh for mesh in used if np.isin(np.flatnonzero(ids == mesh), geoms).all()}

    def _scale_mesh(self, mesh: int, factor: float) -> None:
        first = int(self._model.mesh_vertadr[mesh])
        rows = slice(first, first + int(self._model.mesh_vertnum[mesh]))
        self._model.mesh_vert[rows] = self._vertices[rows] * factor
        self._drawn.mesh_vert[rows] = self._drawn_vertices[rows] * factor
        self._env.renderer().upload(self._drawn, mesh)
        first, count = int(self._model.mesh_bvhadr[mesh]), int(self._model.mesh_bvhnum[mesh])
        self._scale_nodes(first, count, factor)

    def _scale_nodes(self, first: int, count: int, factor: float) -> None:
        if first >= 0:
            rows = slice(first, first + count)
            self._model.bvh_aabb[rows] = self._nodes[rows] * factor


def draw_factors(
    things: tuple[str, ...], share: float, low: float, high: float, rng: np.random.Generator
) -> dict[str, float]:
    """Draw a scale for a share of the things; as often below 1 as above."""
    drawn: Array = np.where(
        rng.random(len(things)) < 0.5,
        rng.uniform(low, 1.0, len(things)),
        rng.uniform(1.0, high, len(things)),
    )
    chosen = rng.random(len(things)) < share
    return {t: float(f) for t, f, c in zip(things, drawn, chosen, strict=True) if c}
