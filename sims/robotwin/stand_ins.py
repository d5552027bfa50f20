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
    if find_spec("open3d") is None:
        _put("open3d")
    if find_spec("torch") is None:
        parts = {"Pipe": multiprocessing.Pipe, "Process": multiprocessing.Process}
        processes = _put("torch.multiprocessing", **parts)
        # RoboTwin seeds it; nothing is drawn from it.
        _put("torch", manual_seed=lambda seed: None, multiprocessing=processes)


def _put(name: str, **parts: object) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name, "An empty stand-in of zetta.")
    for part, value in parts.items():
        setattr(module, part, value)
    sys.modules[name] = module
    return module
