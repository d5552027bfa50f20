"""A policy of LeRobot behind the policy protocol: `lerobot:FOLDER@device=cuda:0`.

Whatever LeRobot does to an observation before, and to a chunk after, is done by its own pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.runtime.core import ActionChunk, Array, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.camera_pictures import picture_of
from zetta.runtime.policies.devices import AUTO, choose_device
from zetta.runtime.policies.lerobot.folder import STATE, VIEW, Folder, digest_of, read_folder
from zetta.runtime.policies.onnx_inputs import stretched
from zetta.runtime.policies.options import split_options
from zetta.runtime.policies.proprio_parts import ProprioParts
from zetta.runtime.snapshots import generator_from, generator_text

SCHEME: Final = "lerobot:"
OPTIONS: Final[Mapping[str, str]] = {"device": "cuda:0"}
SEEDS: Final = 2**31
"""Seeds of torch that the policy's generator draws from."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What LeRobot made of a folder. Its own types are not named, so that it is loaded late."""

    policy: Any
    before: Any
    after: Any
    device: Any


@dataclass(frozen=True, slots=True)
class LeRobotState:
    """What the policy remembers."""

    instruction: str
    """Empty before the first reset."""
    generator: str


def load(name: str) -> LeRobotPolicy:
    """Load a policy, warm it up and forget the warm-up.

    Raises:
        ConfigError: lerobot, a file or a device is missing, or an option is wrong.
        SpecMismatch: the files contradict each other, or the policy answers in another shape.
    """
    base, given = split_options(name, OPTIONS)
    folder = read_folder(Path(base.removeprefix(SCHEME)))
    for package in ("torch", "lerobot"):
        if find_spec(package) is None:
            raise ConfigError(
                f"lerobot: needs {package}, which is not installed; in an environment of its own "
                "and with the Python that it asks for: pip install lerobot"
            )
    device = choose_device(given.get("device", AUTO))
    # One thread: with the simulator beside it, a second one only waits at barriers.
    import_module("torch").set_num_threads(1)
    loaded = _loaded(folder, device)
    digest = digest_of(folder.path, device.type)
    spec = folder.told.policy.spec(name, digest, folder.path / "zetta.toml")
    policy = LeRobotPolicy(spec, folder, loaded)
    policy.warm_up()
    return policy


def _loaded(folder: Folder, device: Any) -> Loaded:
    """Read weights and pipelines with LeRobot's own functions; nothing is fetched."""
    configs = import_module("lerobot.configs.policies")
    factory = import_module("lerobot.policies.factory")
    try:
        config = configs.PreTrainedConfig.from_pretrained(folder.path, local_files_only=True)
        config.device = str(device)
        if hasattr(config, "pretrained_backbone_weights"):
            config.pretrained_backbone_weights = None  # the checkpoint brings them
        policy = factory.get_policy_class(folder.kind).from_pretrained(
            folder.path, config=config, local_files_only=True, strict=True
        )
        before, after = factory.make_pre_post_processors(
            config,
            pretrained_path=str(folder.path),
            preprocessor_overrides={"device_processor": {"device": str(device)}},
        )
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, ImportError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(
            f"lerobot cannot load {folder.path}: {type(error).__name__}: {first}"
        ) from error
    return Loaded(policy, before, after, device)


class LeRobotPolicy:
    """A policy of LeRobot that answers one observation with one chunk."""

    def __init__(self, spec: PolicySpec, folder: Folder, loaded: Loaded) -> None:
        self._spec, self._told, self._sizes, self._loaded = (
            spec, folder.told, folder.sizes, loaded,
        )  # fmt: skip
        self._torch = import_module("torch")
        self._parts = ProprioParts(folder.told.state)
        self._low, self._high = np.array(spec.action.low), np.array(spec.action.high)
        self._instruction = ""
        self.reseed(0)

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; every draw until the next reset comes from `seed`.

        Raises:
            ConfigError: the instruction is empty.
        """
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self._loaded.policy.reset()
        self._instruction = instruction
        self.reseed(seed)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows.

        Raises:
            SpecMismatch: there was no reset, a picture does not fit, or the chunk has another
                shape than declared.
        """
        if not self._instruction:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        pictures = [
            stretched(picture_of(observation, camera), size)
            for camera, size in zip(self._spec.cameras, self._sizes, strict=True)
        ]
        rows = self._rows(pictures, self._parts(observation.proprio))
        return ActionChunk(rows, observation.proprio.t)

    def warm_up(self) -> None:
        """Run once on black pictures, see the shape of the answer, and forget it.

        Raises:
            SpecMismatch: the chunk has another shape than declared.
        """
        self.reset("move", 0)
        black = [np.zeros((*size, 3), np.uint8) for size in self._sizes]
        self._rows(black, np.zeros(self._parts.size))
        self._loaded.policy.reset()
        self._instruction = ""

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; all else stays."""
        self._generator = np.random.default_rng(seed)

    def state(self) -> LeRobotState:
        """Return all that is remembered: one observation makes one chunk, so it is little."""
        return LeRobotState(self._instruction, generator_text(self._generator))

    def restore(self, state: LeRobotState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generator.
        """
        self._loaded.policy.reset()
        self._instruction = state.instruction
        self._generator = generator_from(state.generator)

    def close(self) -> None:
        """Nothing is held that is not freed with the policy."""

    def _rows(self, pictures: list[Any], state: Array) -> Array:
        torch, loaded = self._torch, self._loaded
        batch: dict[str, Any] = {"task": self._instruction or "move"}
        batch[STATE] = torch.from_numpy(np.asarray(state, dtype=np.float32))
        for view, picture in zip(self._told.views, pictures, strict=True):
            pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
            batch[VIEW + view] = pixels.float() / 255.0  # (3, h, w), as LeRobot wants it
        devices = [loaded.device] if loaded.device.type == "cuda" else []
        # LeRobot draws from torch's global generator: it is lent a seed and put back.
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.manual_seed(int(self._generator.integers(SEEDS)))
            chunk = loaded.after(loaded.policy.predict_action_chunk(loaded.before(batch)))
        rows = np.asarray(chunk.detach().float().cpu().numpy(), dtype=np.float64)
        expected = (1, self._spec.horizon, self._spec.action.size)
        if rows.shape != expected:
            raise SpecMismatch(
                f"{self._spec.name} answered in the shape {rows.shape}; declared is {expected}"
            )
        chosen: Array = np.array(rows[0])
        if self._told.clip:
            chosen = np.clip(chosen, self._low, self._high)
        chosen.flags.writeable = False
        return chosen
