"""Snapshots of a SAPIEN world: the scene, and every action since.

PhysX tells no complete state: what it remembers of contacts stays inside. Its steps are exact
though, and cheap without pictures, so a world is restored by beginning it again and repeating what
was done; it then continues bit-exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Action, Array, Init, Layout, Sampled, Scene, Task
from zetta.runtime.errors import SpecMismatch

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
    buffer = io.BytesIO()
    rows = np.array(actions, np.float64) if actions else np.zeros((0, 0))
    np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8), rows=rows)
    return buffer.getvalue()


def load(snapshot: bytes, task: Task, identity: dict[str, str]) -> tuple[Scene, Array]:
    """Return the scene and the actions of a snapshot.

    Raises:
        SpecMismatch: not a snapshot, or one of another task or of other versions.
    """
    head, rows = _read(snapshot)
    if head.get("version") != _VERSION or head.get("identity") != identity:
        raise SpecMismatch(
            f"the snapshot is of {head.get('identity')}, this environment is {identity}"
        )
    taken = Task(**head["task"])
    if (taken.suite, taken.index) != (task.suite, task.index):
        raise SpecMismatch(
            f"the snapshot is of {taken.suite}#{taken.index}, this environment is "
            f"{task.suite}#{task.index}"
        )
    layout: Layout = Sampled() if head["init"] is None else Init(int(head["init"]))
    return Scene(taken, layout, int(head["seed"])), rows


def _read(snapshot: bytes) -> tuple[dict[str, Any], Array]:
    try:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
            head, rows = json.loads(archive["head"].tobytes()), archive["rows"]
        return dict(head), np.asarray(rows, np.float64)
    except (*UNREADABLE, AttributeError) as error:
        raise SpecMismatch(
            f"got {len(snapshot)} bytes that are no snapshot of such a world; pass what snapshot() "
            "returned"
        ) from error
