"""`zetta arms check`: say what an arm and its cameras lack."""

from __future__ import annotations

from pathlib import Path

import typer

from zetta.hw_drivers.arm_check import Finding, check_arm
from zetta.hw_drivers.arm_setup import read_setup
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson, Keys, Robot, SetupFile, Url, client_keys


def command(
    url: Url,
    setup: SetupFile = None,
    robot: Robot = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Say what an arm lacks. Nothing moves, and the arm is not taken hold of."""
    declared = None if setup is None else read_setup(setup)
    own = keys or (Path(declared.keys) if declared and declared.keys else None)
    name = robot or (declared.robot if declared else "")
    found = check_arm(url, declared, name, client_keys(own))
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


def _row(finding: Finding) -> list[str]:
    return [finding.name, finding.state, finding.said]
