"""Snapshots of a SAPIEN world: the scene, and every action since.

PhysX tells no complete state: what it remembers of contacts stays inside. Its steps are exact
though, and cheap without pictures, so a world is restored by beginning it again and repeating what
was done; it then continues bit-exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from zetta.runtime.core import Action, Array, Init, Layout, Sampled, Scene, Task
from zetta.runtime.errors import SpecMismatch
from zetta.sims.snapshot_archive import checked_task, pack, unpack

_VERSION = 1


def dump(scene: Scene, actions: Sequence[Action], identity: dict[str, str]) -> bytes:
    """Return a snapshot.

    Args:
        scene: how the world began.
        actions: what was done since, in order.
        identity: versions of what repeats it.
    """
    head = {
        "version": _VERSION,
        "identity": identity,
        "task": asdict(scene.task),
        "init": scene.layout.k if isinstance(scene.layout, Init) else None,
        "seed": scene.seed,
    }
    rows = np.array(actions, np.float64) if actions else np.zeros((0, 0))
    return pack(head, {"rows": rows})


def load(snapshot: bytes, task: Task, identity: dict[str, str]) -> tuple[Scene, Array]:
    """Return the scene and the actions of a snapshot.

    Raises:
        SpecMismatch: not a snapshot, or one of another task or of other versions.
    """
    head, arrays = unpack(snapshot, "snapshot of such a world", ("rows",))
    if head.get("version") != _VERSION or head.get("identity") != identity:
        raise SpecMismatch(
            f"the snapshot is of {head.get('identity')}, this environment is {identity}"
        )
    taken = checked_task(head, task)
    layout: Layout = Sampled() if head["init"] is None else Init(int(head["init"]))
    return Scene(taken, layout, int(head["seed"])), np.asarray(arrays["rows"], np.float64)
