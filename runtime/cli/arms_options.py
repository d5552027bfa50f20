"""What several commands of `zetta arms` are told alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime.curve_keys import ClientKeys, read_client_keys

Url = Annotated[str, typer.Argument(help="Command socket, such as tcp://127.0.0.1:5701.")]
Keys = Annotated[Path | None, typer.Option(help="Client key file, where the server asks for one.")]
SetupFile = Annotated[
    Path | None, typer.Option(help="Set-up of the arm (TOML); its cameras are looked at too.")
]
Robot = Annotated[str, typer.Option(help="Name of the robot that must be there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def client_keys(path: Path | None) -> ClientKeys | None:
    """Return the keys of a file, or None without one.

    Raises:
        ConfigError: the file is missing, damaged, or readable by others.
    """
    return None if path is None else read_client_keys(path)
