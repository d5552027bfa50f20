"""Where things go and how they are held, read from the goal predicates and the scene."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zetta.runtime.core import Array
from zetta.sims.libero.expert_carrying import Place
from zetta.sims.libero.expert_grasps import Grasp, GripStyle, overreach
from zetta.sims.libero.expert_motions import UP
from zetta.sims.libero.world import Goal, Region, World

BASKET_DROP = 0.04
"""Height over the middle of a basket from which things are let go."""
BASKET_ASIDE = 0.035
"""Two things in one basket go this far to both sides of its middle."""
STOVE_ASIDE = 0.042
"""Two pots on one burner stand this far to both sides of its middle."""
EDGE = 0.05
"""Room kept to the edge of a region that is wider than what is put on it."""
POT_BODY = 0.067
"""Half height of a moka pot's body geom, whose middle is the pot's axis."""


def grip_style(world: World, goal: Goal) -> GripStyle:
    """Return how the subject of an `in` or `on` predicate is taken."""
    if "plate" in goal.subject:
        return GripStyle(rim_inside=0.004, rim_depth=0.008, rim_only=True)
    if world.is_drawer(goal.target):
        joint = world.joint(world.region_joints(goal.target)[0])
        # The hand must lie along the front, or it meets the handles of the drawers above.
        if "bottom" in goal.target:
            return GripStyle(along=np.cross(UP, joint.axis)[:2])
    return GripStyle()


def special_grasp(world: World, goal: Goal) -> Callable[[], Grasp] | None:
    """Return the one sensible grasp of an odd object, or None."""
    if "moka" in goal.subject:
        return lambda: _lid_knob(world, goal.subject)
    if "book" in goal.subject:
        return lambda: _by_thickness(world, goal.subject)
    return None


def placing(world: World, goal: Goal) -> Place:
    """Return where the subject of an `in` or `on` predicate shall rest."""
    name = goal.subject
    if "moka" in name:
        return Place(lambda: _on_region(world, goal), lambda: _pot_axis(world, name))
    if "book" in name:
        yaw = _compartment_yaw(world.region(goal.target))
        return Place(lambda: _in_compartment(world, goal), lambda: _middle(world, name), 0.008, yaw)
    if not world.is_region(goal.target):
        return Place(lambda: _on_object(world, goal), lambda: world.position(name))
    if goal.predicate == "on":
        return Place(lambda: _on_region(world, goal), lambda: world.position(name))
    if world.is_drawer(goal.target):
        return Place(lambda: _in_drawer(world, goal), lambda: world.position(name))
    return Place(lambda: _in_basket(world, goal), lambda: _middle(world, name))


def _middle(world: World, name: str) -> Array:
    low, high = world.bounds(name)
    return np.asarray((low + high) / 2)


def _on_object(world: World, goal: Goal) -> Array:
    """Return the rest point on another object: over its origin, which the predicate looks at."""
    spot = world.position(goal.target)
    return np.array([*spot[:2], world.surface(float(spot[0]), float(spot[1]), goal.subject)])


def _on_region(world: World, goal: Goal) -> Array:
    """Return the rest point on a region: its middle, or nearer to the robot where it is wide."""
    region = world.region(goal.target)
    spot = region.center.copy()
    spot += _nearer(world, goal.subject, region)
    spot[:2] += _aside(world, goal, STOVE_ASIDE, axis=0)
    spot[2] = max(
        world.surface(float(spot[0]) + dx, float(spot[1]) + dy, goal.subject)
        for dx in (-0.015, 0.0, 0.015)
        for dy in (-0.015, 0.0, 0.015)
    )
    return spot


def _nearer(world: World, name: str, region: Region) -> Array:
    """Return the shift toward the robot, inside the region, that saves the arm from overreach."""
    low, high = world.bounds(name)
    hand = region.center + (high - low)[2] * UP
    spare = np.maximum(0.0, _world_half_size(region) - EDGE) * [1.0, 1.0, 0.0]
    most = np.clip(world.shoulder - region.center, -spare, spare)
    for share in (0.0, 0.5, 1.0):
        if overreach(hand + share * most, world.shoulder) == 0.0:
            return np.asarray(share * most)
    return np.asarray(most)


def _in_basket(world: World, goal: Goal) -> Array:
    spot = world.region(goal.target).center + BASKET_DROP * UP
    spot[:2] += _aside(world, goal, BASKET_ASIDE, axis=1)
    return np.asarray(spot)


def _in_drawer(world: World, goal: Goal) -> Array:
    """Return the rest point in an open drawer, a little toward its front."""
    region = world.region(goal.target)
    out = -world.joint(world.region_joints(goal.target)[0]).axis
    spot = region.center + 0.022 * out
    # From inside the drawer: the cabinet may still hang over a part of it.
    floor = world.surface(float(spot[0]), float(spot[1]), goal.subject, float(spot[2]) + 0.02)
    return np.array([*spot[:2], floor])


def _aside(world: World, goal: Goal, distance: float, axis: int) -> Array:
    """Return the shift of one of several subjects that share a target. Shape (2,).

    The second one goes where the first is not; the first one stays on its own side.
    """
    shift = np.zeros(2)
    for other in world.goals:
        if other.target == goal.target and other.subject != goal.subject:
            here = world.position(other.subject)[axis]
            placed = world.holds(other)
            mark = world.region(goal.target).center if placed else world.position(goal.subject)
            shift[axis] = distance if here < mark[axis] else -distance
    return shift


def _world_half_size(region: Region) -> Array:
    return np.abs(region.rotation @ region.half_size)


def _pot_axis(world: World, name: str) -> Array:
    return world.geom_center(_pot_body(world, name))


def _pot_body(world: World, name: str) -> int:
    geoms = world.geoms(world.body(name))
    return max(geoms, key=lambda g: float(np.prod(world.geom_size(g))))


def _lid_knob(world: World, name: str) -> Grasp:
    """Return the grasp of a moka pot by the knob on its lid: the body is as wide as the hand."""
    axis = _pot_axis(world, name)
    geoms = world.geoms(world.body(name))
    high = [g for g in geoms if world.geom_center(g)[2] > axis[2] + POT_BODY - 0.005]
    knob = min(
        high or geoms, key=lambda g: float(np.linalg.norm((world.geom_center(g) - axis)[:2]))
    )
    point = world.geom_center(knob) + 0.006 * UP
    return Grasp(point, 0.0, 0.012, 0, 0.0, 0.0)


def _by_thickness(world: World, name: str) -> Grasp:
    """Return the grasp of a standing book, the fingers closing on its thickness."""
    geom = world.geoms(world.body(name))[0]
    size, turn = world.geom_size(geom), world.geom_rotation(geom)
    travel = turn[:, int(np.argmin(size))]
    top = float(world.points(name)[:, 2].max())
    point = np.array([*world.geom_center(geom)[:2], top - 0.026])
    return Grasp(point, _half_turn_yaw(travel), 2 * float(size.min()), 0, 0.0, 0.0)


def _in_compartment(world: World, goal: Goal) -> Array:
    spot = world.region(goal.target).center
    return np.array([*spot[:2], world.surface(float(spot[0]), float(spot[1]), goal.subject)])


def _compartment_yaw(region: Region) -> float:
    """Return the turn of a hand whose fingers travel along the compartment's short side."""
    return _half_turn_yaw(np.eye(3)[int(np.argmin(_world_half_size(region)[:2]))])


def _half_turn_yaw(travel: Array) -> float:
    """Return the turn about z that brings the fingers' travel along `travel`, in (-pi/2, pi/2].

    >>> abs(round(_half_turn_yaw(np.array([0.0, -1.0, 0.0])), 3))
    0.0
    """
    yaw = float(np.arctan2(-travel[0], travel[1]))
    return -((-yaw + np.pi / 2) % np.pi - np.pi / 2)
