"""`--launch`: where rollouts run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from zetta.runtime.cli.worker_environment import THREADS
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.rollouts.launchers import Launcher
from zetta.runtime.rollouts.pool import Pool, PoolSettings

LAUNCHES: Final = ("local", "ray")
GRAPHICS: Final = ("MUJOCO_GL", "PYOPENGL_PLATFORM")


def check_launch(launch: str, ray_address: str) -> None:
    """Refuse what cannot be meant, before anything starts.

    Raises:
        ConfigError: there is no such launcher, or the address belongs to another one.
    """
    if launch not in LAUNCHES:
        raise ConfigError(f"unknown launcher {launch!r}; {suggest(launch, LAUNCHES)}")
    if ray_address and launch != "ray":
        raise ConfigError(f"--ray-address belongs to --launch ray, got --launch {launch}")


def launcher(launch: str, settings: PoolSettings, ray_address: str = "") -> Launcher:
    """Return what runs jobs: processes of this machine, or actors of a Ray cluster.

    Raises:
        ConfigError: there is no such launcher, or Ray is not installed.
        InfraError: no cluster answers.
    """
    check_launch(launch, ray_address)
    if launch == "local":
        return Pool(settings)
    # Ray reads these while it is imported: it reports nothing to its makers unless the user says
    # so, and leaves the devices of a node as they are.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    from zetta.runtime.rollouts.ray_launcher import ray_pool

    given = settings.environment or {}
    travels = {name: given[name] for name in (*THREADS, *GRAPHICS) if name in given}
    return ray_pool(replace(settings, environment=travels), ray_address)
