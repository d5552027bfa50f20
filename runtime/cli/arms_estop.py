"""`zetta arms estop`: stop one arm or many, all at once.

The stop leaves before anything is imported that it does not need (`arms_telegram`); then every arm
is stopped again and has to confirm it (`arms_stopping`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.arms_telegram import telegraph

if TYPE_CHECKING:
    from zetta.runtime.cli.arms_stopping import Stopped


def command(
    urls: Annotated[list[str] | None, typer.Argument(help="Command sockets of arms.")] = None,
    setup: Annotated[
        list[Path] | None, typer.Option(help="Set-up of an arm (TOML); may be given again.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; everybody is told.")] = "by hand",
    keys: Annotated[
        Path | None, typer.Option(help="Client key file, where the server asks for one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Stop arms at once, whoever drives them; they stay stopped until `zetta arms clear`.

    This is no emergency stop: it needs the network and the computer beside the robot.
    """
    token = os.urandom(8).hex()
    under_way = telegraph(urls or [], setup or [], keys, reason, token)
    from zetta.runtime.cli.arms_stopping import places, stop_all  # while the message travels

    try:
        found, wrong = places(urls or [], setup or [], keys)
        for result in wrong:
            _say(result)
        results = [*stop_all(found, reason, _say, token), *wrong]
    finally:
        for socket in under_way:
            socket.close(0)
    if as_json:
        rows: list[output.Json] = [
            {
                "arm": r.url,
                "stopped": not r.said,
                "said": r.said,
                "stop": r.stop or None,
                "ms": round(1000.0 * r.after_s, 1),
            }
            for r in results
        ]
        output.emit({"arms": rows, "stopped": all(not r.said for r in results)})
    if any(result.said for result in results):
        raise typer.Exit(1)


def _say(result: Stopped) -> None:
    """Say what became of an arm as soon as it is known."""
    if result.said:
        output.answer(f"{result.url}: NOT CONFIRMED, it may be moving; {result.said}")
    else:
        output.answer(
            f"{result.url}: stopped; look at the arm, then: "
            f"zetta arms clear {result.url} --by YOUR-NAME"
            + (f" --stop {result.stop}" if result.stop else "")
        )
