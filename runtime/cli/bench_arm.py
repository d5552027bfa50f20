"""`zetta bench arm`: does the loop keep its time on an arm, and how old is what it knows.

The arm is a server in another process: the twin where it is installed, else an arm of pure numpy;
or one that runs already. What a tick costs in punctuality is held against a bare timer, which does
nothing but wait at the same rate in the same process, before and after.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import OPEN, ArmFacts, ArmReading, ArmTarget
from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.arm_messages import Endpoints
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.bench_wire import ready_child
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import (
    Array,
    EnvSpec,
    EpisodeResult,
    Init,
    Look,
    Motion,
    Scene,
    Step,
    Task,
    Tick,
)
from zetta.runtime.errors import ConfigError
from zetta.runtime.holding import Holder
from zetta.runtime.loop import Episode
from zetta.runtime.pacing import MonotonicClock, Pacer

LATE_TARGET_PERCENT: Final = 1.0
AGE_TARGET_MS: Final = 20.0
SWAY: Final = 0.04
"""Command of the swaying arm: 4 cm a second at 20 Hz."""
SWAY_S: Final = 4.0
OLDEST_S: Final = 5.0
"""An older state ends the measurement; a younger one is a figure."""
LOOK_S: Final = 0.0005
"""How often it is looked whether a command was carried out."""
TIMER_SHARE: Final = 0.25
"""Of the measured time, for the bare timer before and again after."""
SERVING: Final = "from zetta.runtime.cli.bench_arm import serve; serve({side!r})"


def arm_figures(seconds: float, hz: float, url: str = "") -> list[Figure]:
    """Let an arm sway, or with `url` hold, for so long, and measure the loop on it.

    Raises:
        ConfigError: no rate of an arm, or fewer than ten ticks.
        InfraError: the arm cannot be reached.
    """
    if not (1.0 <= hz <= 200.0 and seconds * hz >= 10.0):
        raise ConfigError(f"an arm is measured at 1 to 200 Hz for 10 ticks or more, got {hz:g} Hz")
    with _robot(url) as where:
        what = "hold" if url else "sway"
        output.note(f"letting the arm at {where} {what} for {seconds:g} s at {hz:g} Hz")
        return measured(where, seconds, hz, still=bool(url))


def measured(url: str, seconds: float, hz: float, still: bool) -> list[Figure]:
    """Return the figures of the loop on the arm at `url`; `still` lets it hold."""
    timer, ticking = MeasuredClock(), MeasuredClock()
    arm = WatchedArm(ZmqArm(url, owner="zetta bench arm"))
    env = ArmEnv(arm, ArmSetup("bench", control_hz=hz, max_state_age_s=OLDEST_S))
    ticks = round(seconds * hz)
    try:
        _tick_only(timer, hz, round(TIMER_SHARE * ticks))
        before = arm.counts()
        result = _driven(env, arm, ticks, ticking, still)
        after = arm.counts()
        _tick_only(timer, hz, round(TIMER_SHARE * ticks))
    finally:
        env.close()
    holds = after["watchdog"] - before["watchdog"]
    return figures_of(Measured(result, holds, timer.late_s, ticking.late_s, arm.ages_s, arm.took_s))


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen of one episode on an arm; times in seconds."""

    result: EpisodeResult
    watchdog: int
    """How often the arm held because nobody commanded it."""
    timer_late_s: list[float]
    """How much too late the bare timer woke up, for each tick."""
    late_s: list[float]
    """The same of the loop."""
    ages_s: list[float]
    """How old a state was whenever one was asked for."""
    took_s: list[float]
    """From the sending of a command until a state said that it was carried out."""


def figures_of(seen: Measured) -> list[Figure]:
    """Return the figures."""
    result = seen.result
    late = 100.0 * result.late_ticks / max(1, result.ticks)
    wake, bare = _ms(seen.late_s, 0.99), _ms(seen.timer_late_s, 0.99)
    return [
        Figure("arm_late_ticks", late, "% of ticks", target=LATE_TARGET_PERCENT),
        Figure("arm_wake_p99", wake, "ms", bare, bare / wake if wake > 0.0 else None),
        Figure("arm_state_age_p50", _ms(seen.ages_s, 0.5), "ms"),
        Figure("arm_state_age_p99", _ms(seen.ages_s, 0.99), "ms", target=AGE_TARGET_MS),
        Figure("arm_watchdog_holds", float(seen.watchdog), "times", target=0.0),
        Figure("arm_command_p50", _ms(seen.took_s, 0.5), "ms"),
        Figure("arm_command_p99", _ms(seen.took_s, 0.99), "ms"),
    ]


def _ms(seconds: list[float], quantile: float) -> float:
    return 1000.0 * float(np.quantile(seconds, quantile)) if seconds else math.nan


# --------------------------------------------------------------------------- the loop


class MeasuredClock:
    """The monotonic clock, which notes how late each wait ended."""

    def __init__(self) -> None:
        self.late_s: list[float] = []
        self._clock = MonotonicClock()

    def now(self) -> float:
        """Return seconds since an arbitrary start."""
        return self._clock.now()

    def sleep_until(self, t: float) -> bool:
        """Wait for `t`; return False when it had already passed."""
        punctual = self._clock.sleep_until(t)
        self.late_s.append(max(0.0, self._clock.now() - t))
        return punctual


@dataclass(slots=True)
class WatchedArm:
    """An arm over the network that notes the age of its states and the way of its commands."""

    arm: ZmqArm
    ages_s: list[float] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    _sent_at: float = 0.0
    _sent: int = 0
    """Commands that had been carried out when the last one was sent."""
    _under_way: bool = False

    def connect(self, within_s: float = 5.0) -> ArmFacts:
        """Take hold of the arm."""
        return self.arm.connect(within_s)

    def state(self, max_age_s: float = 0.1) -> ArmReading:
        """Return the latest reading, and note its age."""
        reading = self.arm.state(max_age_s)
        self.ages_s.append(self.arm.age_s())
        return reading

    def age_s(self) -> float:
        """Return how old the newest reading may be."""
        return self.arm.age_s()

    def command(self, target: ArmTarget, ttl_s: float = 0.1, driver: str = "policy") -> None:
        """Send a target, and note when; one that is still under way took at least as long."""
        if self._under_way:
            self.took_s.append(time.monotonic() - self._sent_at)
        self._sent, self._sent_at = self.arm.counts()["sent"], time.monotonic()
        self._under_way = True
        self.arm.command(target, ttl_s, driver)

    def wait_until_carried_out(self, within_s: float) -> None:
        """Note how long it takes until a state says that the last command went to the arm."""
        while (took := time.monotonic() - self._sent_at) < within_s:
            if self.arm.counts()["sent"] > self._sent:
                self.took_s.append(took)
                self._under_way = False
                return
            time.sleep(LOOK_S)

    def hold(self, why: str) -> None:
        """Let it keep its place."""
        self.arm.hold(why)

    def stop(self, reason: str) -> None:
        """Stop the arm at once."""
        self.arm.stop(reason)

    def counts(self) -> Mapping[str, int]:
        """Return what happened on the robot's side."""
        return self.arm.counts()

    def close(self) -> None:
        """Let go of the arm."""
        self.arm.close()


class _Watching:
    """A sink that waits within each tick until its command was carried out."""

    def __init__(self, arm: WatchedArm, hz: float) -> None:
        self._arm, self._within_s = arm, 0.5 / hz

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None: ...

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        self._arm.wait_until_carried_out(self._within_s)

    def end(self, result: EpisodeResult, pose: Array | None) -> None: ...


def _driven(
    env: ArmEnv, arm: WatchedArm, ticks: int, clock: MeasuredClock, still: bool
) -> EpisodeResult:
    motion: Callable[[], Motion] = lambda: _holding(env) if still else _swaying(env)  # noqa: E731
    scene = Scene(Task("arm", 0, "hold" if still else "sway", ticks), Init(0))
    watching = _Watching(arm, env.spec.control_hz)
    arbiter = MotionOnly(motion, "skill:bench")
    return Episode(env, scene, arbiter, sinks=[watching], clock=clock).run()


def _tick_only(clock: MeasuredClock, hz: float, ticks: int) -> None:
    pacer = Pacer(clock, hz)
    for _ in range(ticks):
        pacer.wait()


def _swaying(env: ArmEnv) -> Motion:
    """Move to and fro, 5 cm."""
    sense = yield Look(())
    gripper = _gripper(env, sense.proprio.arms[0].gripper_opening)
    while True:
        side = SWAY * math.cos(2.0 * math.pi * sense.proprio.t / SWAY_S)
        sense = yield np.array([0.0, side, 0.0, 0.0, 0.0, 0.0, gripper])


def _holding(env: ArmEnv) -> Motion:
    """Stay where the arm is, gripper as it is."""
    sense = yield Look(())
    gripper = _gripper(env, sense.proprio.arms[0].gripper_opening)
    holder, last = Holder(env.spec.action), np.array([0.0] * 6 + [gripper])
    while True:
        sense = yield holder.action(sense.proprio, last)


def _gripper(env: ArmEnv, opening: float) -> float:
    """Return the command that keeps the fingers where they are."""
    spec = env.spec.action
    widest = env.facts.gripper_max
    closed = 1.0 - min(1.0, max(0.0, opening / widest)) if widest > 0.0 else 0.0
    return spec.gripper_open + closed * (spec.gripper_close - spec.gripper_open)


# --------------------------------------------------------------------------- the robot's side


@contextmanager
def _robot(url: str) -> Iterator[str]:
    """Yield where the arm is; one of our own runs in a process of its own meanwhile."""
    if url:
        yield url
        return
    side = "twin" if find_spec("robosuite") and find_spec("mujoco") else "simple"
    if side == "twin":
        output.note(choose_graphics(side))
    with ready_child([sys.executable, "-c", SERVING.format(side=side)]) as (line, _):
        yield str(json.loads(line)["url"])


def serve(side: str) -> None:
    """Serve an arm until the process is ended; the first line on stdout says where."""
    if side == "twin":
        from zetta.hw_drivers.twin.serve import Twin, TwinSettings

        anywhere = TwinSettings(
            command_port=0, state_port=0, stop_port=0, door_port=0, picture_hz=0.0
        )
        twin = Twin(anywhere)
        _say(twin.server.endpoints.command)
        twin.serve(lambda: False)
        return
    server = ArmServer(SimpleSide(), OPEN, ServerSettings(Endpoints.on(port=0)))
    _say(server.endpoints.command)
    server.serve(lambda: False)


def _say(url: str) -> None:
    print(json.dumps({"url": url}), flush=True)
