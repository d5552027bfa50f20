"""A policy that answers with numbers made of what it was sent: for measuring servers and wires.

It drives nothing well. It costs what it is told to cost, and batches like a network: one product of
matrices for all rows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.core import ActionChunk, Array, CameraSpec, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.random_actions import ONE_ARM
from zetta.runtime.snapshots import generator_from, generator_text

HORIZON: Final = 8
CAMERAS: Final = (
    CameraSpec("agentview", 256, 256, depth=False),
    CameraSpec("wrist", 256, 256, "wrist", depth=False),
)
PIXEL_STEP: Final = 32
"""Every so many pixels one is looked at, in both directions."""
FEATURES: Final = 4 + 3 * len(CAMERAS)
NOISE: Final = 0.001


@dataclass(frozen=True, slots=True)
class Cost:
    """What an inference takes, beside the arithmetic."""

    fixed_ms: float = 0.0
    row_ms: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.fixed_ms < 60_000 and 0 <= self.row_ms < 60_000):
            raise ConfigError(
                f"echo can cost from 0 to 60000 ms, got {self.fixed_ms:g} and {self.row_ms:g}"
            )


@dataclass(frozen=True, slots=True)
class EchoState:
    """What the policy remembers."""

    generator: str
    """Empty before the first reset."""


class EchoEpisode:
    """The memory of one episode."""

    def __init__(self, instruction: str, seed: int) -> None:
        """Begin.

        Raises:
            ConfigError: the instruction is empty.
        """
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self.rng = np.random.default_rng(seed)

    def noise(self) -> Array:
        """Return the draws of the next chunk. Shape (H, A)."""
        return self.rng.uniform(-NOISE, NOISE, (HORIZON, ONE_ARM.size))


class EchoPolicy:
    """Takes two pictures and gives eight rows."""

    def __init__(self, name: str = "echo", cost: Cost | None = None) -> None:
        self._cost = cost or Cost()
        self._weights = np.random.default_rng(0).normal(size=(FEATURES, HORIZON * ONE_ARM.size))
        text = f"{HORIZON} {PIXEL_STEP} {NOISE} {ONE_ARM}"
        self._spec = PolicySpec(
            name=name,
            action=ONE_ARM,
            cameras=CAMERAS,
            replan_steps=HORIZON,
            horizon=HORIZON,
            digest=hashlib.sha256(text.encode()).hexdigest(),
        )
        self._episode: EchoEpisode | None = None

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode.

        Raises:
            ConfigError: the instruction is empty.
        """
        self._episode = EchoEpisode(instruction, seed)

    def begin(self, instruction: str, seed: int) -> EchoEpisode:
        """Return the memory of a new episode.

        Raises:
            ConfigError: the instruction is empty.
        """
        return EchoEpisode(instruction, seed)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return eight rows.

        Raises:
            SpecMismatch: `reset` was not called, or a picture is missing.
        """
        if self._episode is None:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        return self.infer_batch([self._episode], [observation], 1)[0]

    def infer_batch(
        self, episodes: Sequence[EchoEpisode], observations: Sequence[Observation], rows: int
    ) -> list[ActionChunk]:
        """Return a chunk for each episode, computed as a batch of `rows`.

        Raises:
            SpecMismatch: a picture is missing.
        """
        features = np.zeros((rows, FEATURES))
        for row, observation in zip(features, observations, strict=False):
            row[:] = _features(observation)
        answers = np.tanh(features @ self._weights)  # (rows, H * A)
        wait_s = (self._cost.fixed_ms + rows * self._cost.row_ms) / 1000.0
        if wait_s > 0.0:
            time.sleep(wait_s)  # as for a device: the host has nothing to do meanwhile
        chunks = []
        for episode, seen, answer in zip(episodes, observations, answers, strict=False):
            actions = 0.9 * answer.reshape(HORIZON, ONE_ARM.size) + episode.noise()
            actions.flags.writeable = False
            chunks.append(ActionChunk(actions, seen.proprio.t))
        return chunks

    def warm_up(self, rows: int) -> None:
        """Compute once with this shape."""
        np.tanh(np.zeros((rows, FEATURES)) @ self._weights)

    def state(self) -> EchoState:
        """Return all that is remembered."""
        return EchoState("" if self._episode is None else generator_text(self._episode.rng))

    def restore(self, state: EchoState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generator.
        """
        self._episode = None
        if state.generator:
            self._episode = EchoEpisode("go on", 0)
            self._episode.rng = generator_from(state.generator)

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`."""
        if self._episode is not None:
            self._episode.rng = np.random.default_rng(seed)

    def close(self) -> None:
        """Free nothing."""


def _features(observation: Observation) -> Array:
    """Return position, opening and mean colours. Shape (FEATURES,)."""
    arm = observation.proprio.arms[0]
    colours = []
    for camera in CAMERAS:
        picture = observation.images.get(camera.name)
        if picture is None:
            raise SpecMismatch(
                f"echo needs the picture {camera.name!r}; "
                f"{suggest(camera.name, observation.images)}"
            )
        colours.append(picture[::PIXEL_STEP, ::PIXEL_STEP].mean(axis=(0, 1)) / 255.0)
    return np.concatenate([arm.ee_pos, [arm.gripper_opening], *colours])


def load(name: str) -> EchoPolicy:
    """Return `echo`, or `echo@20+1`, which costs 20 ms and 1 ms for each row.

    Raises:
        ConfigError: another option.
    """
    base, at, option = name.partition("@")
    fixed, _, row = option.partition("+")
    try:
        if base != "echo":
            raise ValueError(base)
        cost = Cost(float(fixed), float(row or 0.0)) if at else Cost()
    except ValueError:
        raise ConfigError(
            f"got the policy {name!r}, expected echo, or its cost in milliseconds as in echo@20+1"
        ) from None
    return EchoPolicy(name, cost)
