"""Visual meshes with fewer triangles: on a CPU a picture costs what its triangles cost.

Only the copy of the model that is uploaded for drawing is changed; collision geometry and physics
never see it. Quadric edge collapse comes from `fast-simplification`; each surviving corner keeps
its own normal and texture coordinate, so textured meshes can be decimated too.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zetta.runtime.archives import UNREADABLE
from zetta.sims.libero.scratch import scratch_folder

KEEP_SHARE = 0.10
"""Share of triangles that stays: 70 -> 15 ms a picture, mean change about 2 of 255."""
KEEP_AT_LEAST = 300
_VERSION = "quadric-1"


@dataclass(frozen=True, slots=True)
class SmallMesh:
    """A decimated mesh, written over the first rows of the original one."""

    vertices: npt.NDArray[np.float32]
    """Shape (V', 3), metres, frame of the mesh."""
    faces: npt.NDArray[np.int32]
    """Shape (F', 3), indices into `vertices`."""
    kept: npt.NDArray[np.int64]
    """Rows of the original faces that survive. Shape (F',)."""


def decimated(model: Any, cache: Path | None = None) -> Any:
    """Return a copy of an `MjModel` whose larger meshes have a tenth of their triangles.

    Args:
        model: the compiled model; it is not changed.
        cache: folder for decimated meshes by content hash; a private temporary one by default.
    """
    small = copy.copy(model)
    folder = cache or scratch_folder("meshes")
    for mesh in range(small.nmesh):
        if small.mesh_facenum[mesh] > KEEP_AT_LEAST:
            _shrink(small, mesh, folder)
    return small


def decimate(
    vertices: npt.NDArray[np.float32], faces: npt.NDArray[np.int32], target: int
) -> SmallMesh:
    """Collapse edges until about `target` faces are left.

    Args:
        vertices: shape (V, 3).
        faces: shape (F, 3).
        target: wanted number of faces.
    """
    import fast_simplification

    unique, inverse = np.unique(vertices, axis=0, return_inverse=True)
    welded = inverse.reshape(-1)[faces].astype(np.int32)
    reduction = float(np.clip(1.0 - target / len(faces), 0.0, 0.999))
    _, _, collapses = fast_simplification.simplify(
        unique, welded, target_reduction=reduction, return_collapses=True
    )
    points, _, mapping = fast_simplification.replay_simplification(unique, welded, collapses)
    moved = np.asarray(mapping)[welded]
    a, b, c = moved.T
    alive = (a != b) & (b != c) & (a != c)
    _, first = np.unique(np.sort(moved[alive], axis=1), axis=0, return_index=True)
    kept = np.flatnonzero(alive)[np.sort(first)]
    return SmallMesh(
        np.asarray(points, np.float32), np.asarray(moved[kept], np.int32), kept.astype(np.int64)
    )


def _shrink(model: Any, mesh: int, folder: Path) -> None:
    v0, vn = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    f0, fn = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    vertices, faces = model.mesh_vert[v0 : v0 + vn], model.mesh_face[f0 : f0 + fn]
    small = _cached(vertices, faces, max(KEEP_AT_LEAST, int(KEEP_SHARE * fn)), folder)
    n = len(small.faces)
    if n == 0 or n >= fn or len(small.vertices) > vn:
        return
    model.mesh_vert[v0 : v0 + len(small.vertices)] = small.vertices
    model.mesh_face[f0 : f0 + n] = small.faces
    for corners in (model.mesh_facenormal, model.mesh_facetexcoord):
        corners[f0 : f0 + n] = corners[f0 : f0 + fn][small.kept]
    model.mesh_facenum[mesh] = n


def _cached(
    vertices: npt.NDArray[np.float32], faces: npt.NDArray[np.int32], target: int, folder: Path
) -> SmallMesh:
    key = hashlib.sha256(f"{_VERSION}:{target}".encode())
    key.update(np.ascontiguousarray(vertices).tobytes())
    key.update(np.ascontiguousarray(faces).tobytes())
    path = folder / f"{key.hexdigest()[:32]}.npz"
    damaged = contextlib.suppress(*UNREADABLE)
    with damaged, np.load(path, allow_pickle=False) as saved:
        return SmallMesh(saved["vertices"], saved["faces"], saved["kept"])
    small = decimate(vertices, faces, target)
    _store(path, small)
    return small


def _store(path: Path, mesh: SmallMesh) -> None:
    # A cache that cannot be written only costs time.
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, vertices=mesh.vertices, faces=mesh.faces, kept=mesh.kept)
        Path(temporary).replace(path)
