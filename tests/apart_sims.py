"""Simulators of environments of their own, as tests get at them."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime import registry
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.sims_check import device
from zetta.runtime.cli.sims_venv import apart, venv_of
from zetta.runtime.cli.vulkan import draws_with_vulkan
from zetta.runtime.core import Simulator
from zetta.sims.remote import lent_program


def installed(name: str) -> Simulator:
    """Return a simulator that makes its environments in processes of its own; skip without it."""
    venv = venv_of(name)
    if venv.state != "ready":
        pytest.skip(f"{name} is not installed; install it with: {venv.fix}")
    choose_graphics(name)
    missing = _no_device(name)
    if missing:
        pytest.skip(missing)
    return apart(name, registry.simulator(name))


BLIND_AS_WELL = {"robotwin"}
"""Simulators that draw with Vulkan and build worlds without a device too."""


@cache
def _no_device(name: str) -> str:
    """Return which device a simulator lacks, and what brings one; empty where it is not needed."""
    if not draws_with_vulkan(name) or name in BLIND_AS_WELL:
        return ""
    found = device(venv_of(name))
    return "" if found.state == "ok" else f"{found.detail}; bring one with: {found.fix}"


def told_by(name: str, script: Path) -> Any:
    """Run a script in the environment of a simulator; return the JSON of its last line."""
    installed(name)
    program = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    with lent_program(program) as arguments:
        child = subprocess.run(
            [str(venv_of(name).python), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert child.returncode == 0, child.stderr[-4000:]
    return json.loads(child.stdout.splitlines()[-1])
