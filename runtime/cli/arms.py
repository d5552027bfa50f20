"""`zetta arms`: serve an arm, look at it, stop it, record it and calibrate its cameras.

Each command is a module of its own, `arms_<command>.py`, which is imported only when it is called:
whoever stops an arm does not wait for what a calibration needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import typer

from zetta.runtime.cli.tree import Command, OnDemand, load

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "list": ("arms_list", "drivers and limits that are here, and which arms answer"),
    "serve": ("arms_serve", "the robot's side: serve an arm to programs"),
    "check": ("arms_check", "say what an arm and its cameras lack; moves nothing"),
    "estop": ("arms_estop", "stop one arm or many, at once"),
    "clear": ("arms_clear", "clear a latched stop, after looking at the arm"),
    "approve": ("arms_approve", "let a target go that waits for a person"),
    "audit": ("arms_audit", "check the audit log of an arm, and count what is in it"),
    "record": ("arms_record", "write down states and pictures, touching nothing"),
    "calibrate": ("arms_calibrate", "measure what a camera sees and where it is"),
    "camera": ("arms_camera", "send the pictures of a camera on this machine"),
}
"""Command, its module, which has it as `command` or with commands of its own as `app`, and what it
does."""
IN_HASTE: Final[Mapping[str, str]] = {"stop": "estop"}
"""What a hand types when there is no time; not in the help, because one name is enough."""


class Arms(OnDemand):
    """Commands that are imported when they are wanted."""

    def said(self) -> Mapping[str, str]:
        """Return the commands of the help."""
        return {name: said for name, (_, said) in COMMANDS.items()}

    def load(self, name: str) -> Command | None:
        """Import a command; None for an unknown one."""
        known = IN_HASTE.get(name, name)
        return load(COMMANDS[known][0], known, COMMANDS[known][1]) if known in COMMANDS else None


app = typer.Typer(add_completion=False, rich_markup_mode=None, cls=Arms)


@app.callback()
def _arms() -> None:
    """Arms: serve one, look at it, stop it, record it, calibrate its cameras."""
