"""The arm of a LIBERO simulation as kinematics, and the box that its hand works in."""

from __future__ import annotations

from typing import Any

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Array
from zetta.runtime.workspace import Box, Point
from zetta.sims import mujoco_chain
from zetta.sims.libero.world import World

_LOW, _HIGH = (0.20, -0.50), (0.90, 0.50)
"""Sides of the box from the arm's base, metres: the scripted experts stay within 0.33 to 0.77
ahead and 0.32 aside, and a Panda's hand reaches 0.85 from its shoulder."""
_CLEAR, _HEIGHT = 0.005, 0.70
"""From what the things stand on to the least and the greatest height of the grip site, metres."""
_NEAR_BASE = 0.10
"""The things stand about as high as the arm does, within this height, metres."""


def arm_model(control: Any) -> ArmModel:
    """Return the chain of the arm of a LIBERO `ControlEnv`.

    Raises:
        InfraError: its joints make no chain.
    """
    model, data = control.env.sim.model._model, control.env.sim.data._data
    robot = control.env.robots[0]
    hand = int(model.body(robot.robot_model.eef_name).id)
    return mujoco_chain.chain(model, data, robot._ref_joint_indexes, hand, robot.eef_site_id)


def workspace(control: Any) -> Box:
    """Return where the hand may be: over the table or the floor, as far as the arm reaches."""
    base = arm_model(control).T_world_base[:3, 3]
    ground = _ground(World(control), base)
    low = np.round([*(base[:2] + _LOW), ground + _CLEAR], 3)
    high = np.round([*(base[:2] + _HIGH), ground + _HEIGHT], 3)
    return Box(_corner(low), _corner(high))


def _ground(world: World, base: Array) -> float:
    """Return the height that the lowest thing stands at; of things that fell off nothing is heard.

    Asked of the things, because the floor of some scenes has no collision geometry.
    """
    bottoms = [float(world.bounds(name)[0][2]) for name in world.movables]
    return min((z for z in bottoms if abs(z - base[2]) < _NEAR_BASE), default=float(base[2]))


def _corner(numbers: Array) -> Point:
    x, y, z = (float(n) for n in numbers)
    return x, y, z
