"""A robot's side put together: driver, kernel, audit log and server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from zetta.hw_drivers.arm import ArmFacts, RobotSide
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.audit import AuditLog, Changes
from zetta.hw_drivers.decisions import AuditSink
from zetta.hw_drivers.tracks import Forward
from zetta.runtime.curve_keys import ServerKeys


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What the person who starts the robot's side decides about its kernel; no client can."""

    audit: Path | None = None
    """Folder of the audit log; None keeps none."""
    audit_all: bool = False
    """Also keep the commands that passed as asked."""
    needs_approval: bool = False
    """Each new target waits for a person."""
    after_kernel: bool = False
    """The programs that drive have a kernel with the same limits. Where that is not true, a stream
    that ends suddenly is passed by the way to rest, within all limits."""
    tick_s: float | None = None
    """Another tick than that of the limits."""


@contextmanager
def guarded_server(
    side: RobotSide,
    limits: Limits,
    settings: ServerSettings,
    guard: GuardSettings | None = None,
    keys: ServerKeys | None = None,
    forward: Forward | None = None,
) -> Iterator[ArmServer]:
    """Give a server whose arm keeps `limits`; close it, the side and the log at the end.

    Args:
        side: the driver.
        limits: of this very arm in its cell; their workspace is in the base frame.
        settings: where and how it is served.
        guard: what the kernel does beyond its limits.
        keys: without them only loopback is bound.
        forward: for an arm that is led by its joints.

    Raises:
        ConfigError: the limits do not fit the arm, an address cannot be bound, or the folder of
            the log cannot be written.
        InfraError: at the end, the log could not be written.
    """
    with kernel_guard(limits, side.facts, guard or GuardSettings(), forward) as kernel:
        server = ArmServer(side, kernel, settings, keys)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def kernel_guard(
    limits: Limits, facts: ArmFacts, wish: GuardSettings, forward: Forward | None = None
) -> Iterator[KernelGuard]:
    """Give the safety kernel of an arm with what keeps its decisions, which is closed at the end.

    Raises:
        ConfigError: the limits do not fit the arm.
        InfraError: the audit log cannot be written.
    """
    log = None if wish.audit is None else AuditLog(wish.audit)
    try:
        sink: AuditSink | None = log
        if log is not None and not wish.audit_all:
            sink = Changes(log)
        yield KernelGuard(
            limits, facts, sink, wish.needs_approval, wish.after_kernel, wish.tick_s, forward
        )
    finally:
        if log is not None:
            log.close()
