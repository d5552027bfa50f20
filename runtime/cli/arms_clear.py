"""`zetta arms clear`: a person has looked at the arm and takes a latched stop away."""

from __future__ import annotations

from typing import Annotated

import typer

from zetta.hw_drivers.arm_person import clear_stop
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson, Keys, Url, client_keys


def command(
    url: Url,
    by: Annotated[str, typer.Option(help="Your name: you looked at the arm.")],
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Clear a latched stop. Whoever drove must connect anew; nothing moves by itself."""
    reason = clear_stop(url, by, client_keys(keys))
    if as_json:
        output.emit({"arm": url, "was": reason})
    else:
        output.answer(f"cleared; it was {reason}" if reason else "no stop was latched")
