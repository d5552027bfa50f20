"""pi0 behind the policy protocol: `pi0:FOLDER@device=cuda:0,dtype=bfloat16,steps=10,samples=4`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.runtime.core import ActionChunk, ActionSpec, Array, Image, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.devices import AUTO, choose_device
from zetta.runtime.policies.options import split_options
from zetta.runtime.policies.pi0.folder import Checkpoint, digest_of, read_checkpoint
from zetta.runtime.policies.proprio_parts import ProprioParts
from zetta.runtime.signals_arm import pose_column
from zetta.runtime.snapshots import generator_from, generator_text

SCHEME: Final = "pi0:"
OPTIONS: Final[Mapping[str, str]] = {
    "device": "cuda:0",
    "dtype": "bfloat16",
    "steps": "10",
    "samples": "4",
    "threads": "1",
}
"""What may follow the `@`, each with an example."""
DTYPES: Final = ("float32", "bfloat16", "float16")
COUNTS: Final = ("steps", "samples", "threads")
STD_FLOOR: Final = 1e-8
"""Added to every standard deviation, as in training (transformers, `PI0Processor.normalize`)."""
LIMIT: Final = 1000
"""No count among the options is higher."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a checkpoint is run."""

    device: str = AUTO
    dtype: str = "float32"
    steps: int = 0
    """Of denoising, for one chunk; 0 takes the checkpoint's own number."""
    samples: int = 1
    """Chunks drawn at each look: the first is done, all of them give the dispersion."""
    threads: int = 1
    """Of torch, for the whole process; with a simulator beside it more only wait."""


@dataclass(frozen=True, slots=True)
class Pi0State:
    """What the policy remembers."""

    instruction: str
    """Empty before the first reset."""
    acting: str
    asking: str
    """The two generators."""


def load(name: str) -> Pi0Policy:
    """Load a checkpoint, warm it up and forget the warm-up.

    Raises:
        ConfigError: a package, a file, a device or an option is missing or wrong.
        SpecMismatch: the files of the folder contradict each other.
    """
    base, given = split_options(name, OPTIONS)
    settings = _settings(name, given)
    checkpoint = read_checkpoint(Path(base.removeprefix(SCHEME)))
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise ConfigError(
                f"pi0 needs {package}, which is not installed; pip install 'zetta[pi0]'"
            )
    import_module("torch").set_num_threads(settings.threads)
    device = choose_device(settings.device)
    from zetta.runtime.policies.pi0.network import Network  # late: it loads torch

    network = Network(checkpoint, device, settings.dtype)
    settings = replace(settings, steps=settings.steps or network.steps)
    run = f"{device.type} {settings.dtype} {settings.steps} {settings.samples}"
    spec = checkpoint.told.policy.spec(
        name, digest_of(checkpoint.folder, run), checkpoint.folder / "zetta.toml"
    )
    policy = Pi0Policy(spec, checkpoint, network, settings)
    policy.warm_up()
    return policy


class Pi0Policy:
    """A flow-matching policy: noise of the episode's seed becomes a chunk in a few steps."""

    def __init__(
        self, spec: PolicySpec, checkpoint: Checkpoint, network: Any, settings: Settings
    ) -> None:
        """`network` is a `Network`, which is not named here so that torch is loaded late."""
        self._spec, self._told, self._network = spec, checkpoint.told, network
        self._settings = settings
        self._parts = ProprioParts(checkpoint.told.state)
        known = checkpoint.statistics
        self._state_mean, self._state_std = np.array(known.state_mean), np.array(known.state_std)
        self._mean, self._std = np.array(known.actions_mean), np.array(known.actions_std)
        self._low, self._high = np.array(spec.action.low), np.array(spec.action.high)
        self._forget()

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; all noise until the next reset comes from `seed`.

        Raises:
            ConfigError: the instruction is empty, or longer than what it was trained with.
        """
        self._tell(instruction)
        self.reseed(seed)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows.

        Raises:
            SpecMismatch: there was no reset, or a picture is missing or of another size.
        """
        if self._tokens is None:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        shape = self._network.chunk
        # Two streams: measuring the dispersion must not change what is done.
        first = self._acting.standard_normal((1, *shape))
        others = self._asking.standard_normal((self._settings.samples - 1, *shape))
        felt = self._parts(observation.proprio)
        drawn = self._network.sample(
            self._tokens,
            self._network.pixels(self._pictures(observation)),
            (felt - self._state_mean) / (self._state_std + STD_FLOOR),
            np.concatenate([first, others]),
            self._settings.steps,
        )
        chunks = drawn[..., : self._spec.action.size] * (self._std + STD_FLOOR) + self._mean
        if self._told.clip:
            chunks = np.clip(chunks, self._low, self._high)
        spread = dispersion(chunks, self._spec.action)
        rows = np.array(chunks[0])
        rows.flags.writeable = False
        return ActionChunk(rows, observation.proprio.t, spread)

    def warm_up(self) -> None:
        """Run once on black pictures: compilers and allocators do their first work now."""
        self._tell("move")
        self.reseed(0)
        black = [np.zeros((c.height, c.width, 3), np.uint8) for c in self._spec.cameras]
        noise = np.zeros((self._settings.samples, *self._network.chunk))
        pixels = self._network.pixels(black)
        self._network.sample(
            self._tokens, pixels, np.zeros(self._parts.size), noise, self._settings.steps
        )
        self._forget()

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; all else stays."""
        self._acting, self._asking = (np.random.default_rng([seed, k]) for k in range(2))

    def state(self) -> Pi0State:
        """Return all that is remembered."""
        streams = generator_text(self._acting), generator_text(self._asking)
        return Pi0State(self._instruction, *streams)

    def restore(self, state: Pi0State) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generators.
        """
        if state.instruction:
            self._tell(state.instruction)
        else:
            self._forget()
        self._acting, self._asking = generator_from(state.acting), generator_from(state.asking)

    def close(self) -> None:
        """Nothing is held that is not freed with the policy."""

    def _tell(self, instruction: str) -> None:
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self._tokens = self._network.tokens(instruction)
        self._instruction = instruction

    def _forget(self) -> None:
        self._instruction, self._tokens = "", None
        self.reseed(0)

    def _pictures(self, observation: Observation) -> list[Image]:
        pictures = []
        for camera in self._spec.cameras:
            picture = observation.images.get(camera.name)
            if picture is None:
                raise SpecMismatch(
                    f"the observation holds no picture of the camera {camera.name!r}; "
                    f"{suggest(camera.name, observation.images)}"
                )
            if picture.shape != (camera.height, camera.width, 3):
                raise SpecMismatch(
                    f"the picture of {camera.name!r} has the shape {picture.shape}; "
                    f"expected ({camera.height}, {camera.width}, 3)"
                )
            pictures.append(picture)
        return pictures


def dispersion(chunks: Array, action: ActionSpec) -> float:
    """Return the mean distance between the hand's ways in two drawn chunks, metres.

    Displacements are added up first; the distance of two ways is its mean over their rows. NaN
    for a single chunk, and where actions are no poses.

    Args:
        chunks: what was drawn. Shape (draws, H, A).
        action: what the rows mean.
    """
    column = pose_column(action, 0)
    if len(chunks) < 2 or column is None:
        return float("nan")
    ways = chunks[..., column : column + 3]
    if action.kind == "delta_pose":
        ways = np.cumsum(ways * np.array(action.scale[column : column + 3]), axis=1)
    apart = [np.linalg.norm(a - b, axis=-1).mean() for a, b in combinations(ways, 2)]
    return float(np.mean(apart))


def _settings(name: str, given: Mapping[str, str]) -> Settings:
    dtype = given.get("dtype", "float32")
    if dtype not in DTYPES:
        raise ConfigError(f"the policy {name!r} has the dtype {dtype!r}; {suggest(dtype, DTYPES)}")
    counts = {key: int(_count(name, key, given[key])) for key in COUNTS if key in given}
    return Settings(given.get("device", AUTO), dtype, **counts)


def _count(name: str, key: str, text: str) -> str:
    if not text.isdecimal() or not 1 <= int(text) <= LIMIT:
        raise ConfigError(f"the policy {name!r} has {key}={text}; expected 1 to {LIMIT}")
    return text
