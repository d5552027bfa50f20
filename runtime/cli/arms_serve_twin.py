"""`zetta arms serve --twin`: an arm that is not there, with the link and limits of a real one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.arm_serving import kernel_guard
from zetta.hw_drivers.robot_file import TWIN, RobotFile
from zetta.hw_drivers.twin.serve import Twin, TwinSettings, serve_twin
from zetta.hw_drivers.twin.setups import write_setup
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_serve import status_line, told_regularly
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.errors import ConfigError, suggest

TWINS: Final = ("panda",)
OPTIONS: Final = ("seed", "faults")
CAMERAS_AFTER: Final = 3
"""Ports from the commands to the first camera."""
DOOR_AFTER: Final = 8
"""And to the door of the twin."""


def twin_settings(robot: RobotFile) -> TwinSettings:
    """Return what the twin is told.

    Raises:
        ConfigError: no such twin, option or ports.
    """
    arm = robot.driver.removeprefix(TWIN) or TWINS[0]
    if arm not in TWINS:
        raise ConfigError(f"there is no twin {arm!r}; {suggest(arm, TWINS)}")
    for option in robot.options:
        if option not in OPTIONS:
            raise ConfigError(f"a twin has no option {option!r}; {suggest(option, OPTIONS)}")
    seed = robot.options.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ConfigError(f"the seed of a twin is a whole number, got {seed!r}")
    if robot.port > 65535 - DOOR_AFTER:
        raise ConfigError(f"the port and the eight after it lie in 0 to 65535, got {robot.port}")
    after = (0, 1, 2, CAMERAS_AFTER, DOOR_AFTER)
    command, state, stop, camera, door = (robot.port + k if robot.port else 0 for k in after)
    return TwinSettings(
        host=robot.host,
        command_port=command,
        state_port=state,
        stop_port=stop,
        camera_port=camera,
        door_port=door,
        seed=seed,
        robot=robot.robot,
        keys=Path(robot.keys) if robot.keys else None,
        latch=Path(robot.latch) if robot.latch else None,
    )


def serve(robot: RobotFile, limits: Limits, setup: Path | None, as_json: bool) -> None:
    """Serve the twin until SIGTERM or Ctrl-C.

    Raises:
        ConfigError: no such twin or fault, limits that do not fit, something that is not
            installed.
        InfraError: a port is taken, its cameras cannot draw here, or the audit log cannot be
            written.
    """
    settings, faults = twin_settings(robot), faults_of(str(robot.options.get("faults", "")))
    if setup is not None and setup.exists():
        raise ConfigError(
            f"{setup} exists already; leave --write-setup out to go on with it, or name "
            "another file"
        )
    served: list[Twin] = []

    def ready(twin: Twin) -> None:
        for name, value in faults:
            twin.faults.set(name, True, value)
        served.append(twin)
        _announce(robot, twin, setup, as_json)

    with wish_to_end() as ending:
        output.note(f"building the twin of {limits.arm}")
        facts = TwinSide(TwinWorld(settings.seed), robot=settings.robot).facts
        with (
            kernel_guard(limits, facts, robot.guard()) as guard,
            told_regularly(lambda: status_line(served[0].server) if served else ""),
        ):
            serve_twin(settings, ending.stop.is_set, guard, ready, began_anew=guard.held)
    output.note(f"ended; {status_line(served[0].server)}")


def faults_of(text: str) -> list[tuple[str, str]]:
    """Return the faults of a text, each with its value.

    >>> faults_of("stuck_gripper;camera_lost=front")
    [('stuck_gripper', ''), ('camera_lost', 'front')]
    """
    entries = [entry.strip().partition("=") for entry in text.split(";") if entry.strip()]
    return [(name.strip(), value.strip()) for name, _, value in entries]


def _announce(robot: RobotFile, twin: Twin, path: Path | None, as_json: bool) -> None:
    places = twin.server.endpoints
    if path is not None:
        limits = (
            robot.limits
            if not robot.limits.endswith(".toml")
            else str(Path(robot.limits).resolve())
        )
        write_setup(replace(twin.setup(), limits=limits), path)
    output.note(
        f"serving {robot.robot!r} ({robot.driver}) at {places.command}, states {places.state}, "
        f"stop {places.stop}; limits of {robot.limits}; audit {robot.audit or 'none'}; "
        f"its door is {twin.door.endpoint}"
    )
    for name, place in twin.pictures.endpoints.items():
        output.note(f"camera {name} at {place}")
    if path is not None:
        output.note(f"try it: zetta drive --arm {path} --agent scripted")
    if as_json:
        output.emit(
            {
                "robot": robot.robot,
                "driver": robot.driver,
                "command": places.command,
                "state": places.state,
                "stop": places.stop,
                "cameras": dict(twin.pictures.endpoints),
                "door": twin.door.endpoint,
                "limits": robot.limits,
                "audit": robot.audit or None,
                "setup": None if path is None else str(path),
                "pid": os.getpid(),
            }
        )
