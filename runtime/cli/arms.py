"""`zetta arms`: serve an arm, look at it, stop it, record it and calibrate its cameras.

Each command is a module of its own, `arms_<command>.py`, which is imported only when it is called:
whoever stops an arm does not wait for what a calibration needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

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


class OnDemand(TyperGroup):
    """Commands that are imported when they are wanted."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None for an unknown one."""
        del ctx
        name = IN_HASTE.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module_name, said = COMMANDS[name]
        module = import_module(f"zetta.runtime.cli.{module_name}")
        if hasattr(module, "app"):
            return typer.main.get_group(module.app)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, short_help=said)(module.command)
        return typer.main.get_command(alone)


app = typer.Typer(add_completion=False, rich_markup_mode=None, cls=OnDemand)


@app.callback()
def _arms() -> None:
    """Arms: serve one, look at it, stop it, record it, calibrate its cameras."""
