"""Environment variables of worker processes: one thread each, and a renderer that works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from zetta.runtime.cli import output

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers share the cores among themselves; threads inside each would only fight for them."""

DRAWS_WITH_MUJOCO: Final = frozenset({"libero"})


def worker_environment(sim: str) -> Mapping[str, str]:
    """Return the variables that workers of `sim` get.

    Raises:
        InfraError: the simulator draws with OpenGL and no backend works here.
    """
    variables = {**os.environ, **dict.fromkeys(THREADS, "1")}
    if sim not in DRAWS_WITH_MUJOCO or "MUJOCO_GL" in os.environ:
        return variables
    from zetta.sims.libero.rendering import choose_gl

    choice = choose_gl()
    output.note(f"pictures are drawn with {choice.backend} {choice.note}".rstrip())
    return {**variables, "MUJOCO_GL": choice.backend, "PYOPENGL_PLATFORM": choice.backend}


def stagger_s(sim: str) -> float:
    """Return the pause between two starts of workers: OpenGL contexts are not created at once."""
    return 1.0 if sim in DRAWS_WITH_MUJOCO else 0.0
