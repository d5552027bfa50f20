"""`zetta arms approve`: a person reads what an arm is asked to do, and lets it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from zetta.hw_drivers.arm_person import approve_waiting, what_waits
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson, Keys, Url, client_keys
from zetta.runtime.errors import ConfigError


def command(
    url: Url,
    by: Annotated[str, typer.Option(help="Your name: you read what is asked.")],
    token: Annotated[
        str, typer.Option(help="Of what you have read; another target is then not approved.")
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve whatever waits, without being shown it first.")
    ] = False,
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Approve the target that waits, after it was shown, or by the token that was read."""
    own = client_keys(keys)
    waiting = what_waits(url, own)
    if waiting is None:
        raise ConfigError(f"nothing waits for an approval at {url}")
    if not token and not yes:
        output.note(waiting.said)
        if as_json or not sys.stdin.isatty():
            raise ConfigError(
                f"read what waits ({waiting.said}), then add --token {waiting.token}, or --yes "
                "for whatever waits"
            )
        if not typer.confirm(f"approve it as {by}?", err=True):
            raise typer.Exit(1)
    # The token is that of what was shown: something newer is not approved by it.
    approved = approve_waiting(url, by, own, token or ("" if yes else waiting.token))
    if as_json:
        output.emit({"arm": url, "approved": approved.token, "said": approved.said})
    else:
        output.answer(f"approved: {approved.said}")
