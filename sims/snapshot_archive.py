"""Snapshots as bytes: a head of JSON and arrays, and what is refused before one is restored."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Task
from zetta.runtime.errors import SpecMismatch


def pack(head: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return a snapshot; equal heads and arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
    return buffer.getvalue()


def unpack(
    snapshot: bytes, kind: str, needed: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the head and the arrays of a snapshot.

    Args:
        snapshot: as `pack` returned it.
        kind: what it is expected to be, for the message.
        needed: names of arrays that it must hold.

    Raises:
        SpecMismatch: it is no snapshot.
    """
    try:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        head = dict(json.loads(arrays.pop("head").tobytes()))
        return head, {**arrays, **{name: arrays[name] for name in needed}}
    except (*UNREADABLE, AttributeError) as error:
        raise SpecMismatch(
            f"got {len(snapshot)} bytes that are no {kind}; pass what snapshot() returned"
        ) from error


def check_made_by(head: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a snapshot that was made by something else.

    Raises:
        SpecMismatch: the first thing that differs.
    """
    for name, value in expected.items():
        if head.get(name) != value:
            raise SpecMismatch(
                f"the snapshot has {name} {head.get(name)!r}, this environment {value!r}"
            )


def checked_task(head: Mapping[str, Any], task: Task) -> Task:
    """Return the task of a snapshot, with the instruction and the budget it had.

    Raises:
        SpecMismatch: it is another one than `task`.
    """
    taken = Task(**head["task"])
    if (taken.suite, taken.index) != (task.suite, task.index):
        raise SpecMismatch(
            f"the snapshot is of {taken.suite}#{taken.index}, this environment is "
            f"{task.suite}#{task.index}"
        )
    return taken
