"""Simulator truth about every named thing of a scene: labels, and sensing at level `oracle`.

Names are noun phrases as the instructions say them. A *thing* (object or fixture) has the centre
and the full size of its box, which stands upright: the third axis is vertical, the first one is
the narrow side of an object and the body's own x axis of a fixture. What slides or swings on a
fixture (drawers, doors) does not count for its box, or an open drawer would move the cabinet.

A *place* (`inside of basket`, `burner of stove`, `top of cabinet`) is flat: `position` is the goal
site's centre in x and y and the surface on which things come to rest in z, and its extent has no
height. A *part* to be held (`handle of top drawer`, `knob of stove`) has a box of its own, with the
first axis across what the fingers close on: for a drawer's bar it points out of the cabinet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zetta.runtime.core import Array, Landmark, read_only
from zetta.sims.boxes import narrow_box, turned_box
from zetta.sims.libero.world import Region, World

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "akita black bowl": ("black bowl", "bowl", "akita black bowl"),
    "black bowl": ("black bowl", "bowl", "akita black bowl"),
    "bottle": ("wine bottle", "bottle"),
    "wine bottle": ("wine bottle", "bottle"),
    "cookies": ("cookie box", "cookies", "box of cookies"),
    "glazed rim porcelain ramekin": ("ramekin",),
    "flat stove": ("stove",),
    "stove": ("stove",),
    "wooden cabinet": ("cabinet", "wooden cabinet"),
    "white cabinet": ("cabinet", "white cabinet"),
    "cabinet": ("cabinet",),
    "wine rack": ("wine rack", "rack"),
    "rack": ("wine rack", "rack"),
    "black book": ("book", "black book"),
    "desk caddy": ("caddy", "desk caddy"),
    "chefmate 8 frypan": ("frying pan", "frypan", "pan"),
    "porcelain mug": ("white mug", "porcelain mug", "mug"),
    "white yellow mug": ("yellow and white mug", "white yellow mug", "mug"),
    "red coffee mug": ("red mug", "red coffee mug", "mug"),
    "popcorn": ("popcorn",),
}
"""The phrase of an instruction, then its aliases, by BDDL category."""
_ADJECTIVES: Final = ("bigger", "red", "blue", "green", "yellow", "white", "brown")
"""Of renamed objects in LIBERO-PRO, whose instructions keep the old name."""
STOVE_FRONT_M: Final = 0.21
"""From the burner to the middle of the table region "front of the stove" (libero_goal)."""
_RIDGE_SHARE: Final = 0.3
"""A knob's geoms above this share of its height belong to the ridge that is pinched."""
_DRAWERS: Final = ("top", "middle", "bottom")


def phrases(category: str) -> tuple[str, ...]:
    """Return how instructions call a BDDL category: the name first, then aliases.

    >>> phrases("akita_black_bowl")[0], phrases("red_cream_cheese")[0], phrases("yellow_stove")
    ('black bowl', 'cream cheese', ('stove',))
    """
    words = category.replace("_", " ").strip()
    if words in NAMES:
        return NAMES[words]
    first, _, rest = words.partition(" ")
    return phrases(rest) if first in _ADJECTIVES and rest else (words,)


class NamedWorld(World):
    """A world that also knows the categories and the shapes of single parts."""

    def category(self, thing: str) -> str:
        """Return the BDDL category of an object or a fixture."""
        return str(self._domain.get_object(thing).category_name)

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of all regions."""
        return tuple(self._domain.object_sites_dict)

    @property
    def table_height(self) -> float:
        """Height of the table, or of the floor where there is none."""
        return float(self._domain.workspace_offset[2])

    def geom_points(self, geom: int) -> Array:
        """Return the corners of one collision geom. Shape (N, 3)."""
        turned = self._corners(geom) @ self.geom_rotation(geom).T
        return np.asarray(turned + self.geom_center(geom))

    def fixed_points(self, thing: str) -> Array:
        """Return the corners of what neither slides nor swings on a thing. Shape (N, 3)."""
        moving = {
            body
            for joint in self.region_joints(thing)
            for body in self._subtree(self.joint(joint).body)
        }
        still = sorted(self._subtree(self.body(thing)) - moving)
        return np.concatenate([self.geom_points(g) for body in still for g in self.geoms(body)])


@dataclass(frozen=True, slots=True)
class Named:
    """One thing of the scene with its parts and places."""

    thing: str
    """The simulator's own name, which is unique."""
    landmark: Landmark
    parts: tuple[Landmark, ...]


def landmarks(sim_env: Any) -> tuple[Landmark, ...]:
    """Return every named thing, part and place of the present scene.

    Args:
        sim_env: LIBERO's `ControlEnv`, as `LiberoEnv.control` holds it.
    """
    return tuple(x for named in survey(NamedWorld(sim_env)) for x in (named.landmark, *named.parts))


def survey(world: NamedWorld, as_shipped: bool = True) -> tuple[Named, ...]:
    """Return every thing of the present scene with its parts and places.

    Args:
        world: the scene.
        as_shipped: whether the table's own regions count; they stay where they are when a
            fixture has been moved.
    """
    found: list[Named] = []
    for thing in world.movables:
        box = narrow_box(world.points(thing))
        landmark = _landmark(phrases(world.category(thing)), *box)
        found.append(Named(thing, landmark, tuple(_places(world, thing))))
    for thing in world.fixtures:
        parts = _parts(world, thing, as_shipped) + _places(world, thing)
        found.append(Named(thing, _fixture(world, thing), tuple(parts)))
    return tuple(found)


def _landmark(names: tuple[str, ...], center: Array, extent: Array, yaw: float) -> Landmark:
    return Landmark(names[0], names[1:], read_only(center), read_only(extent), yaw)


def _fixture(world: NamedWorld, thing: str) -> Landmark:
    names = phrases(world.category(thing))
    # A stove's knob turns in place.
    points = world.points(thing) if names[0] == "stove" else world.fixed_points(thing)
    return _landmark(names, *turned_box(points, _heading(world.rotation(thing))))


def _heading(rotation: Array) -> float:
    """Return the yaw of the first axis that is about horizontal, or else the most level one."""
    level = [i for i in range(3) if abs(rotation[2, i]) < 0.5]
    axis = rotation[:, level[0] if level else int(np.argmin(np.abs(rotation[2])))]
    return float(np.arctan2(axis[1], axis[0]))


# --------------------------------------------------------------------------- parts


def _parts(world: NamedWorld, thing: str, as_shipped: bool) -> list[Landmark]:
    kind = phrases(world.category(thing))[0]
    joints = world.region_joints(thing)
    if kind == "cabinet":
        return [_drawer_handle(world, drawer, j) for j in joints for drawer in _drawer_of(j)]
    if kind == "stove":
        return [_knob(world, joint) for joint in joints] + [_stove_front(world, thing, as_shipped)]
    if kind == "microwave":
        return [_door_handle(world, joint) for joint in joints]
    return []


def _drawer_of(joint: str) -> list[str]:
    return [drawer for drawer in _DRAWERS if f"_{drawer}_" in joint]


def _drawer_handle(world: NamedWorld, drawer: str, joint: str) -> Landmark:
    slide = world.joint(joint)
    out = -slide.axis
    bar = max(world.geoms(slide.body), key=lambda geom: world.geom_center(geom) @ out)
    box = turned_box(world.geom_points(bar), float(np.arctan2(out[1], out[0])))
    names = (f"handle of {drawer} drawer", f"handle of {drawer} drawer of cabinet")
    return _landmark(names, *box)


def _knob(world: NamedWorld, joint: str) -> Landmark:
    hinge = world.joint(joint)
    geoms = world.geoms(hinge.body)
    heights = np.array([world.geom_center(geom)[2] for geom in geoms])
    floor = heights.min() + _RIDGE_SHARE * np.ptp(heights)
    ridge = np.concatenate(
        [world.geom_points(g) for g, z in zip(geoms, heights, strict=True) if z > floor]
    )
    center, extent, yaw = narrow_box(ridge)
    # The pivot, not the ridge's middle: what is pinched there turns in place.
    return _landmark(
        ("knob of stove", "stove knob", "knob"),
        np.array([*hinge.anchor[:2], center[2]]),
        extent,
        yaw,
    )


def _stove_front(world: NamedWorld, thing: str, as_shipped: bool) -> Landmark:
    names = ("front of stove",)
    for region in map(world.region, world.regions):
        if as_shipped and not region.parent and "stove_front" in region.name:
            return _place(names, region, world.table_height)
    burner = _burner(world, thing)
    forward = world.rotation(thing)[:, 0]
    position = burner.center + STOVE_FRONT_M * forward
    box = np.array([0.08, 0.08, 0.0])
    position[2] = world.table_height
    return _landmark(names, position, box, _heading(world.rotation(thing)))


def _burner(world: NamedWorld, thing: str) -> Region:
    return next(
        r
        for r in map(world.region, world.regions)
        if r.parent == thing and r.name.endswith("cook_region")
    )


def _door_handle(world: NamedWorld, joint: str) -> Landmark:
    hinge = world.joint(joint)
    bar = max(
        world.geoms(hinge.body),
        key=lambda g: float(np.linalg.norm((world.geom_center(g) - hinge.anchor)[:2])),
    )
    names = ("handle of microwave", "handle of microwave door", "microwave door")
    return _landmark(names, *narrow_box(world.geom_points(bar)))


# --------------------------------------------------------------------------- places


def _places(world: NamedWorld, thing: str) -> list[Landmark]:
    kind = phrases(world.category(thing))[0]
    found = []
    for region in map(world.region, world.regions):
        if region.parent != thing:
            continue
        names = _place_names(kind, region.name.removeprefix(f"{thing}_"))
        if names:
            found.append(_place(names, region, _surface(world, kind, region)))
    return found


def _place_names(kind: str, region: str) -> tuple[str, ...]:
    """Return how a region of a thing is called; empty when instructions never name it."""
    side, _, what = region.partition("_")
    if kind == "cabinet" and what == "region" and side in _DRAWERS:
        drawer = f"{side} drawer"
        of = (f"{drawer} of cabinet", f"inside of {drawer} of cabinet")
        return (f"inside of {drawer}", drawer, *of)
    if kind == "caddy" and what == "contain_region":
        return (f"{side} compartment of caddy", f"inside of {side} compartment", f"{side} of caddy")
    return {
        ("cabinet", "top_side"): ("top of cabinet",),
        ("stove", "cook_region"): ("burner of stove", "top of stove", "burner"),
        ("wine rack", "top_region"): ("top of wine rack", "top of rack"),
        ("basket", "contain_region"): ("inside of basket",),
        ("microwave", "heating_region"): ("inside of microwave",),
        ("microwave", "top_side"): ("top of microwave",),
    }.get((kind, region), ())


def _surface(world: NamedWorld, kind: str, region: Region) -> float:
    """Return the height at which things come to rest in a region."""
    if kind == "stove":
        # The site lies inside the base; a pot stands on the plate above it.
        return float(world.fixed_points(region.parent)[:, 2].max())
    if kind == "wine rack":
        return float(region.center[2])
    return float(region.center[2] - np.abs(region.rotation[2]) @ region.half_size)


def _place(names: tuple[str, ...], region: Region, height: float) -> Landmark:
    yaw = _heading(region.rotation)
    along = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [-np.sin(yaw), np.cos(yaw), 0.0]])
    # Projected, because the place on a wine rack slopes.
    sides = 2 * np.abs(along @ region.rotation) @ region.half_size
    return _landmark(names, np.array([*region.center[:2], height]), np.array([*sides, 0.0]), yaw)
