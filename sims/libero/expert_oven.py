"""A mug goes into a microwave: taken by its handle, because there is no room from above."""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import Array
from zetta.sims.libero.expert_motions import (
    CLOSE,
    DOWN,
    UP,
    Arm,
    Progress,
    Steps,
    framed,
    funnel_height,
    nearer_sign,
)
from zetta.sims.libero.world import Goal, World

TILT = np.deg2rad(60.0)
"""Tilt of the hand from straight down while it holds the handle."""
LIFT = 0.022
"""Height of the mug's foot over the cavity's floor while it goes in; more hits the ceiling."""
LEFT_OF_CENTER = 0.03
"""The cavity's middle lies beside the region's middle, toward the door's hinge."""
IN_FRONT = 0.045
"""The mug is let go this far before the region's middle: the hand must not meet the frame."""
WAIT_OUTSIDE = 0.22
"""Distance before the final place at which the mug is lined up, in front of the door."""
RISE = 0.14
"""How far the hand rises after the mug is in."""
TRIES = 3


class Oven:
    """Puts one mug into a microwave whose door is open."""

    def __init__(self, arm: Arm, goal: Goal) -> None:
        self.arm = arm
        self.world = arm.world
        self.mug = goal.subject
        self.region = goal.target
        self._handle = self._handle_geom()

    @staticmethod
    def serves(world: World, goal: Goal) -> bool:
        """Say whether `goal` puts something into a microwave."""
        return goal.predicate == "in" and "microwave" in goal.target

    def insert(self) -> Steps:
        """Take the mug by its handle, put it in and withdraw the hand."""
        for _ in range(TRIES):
            self.arm.intent.destination = self._place()
            rotation = self._holding()
            if not self.world.gripped(self.mug):
                yield from self.arm.reach(self._handle_point, self._holding)
                fixed = self._handle_point()
                yield from self.arm.squeeze(lambda fixed=fixed: fixed, rotation)  # type: ignore[misc]
            held = self.world.gripped(self.mug) and (yield from self._carry())
            yield from self.arm.release(rotation)
            yield from self.arm.back_off(-0.14 * rotation[:, 2] - 0.03 * self._into, rotation)
            # Up before the hand turns: turning beside the open door would push it.
            yield from self.arm.back_off(RISE * UP, rotation)
            if held:
                return True
        return False

    def _carry(self) -> Steps:
        """Lift, line up before the door, go in and set down; False when the mug is lost."""
        world, arm = self.world, self.arm
        progress, lost = Progress(), 0
        while True:
            lost = 0 if world.gripped(self.mug) else lost + 1
            place, rotation = self._place(), self._holding()
            arm.intent.destination = arm.intent.focus = place
            offset = place - world.position(self.mug)
            depth = float(offset @ self._into)
            rise = float(place[2] + LIFT - self._foot())
            aside = offset - depth * self._into
            aside[2] = 0.0
            if lost > 3:
                return False
            arrived = abs(depth) < 0.012 or (
                progress.stalled(abs(depth) + abs(rise)) and depth < 0.05
            )
            if arrived:
                break
            beside = float(np.hypot(np.linalg.norm(aside), rise))
            arm.intent.phase = "insert" if beside < 0.03 else ("lift" if rise > 0.02 else "move")
            gap = min(max(depth, 0.0), funnel_height(beside, 0.010, WAIT_OUTSIDE))
            step = aside + (depth - gap) * self._into + rise * UP
            yield arm.toward(world.ee_pos + step, rotation, CLOSE, 0.6)
        return (yield from self._set_down())

    def _set_down(self) -> Steps:
        """Lower the mug by what it was lifted."""
        self.arm.intent.phase = "lower"
        rotation, goal = self._holding(), self.world.ee_pos + (LIFT - 0.004) * DOWN
        yield from self.arm.go(lambda: goal, lambda: rotation, CLOSE, 0.006)
        return True

    @property
    def _into(self) -> Array:
        """Direction from the door into the cavity. Shape (3,)."""
        fixture = self.world.region(self.region).parent
        return self.world.rotation(fixture)[:, 1].copy()

    def _place(self) -> Array:
        """Return where the mug's origin goes, `z` being the cavity's floor."""
        region = self.world.region(self.region)
        sideways = self.world.rotation(region.parent)[:, 0]
        spot = region.center - LEFT_OF_CENTER * sideways - IN_FRONT * self._into
        floor = self.world.surface(float(spot[0]), float(spot[1]), self.mug, float(spot[2]) + 0.02)
        return np.array([*spot[:2], floor])

    def _foot(self) -> float:
        return float(self.world.points(self.mug)[:, 2].min())

    def _handle_geom(self) -> int:
        middle = self.world.points(self.mug).mean(axis=0)
        return max(
            self.world.geoms(self.world.body(self.mug)),
            key=lambda g: float(np.linalg.norm((self.world.geom_center(g) - middle)[:2])),
        )

    def _handle_point(self) -> Array:
        """Return the grip point: up the handle and past it, so that the mug hangs level."""
        return self.world.geom_center(self._handle) + 0.022 * self._holding()[:, 2] + 0.016 * UP

    def _holding(self) -> Array:
        axis = self._into * np.sin(TILT) + DOWN * np.cos(TILT)
        fixture = self.world.region(self.region).parent
        sideways = self.world.rotation(fixture)[:, 0].copy()
        return framed(nearer_sign(sideways, self.world.ee_rot), axis)
