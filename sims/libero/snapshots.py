"""The complete state of a LIBERO simulation as bytes; restoring it continues bit-exactly.

MuJoCo's integration state alone is not enough: the controller, the gripper's ramp, the clock and
the fixtures that a reset places through the model belong to it too.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Array, Task
from zetta.runtime.errors import SpecMismatch

_VERSION = 3
_CONTROLLER = "controller."


def model_digest(model: Any) -> str:
    """Return the SHA-256 of what a compiled model is made of, fixture placement apart."""
    digest = hashlib.sha256()
    for part in (model.names, model.jnt_type, model.geom_size, model.body_mass, model.mesh_facenum):
        digest.update(np.ascontiguousarray(part).tobytes() if hasattr(part, "dtype") else part)
    return digest.hexdigest()


def dump(inner: Any, tick: int, task: Task, seen_from: Array) -> bytes:
    """Return the state of a LIBERO problem environment, our own tick counter and the task.

    `seen_from` is the integration state that the places of the present tick were computed from.
    """
    import mujoco

    model, data = inner.sim.model._model, inner.sim.data._data
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    arrays = {
        "state": state,
        "seen_from": seen_from,
        "body_pos": model.body_pos,
        "body_quat": model.body_quat,
        "gripper": np.asarray(inner.robots[0].gripper.current_action),
    }
    scalars: dict[str, bool | int | float | None] = {}
    for name, value in vars(inner.robots[0].controller).items():
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            # One order in memory: equal states have equal snapshots.
            arrays[_CONTROLLER + name] = np.array(value, order="C")
        elif value is None or isinstance(value, (bool, int, float)):
            scalars[name] = value
    head = {
        "version": _VERSION,
        "mujoco": mujoco.__version__,
        "model": model_digest(model),
        "tick": tick,
        "task": asdict(task),
        "timestep": int(inner.timestep),
        "cur_time": float(inner.cur_time),
        "controller": scalars,
    }
    buffer = io.BytesIO()
    np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
    return buffer.getvalue()


def load(inner: Any, snapshot: bytes, task: Task) -> tuple[int, Task, Array]:
    """Put a LIBERO problem environment into the state of `snapshot`.

    Returns:
        Our tick counter, the task with the instruction and the budget it had, and `seen_from`.

    Raises:
        SpecMismatch: not a snapshot, or one of another simulator version, model or task.
    """
    import mujoco

    model, data = inner.sim.model._model, inner.sim.data._data
    head, arrays = _read(snapshot)
    expected = {"version": _VERSION, "mujoco": mujoco.__version__, "model": model_digest(model)}
    for name, value in expected.items():
        if head.get(name) != value:
            raise SpecMismatch(
                f"the snapshot has {name} {head.get(name)!r}, this environment {value!r}"
            )
    taken = Task(**head["task"])
    if (taken.suite, taken.index) != (task.suite, task.index):
        raise SpecMismatch(
            f"the snapshot is of {taken.suite}#{taken.index}, this environment is "
            f"{task.suite}#{task.index}"
        )
    model.body_pos[:], model.body_quat[:] = arrays["body_pos"], arrays["body_quat"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(model, data, arrays["state"], kind)
    mujoco.mj_forward(model, data)
    # What is seen and touched lags one substep behind the joints, in a restored world as well.
    mujoco.mj_setState(model, data, arrays["seen_from"], kind)
    mujoco.mj_step1(model, data)
    mujoco.mj_setState(model, data, arrays["state"], kind)
    robot = inner.robots[0]
    robot.gripper.current_action = arrays["gripper"].copy()
    for name, array in arrays.items():
        if name.startswith(_CONTROLLER):
            setattr(robot.controller, name.removeprefix(_CONTROLLER), array.copy())
    for name, scalar in head["controller"].items():
        setattr(robot.controller, name, scalar)
    inner.timestep, inner.cur_time, inner.done = head["timestep"], head["cur_time"], False
    inner._post_process()
    return int(head["tick"]), taken, arrays["seen_from"].copy()


def _read(snapshot: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return json.loads(arrays.pop("head").tobytes()), arrays
    except (*UNREADABLE, AttributeError) as error:
        raise SpecMismatch(
            f"got {len(snapshot)} bytes that are no LIBERO snapshot; pass what snapshot() returned"
        ) from error
