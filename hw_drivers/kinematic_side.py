"""An arm that takes joints only, driven by poses through the kinematics that its user declares.

Each pose target is one bounded step: from where the hand is towards where it shall be, solved from
the joints that were sent last, so that a servo that sags under its load does not sag a little
further with every step. Where the joints cannot bring the hand there, it goes as near as they let
it, and the reading says where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import (
    ArmFacts,
    ArmReading,
    ArmTarget,
    JointTarget,
    PoseTarget,
    RobotSide,
)
from zetta.hw_drivers.frames import Pose, product, rotation, rotation_vector
from zetta.hw_drivers.kinematic_chain import KinematicChain
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError

STEP_M: Final = 0.05
STEP_RAD: Final = 0.25
"""No goal lies further from the hand."""
FOLLOWS_RAD: Final = 0.35
"""Joints that are further from those sent last do not follow; the next step starts where they are.
"""
JUMP_RAD: Final = 0.5
"""Most that a joint is sent away from where it is."""


class KinematicSide:
    """A `RobotSide` around another: its readings have a pose, and it takes poses."""

    def __init__(self, side: RobotSide, chain: KinematicChain) -> None:
        """Wrap `side`; nothing moves.

        Raises:
            ConfigError: it takes no joints, or other ones than the chain has.
        """
        facts = side.facts
        if "joints" not in facts.accepts:
            raise ConfigError(f"{facts.robot} takes no joint targets; there is nothing to convert")
        if len(chain.low) != len(facts.joints):
            raise ConfigError(
                f"the chain has {len(chain.low)} joints and {facts.robot} {len(facts.joints)}: "
                f"{', '.join(facts.joints)}"
            )
        self._side, self._chain = side, chain
        self._sent: Array | None = None
        self._facts = replace(
            facts,
            accepts=("pose", "joints"),
            joint_low=_tighter(facts.joint_low, chain.low, np.maximum),
            joint_high=_tighter(facts.joint_high, chain.high, np.minimum),
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is, with the limits of the chain."""
        return self._facts

    def read(self) -> ArmReading:
        """Return the latest reading, its pose by the chain.

        Raises:
            InfraError: the arm does not report.
        """
        seen = self._side.read()
        hand = self._chain.forward(seen.joint_pos)
        return replace(seen, ee_pos=read_only(hand.pos), ee_quat=read_only(hand.quat))

    def send(self, target: ArmTarget) -> None:
        """Go a step towards a pose, or begin to go to joints.

        Raises:
            InfraError: the arm does not report, or does not take it.
            SafetyStop: it must not go there.
        """
        if isinstance(target, PoseTarget):
            target = JointTarget(read_only(self._towards(target)), target.gripper_opening)
        self._side.send(target)
        self._sent = np.array(target.joint_pos)

    def hold(self) -> None:
        """Keep the present place."""
        self._sent = None
        self._side.hold()

    def stop(self) -> None:
        """Stop until `clear`."""
        self._sent = None
        self._side.stop()

    def clear(self) -> None:
        """Take targets again."""
        self._side.clear()

    def close(self) -> None:
        """Free everything; calling it again does nothing."""
        self._side.close()

    def _towards(self, target: PoseTarget) -> Array:
        now = self._side.read().joint_pos
        start, sent = now, self._sent
        if sent is not None and np.abs(sent - now).max() < FOLLOWS_RAD:
            start = sent
        goal = _stepped(self._chain.forward(now), target)
        joints = self._chain.nearest(start, goal).joints
        return now + np.clip(joints - now, -JUMP_RAD, JUMP_RAD)


def _stepped(now: Pose, target: PoseTarget) -> Pose:
    way = target.ee_pos - now.pos
    back = now.quat * np.array((-1.0, -1.0, -1.0, 1.0))
    turn = rotation_vector(product(target.ee_quat, back))
    way = way * min(1.0, STEP_M / max(float(np.linalg.norm(way)), 1e-12))
    turn = turn * min(1.0, STEP_RAD / max(float(np.linalg.norm(turn)), 1e-12))
    return Pose(now.pos + way, product(rotation(turn), now.quat))


def _tighter(told: tuple[float, ...], chain: Array, choose: np.ufunc) -> tuple[float, ...]:
    """Return the limits of the chain, and those of the arm where it tells tighter ones."""
    both = choose(chain, told) if told else chain
    limits: tuple[float, ...] = tuple(both.tolist())
    # A joint without an end has no limit to tell; the word for that is an empty list.
    return limits if np.isfinite(limits).all() else ()
