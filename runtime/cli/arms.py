"""`zetta arms`: look at an arm, stop it, clear a stop, and send the pictures of a camera."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from zetta.hw_drivers.arm_check import Finding, check_arm
from zetta.hw_drivers.arm_setup import read_setup
from zetta.hw_drivers.camera_sources import open_camera
from zetta.hw_drivers.camera_stream import CameraPublisher, relay
from zetta.hw_drivers.zmq_arm import ZmqArm, clear_stop
from zetta.runtime.cli import output
from zetta.runtime.curve_keys import ClientKeys, read_client_keys, read_server_keys
from zetta.runtime.errors import ConfigError, suggest

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Arms.")

Url = Annotated[str, typer.Argument(help="Command socket, such as tcp://127.0.0.1:5701.")]
Keys = Annotated[Path | None, typer.Option(help="Client key file, where the server asks for one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("check")
def check(
    url: Url,
    setup: Annotated[
        Path | None, typer.Option(help="Set-up of the arm (TOML); its cameras are looked at too.")
    ] = None,
    robot: Annotated[str, typer.Option(help="Name of the robot that must be there.")] = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Say what an arm lacks. Nothing moves, and the arm is not taken hold of."""
    found = check_arm(url, None if setup is None else read_setup(setup), robot, _keys(keys))
    wrong = any(finding.state == "wrong" for finding in found)
    if as_json:
        rows: list[output.Json] = [
            {"name": f.name, "state": f.state, "said": f.said} for f in found
        ]
        output.emit({"arm": url, "usable": not wrong, "findings": rows})
    else:
        output.answer(output.table(["what", "state", "found"], [_row(f) for f in found]))
    if wrong:
        raise typer.Exit(1)


@app.command("stop")
def stop(
    url: Url,
    reason: Annotated[str, typer.Option(help="Why; everybody is told.")] = "by hand",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Stop an arm at once, whoever drives it; it stays stopped until `zetta arms clear`.

    This is no emergency stop: it needs the network and the computer beside the robot.
    """
    arm = ZmqArm(url, keys=_keys(keys))
    try:
        arm.stop(reason)
    finally:
        arm.close()
    if as_json:
        output.emit({"arm": url, "stopped": True})
    else:
        output.answer(f"stopped; look at the arm, then: zetta arms clear {url} --by YOUR-NAME")


@app.command("clear")
def clear(
    url: Url,
    by: Annotated[str, typer.Option(help="Your name: you looked at the arm.")],
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Clear a latched stop. Whoever drove must connect anew; nothing moves by itself."""
    reason = clear_stop(url, by, _keys(keys))
    if as_json:
        output.emit({"arm": url, "was": reason})
    else:
        output.answer(f"cleared; it was {reason}" if reason else "no stop was latched")


@app.command("camera")
def camera(
    setup: Annotated[Path, typer.Option(help="Set-up (TOML) that declares the camera here.")],
    name: Annotated[str, typer.Option(help="Name of the camera.")],
    bind: Annotated[str, typer.Option(help="Where to listen.")] = "tcp://127.0.0.1:5704",
    jpeg: Annotated[bool, typer.Option("--jpeg", help="Send JPEG instead of raw rows.")] = False,
    keys: Annotated[
        Path | None, typer.Option(help="Server key file; without it only loopback is bound.")
    ] = None,
) -> None:
    """Send the pictures of a camera on this machine to whoever listens, until Ctrl-C."""
    cameras = read_setup(setup).cameras
    if name not in cameras:
        raise ConfigError(f"{setup} has no camera {name!r}; {suggest(name, cameras)}")
    served = None if keys is None else read_server_keys(keys)
    publisher = CameraPublisher(bind, name, "jpeg" if jpeg else "raw", served)
    try:
        source = open_camera(name, cameras[name])
        output.note(f"sending the camera {name!r} at {publisher.endpoint}; Ctrl-C ends it")
        try:
            relay(source, publisher, threading.Event().wait)
        finally:
            source.close()
    finally:
        publisher.close()


def _row(finding: Finding) -> list[str]:
    return [finding.name, finding.state, finding.said]


def _keys(path: Path | None) -> ClientKeys | None:
    return None if path is None else read_client_keys(path)
