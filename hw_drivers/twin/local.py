"""The twin in the same process, in a time of its own: an arm that moves as fast as it is computed.

No sockets, no clock of the machine, no chance: equal commands give equal readings, bit by bit.
"""

from __future__ import annotations

import time
from typing import Final

from zetta.hw_drivers.arm import OPEN, ArmFacts, ArmReading, ArmTarget, Guard, checked_target
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.errors import ConfigError, SafetyStop

PIECE_S: Final = 0.05
"""Time passes in pieces of at most this, which a robot side never refuses to catch up with."""


class VirtualClock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the present, seconds."""
        return self.now


class LocalArm:
    """An `Arm` over a world in this process: each command takes one control period."""

    def __init__(
        self, world: TwinWorld, control_hz: float, guard: Guard = OPEN, robot: str = "twin"
    ) -> None:
        """Stand before a world, where it is.

        Args:
            world: nobody else advances it.
            control_hz: commands a second.
            guard: stands before every command.
            robot: its name.

        Raises:
            ConfigError: the rate is not above 0.
        """
        if not control_hz > 0.0:
            raise ConfigError(f"commands come at more than 0 Hz, got {control_hz:g}")
        self.clock = VirtualClock()
        self.side = TwinSide(world, self.clock, robot)
        self.periods = 0
        """Control periods since the scene was set."""
        self._period, self._guard = 1.0 / control_hz, guard
        self._stopped = ""

    def connect(self, within_s: float = 5.0) -> ArmFacts:
        """Return what the arm is."""
        del within_s
        return self.side.facts

    def state(self, max_age_s: float = 0.1) -> ArmReading:
        """Return what the arm measures now."""
        del max_age_s
        return self.side.read()

    def age_s(self) -> float:
        """Return 0: it measures when it is asked."""
        return 0.0

    def command(self, target: ArmTarget, ttl_s: float = 0.1, driver: str = "policy") -> None:
        """Begin to go there, and let one control period pass.

        Raises:
            SafetyStop: a stop is latched, or the guard refuses the target.
            SpecMismatch: no target of this arm.
        """
        del ttl_s
        if self._stopped:
            raise SafetyStop(f"the arm is stopped ({self._stopped}) until it is cleared")
        wanted = checked_target(target, self.side.facts)
        passed = self._guard.tick(wanted, self.side.read(), self.clock.now, driver)
        if passed.target is not None:
            self.side.send(passed.target)
        if self._guard.stopped:
            self.stop(self._guard.stopped)
            raise SafetyStop(self._guard.stopped)
        self.wait()

    def hold(self, why: str) -> None:
        """Keep the place, and let one control period pass."""
        del why
        self._guard.held()
        self.side.hold()
        self.wait()

    def wait(self, periods: int = 1) -> None:
        """Let control periods pass."""
        for _ in range(periods):
            begun = self.periods * self._period
            self.periods += 1
            ends = self.periods * self._period
            while self.clock.now < ends - 1e-9:
                self.clock.now = min(ends, max(begun, self.clock.now) + PIECE_S)
                self.side.read()

    def stop(self, reason: str) -> None:
        """Stop at once, until `clear`."""
        self._stopped = reason or "no reason given"
        self.side.stop()

    def clear(self) -> None:
        """Take targets again."""
        self._stopped = ""
        self.side.clear()

    def set_scene(self, seed: int) -> None:
        """Set another scene, at time 0, with nothing stopped.

        Raises:
            ConfigError: the seed is negative.
        """
        self._stopped = ""
        self.rewind(0)
        self.side.clear()
        self.side.set_scene(seed)

    def rewind(self, periods: int) -> None:
        """Say that it is so many control periods after the scene was set."""
        self.periods, self.clock.now = periods, periods * self._period
        self.side.rewind()

    def close(self) -> None:
        """Keep the place; calling it again does nothing."""
        self.side.close()


class LocalCamera:
    """A `CameraSource` that draws in this process when somebody looks."""

    def __init__(self, camera: str, world: TwinWorld) -> None:
        self._camera, self._world = camera, world

    def latest(self, max_age_s: float) -> Frame:
        """Return a picture of now.

        Raises:
            ConfigError: MuJoCo or robosuite is not installed.
            InfraError: no OpenGL works here.
        """
        from zetta.hw_drivers.twin.drawing import drawer  # late: it chooses OpenGL

        del max_age_s
        image, depth = drawer().draw(self._world.qpos, self._camera)
        return Frame(image, time.monotonic(), depth)

    def close(self) -> None:
        """Free nothing: the context is that of the process."""
