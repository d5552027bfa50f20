"""Environment variables of worker processes: one thread each, and a renderer that works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.graphics import DRAWN_WITH_OPENGL, choose_graphics

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers share the cores among themselves; threads inside each would only fight for them."""


def worker_environment(sim: str) -> Mapping[str, str]:
    """Return the variables that workers of `sim` get.

    Raises:
        InfraError: the simulator draws with OpenGL and no backend works here.
    """
    output.note(choose_graphics(sim))
    return {**os.environ, **dict.fromkeys(THREADS, "1")}


def stagger_s(sim: str) -> float:
    """Return the pause between two starts of workers: OpenGL contexts are not created at once."""
    return 1.0 if sim in DRAWN_WITH_OPENGL else 0.0
