"""The words of arms: what an arm reports, what it is told, and who speaks for it.

Poses are those of the grip site in the arm's own base frame (`T_base_ee`); whoever needs the world
frame converts once, in the environment. SI units, quaternions xyzw, joint angles in radians. Times
are seconds of a monotonic clock: `ArmReading.t` of the robot's, ages of nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from zetta.hw_drivers.decisions import Verdict
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch

ArmMode: TypeAlias = Literal["idle", "moving", "holding", "stopped", "fault"]
"""`idle`: powered, nothing was asked. `moving`: follows targets. `holding`: keeps its place because
nobody commands it. `stopped`: a stop is latched until a person clears it. `fault`: cannot move."""

TargetKind: TypeAlias = Literal["pose", "joints"]

MAX_DRIVER: Final = 64
"""Characters of a driver with its name."""
FOLLOWED: Final = ("as asked", "changed")
"""Verdicts with which an arm goes where it was asked to, or towards it."""
UNIT_TOLERANCE: Final = 1e-3
"""A quaternion may be so far from unit length before it counts as no rotation."""


@dataclass(frozen=True, slots=True)
class ArmReading:
    """What one arm reports at one instant."""

    t: float
    """When it was measured, by the robot's monotonic clock."""
    joint_pos: Array
    """Radians. Shape (J,)."""
    ee_pos: Array
    """Grip site in the arm's base frame, metres. Shape (3,)."""
    ee_quat: Array
    """Its orientation in the base frame, xyzw. Shape (4,)."""
    gripper_opening: float
    """Distance between the fingers, metres."""
    gripper_velocity: float = 0.0
    """Rate of change of the opening, m/s; negative while closing."""
    mode: ArmMode = "idle"
    reason: str = ""
    """Why it holds, was stopped or is at fault; empty otherwise."""


@dataclass(frozen=True, slots=True)
class PoseTarget:
    """Where the grip site shall be. The arm goes there and stays: a target is no velocity."""

    ee_pos: Array
    """Base frame, metres. Shape (3,)."""
    ee_quat: Array
    """Base frame, xyzw. Shape (4,)."""
    gripper_opening: float
    """Wanted distance between the fingers, metres."""


@dataclass(frozen=True, slots=True)
class JointTarget:
    """Where the joints shall be."""

    joint_pos: Array
    """Radians. Shape (J,)."""
    gripper_opening: float
    """Wanted distance between the fingers, metres."""


ArmTarget: TypeAlias = PoseTarget | JointTarget


@dataclass(frozen=True, slots=True)
class ArmFacts:
    """What an arm is; told once to whoever connects."""

    robot: str
    """Name of this very robot: a client may insist on it."""
    model: str
    joints: tuple[str, ...]
    """Names of the joints, in the order of `ArmReading.joint_pos`."""
    joint_low: tuple[float, ...]
    """Lower limits, radians; empty where the driver does not know them."""
    joint_high: tuple[float, ...]
    gripper_max: float
    """Opening of the open gripper, metres."""
    accepts: tuple[TargetKind, ...] = ("pose",)
    """Kinds of target that the arm follows."""
    workspace_low: tuple[float, ...] = ()
    """Lower corner of the box for the grip site, base frame; empty where not declared."""
    workspace_high: tuple[float, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the driver and the controller; written into every result."""


class RobotSide(Protocol):
    """What a driver, or a twin, gives the server that stands beside the robot.

    One thread calls all of it, at the rate of the state stream, so nothing here may wait: a call
    that takes longer than a period delays the watchdog by as much.
    """

    @property
    def facts(self) -> ArmFacts:
        """Return what the arm is; it never changes."""
        ...

    def read(self) -> ArmReading:
        """Return the latest reading; `t` is of the clock that the server was given.

        Raises:
            InfraError: the robot does not report; the server then holds and says `fault`.
        """
        ...

    def send(self, target: ArmTarget) -> None:
        """Begin to go to `target`; it replaces the one before.

        Raises:
            InfraError: the robot does not take it; the server then holds and says `fault`.
            SafetyStop: it must not go there; the server then stops, latched.
        """
        ...

    def hold(self) -> None:
        """Keep the present place; forget the target. Called again and again: idempotent."""
        ...

    def stop(self) -> None:
        """Stop as fast as the robot can, and do not move until `clear`. Idempotent."""
        ...

    def clear(self) -> None:
        """A person has cleared the stop: keep the present place and take targets again."""
        ...

    def close(self) -> None:
        """Hold and free everything; calling it again does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Passed:
    """What a guard lets through at one tick."""

    target: ArmTarget | None
    """Send exactly this; None: send nothing, the arm keeps what it has."""
    verdict: Verdict = "as asked"
    reason: str = ""
    """Why it is not what was asked; empty where it is."""
    waiting: str = ""
    """Token for `approve`, where the target waits for a person."""


class Guard(Protocol):
    """Decides what is sent to an arm. One thread calls it."""

    @property
    def limits(self) -> str:
        """Return of which arm the limits are; empty where nothing is limited."""
        ...

    @property
    def tick_s(self) -> float:
        """Return the period of `tick`; 0: once for each fresh target, and never without one."""
        ...

    @property
    def stopped(self) -> str:
        """Return why nothing is followed until a person clears it; empty otherwise."""
        ...

    @property
    def rests(self) -> bool:
        """Say whether what is sent stands still."""
        ...

    def tick(
        self, asked: ArmTarget | None, reading: ArmReading | None, now: float, driver: str
    ) -> Passed:
        """Return what is sent at this tick. Never waits.

        Args:
            asked: the newest target, again while it is fresh; checked for shape and finiteness.
            reading: the latest one; `t` is of the clock of `now`.
            now: seconds of a monotonic clock.
            driver: who asks: `person`, `policy`, `skill:NAME` or `agent:NAME`.
        """
        ...

    def held(self) -> None:
        """Take note that the arm was told to hold: what comes next begins where it stands."""
        ...

    def stop(self, reason: str, now: float, by: str) -> None:
        """Let nothing be followed until `clear`. Never raises."""
        ...

    def clear(self, by: str, now: float) -> None:
        """A person has cleared the stop.

        Raises:
            ConfigError: `by` is no person's name.
            SafetyStop: what is sent still moves.
        """
        ...

    def approve(self, token: str, by: str, now: float) -> None:
        """Let the target that waits under `token` be followed.

        Raises:
            ConfigError: none does, or `by` is no person's name.
        """
        ...


class _Open:
    """Lets everything pass."""

    limits, tick_s, stopped, rests = "", 0.0, "", True

    def tick(
        self, asked: ArmTarget | None, reading: ArmReading | None, now: float, driver: str
    ) -> Passed:
        del reading, now, driver
        return Passed(asked)

    def held(self) -> None:
        pass

    def stop(self, reason: str, now: float, by: str) -> None:
        pass

    def clear(self, by: str, now: float) -> None:
        pass

    def approve(self, token: str, by: str, now: float) -> None:
        del by, now
        raise ConfigError(f"nothing waits for the approval {token!r}: this arm has no guard")


OPEN: Final[Guard] = _Open()


@runtime_checkable
class Arm(Protocol):
    """An arm as a program sees it, wherever it stands."""

    def connect(self, within_s: float = 5.0) -> ArmFacts:
        """Reach the arm and take hold of it; again after it was lost.

        Raises:
            Timeout: nobody answers; the message names the endpoint.
            InfraError: somebody else holds it.
            SpecMismatch: it is another robot, or speaks another protocol.
        """
        ...

    def state(self, max_age_s: float = 0.1) -> ArmReading:
        """Return the latest reading, not older than `max_age_s`.

        Raises:
            Timeout: there is none so fresh.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
        """
        ...

    def age_s(self) -> float:
        """Return how old the newest reading may be; infinite before the first one."""
        ...

    def command(self, target: ArmTarget, ttl_s: float = 0.1, driver: str = "policy") -> None:
        """Send a target that must not be executed later than `ttl_s` from now.

        Args:
            target: where the arm shall be.
            ttl_s: how long it is worth anything.
            driver: who asks: `person`, `policy`, `skill:NAME` or `agent:NAME`; each has limits.

        Raises:
            SafetyStop: a stop is latched.
            ConnectionLost: the server was restarted, or the hold on the arm is lost.
            SpecMismatch: no target of this arm, or no driver.
        """
        ...

    def hold(self, why: str) -> None:
        """Let the arm keep its place by itself until the next command.

        Raises:
            InfraError: the network takes nothing, or the hold on the arm is lost.
        """
        ...

    def stop(self, reason: str) -> None:
        """Stop the arm at once; it stays stopped until a person clears it.

        Raises:
            Timeout: the robot's side did not confirm; use the emergency stop.
        """
        ...

    def close(self) -> None:
        """Let go of the arm, which then holds; calling it again does nothing."""
        ...


def checked_target(target: ArmTarget, facts: ArmFacts) -> ArmTarget:
    """Return `target` with private arrays, if `facts` say that the arm can follow it at all.

    Raises:
        SpecMismatch: another kind or length than the arm takes, not finite, or no rotation.
    """
    kind: TargetKind = "pose" if isinstance(target, PoseTarget) else "joints"
    if kind not in facts.accepts:
        raise SpecMismatch(
            f"{facts.robot} takes {' or '.join(facts.accepts)} targets, got a {kind} target"
        )
    opening = float(target.gripper_opening)
    if not 0.0 <= opening <= facts.gripper_max + 1e-6:
        raise SpecMismatch(
            f"the gripper of {facts.robot} opens 0 to {facts.gripper_max:g} m, got {opening:g} m"
        )
    if isinstance(target, PoseTarget):
        quat = _finite(target.ee_quat, 4, "quaternion")
        if abs(float(np.linalg.norm(quat)) - 1.0) > UNIT_TOLERANCE:
            raise SpecMismatch(
                f"a quaternion has length 1, got {float(np.linalg.norm(quat)):g}; give it as xyzw"
            )
        return PoseTarget(_finite(target.ee_pos, 3, "position"), quat, opening)
    return JointTarget(_finite(target.joint_pos, len(facts.joints), "joint target"), opening)


def checked_driver(driver: str) -> str:
    """Return `driver`, if it is one.

    >>> checked_driver("skill:regrasp")
    'skill:regrasp'

    Raises:
        SpecMismatch: it is none.
    """
    kind, colon, name = driver.partition(":")
    plain = kind in ("person", "policy") and not colon
    named = kind in ("skill", "agent") and bool(name.strip())
    if not (plain or named) or len(driver) > MAX_DRIVER or not driver.isprintable():
        raise SpecMismatch(
            f"a driver is person, policy, skill:NAME or agent:NAME, got {driver!r:.60}"
        )
    return driver


def driver_of(source: str) -> str:
    """Return the driver that a source of ticks is, as the loop names it.

    A person who types commands is the person; who is unknown is a skill, which may do least but
    for an agent.

    >>> driver_of("policy"), driver_of("agent:human"), driver_of("agent:gpt")
    ('policy', 'person', 'agent:gpt')
    >>> driver_of("regrasp")
    'skill:regrasp'
    """
    if source in ("policy", "person"):
        return source
    if source == "agent:human":
        return "person"
    kind, _, name = source.partition(":")
    name = "".join(c for c in name if c.isprintable()).strip()[: MAX_DRIVER - len("agent:")]
    if kind in ("skill", "agent") and name:
        return f"{kind}:{name}"
    return f"skill:{source.replace(':', '-').strip()[: MAX_DRIVER - len('skill:')] or 'unnamed'}"


def described(target: ArmTarget) -> str:
    """Return a target as a person reads it.

    >>> described(JointTarget(np.array([0.0, 1.5]), 0.04))
    'joints 0, 1.5 rad, gripper 4 cm'
    """
    gripper = f"gripper {100.0 * target.gripper_opening:.3g} cm"
    if isinstance(target, JointTarget):
        return f"joints {', '.join(f'{q:.3g}' for q in target.joint_pos)} rad, {gripper}"
    place = ", ".join(f"{100.0 * x:.1f}" for x in target.ee_pos)
    turn = ", ".join(f"{x:.3f}" for x in target.ee_quat)
    return f"the hand at {place} cm, quaternion {turn} (xyzw), {gripper}"


def _finite(values: Array, size: int, name: str) -> Array:
    array = read_only(values)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise SpecMismatch(f"a {name} is {size} finite numbers, got {array.tolist()!r:.80}")
    return array
