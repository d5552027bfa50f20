"""The state of a MuJoCo simulation, and what it is a state of."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from zetta.runtime.core import Array


def model_digest(model: Any) -> str:
    """Return the SHA-256 of what a compiled model is made of; placement and colours apart."""
    digest = hashlib.sha256()
    for part in (model.names, model.jnt_type, model.geom_size, model.body_mass, model.mesh_facenum):
        digest.update(np.ascontiguousarray(part).tobytes() if hasattr(part, "dtype") else part)
    return digest.hexdigest()


def identity(version: int, model: Any) -> dict[str, Any]:
    """Return what a snapshot of a format must share with the simulation that takes it."""
    import mujoco

    return {"version": version, "mujoco": mujoco.__version__, "model": model_digest(model)}


def integration_state(model: Any, data: Any) -> Array:
    """Return what MuJoCo integrates from. Shape (N,)."""
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state
