"""`driver = "twin:panda"` in a robot file: the declaration of an arm, rehearsed without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm import ArmFacts
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import Limits, load_limits
from zetta.hw_drivers.arm_serving import GuardSettings
from zetta.hw_drivers.audit import AuditLog, Changes
from zetta.hw_drivers.decisions import AuditSink
from zetta.hw_drivers.robot_file import RobotFile
from zetta.hw_drivers.twin.serve import Twin, TwinSettings, serve_twin
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_serve import announce, status_line, told_regularly
from zetta.runtime.cli.arms_serve_twin import CAMERAS_AFTER, DOOR_AFTER, TWINS
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.errors import ConfigError, suggest

SCHEME: Final = "twin:"
"""Of the driver in a robot file; the arm follows."""


def serve(robot: RobotFile, as_json: bool) -> None:
    """Serve a twin with the name, limits, audit log, latch and ports of a robot file.

    Raises:
        ConfigError: no such twin, the limits do not fit it, or a port is taken.
        InfraError: its cameras cannot draw here, or the audit log cannot be written.
    """
    limits = load_limits(Path(robot.limits) if robot.limits.endswith(".toml") else robot.limits)
    settings = settings_of(robot)
    facts = TwinSide(TwinWorld(settings.seed), robot=settings.robot).facts
    served: list[Twin] = []

    def ready(twin: Twin) -> None:
        served.append(twin)
        announce(robot, limits, twin.server, as_json)

    with wish_to_end() as ending, _guarded(limits, facts, robot.guard()) as guard:
        output.note(f"building a twin of {robot.driver.removeprefix(SCHEME)}")
        with told_regularly(lambda: status_line(served[0].server) if served else ""):
            serve_twin(settings, ending.stop.is_set, guard, ready, began_anew=guard.held)
    output.note(f"ended; {status_line(served[0].server)}")


def settings_of(robot: RobotFile) -> TwinSettings:
    """Return how the twin of a robot file is served.

    Raises:
        ConfigError: no such twin, or something that a twin has no use for.
    """
    arm = robot.driver.removeprefix(SCHEME)
    if arm not in TWINS:
        raise ConfigError(f"there is no twin {arm!r}; {suggest(arm, TWINS)}")
    if robot.options:
        raise ConfigError(f"a twin takes no options, got {', '.join(robot.options)}")
    own = RobotFile(robot.robot, robot.driver, robot.limits)
    for name in ("state_hz", "watchdog_s", "lease_s"):
        if getattr(robot, name) != getattr(own, name):
            raise ConfigError(
                f"a twin is served with {name} = {getattr(own, name):g}; leave it out"
            )
    ports = robot.settings().endpoints
    first = robot.port
    return TwinSettings(
        host=robot.host,
        command_port=_port(ports.command),
        state_port=_port(ports.state),
        stop_port=_port(ports.stop),
        camera_port=first + CAMERAS_AFTER if first else 0,
        door_port=first + DOOR_AFTER if first else 0,
        robot=robot.robot,
        keys=Path(robot.keys) if robot.keys else None,
        latch=Path(robot.latch) if robot.latch else None,
    )


def _port(endpoint: str) -> int:
    text = endpoint.rpartition(":")[2]
    return int(text) if text.isdigit() else 0


@contextmanager
def _guarded(limits: Limits, facts: ArmFacts, wish: GuardSettings) -> Iterator[KernelGuard]:
    """Give the kernel that stands before the twin; close its log at the end."""
    log = None if wish.audit is None else AuditLog(wish.audit)
    try:
        sink: AuditSink | None = log
        if log is not None and not wish.audit_all:
            sink = Changes(log)
        yield KernelGuard(limits, facts, sink, wish.needs_approval, wish.after_kernel, wish.tick_s)
    finally:
        if log is not None:
            log.close()
