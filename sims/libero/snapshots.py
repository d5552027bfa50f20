"""The complete state of a LIBERO simulation as bytes; restoring it continues bit-exactly.

MuJoCo's integration state alone is not enough: the controller, the gripper's ramp, the clock and
the fixtures that a reset places through the model belong to it too.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from zetta.runtime.core import Array, Task
from zetta.sims.mujoco_state import identity, integration_state
from zetta.sims.snapshot_archive import check_made_by, checked_task, pack, unpack

_VERSION = 3
_CONTROLLER = "controller."


def dump(inner: Any, tick: int, task: Task, seen_from: Array) -> bytes:
    """Return the state of a LIBERO problem environment, our own tick counter and the task.

    `seen_from` is the integration state that the places of the present tick were computed from.
    """
    model, data = inner.sim.model._model, inner.sim.data._data
    arrays = {
        "state": integration_state(model, data),
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
        **identity(_VERSION, model),
        "tick": tick,
        "task": asdict(task),
        "timestep": int(inner.timestep),
        "cur_time": float(inner.cur_time),
        "controller": scalars,
    }
    return pack(head, arrays)


def load(inner: Any, snapshot: bytes, task: Task) -> tuple[int, Task, Array]:
    """Put a LIBERO problem environment into the state of `snapshot`.

    Returns:
        Our tick counter, the task with the instruction and the budget it had, and `seen_from`.

    Raises:
        SpecMismatch: not a snapshot, or one of another simulator version, model or task.
    """
    import mujoco

    model, data = inner.sim.model._model, inner.sim.data._data
    head, arrays = unpack(snapshot, "LIBERO snapshot")
    check_made_by(head, identity(_VERSION, model))
    taken = checked_task(head, task)
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
