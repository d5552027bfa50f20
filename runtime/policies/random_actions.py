"""A policy that knows nothing: smooth random motion, the floor under every table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from zetta.runtime.core import ActionChunk, ActionSpec, Array, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.snapshots import generator_from, generator_text

HORIZON = 8
PERSISTENCE = 0.8
"""Share of the last row that the next one keeps; white noise would hardly move an arm."""
ONE_ARM = ActionSpec(
    kind="delta_pose",
    names=("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
    low=(-1.0,) * 7,
    high=(1.0,) * 7,
    scale=(0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1.0),
)


@dataclass(frozen=True, slots=True)
class RandomState:
    """What the policy remembers."""

    generator: str
    """Empty before the first reset."""
    last: Array
    """The last row. Shape (A,)."""


class RandomPolicy:
    """Draws every row from the generator seeded by `reset`; it looks at nothing."""

    def __init__(self, name: str = "random", action: ActionSpec = ONE_ARM) -> None:
        digest = hashlib.sha256(f"{name} {HORIZON} {PERSISTENCE} {action}".encode()).hexdigest()
        self._spec = PolicySpec(
            name=name,
            action=action,
            cameras=(),
            replan_steps=HORIZON,
            horizon=HORIZON,
            sensing="proprio",
            digest=digest,
        )
        self._rng: np.random.Generator | None = None
        self._last = np.zeros(action.size)

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode.

        Raises:
            ConfigError: the instruction is empty.
        """
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self._rng = np.random.default_rng(seed)
        self._last = np.zeros(self._spec.action.size)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return eight random rows.

        Raises:
            SpecMismatch: `reset` was not called.
        """
        if self._rng is None:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        low, high = np.array(self._spec.action.low), np.array(self._spec.action.high)
        rows = np.empty((HORIZON, self._spec.action.size))  # (H, A)
        for row in rows:
            row[:] = self._step(low, high, self._rng)
        rows.flags.writeable = False
        return ActionChunk(rows, observation.proprio.t)

    def state(self) -> RandomState:
        """Return all that is remembered."""
        return RandomState("" if self._rng is None else generator_text(self._rng), self._last)

    def restore(self, state: RandomState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generator.
        """
        self._rng = generator_from(state.generator) if state.generator else None
        self._last = state.last

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; the last row stays."""
        self._rng = np.random.default_rng(seed)

    def close(self) -> None:
        """Free nothing."""

    def _step(self, low: Array, high: Array, rng: np.random.Generator) -> Array:
        fresh = rng.uniform(low, high)
        self._last = np.clip(PERSISTENCE * self._last + (1.0 - PERSISTENCE) * fresh, low, high)
        return self._last


def action_of(arms: tuple[str, ...]) -> ActionSpec:
    """Return the convention of several arms: seven columns each, by the names of the arms.

    >>> action_of(("right", "left")).names[6:8]
    ('right_gripper', 'left_dx')
    """
    return replace(
        ONE_ARM,
        names=tuple(f"{arm}_{axis}" for arm in arms for axis in ONE_ARM.names),
        low=ONE_ARM.low * len(arms),
        high=ONE_ARM.high * len(arms),
        scale=ONE_ARM.scale * len(arms),
    )


def load(name: str) -> RandomPolicy:
    """Return the random policy of one arm, or of the arms in `random@right,left`.

    Raises:
        ConfigError: what follows the `@` are no names of two or more arms.
    """
    base, _, told = name.partition("@")
    if name == base:
        return RandomPolicy(name)
    arms = tuple(told.split(","))
    if len(arms) < 2 or len(set(arms)) < len(arms) or not all(arm.isidentifier() for arm in arms):
        raise ConfigError(
            f"got {name!r}; several arms are named in their order, such as random@right,left"
        )
    return RandomPolicy(name, action_of(arms))
