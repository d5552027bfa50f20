"""Empty modules for what RoboTwin imports and we do not call.

`torch` and `open3d` make point clouds and feed cuRobo; a machine that plans with cuRobo has both.
"""

from __future__ import annotations

import multiprocessing
import sys
from importlib.util import find_spec
from types import ModuleType


def install() -> None:
    """Put an empty module in the place of each that is not installed."""
    if _is_missing("open3d"):
        _put("open3d")
    if _is_missing("torch"):
        parts = {"Pipe": multiprocessing.Pipe, "Process": multiprocessing.Process}
        processes = _put("torch.multiprocessing", **parts)
        # RoboTwin seeds it; nothing is drawn from it.
        _put("torch", manual_seed=lambda seed: None, multiprocessing=processes)


def _is_missing(name: str) -> bool:
    return name not in sys.modules and find_spec(name) is None


def _put(name: str, **parts: object) -> ModuleType:
    module = ModuleType(name, "An empty stand-in of zetta.")
    for part, value in parts.items():
        setattr(module, part, value)
    sys.modules[name] = module
    return module
