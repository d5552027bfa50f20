"""The complete state of a robosuite simulation as bytes; restoring it continues bit-exactly.

RoboCasa's kitchens are robosuite environments too and have their snapshots from here.

To MuJoCo's integration state belong the bodies and colours that robosuite changes in the model,
the controllers, the ramps of the grippers, and what an environment remembers (which marks are
wiped, which nuts have been on their pegs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from zetta.runtime.core import Task
from zetta.sims.mujoco_state import identity, integration_state
from zetta.sims.snapshot_archive import check_made_by, checked_task, pack, unpack

_VERSION = 1
_KIND = "robosuite snapshot"
_ALIASES = ("initial_ref_pos", "initial_ref_ori_mat")
"""Names that a controller gives to places it knows by another name, and never reads."""
_MODEL_FIELDS = ("body_pos", "body_quat", "geom_rgba", "site_rgba")


def dump(inner: Any, tick: int, task: Task, world: Mapping[str, Any] | None = None) -> bytes:
    """Return the state of a robosuite environment, our own tick counter and the task.

    `world` is what the compiled model was made from, where that changes with the scene.
    """
    model, data = inner.sim.model._model, inner.sim.data._data
    state = integration_state(model, data)
    arrays = {"state": state, **{name: getattr(model, name) for name in _MODEL_FIELDS}}
    scalars: dict[str, bool | int | float | str | None] = {}
    for owner, holder in _holders(inner):
        for name, value in vars(holder).items():
            key = f"{owner}/{name}"
            if name in _ALIASES:
                continue
            if isinstance(value, np.ndarray) and not value.dtype.hasobject:
                # One order in memory: equal states have equal snapshots.
                arrays[key] = np.array(value, order="C")
            elif isinstance(value, np.generic):
                scalars[key] = value.item()
            elif value is None or isinstance(value, (bool, int, float, str)):
                scalars[key] = value
    head = {
        **identity(_VERSION, model),
        "tick": tick,
        "task": asdict(task),
        "world": dict(world or {}),
        "scalars": scalars,
        "wiped": sorted(marker.name for marker in getattr(inner, "wiped_markers", ())),
    }
    return pack(head, arrays)


def world_of(snapshot: bytes) -> Mapping[str, Any]:
    """Return what the model of a snapshot was made from.

    Raises:
        SpecMismatch: it is no snapshot.
    """
    return dict(unpack(snapshot, _KIND)[0].get("world", {}))


def load(inner: Any, snapshot: bytes, task: Task, markers: list[Any]) -> tuple[int, Task]:
    """Put a robosuite environment into the state of `snapshot`; its places follow with a step.

    Returns:
        Our tick counter, and the task with the instruction and the budget it had.

    Raises:
        SpecMismatch: not a snapshot, or one of another simulator version, model or task.
    """
    import mujoco

    model, data = inner.sim.model._model, inner.sim.data._data
    head, arrays = unpack(snapshot, _KIND)
    check_made_by(head, identity(_VERSION, model))
    taken = checked_task(head, task)
    for name in _MODEL_FIELDS:
        getattr(model, name)[:] = arrays[name]
    mujoco.mj_setState(model, data, arrays["state"], mujoco.mjtState.mjSTATE_INTEGRATION)
    for owner, holder in _holders(inner):
        for name in list(vars(holder)):
            key = f"{owner}/{name}"
            if key in arrays:
                setattr(holder, name, arrays[key].copy())
            elif key in head["scalars"]:
                setattr(holder, name, head["scalars"][key])
    if hasattr(inner, "wiped_markers"):
        wiped = set(head["wiped"])
        inner.wiped_markers = [marker for marker in markers if marker.name in wiped]
    return int(head["tick"]), taken


def _holders(inner: Any) -> Iterator[tuple[str, Any]]:
    """Yield what has a memory of its own, by a name that is the same in every process."""
    yield "env", inner
    for i, robot in enumerate(inner.robots):
        for name, part in robot.composite_controller.part_controllers.items():
            yield f"robot{i}.{name}", part
        for name, gripper in robot.gripper.items():
            yield f"gripper{i}.{name}", gripper
        for name, buffer in robot.recent_ee_forcetorques.items():
            yield f"force{i}.{name}", buffer
    for name, fixture in getattr(inner, "fixtures", {}).items():
        yield f"fixture.{name}", fixture
