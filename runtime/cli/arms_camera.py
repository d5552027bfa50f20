"""`zetta arms camera`: send the pictures of a camera on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.hw_drivers.arm_setup import read_setup
from zetta.hw_drivers.camera_sources import open_camera
from zetta.hw_drivers.camera_stream import CameraPublisher, relay
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.curve_keys import read_server_keys
from zetta.runtime.errors import ConfigError, suggest


def command(
    setup: Annotated[Path, typer.Option(help="Set-up (TOML) that declares the camera here.")],
    name: Annotated[str, typer.Option(help="Name of the camera.")],
    bind: Annotated[str, typer.Option(help="Where to listen.")] = "tcp://127.0.0.1:5704",
    jpeg: Annotated[bool, typer.Option("--jpeg", help="Send JPEG instead of raw rows.")] = False,
    keys: Annotated[
        Path | None, typer.Option(help="Server key file; without it only loopback is bound.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send the pictures of a camera on this machine to whoever listens, until Ctrl-C."""
    cameras = read_setup(setup).cameras
    if name not in cameras:
        raise ConfigError(f"{setup} has no camera {name!r}; {suggest(name, cameras)}")
    served = None if keys is None else read_server_keys(keys)
    publisher = CameraPublisher(bind, name, "jpeg" if jpeg else "raw", served)
    try:
        source = open_camera(name, cameras[name])
        try:
            with wish_to_end() as ending:
                output.note(f"sending the camera {name!r} at {publisher.endpoint}; Ctrl-C ends it")
                if as_json:
                    output.emit({"camera": name, "endpoint": publisher.endpoint})
                sent = relay(source, publisher, ending.stop.wait)
        finally:
            source.close()
    finally:
        publisher.close()
    output.note(f"ended; {sent} pictures were sent")
