"""The safety kernel with the words of arms: it stands before every target, on both ends of a link.

It is called by a clock, once a tick, also when nothing new was asked: it decides what is sent now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import (
    FOLLOWED,
    ArmFacts,
    ArmReading,
    ArmTarget,
    JointTarget,
    Passed,
    PoseTarget,
)
from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.decisions import AuditSink, Command, CommandKind, Decision, Grip
from zetta.hw_drivers.safety import SafetyKernel
from zetta.hw_drivers.tracks import Forward
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError
from zetta.runtime.tracking import Quat, Vec, quat_of_rotvec, rotvec_of_quat

JOINT_SLACK: Final = 0.05
"""Radians by which two sources of one joint's range may differ."""
BOX_SLACK: Final = 1e-3
"""Metres, the same for the workspace."""


class KernelGuard:
    """The safety kernel as a `Guard`."""

    def __init__(
        self,
        limits: Limits,
        facts: ArmFacts,
        audit: AuditSink | None = None,
        needs_approval: bool = False,
        after_kernel: bool = False,
        tick_s: float | None = None,
        forward: Forward | None = None,
    ) -> None:
        """Guard the arm that `facts` describe.

        Args:
            limits: of this very arm in its cell; their workspace is in the base frame.
            facts: what the driver says of the arm.
            audit: keeps what was decided; what it cannot keep is not sent.
            needs_approval: each new target waits for a person.
            after_kernel: as for `SafetyKernel`: a matter of lag, not of limits.
            tick_s: another tick than that of the limits; their speed, acceleration and jerk stay.
            forward: for an arm that is led by its joints; otherwise it is led by poses.

        Raises:
            ConfigError: the limits do not fit the arm.
        """
        check_fit(limits, facts)
        if tick_s is not None:
            limits = with_tick(limits, tick_s)
        kind: CommandKind = "target_pose" if forward is None else "joint_position"
        wanted = "pose" if forward is None else "joints"
        if wanted not in facts.accepts:
            raise ConfigError(
                f"{facts.robot} takes {' or '.join(facts.accepts)} targets, this guard leads by "
                f"{wanted}; the forward kinematics of the arm decide which"
            )
        self._limits = limits
        self._kernel = SafetyKernel(limits, kind, forward, needs_approval, audit, after_kernel)
        self._last: Command | None = None

    @property
    def limits(self) -> str:
        """Return of which arm the limits are."""
        return self._limits.arm

    @property
    def tick_s(self) -> float:
        """Return the tick."""
        return self._limits.timing.tick

    @property
    def stopped(self) -> str:
        """Return why it is stopped; empty while it is not."""
        return self._kernel.stopped

    @property
    def rests(self) -> bool:
        """Say whether what is sent stands still."""
        return self._kernel.rests

    def tick(
        self, asked: ArmTarget | None, reading: ArmReading | None, now: float, driver: str
    ) -> Passed:
        """Return what is sent at this tick, as the kernel decides."""
        command = None if asked is None else self._command(asked)
        decision = self._kernel.admit(command, reading, now, driver)
        before, self._last = self._last, decision.sent
        target = self._target(decision, before)
        return Passed(target, decision.verdict, "; ".join(decision.reasons), decision.approval)

    def held(self) -> None:
        """Begin anew, from rest where the arm then is."""
        self._kernel.forget()
        self._last = None

    def stop(self, reason: str, now: float, by: str) -> None:
        """Stop the kernel."""
        self._kernel.stop(reason, now, by)

    def clear(self, by: str, now: float) -> None:
        """Clear the kernel, if it is stopped.

        Raises:
            ConfigError: `by` is no person's name.
            SafetyStop: what is sent still moves.
        """
        if self._kernel.stopped:
            self._kernel.clear(by, now)

    def approve(self, token: str, by: str, now: float) -> None:
        """Approve the target that waits.

        Raises:
            ConfigError: none waits under this token, or `by` is no person's name.
        """
        self._kernel.approve(token, by, now)

    def _command(self, target: ArmTarget) -> Command:
        gripper = self._limits.gripper
        grip = Grip(target.gripper_opening, gripper.speed, gripper.force)
        if isinstance(target, JointTarget):
            return Command("joint_position", target.joint_pos, grip)
        quat = target.ee_quat / np.linalg.norm(target.ee_quat)
        values = np.array([*target.ee_pos, *rotvec_of_quat(_quat(quat))])
        return Command("target_pose", values, grip)

    def _target(self, decision: Decision, before: Command | None) -> ArmTarget | None:
        """Return what is to be sent, if it is not what the arm has already."""
        sent = decision.sent
        if sent is None or sent.grip is None or self._kernel.stopped:
            return None
        same = before is None or np.array_equal(sent.values, before.values)
        if decision.verdict not in FOLLOWED and same and self._kernel.rests:
            return None
        if sent.kind == "joint_position":
            return JointTarget(read_only(sent.values), sent.grip.opening)
        quat = np.array(quat_of_rotvec(_vec(sent.values[3:])))
        return PoseTarget(read_only(sent.values[:3]), read_only(quat), sent.grip.opening)


def with_tick(limits: Limits, tick_s: float) -> Limits:
    """Return the limits for another tick; all that is physical stays.

    Raises:
        ConfigError: it is no tick.
    """
    if not 0.002 <= tick_s <= 0.5:
        raise ConfigError(f"a tick lasts 0.002 to 0.5 s, got {tick_s:g}")
    stale = max(limits.timing.stale, tick_s)
    return replace(limits, timing=replace(limits.timing, tick=tick_s, stale=stale))


def check_fit(limits: Limits, facts: ArmFacts) -> None:
    """Check that limits can be those of an arm, as far as its driver describes it.

    Raises:
        ConfigError: they cannot.
    """
    whose = f"the limits of {limits.arm!r} do not fit {facts.robot} ({facts.model})"
    if len(limits.joints) != len(facts.joints):
        raise ConfigError(
            f"{whose}: they are of {len(limits.joints)} joints, the arm has {len(facts.joints)}"
        )
    low, high = np.array(facts.joint_low), np.array(facts.joint_high)
    if low.size and high.size:
        out = np.maximum(low - limits.joint_low, limits.joint_high - high)
        worst = int(np.argmax(out))
        if out[worst] > JOINT_SLACK:
            raise ConfigError(
                f"{whose}: {limits.joints[worst]} may go {out[worst]:.2g} rad farther than the "
                "driver allows"
            )
    if facts.workspace_low and facts.workspace_high:
        box = limits.workspace
        low, high = np.array(facts.workspace_low), np.array(facts.workspace_high)
        out = np.maximum(low - box.low, box.high - high)
        if out.max() > BOX_SLACK:
            raise ConfigError(
                f"{whose}: their workspace ({box}) reaches {100 * out.max():.0f} cm beyond that of "
                "the driver; both are in the arm's base frame"
            )
    if limits.gripper.opening > facts.gripper_max + BOX_SLACK:
        raise ConfigError(
            f"{whose}: their gripper opens {limits.gripper.opening:g} m, that of the arm "
            f"{facts.gripper_max:g} m"
        )


def _vec(values: Array) -> Vec:
    x, y, z = values.tolist()
    return x, y, z


def _quat(values: Array) -> Quat:
    x, y, z, w = values.tolist()
    return x, y, z, w
