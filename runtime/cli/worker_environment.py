"""How worker processes are run: one thread each, and a renderer that works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.graphics import DRAWN_WITH_OPENGL, choose_graphics
from zetta.runtime.rollouts.pool import PoolSettings

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


def pool_settings(
    sim: str, factory: str, log_dir: Path, workers: int, watchdog: float = 300.0
) -> PoolSettings:
    """Return how a pool of `sim` starts and watches its workers.

    Args:
        sim: simulator.
        factory: dotted name of the episode factory.
        log_dir: gets what workers print.
        workers: how many at once.
        watchdog: silence of a hung worker, seconds; three times that before its first tick.

    Raises:
        ConfigError: no workers, or no time.
        InfraError: the simulator draws with OpenGL and no backend works here.
    """
    return PoolSettings(
        factory=factory,
        log_dir=log_dir,
        workers=workers,
        environment=worker_environment(sim),
        silence_s=watchdog,
        start_s=3 * watchdog,
        stagger_s=stagger_s(sim),
    )
