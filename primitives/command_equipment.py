"""What commands are carried out with: what is handed down, and what is remembered meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from zetta.primitives.commands import Command
from zetta.primitives.grasp_evidence import GraspWatch
from zetta.primitives.grasps import PANDA, HandGeometry
from zetta.primitives.motions import Arm, Steps
from zetta.primitives.robot import Robot
from zetta.primitives.roles import Errand, Phrase
from zetta.runtime.core import (
    Action,
    ActionSpec,
    ArmState,
    Array,
    Camera,
    HeightGrid,
    Motion,
    Proprio,
)
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.tracking import ARM_SIZE
from zetta.runtime.workspace import Box

RobotMaker: TypeAlias = Callable[[Errand, int], Robot]
"""Binds the localiser to an errand and gives the robot of an arm for it; called again with what is
bound to that arm already, it gives the same robot."""


@dataclass(frozen=True, slots=True)
class Equipment:
    """One environment's conventions, and who does what commands ask for."""

    action: ActionSpec
    """The environment's action convention; poses in the world frame."""
    arms: tuple[str, ...]
    """Names of its arms."""
    control_hz: float
    robots: RobotMaker
    hand: HandGeometry = PANDA
    errands: Sequence[Errand] = ()
    """What the instruction asks for, in order; none where it is not understood."""
    workspace: Box | None = None
    """Where grip sites may be; None for anywhere."""
    ahead: tuple[float, float] = (1.0, 0.0)
    """Horizontal unit vector straight ahead of a robot without a mobile base."""
    policy: Callable[[int, str], Motion] | None = None
    """Makes the motion of so many ticks of the policy that is told an instruction."""
    skills: Callable[[str], Motion] | None = None
    """Makes the motion of a recovery skill."""
    skill_names: tuple[str, ...] = ()
    camera: Callable[[str], Camera] | None = None
    """Gives the present calibration of a camera; of the first one for an empty name."""
    say: Callable[[Command], str] = str
    """Gives a command as text."""

    def arm_number(self, name: str) -> int:
        """Return the number of the arm that a command names.

        Raises:
            ConfigError: there is no such arm, or none is named and there are several.
        """
        if not name and len(self.arms) == 1:
            return 0
        if not name:
            raise ConfigError(f"say which arm: {' or '.join(self.arms)}")
        if name not in self.arms:
            raise ConfigError(f"there is no arm {name!r}; {suggest(name, self.arms)}")
        return self.arms.index(name)


@dataclass(slots=True)
class Limb:
    """What is remembered of one arm from command to command."""

    home: ArmState
    watch: GraspWatch
    robot: Robot | None = None
    errand: Errand | None = None
    thing: Phrase | None = None
    """What it took, or went to, last."""


class Memory:
    """What is remembered in one episode, from tick to tick and from command to command.

    Attributes:
        limbs: one for each arm; none before the episode has begun.
        now: what was felt last.
        heights: what stood where when somebody looked last.
    """

    def __init__(self, equipment: Equipment) -> None:
        """Remember nothing yet."""
        self._equipment = equipment
        self._grippers: tuple[float, ...] | None = None
        self.limbs: list[Limb] = []
        self.heights: HeightGrid | None = None
        self._t = math.nan
        self.now: Proprio

    def begin(self, proprio: Proprio) -> None:
        """Forget the last episode; where the arms are now is home."""
        hand, rate = self._equipment.hand, self._equipment.control_hz
        self.limbs = [Limb(arm, GraspWatch(hand, control_hz=rate)) for arm in proprio.arms]
        self._grippers = self.heights = None
        self._t = math.nan
        self.notice(proprio)

    def notice(self, proprio: Proprio) -> None:
        """Note what is felt, once at each tick."""
        if proprio.t == self._t:
            return
        self.now, self._t = proprio, proprio.t
        for k, (limb, state) in enumerate(zip(self.limbs, proprio.arms, strict=True)):
            limb.watch.feel(state, self._closing(k), proprio.t)

    def note_action(self, row: Action) -> None:
        """Note how the grippers are commanded."""
        own = row[: self._equipment.action.arms_size]
        self._grippers = tuple(float(n) for n in own[ARM_SIZE - 1 :: ARM_SIZE])

    def forget_grippers(self) -> None:
        """Forget how the grippers are commanded."""
        self._grippers = None

    def arm(self, index: int) -> Arm:
        """Return an arm, with its gripper as it is commanded."""
        equipment = self._equipment
        arm = Arm(equipment.action, index, equipment.control_hz, equipment.hand)
        self._tell(arm)
        return arm

    def started(self, index: int) -> Steps[Arm]:
        """Return an arm as it is now."""
        arm = self.arm(index)
        yield from arm.start()
        return arm

    def robot(self, index: int, errand: Errand | None = None) -> Robot:
        """Return the robot of an arm, bound to an errand or as it is."""
        limb, equipment = self.limbs[index], self._equipment
        if errand is not None:
            limb.robot, limb.errand = equipment.robots(errand, index), errand
        elif limb.robot is None:
            limb.robot = Robot(equipment.action, index, equipment.control_hz, hand=equipment.hand)
        self._tell(limb.robot)
        return limb.robot

    def bind(self, index: int) -> None:
        """Let the localiser mean the things of an arm's errand again."""
        errand = self.limbs[index].errand
        if errand is not None:
            self._equipment.robots(errand, index)

    def ahead(self) -> Array:
        """Return the horizontal direction straight ahead of the robot. Shape (3,)."""
        base = self.now.base
        if base is None:
            return np.array([*self._equipment.ahead, 0.0])
        return np.array([np.cos(base[2]), np.sin(base[2]), 0.0])

    def _tell(self, mover: Arm | Robot) -> None:
        """Tell how the grippers are commanded, where that is known."""
        if self._grippers is not None:
            mover.told(self._grippers)

    def _closing(self, index: int) -> bool:
        if self._grippers is None:
            return False
        told, action = self._grippers[index], self._equipment.action
        return abs(told - action.gripper_close) < abs(told - action.gripper_open)
