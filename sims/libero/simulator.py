"""LIBERO and LIBERO-PRO as a `Simulator`: lists without an engine, builds on demand."""

from __future__ import annotations

from collections.abc import Mapping

from zetta.runtime.core import Env, Motion, Task
from zetta.runtime.errors import ConfigError
from zetta.sims.libero import catalog


class LiberoSimulator:
    """Every usable suite of LIBERO and LIBERO-PRO."""

    name = "libero"

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite."""
        return catalog.suites()

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        return catalog.task(suite, index)

    def init_count(self, suite: str, index: int) -> int:
        """Return how many init states ship with a task."""
        return len(catalog.init_states(suite, index))

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task."""
        from zetta.sims.libero.env import LiberoEnv

        return LiberoEnv(suite, index, render)

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task.

        Raises:
            ConfigError: not an environment of this simulator, or no expert covers its task.
        """
        from zetta.sims.libero.demonstrations import expert_motion
        from zetta.sims.libero.env import LiberoEnv

        if not isinstance(env, LiberoEnv):
            raise ConfigError(f"got a {type(env).__name__}, expected a LIBERO environment")
        return expert_motion(env, noise, seed)
