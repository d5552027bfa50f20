"""Bodies of a MuJoCo model: their parts, the corners of their geoms, where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from zetta.runtime.core import Array, read_only

_CORNERS: Final = np.array(
    [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64
)


def poses(data: Any, bodies: Mapping[str, int]) -> dict[str, Array]:
    """Return position and orientation, xyzw, of bodies in the world. Shapes (7,)."""
    return {
        # wxyz -> xyzw
        name: read_only(np.concatenate([data.xpos[b], np.roll(data.xquat[b], -1)]))
        for name, b in bodies.items()
    }


def geoms_of(model: Any, body: int, group: int) -> list[int]:
    """Return the geoms of one group that a body and its parts have."""
    below = {body}
    for child in range(body + 1, model.nbody):
        if int(model.body_parentid[child]) in below:
            below.add(child)
    return [
        geom
        for geom in range(model.ngeom)
        if int(model.geom_bodyid[geom]) in below and model.geom_group[geom] == group
    ]


def corners(model: Any, data: Any, geoms: Iterable[int]) -> Array:
    """Return corners of the boxes about geoms, in the world. Shape (8 * geoms, 3)."""
    points = [np.empty((0, 3))]
    for geom in geoms:
        box = model.geom_aabb[geom]
        own = box[:3] + _CORNERS * box[3:]
        points.append(own @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return np.concatenate(points)
