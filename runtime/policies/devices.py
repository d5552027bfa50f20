"""Where torch computes, and why not on a GPU."""

from __future__ import annotations

import ctypes
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from zetta.runtime.errors import ConfigError

AUTO: Final = "auto"
DRIVER: Final = "libcuda.so.1"
"""The library that NVIDIA's driver installs."""


def why_no_cuda() -> str | None:
    """Return why torch cannot use a CUDA device here, or None when it can."""
    if find_spec("torch") is None:
        return "torch is not installed"
    torch = import_module("torch")
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built for the CPU only; install a build for CUDA"
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return f"there is no NVIDIA driver: {DRIVER} cannot be loaded"
    if torch.cuda.device_count() == 0:
        return "the driver shows no device; nvidia-smi lists them, CUDA_VISIBLE_DEVICES hides them"
    return None


def choose_device(wanted: str) -> Any:
    """Return the torch device that `wanted` names: `auto`, `cpu`, `cuda` or `cuda:N`.

    Raises:
        ConfigError: there is no such device, and why.
    """
    torch = import_module("torch")
    kind, _, index = wanted.partition(":")
    if wanted == AUTO:
        return torch.device("cpu" if why_no_cuda() else "cuda:0")
    if wanted == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or (index and not index.isdecimal()):
        raise ConfigError(f"the device is {wanted!r}; expected auto, cpu, cuda or cuda:N")
    reason = why_no_cuda()
    if reason is not None:
        raise ConfigError(f"the device {wanted!r} cannot be used: {reason}; use device=cpu")
    if int(index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"there is no {wanted!r}; this machine has {torch.cuda.device_count()}")
    return torch.device("cuda", int(index or 0))
