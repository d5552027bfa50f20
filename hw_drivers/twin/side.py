"""The twin as a robot side: physics that keeps up with a clock, and the stops of a real arm."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmMode, ArmReading, ArmTarget
from zetta.hw_drivers.simple_side import Heard, Told
from zetta.hw_drivers.twin.scene import JOINTS, TIMESTEP_S, arm_alone, engine
from zetta.hw_drivers.twin.world import GRIPPER_MAX, TwinWorld
from zetta.runtime.errors import SafetyStop
from zetta.runtime.workspace import Box

MOST_AT_ONCE_S: Final = 0.1
"""A process that stood still loses the time beyond this: the arm never jumps ahead."""
WORKSPACE: Final = Box((0.28, -0.40, 0.02), (0.75, 0.40, 0.65))
"""That of `limits/panda.toml`, which was chosen for such a table."""
MODEL: Final = "twin-panda"


class TwinSide:
    """A `RobotSide` over a `TwinWorld`."""

    def __init__(
        self,
        world: TwinWorld,
        clock: Callable[[], float] = time.monotonic,
        robot: str = "twin",
        kept: int = 10_000,
    ) -> None:
        """Begin where the world is; `heard` keeps the last `kept` entries."""
        self.world = world
        self.heard: deque[Heard] = deque(maxlen=kept)
        self.lost_s = 0.0
        """Time that was not caught up with so far."""
        self._clock, self._t, self._owed = clock, clock(), 0.0
        self._mode: ArmMode = "idle"
        self._reflex = ""
        low, high = arm_alone().jnt_range.T
        self._facts = ArmFacts(
            robot=robot,
            model=MODEL,
            joints=JOINTS,
            joint_low=tuple(low.tolist()),
            joint_high=tuple(high.tolist()),
            gripper_max=GRIPPER_MAX,
            accepts=("pose", "joints"),
            workspace_low=WORKSPACE.low,
            workspace_high=WORKSPACE.high,
            versions={"twin": "1", "mujoco": str(engine().__version__)},
        )

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is."""
        return self._facts

    @property
    def mode(self) -> ArmMode:
        """What the arm is doing."""
        return "stopped" if self._reflex else self._mode

    def read(self) -> ArmReading:
        """Let the world go on until now and return what the arm measures."""
        self._advance()
        reading = self.world.reading(self._t)
        # A sensor's noise is not modelled; the encoders of the fingers have their own range.
        opening = float(np.clip(reading.gripper_opening, 0.0, GRIPPER_MAX))
        return replace(reading, gripper_opening=opening, mode=self.mode, reason=self._reflex)

    def send(self, target: ArmTarget) -> None:
        """Begin to go to `target`; while stopped it is not followed.

        Raises:
            SafetyStop: the arm has stopped itself, and nobody has cleared that.
        """
        self._advance()
        self._note("send")
        if self._reflex:
            raise SafetyStop(self._reflex)
        if self._mode != "stopped":
            self.world.target(target)
            self._mode = "moving"

    def hold(self) -> None:
        """Come to rest and keep the place."""
        self._advance()
        if self._mode == "moving" and not self._reflex:
            self._note("hold")  # once for each change: holding is said in every turn
            self.world.hold()
        if self._mode != "stopped":
            self._mode = "holding"

    def stop(self) -> None:
        """Want no speed at once, and follow nothing until `clear`."""
        self._advance()
        if self._mode != "stopped":
            self._note("stop")
            self.world.halt()
            self._mode = "stopped"

    def clear(self) -> None:
        """Take targets again; a person has cleared the stop and the reflex."""
        self._note("clear")
        self._reflex, self._mode = "", "holding"

    def close(self) -> None:
        """Keep the present place."""
        self._advance()
        if self._mode == "moving":
            self._note("close")
            self.world.hold()

    def reflex(self, reason: str) -> None:
        """Stop as an arm does that feels too much: by itself, until a person clears it."""
        self._advance()
        self.world.halt()
        self._reflex = reason

    def set_scene(self, seed: int) -> None:
        """Set another scene, with the arm home; what was wanted before is forgotten.

        Raises:
            ConfigError: the seed is negative.
        """
        self.world.set_scene(seed)
        self.rewind()
        if self._mode == "moving":
            self._mode = "holding"

    def rewind(self) -> None:
        """Go on from here by the clock; what has passed until now is nobody's."""
        self._t, self._owed = self._clock(), 0.0

    def _note(self, told: Told) -> None:
        self.heard.append(Heard(self._clock(), told))

    def _advance(self) -> None:
        now = self._clock()
        passed = max(0.0, now - self._t)
        self._t = now
        self.lost_s += max(0.0, passed - MOST_AT_ONCE_S)
        self._owed += min(passed, MOST_AT_ONCE_S)
        steps = int(self._owed / TIMESTEP_S + 1e-6)
        if steps:
            self.world.advance(steps * TIMESTEP_S)
            self._owed -= steps * TIMESTEP_S
