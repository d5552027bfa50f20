"""`zetta sims`: which simulators there are, their installation, and what a missing one needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

import typer

from zetta.runtime import registry
from zetta.runtime.cli import installation, output
from zetta.runtime.cli.sims_check import NEEDS, Probe, probes
from zetta.runtime.cli.sims_venv import VenvState, lives_apart, venv_of
from zetta.runtime.errors import ConfigError

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Simulators.")

Name = Annotated[str, typer.Argument(help="Simulator; `zetta sims list` names them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class SimState:
    """Whether a simulator can be used here."""

    name: str
    state: VenvState | Literal["ready", "missing"]
    fix: str
    """The command that makes it ready; empty when it is."""


@app.command("list")
def list_sims(as_json: AsJson = False) -> None:
    """List simulators, whether each is ready, and what to type if it is not."""
    states = sim_states()
    if as_json:
        output.emit(
            {"sims": [{"name": s.name, "state": s.state, "fix": s.fix or None} for s in states]}
        )
        return
    rows = [[s.name, s.state, s.fix] for s in states]
    output.answer(output.table(["name", "state", "fix"], rows))


@app.command("install")
def install_sim(
    name: Name,
    again: Annotated[
        bool, typer.Option("--again", help="Make its environment anew, even if it is whole.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the virtual environment of a simulator from its exact list of packages."""
    if not lives_apart(name) and name in registry.names("sims"):
        raise ConfigError(f"{name} needs no environment of its own; {_own_line(name)}")
    from zetta.runtime.cli.sims_graphics import bring_device
    from zetta.runtime.cli.sims_install import install

    done = install(name, again)
    bring_device(done.venv)
    stamp = done.stamp
    if as_json:
        output.emit(
            {
                "sim": name,
                "fresh": done.fresh,
                "folder": str(done.venv.folder),
                "seconds": stamp.seconds,
                "size_mb": stamp.size_mb,
            }
        )
        return
    how = "installed" if done.fresh else "was installed already"
    output.answer(
        f"{name} {how}: {done.venv.folder}, {stamp.size_mb / 1000:.1f} GB, made in "
        f"{stamp.seconds:.0f} s; try: zetta sims check {name}"
    )


@app.command("graphics")
def fetch_graphics(
    again: Annotated[
        bool, typer.Option("--again", help="Fetch it anew, even if it is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch Mesa's software device for Vulkan into the data folder (Debian 12)."""
    from zetta.runtime.cli import vulkan

    place = vulkan.fetch(again)
    if as_json:
        output.emit({"folder": str(place)})
        return
    output.answer(
        f"{place}: simulators that draw with Vulkan use it from now on; remove the folder to go "
        "back to the system's device"
    )


@app.command("check")
def check_sim(name: Name, as_json: AsJson = False) -> None:
    """Look at what a simulator needs, in order; exit 1 at the first thing that is missing."""
    found: list[Probe] = []
    for probe in probes(name):
        found.append(probe)
        if not as_json:
            mark = "ok" if probe.state == "ok" else "!!"
            output.answer(f"{mark}  {probe.name:<12} {probe.detail}")
    ready = all(p.state == "ok" for p in found)
    fix = found[-1].fix
    if as_json:
        rows = [
            {"name": p.name, "state": p.state, "detail": p.detail, "fix": p.fix or None}
            for p in found
        ]
        output.emit({"sim": name, "ready": ready, "fix": fix or None, "checks": rows})
    elif ready:
        output.answer(f"ready; try: zetta run --sim {name}")
    else:
        output.answer(fix)
    if not ready:
        raise typer.Exit(1)


def sim_states() -> tuple[SimState, ...]:
    """Return the state of every known simulator; none of them is imported."""
    return tuple(_sim_state(name) for name in registry.names("sims"))


def _sim_state(name: str) -> SimState:
    if lives_apart(name):
        venv = venv_of(name)
        return SimState(name, venv.state, venv.fix)
    if all(find_spec(package) is not None for package in NEEDS.get(name, ())):
        return SimState(name, "ready", "")
    return SimState(name, "missing", installation.install_line(name))


def _own_line(name: str) -> str:
    state = _sim_state(name)
    return "it is ready" if state.state == "ready" else f"install it with: {state.fix}"
