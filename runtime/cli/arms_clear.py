"""`zetta arms clear`: a person has looked at the arm and takes a latched stop away."""

from __future__ import annotations

from typing import Annotated

import typer

from zetta.hw_drivers.arm_person import clear_stop, what_is_stopped
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson, Keys, Url, client_keys


def command(
    url: Url,
    by: Annotated[str, typer.Option(help="Your name: you looked at the arm.")],
    stop: Annotated[
        str,
        typer.Option(
            help="The stop that you saw, as zetta arms estop and check name it; a later one stays. "
            "Without: the one that is latched when this command asks."
        ),
    ] = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Clear a latched stop. Whoever drove must connect anew; nothing moves by itself."""
    own = client_keys(keys)
    if not stop and by.strip():
        latched = what_is_stopped(url, own)
        if latched is not None:
            output.note(f"stop {latched.stop}: {latched.said}")
            stop = latched.stop  # what was shown is cleared, and nothing that comes after it
    reason = clear_stop(url, by, own, stop=stop)
    if as_json:
        output.emit({"arm": url, "was": reason, "stop": stop if reason else None})
    else:
        output.answer(f"cleared; it was {reason}" if reason else "no stop was latched")
