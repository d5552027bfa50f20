"""A finder without any training: level ground, patches that rise from it, colour and shape words.

It knows names made of a colour, a size, a direction and a shape: "red cube", "big blue block",
"left plate". Made for plain things on a table: the toy, the twin arm, cubes and cans of robosuite
and ManiSkill, and blocks under a real depth camera; and the handles of drawers and doors
(`geometry_handles.py`). What needs reading a label it does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zetta.primitives.localize.clouds import Cloud, HandShape, clouds
from zetta.primitives.localize.geometry_colours import WORDS, likeness
from zetta.primitives.localize.geometry_handles import find_handles, names_a_handle
from zetta.primitives.localize.geometry_segments import Segment, find_support, segments
from zetta.primitives.localize.geometry_solids import Form, Solid, fit, proportions
from zetta.primitives.localize.heights import Workspace, without_arm
from zetta.primitives.localize.relations import View, choose
from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.roles_names import COLOURS, DIRECTIONS, SIZES
from zetta.primitives.roles_records import Relation
from zetta.runtime.core import Observation, Sensing, read_only

FORMS: Mapping[str, Form] = {
    "cube": "cube",
    "block": "box",
    "box": "box",
    "brick": "box",
    "can": "cylinder",
    "cylinder": "cylinder",
    "cup": "cylinder",
    "mug": "cylinder",
    "bottle": "cylinder",
    "bowl": "cylinder",
    "ball": "ball",
    "sphere": "ball",
    "plate": "cylinder",
    "disc": "cylinder",
    "coaster": "cylinder",
    "pad": "box",
    "object": "box",
    "thing": "box",
}
"""The solid of each shape word."""
_FLAT = ("plate", "disc", "coaster", "pad")
_TALL = ("can", "cylinder", "bottle")
_ANYTHING = ("object", "thing")
_FLAT_RATIO, _TALL_RATIO = 0.4, 1.15
"""Height over width: below the first a thing is flat, above the second it is tall."""
_LEAST = 0.2
"""Less likely matches are not reported."""
_LARGEST = 0.45
"""What is wider is furniture, metres."""
_CUT_WORTH = 0.5
_RIVALS: tuple[Form, ...] = ("box", "cylinder", "ball")
_EXCUSED = 0.1
"""Misfits below this are equally good."""
_SAME = 0.035
"""Patches of two pictures whose middles are nearer, metres, are one thing."""


@dataclass(frozen=True, slots=True)
class _Description:
    """What a name says."""

    shape: str
    colour: str | None
    size: str | None
    direction: str | None


def described(name: str) -> bool:
    """Say whether a name is made of words that this finder knows.

    >>> described("big red cube"), described("alphabet soup")
    (True, False)
    """
    return _description(name) is not None


def _description(name: str) -> _Description | None:
    *adjectives, shape = name.split() or [""]
    if shape not in FORMS:
        return None
    colour = size = direction = None
    for word in adjectives:
        if word in COLOURS or word in WORDS:
            colour = word
        elif word in SIZES:
            size = SIZES[word]
        elif word in DIRECTIONS:
            direction = DIRECTIONS[word]
        else:
            return None
    return _Description(shape, colour, size, direction)


class GeometryFinder:
    """Finds plain things by depth, colour and shape."""

    level: Sensing = "vision"

    def __init__(
        self,
        cameras: tuple[str, ...] = (),
        workspace: Workspace | None = None,
        shape: HandShape | None = None,
        view: View | None = None,
    ) -> None:
        """Set where to look.

        Args:
            cameras: the cameras that are used; none named means all that come with depth.
            workspace: what lies outside is not seen.
            shape: the room that each hand fills.
            view: what "left" and "front" mean in a name.
        """
        self._cameras = cameras
        self._workspace = workspace or Workspace()
        self._shape = shape or HandShape()
        self._view = view or View()

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        """Return every thing that fits a name; names that it cannot read are absent."""
        handles = [name for name in dict.fromkeys(names) if names_a_handle(name)]
        seen: tuple[Sighting, ...] = ()
        if handles:
            seen = find_handles(self._clouds(observation), observation.proprio, handles)
        wanted = {n: d for n in dict.fromkeys(names) if (d := _description(n)) is not None}
        if not wanted:
            return seen
        patches = _merged([p for c in self._clouds(observation) for p in self._patches(c)])
        found = list(seen)
        for name, description in wanted.items():
            own = [s for p in patches if (s := p.sighting(name, description)) is not None]
            found += _selected(own, description, self._view)
        return tuple(found)

    def _clouds(self, observation: Observation) -> list[Cloud]:
        seen = clouds(observation, self._shape, self._cameras)
        return [without_arm(cloud, observation.proprio.arms, self._shape) for cloud in seen]

    def _patches(self, cloud: Cloud) -> list[_Patch]:
        support = find_support(cloud, self._workspace)
        if support is None:
            return []
        return [_Patch(s) for s in segments(cloud, support, self._workspace)]


class _Patch:
    """A segment with the solids that were fitted to it."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.pixels = int(segment.solid.sum())
        self.proportions = proportions(segment)
        """Width and height, roughly."""
        self.middle = np.median(segment.cloud.points[segment.solid], axis=0)
        self._fits: dict[Form, Solid] = {}

    def fitted(self, form: Form) -> Solid:
        """Return the best solid of a form."""
        if form not in self._fits:
            self._fits[form] = fit(self.segment, form)
        return self._fits[form]

    def sighting(self, name: str, description: _Description) -> Sighting | None:
        """Return the thing under `name`, or None when the name does not fit."""
        colour = description.colour
        like = 1.0 if colour is None else likeness(colour, self.segment.shares)
        if like < _LEAST:
            return None
        shape = self._shape_likeness(description.shape, colour)
        confidence = like * shape * (_CUT_WORTH if self.segment.cut else 1.0)
        if confidence < _LEAST:
            return None
        solid = self.fitted(FORMS[description.shape])
        return _sighting(name, solid, min(confidence, 1.0))

    def _shape_likeness(self, shape: str, colour: str | None) -> float:
        width, height = self.proportions
        if width > _LARGEST:
            return 0.0
        ratio = height / width
        if shape in _ANYTHING:
            return 0.8
        if (shape in _FLAT) != (ratio < _FLAT_RATIO):
            return 0.0 if shape in _FLAT or ratio < 0.6 * _FLAT_RATIO else 0.3
        if shape in _FLAT:
            return 1.0
        if shape in _TALL and ratio < _TALL_RATIO:
            return 0.4
        if shape in _TALL and colour is not None:
            # Its colour and its proportions tell it well enough.
            return 1.0
        if shape == "cube" and ratio > 1.3:
            return 0.3
        mine = self.fitted(FORMS[shape]).misfit
        best = min(self.fitted(form).misfit for form in _RIVALS)
        # Twice the misfit of the best explanation is about half as likely.
        return float(np.clip(1.5 * (best + _EXCUSED) / (mine + _EXCUSED), 0.0, 1.0))


def _sighting(name: str, solid: Solid, confidence: float) -> Sighting:
    position = read_only([solid.x, solid.y, (solid.low + solid.high) / 2.0])
    extent = read_only([solid.width, solid.depth, solid.high - solid.low])
    return Sighting(name, position, extent, solid.yaw, confidence)


def _merged(patches: list[_Patch]) -> list[_Patch]:
    """Return each thing once: of two pictures of it the one that shows all, or more, of it."""
    if len({id(patch.segment.cloud) for patch in patches}) < 2:
        return patches
    kept: list[_Patch] = []
    for patch in sorted(patches, key=lambda p: (p.segment.cut, -p.pixels)):
        if not any(
            other.segment.cloud is not patch.segment.cloud
            and math.dist(patch.middle, other.middle) < _SAME
            for other in kept
        ):
            kept.append(patch)
    return kept


def _selected(own: list[Sighting], description: _Description, view: View) -> list[Sighting]:
    """Return what a size or a direction in the name leaves."""
    if len(own) > 1 and description.size is not None:
        order = sorted(own, key=lambda s: float(np.prod(s.extent)))
        own = order[-1:] if description.size == "big" else order[:1]
    if len(own) > 1 and description.direction is not None:
        choice = choose(own, _RELATIONS[description.direction], view=view)
        own = [choice.best] if choice is not None else own
    return own


_RELATIONS: Mapping[str, Relation] = {
    "left": Relation("left"),
    "right": Relation("right"),
    "front": Relation("front"),
    "back": Relation("back"),
    "middle": Relation("middle"),
}
