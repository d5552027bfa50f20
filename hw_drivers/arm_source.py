"""An arm where a simulator could stand: `arm:FILE` names the set-up of one arm and its tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_env import ArmEnv
from zetta.hw_drivers.arm_person import hello
from zetta.hw_drivers.arm_setup import ArmSetup, read_setup
from zetta.hw_drivers.camera_sources import open_cameras
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.curve_keys import read_client_keys
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.registry import ARM_PREFIX
from zetta.runtime.transport import Dealer

SUITE: Final = "arm"
HELLO_S: Final = 5.0
"""How long an arm is waited for before its cameras are opened."""


class ArmSource:
    """A `Simulator` of one arm. Its only layout is the scene that a person has set."""

    def __init__(self, name: str, setup: ArmSetup) -> None:
        """Remember the set-up; nothing is connected.

        Raises:
            ConfigError: it has no URL, no task or no limits.
        """
        if not setup.url or not setup.tasks:
            raise ConfigError(
                f"{name} declares no {'tasks' if setup.url else 'url'}; add url = "
                '"tcp://HOST:5701" and [[tasks]] with instruction and max_steps'
            )
        if not setup.limits:
            raise ConfigError(
                f"{name} declares no limits, and without them nobody drives an arm; add limits = "
                '"panda", or the name of a file of your own (docs/safety.md)'
            )
        self.name, self.declared = name, setup.spec({})
        self._setup = setup

    def suites(self) -> Mapping[str, int]:
        """Return the number of declared tasks."""
        return {SUITE: len(self._setup.tasks)}

    def task(self, suite: str, index: int) -> Task:
        """Return a declared task.

        Raises:
            ConfigError: unknown suite or index.
        """
        if suite != SUITE:
            raise ConfigError(f"an arm has no suite {suite!r}; {suggest(suite, [SUITE])}")
        tasks = self._setup.tasks
        if not 0 <= index < len(tasks):
            raise ConfigError(f"{self.name} has the tasks 0-{len(tasks) - 1}, got {index}")
        return Task(SUITE, index, tasks[index].instruction, tasks[index].max_steps)

    def init_count(self, suite: str, index: int) -> int:
        """Return 1: the scene as it stands."""
        self.task(suite, index)
        return 1

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Open the cameras and connect to the arm; nothing moves.

        Raises:
            ConfigError: a key file or a camera's source is wrong.
            InfraError: the arm or a camera cannot be reached, or somebody else holds the arm.
            SpecMismatch: it is another robot, or takes no poses.
        """
        del render  # an arm looks as it looks
        self.task(suite, index)
        setup = self._setup
        keys = read_client_keys(Path(setup.keys)) if setup.keys else None
        arm = ZmqArm(setup.url, robot=setup.robot, keys=keys)
        # Cameras are often served beside the arm: who is missing is the arm, and is named.
        with contextlib.closing(Dealer(setup.url, keys)) as dealer:
            hello(dealer, setup.robot, HELLO_S)
        return ArmEnv(arm, setup, open_cameras(setup.cameras, keys))

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Refuse: no expert drives an arm.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            "experts read simulator truth, which an arm does not have; choose a --policy"
        )


def load(name: str) -> ArmSource:
    """Return the arm of `arm:FILE`.

    Raises:
        ConfigError: the file cannot be read, or declares no URL, task or limits.
    """
    return ArmSource(name, read_setup(Path(name.removeprefix(ARM_PREFIX)).expanduser()))
