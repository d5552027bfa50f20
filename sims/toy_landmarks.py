"""Simulator truth about the toy's things, as named boxes."""

from __future__ import annotations

from zetta.runtime.core import Array, Landmark, read_only
from zetta.sims.toy_state import thing_rows
from zetta.sims.toy_tasks import ToyTask

_OTHER_WORDS = {"cube": ("block", "box"), "can": ("cylinder",), "ball": ("sphere",), "plate": ()}
"""What else a shape is called."""


def landmarks_of(toy: ToyTask, pose: Array) -> tuple[Landmark, ...]:
    """Return every thing at a pose of the world: "red cube", also "cube" and "red block".

    Only a cube has sides to be turned: the yaw of the others is 0.
    """
    found = []
    for thing, row in zip(toy.things, thing_rows(toy, pose), strict=True):
        words: tuple[str, ...] = (thing.shape, *_OTHER_WORDS[thing.shape])
        aliases = [f"{thing.colour} {word}" for word in words] + list(words)
        size = (2.0 * thing.radius, 2.0 * thing.radius, 2.0 * thing.half_height)
        yaw = float(row[3]) if thing.shape == "cube" else 0.0
        found.append(
            Landmark(thing.words, tuple(aliases[1:]), read_only(row[:3]), read_only(size), yaw)
        )
    return tuple(found)
