"""`--launch`: where rollouts run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from zetta.runtime.cli.shared_policy import shared_site
from zetta.runtime.cli.worker_environment import THREADS
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.rollouts.launchers import Launcher
from zetta.runtime.rollouts.pool import Pool, PoolSettings

LAUNCHES: Final = ("local", "ray")
GRAPHICS: Final = ("MUJOCO_GL", "PYOPENGL_PLATFORM")


@dataclass(frozen=True, slots=True)
class Launch:
    """Where rollouts run, as it was typed."""

    name: str = "local"
    ray_address: str = ""
    share_policy: bool = False
    """All workers ask one server for each policy."""


def check_launch(launch: Launch) -> None:
    """Refuse what cannot be meant, before anything starts.

    Raises:
        ConfigError: there is no such launcher, or an option belongs to another one.
    """
    if launch.name not in LAUNCHES:
        raise ConfigError(f"unknown launcher {launch.name!r}; {suggest(launch.name, LAUNCHES)}")
    if launch.ray_address and launch.name != "ray":
        raise ConfigError(f"--ray-address belongs to --launch ray, got --launch {launch.name}")
    if launch.share_policy and launch.name != "local":
        raise ConfigError(
            "--share-policy is for workers of this machine; on a cluster, start zetta serve with "
            "keys and name the policy as zmq://HOST:PORT@keys=FILE"
        )


def launcher(
    launch: Launch, settings: PoolSettings, policies: Sequence[str], temperature: str = ""
) -> Launcher:
    """Return what runs jobs: processes of this machine, or actors of a Ray cluster.

    Args:
        launch: where.
        settings: how workers are started and watched.
        policies: all that the jobs name; a shared one is loaded here.
        temperature: spread of the draws of a shared policy.

    Raises:
        ConfigError: there is no such launcher, or Ray is not installed.
        InfraError: no cluster answers.
        ZettaError: a policy that is to be shared cannot be loaded.
    """
    check_launch(launch)
    if launch.name == "local":
        shared = shared_site(policies, temperature, settings) if launch.share_policy else None
        return Pool(settings, shared)
    # Ray reads these while it is imported: it reports nothing to its makers unless the user says
    # so, and leaves the devices of a node as they are.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    from zetta.runtime.rollouts.ray_launcher import ray_pool

    given = settings.environment or {}
    travels = {name: given[name] for name in (*THREADS, *GRAPHICS) if name in given}
    return ray_pool(replace(settings, environment=travels), launch.ray_address)
