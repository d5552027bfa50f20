"""Commands, readings and clocks that are as bad as they can be, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tests.hw_drivers.safe_runs import DOWN, HAND, PANDA, FollowingArm, Measured
from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.decisions import AuditEntry, Command, Decision, Grip
from zetta.hw_drivers.safety import SafetyKernel
from zetta.runtime.core import Array

SOURCES = ("policy", "policy", "person", "skill:regrasp", "agent:a", "agent:a")


@dataclass
class Storm:
    """One run in bad weather."""

    seed: int
    limits: Limits = PANDA
    after_kernel: bool = False
    entries: list[AuditEntry] = field(default_factory=list)
    decisions: list[Decision | None] = field(default_factory=list)
    """None stands where a person has cleared a stop: what follows is another sequence."""
    factors: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.kernel = SafetyKernel(
            self.limits, audit=self.entries.append, after_kernel=self.after_kernel
        )
        self.arm = FollowingArm(np.array([*HAND, *DOWN]), share=float(self.rng.uniform(0.5, 1.0)))
        self.last = self.arm.now.copy()
        self.now = 100.0

    def run(self, ticks: int) -> None:
        """Run so many calls, changing the weather every few ticks."""
        asked = 0
        while asked < ticks:
            weather = self._weather()
            driver = str(self.rng.choice(SOURCES))
            for _ in range(int(self.rng.integers(1, 40))):
                self._tick(weather(), driver)
                asked += 1

    def _tick(self, command: Command | None, driver: str) -> None:
        decision = self.kernel.admit(command, self._reading(), self.now, driver)
        self.decisions.append(decision)
        self.factors.append(self.limits.drivers[driver.partition(":")[0]])
        if decision.sent is not None:
            self.last = decision.sent.values
        self.arm.take(decision)
        if self.rng.random() < 0.002:
            self.kernel.stop("somebody pressed the button", self.now)
        if self.kernel.stopped and self.kernel.rests and self.rng.random() < 0.3:
            self.kernel.clear("Ada", self.now)
            self.decisions.append(None)
            self.factors.append(0.0)
        self.now += self._period()

    def _period(self) -> float:
        tick, draw = self.limits.timing.tick, self.rng.random()
        if draw < 0.01:
            return float(self.rng.uniform(-0.1, 0.5) * tick)  # too early, or the clock goes back
        if draw < 0.02:
            return float(self.rng.uniform(1.5, 20.0) * tick)  # ticks are missed
        return float(self.rng.uniform(0.81, 1.19) * tick)

    def _reading(self) -> Measured | None:
        reading, draw = self.arm.reading(self.now - 0.01), self.rng.random()
        if draw < 0.01:
            return None
        if draw < 0.02:
            return replace(reading, t=self.now - 1.0)
        if draw < 0.03:
            return replace(reading, ee_pos=np.full(3, np.nan))
        if draw < 0.032:
            return replace(reading, ee_pos=reading.ee_pos + 0.2)
        if draw < 0.04:
            return replace(reading, joint_pos=np.zeros(3))
        return reading

    def _weather(self) -> Callable[[], Command | None]:
        """Return one way of asking badly."""
        kinds = (
            self._near, self._flips, self._bang_bang, self._straight, self._repeated,
            self._no_commands, self._nothing, self._smooth, self._edge,
            self._ramp,
        )  # fmt: skip
        return kinds[int(self.rng.integers(len(kinds)))]()

    def _command(self, position: Array, rotvec: Array) -> Command:
        grip = None
        if self.rng.random() < 0.3:
            grip = Grip(*self.rng.uniform([-0.1, 0.001, 0.1], [0.2, 1.0, 200.0]).tolist())
        return Command("target_pose", np.array([*position, *rotvec]), grip)

    def _near(self) -> Callable[[], Command | None]:
        spread = float(self.rng.choice([0.002, 0.02, 0.06]))
        return lambda: self._command(
            self.last[:3] + self.rng.uniform(-spread, spread, 3),
            self.last[3:] + self.rng.uniform(-4 * spread, 4 * spread, 3),
        )

    def _flips(self) -> Callable[[], Command | None]:
        way, sign = self._direction() * 0.09, [1.0]

        def ask() -> Command:
            sign[0] = -sign[0]
            return self._command(self.last[:3] + sign[0] * way, self.last[3:] + sign[0] * 3 * way)

        return ask

    def _bang_bang(self) -> Callable[[], Command | None]:
        """Go at full speed at one wall until near it, then at the opposite one."""
        axis, sign = int(self.rng.integers(3)), [1.0]
        box = self.limits.workspace

        def ask() -> Command:
            room = (box.high[axis] - self.last[axis], self.last[axis] - box.low[axis])
            if room[0 if sign[0] > 0 else 1] < 0.005:
                sign[0] = -sign[0]
            target = self.last[:3].copy()
            target[axis] += 0.099 * sign[0]
            return self._command(target, self.last[3:])

        return ask

    def _straight(self) -> Callable[[], Command | None]:
        """Go one way, not faster or a little faster than allowed, through walls and boxes."""
        way = self._direction() * float(self.rng.uniform(0.002, 0.024))
        return lambda: self._command(self.last[:3] + way, self.last[3:] + way)

    def _ramp(self) -> Callable[[], Command | None]:
        """Become faster and faster, smoothly, until it is too fast."""
        way, length = self._direction(), [0.0]

        def ask() -> Command:
            length[0] += 0.001
            return self._command(self.last[:3] + length[0] * way, self.last[3:])

        return ask

    def _repeated(self) -> Callable[[], Command | None]:
        target = self._command(self.last[:3] + 0.09 * self._direction(), self.last[3:] + 0.2)
        return lambda: target

    def _smooth(self) -> Callable[[], Command | None]:
        centre, phase = self.last.copy(), [0.0]

        def ask() -> Command:
            phase[0] += 0.05
            offset = 0.03 * np.array([1.0 - np.cos(phase[0]), np.sin(phase[0]), 0.0])
            return self._command(centre[:3] + offset, centre[3:])

        return ask

    def _edge(self) -> Callable[[], Command | None]:
        """Ask for exactly the wall, give or take what rounding leaves."""
        box = self.limits.workspace
        nudge = float(self.rng.choice([0.0, 5e-324, 1e-16, 1e-9, 1e-3]))
        corner = np.where(self.rng.random(3) < 0.5, np.array(box.low), np.array(box.high))

        def ask() -> Command:
            step = np.clip(corner - self.last[:3], -0.05, 0.05)
            return self._command(self.last[:3] + step + nudge, self.last[3:])

        return ask

    def _nothing(self) -> Callable[[], Command | None]:
        return lambda: None

    def _no_commands(self) -> Callable[[], Command | None]:
        """Ask for what is no command at all, or for a jump."""
        bad: tuple[object, ...] = (
            np.full(6, np.nan),
            np.full(6, np.inf),
            np.full(6, 1e308),
            np.zeros(6),
            np.zeros(7),
            np.zeros(0),
            np.full(6, 5e-324),
            np.array([*self.last[:3], 0.0, np.nan, 0.0]),
            np.array([*self.last[:3], 1e200, 0.0, 0.0]),
            ["x"] * 6,
            None,
            [10**400] * 6,
        )
        values = bad[int(self.rng.integers(len(bad)))]
        return lambda: Command("target_pose", values)  # type: ignore[arg-type]

    def _direction(self) -> Array:
        way = self.rng.normal(size=3)
        return np.asarray(way / np.linalg.norm(way))
