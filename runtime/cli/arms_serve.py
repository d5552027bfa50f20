"""`zetta arms serve`: the robot's side, which stands beside the robot and runs for weeks.

It is made for a service: everything it says is a line on stderr, it ends on SIGTERM with the arm
held, and its exit code tells whether starting it again may help.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.hw_drivers.arm_limits import Limits
from zetta.hw_drivers.arm_messages import COMMAND_PORT
from zetta.hw_drivers.arm_server import ArmServer
from zetta.hw_drivers.arm_serving import guarded_server
from zetta.hw_drivers.robot_file import TWIN, RobotFile, limits_of, open_side, read_robot_file
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.curve_keys import read_server_keys
from zetta.runtime.errors import ConfigError, SpecMismatch

STATUS_EVERY_S: Final = 10.0
EXIT_DECLARED_WRONG: Final = 2
"""What was declared is wrong, so another start would end alike; 1 is for what may mend itself."""
TOLD: Final = ("sent", "changed", "declined", "watchdog", "stops", "expired", "refused", "garbage")
"""Counts of the status line."""


def command(
    robot: Annotated[
        Path | None, typer.Argument(help="The robot (TOML): driver, limits, where to listen.")
    ] = None,
    twin: Annotated[
        str, typer.Option(help="Serve a digital twin of this arm instead: panda.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Twin: seed of its first scene.")] = 0,
    port: Annotated[
        int, typer.Option(help="Twin: port of commands; states, stop, cameras, door follow.")
    ] = COMMAND_PORT,
    faults: Annotated[
        str, typer.Option(help="Twin: what goes wrong, such as stuck_gripper;camera_lost=front.")
    ] = "",
    write_setup: Annotated[
        Path | None, typer.Option(help="Twin: write the set-up that belongs to it here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve an arm to programs until SIGTERM or Ctrl-C; the arm then holds."""
    try:
        if (robot is None) == (not twin):
            said = "nothing was" if robot is None else "both were"
            raise ConfigError(
                f"say what to serve: zetta arms serve ROBOT.toml, or else --twin panda; {said} said"
            )
        declared = read_robot_file(robot) if robot is not None else _twin(twin, seed, port, faults)
        if declared.driver.startswith(TWIN):
            output.note(choose_graphics("twin"))  # before its engine is imported
            from zetta.runtime.cli.arms_serve_twin import serve

            serve(declared, limits_of(declared), write_setup, as_json)
            return
        if write_setup is not None:
            raise ConfigError("--write-setup is for a twin; of an arm a person writes the set-up")
        _serve(declared, limits_of(declared), as_json)
    except (ConfigError, SpecMismatch) as error:
        output.note(f"error: {error}")
        output.emit_failure(type(error).__name__, str(error))
        raise typer.Exit(EXIT_DECLARED_WRONG) from error


def _twin(arm: str, seed: int, port: int, faults: str) -> RobotFile:
    """Return the file that a twin would be declared in."""
    options: dict[str, object] = {"seed": seed, "faults": faults}
    return RobotFile("twin", f"{TWIN}{arm}", "panda", options, port=port)


def _serve(robot: RobotFile, limits: Limits, as_json: bool) -> None:
    keys = read_server_keys(Path(robot.keys)) if robot.keys else None
    with wish_to_end() as ending:
        output.note(f"connecting {robot.driver}")
        side = open_side(robot, limits)
        try:
            with guarded_server(side, limits, robot.settings(), robot.guard(), keys) as server:
                _announce(robot, limits, server, as_json)
                with told_regularly(lambda: status_line(server)):
                    server.serve(ending.stop.is_set)
        finally:
            side.close()
    output.note(f"ended, the arm holds; {status_line(server)}")


def status_line(server: ArmServer) -> str:
    """Return how the server fares, in one line."""
    counts = server.counts
    parts = [f"{counts[name]} {name}" for name in TOLD if counts[name] or name == "sent"]
    return f"{', '.join(parts)}, longest turn {1000.0 * server.longest_turn_s:.1f} ms late"


@contextmanager
def told_regularly(line: Callable[[], str]) -> Iterator[None]:
    """Write a line now and then while the block runs, if it has changed."""
    over = threading.Event()

    def tell() -> None:
        last = ""
        while not over.wait(STATUS_EVERY_S):
            now = line()
            if now != last:
                output.note(now)
            last = now

    status = threading.Thread(target=tell, name="status", daemon=True)
    status.start()
    try:
        yield
    finally:
        over.set()
        status.join()


def _announce(robot: RobotFile, limits: Limits, server: ArmServer, as_json: bool) -> None:
    places = server.endpoints
    output.note(
        f"serving {robot.robot!r} ({robot.driver}) at {places.command}, states {places.state}, "
        f"stop {places.stop}; limits of {limits.arm}; audit {robot.audit or 'none'}"
    )
    if robot.needs_approval:
        output.note(f"new targets wait: zetta arms approve {places.command} --by YOUR-NAME")
    output.note(f"look: zetta arms check {places.command}; stop: zetta arms estop {places.command}")
    if as_json:
        output.emit(
            {
                "robot": robot.robot,
                "driver": robot.driver,
                "command": places.command,
                "state": places.state,
                "stop": places.stop,
                "limits": limits.arm,
                "audit": robot.audit or None,
                "pid": os.getpid(),
            }
        )
