"""The folder of a pi0 checkpoint: what it says of itself, read and checked without torch.

`config.json`, weights, tokenizer and `processor_config.json` are what transformers writes;
`zetta.toml` declares what none of them says: the robot's conventions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.checkpoint_files import digest_of_files
from zetta.runtime.policies.declaration import Declaration, read_declaration
from zetta.runtime.policies.proprio_parts import ProprioParts
from zetta.runtime.records import read_object

ARCHITECTURE: Final = "PI0ForConditionalGeneration"
CONFIG: Final = "config.json"
PROCESSOR: Final = "processor_config.json"
DECLARED: Final = "zetta.toml"
STATISTICS: Final = ("state_mean", "state_std", "actions_mean", "actions_std")
VIEW: Final = "observation.images."
"""How LeRobot's `input_features` begin the name of a picture."""


@dataclass(frozen=True, slots=True)
class Told:
    """All of `zetta.toml`."""

    policy: Declaration
    state: tuple[str, ...]
    """Parts of the state; see `ProprioParts`."""
    views: tuple[str, ...]
    """The checkpoint's own name of each camera, in the order it was trained with."""
    clip: bool = False
    """Whether rows are cut to the range of the action."""
    prompt_tokens: int = 48
    """Longest prompt that it was trained with; 48 is pi0's own."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a picture becomes an input."""

    longest: tuple[int, int]
    """Height and width into which it is scaled, keeping its proportions."""
    padded: tuple[int, int]
    """Height and width to which it is filled up at the bottom and at the right."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    factor: float
    """By what pixels are multiplied before `mean` and `std`."""
    tokens: int
    """Tokens of one picture in the prompt."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and standard deviation of the training data."""

    state_mean: tuple[float, ...]
    state_std: tuple[float, ...]
    actions_mean: tuple[float, ...]
    actions_std: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the files of a folder say, in agreement."""

    folder: Path
    told: Told
    preparation: Preparation
    statistics: Statistics


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read everything but weights and tokenizer.

    Raises:
        ConfigError: a file is missing or cannot be read, or it is no pi0 of transformers.
        SpecMismatch: the files contradict each other.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}; expected pi0:FOLDER")
    config = read_object(folder / CONFIG, "write it with save_pretrained of transformers")
    _check_kind(folder, config)
    processor = read_object(folder / PROCESSOR, "write it with save_pretrained of PI0Processor")
    if not (folder / DECLARED).is_file():
        raise ConfigError(
            f"{folder} has no {DECLARED}, which declares the robot's conventions "
            "(docs/policies.md shows one)"
        )
    told = read_declaration(Told, folder / DECLARED)
    read = Checkpoint(folder, told, _preparation(folder, processor), _statistics(folder, processor))
    wrong = _contradictions(read, config)
    if wrong:
        raise SpecMismatch(f"{folder / DECLARED} does not fit the checkpoint: {'; '.join(wrong)}")
    return read


def digest_of(folder: Path, settings: str) -> str:
    """Return the SHA-256 of the weights, the other files and how they are run.

    Raises:
        ConfigError: there are no weights as safetensors.
    """
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ConfigError(f"{folder} holds no *.safetensors; other formats are not read")
    return digest_of_files([*weights, *sorted(folder.glob("*.json")), folder / DECLARED], settings)


def _check_kind(folder: Path, config: Mapping[str, Any]) -> None:
    if config.get("type") in ("pi0", "pi05"):
        raise ConfigError(f"{folder} is a checkpoint of LeRobot; use --policy lerobot:{folder}")
    if ARCHITECTURE not in (config.get("architectures") or ()):
        # The bare model lacks the head that makes actions, and loads with no more than a warning.
        raise ConfigError(
            f"{folder} holds {config.get('architectures') or config.get('model_type')}; "
            f"expected the architecture {ARCHITECTURE}"
        )


def _preparation(folder: Path, processor: Mapping[str, Any]) -> Preparation:
    told = processor.get("image_processor")
    if not isinstance(told, dict):
        raise ConfigError(f"{folder / PROCESSOR} has no image_processor; save the whole processor")
    try:
        size, pad = told["size"], told["pad_size"]
        return Preparation(
            longest=(int(size["max_height"]), int(size["max_width"])),
            padded=(int(pad["height"]), int(pad["width"])),
            mean=_numbers(told["image_mean"]),
            std=_numbers(told["image_std"]),
            factor=float(told["rescale_factor"]),
            tokens=int(told["image_seq_length"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{folder / PROCESSOR}: the image_processor lacks {error}; nothing is assumed in its "
            "place, so save the processor that the checkpoint was trained with"
        ) from error


def _statistics(folder: Path, processor: Mapping[str, Any]) -> Statistics:
    missing = [name for name in STATISTICS if not processor.get(name)]
    if missing:
        raise ConfigError(
            f"{folder / PROCESSOR} lacks {', '.join(missing)}; without the statistics of its "
            "training data a checkpoint acts wrongly and says nothing, so it is not run"
        )
    try:
        return Statistics(*(_numbers(processor[name]) for name in STATISTICS))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{folder / PROCESSOR} has statistics that are no numbers") from error


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _contradictions(read: Checkpoint, config: Mapping[str, Any]) -> list[str]:
    told, known = read.told, read.statistics
    state, actions = ProprioParts(told.state).size, told.policy.action.size
    wrong = []
    for name in STATISTICS:
        values: tuple[float, ...] = getattr(known, name)
        size = state if name.startswith("state") else actions
        if len(values) != size:
            wrong.append(f"{name} has {len(values)} numbers, declared are {size}")
        if not all(math.isfinite(v) and (v >= 0.0 or name.endswith("mean")) for v in values):
            wrong.append(f"{name} holds what is no number of its kind")
    limits = (
        ("horizon", told.policy.horizon, "chunk_size", True),
        ("the state's length", state, "max_state_dim", False),
        ("the action's length", actions, "max_action_dim", False),
    )
    for what, number, key, equal in limits:
        limit = config.get(key)
        fits = isinstance(limit, int) and (number == limit if equal else number <= limit)
        if not fits:
            wrong.append(f"{what} is {number}, its {key} is {limit}")
    return wrong + _camera_problems(told, config)


def _camera_problems(told: Told, config: Mapping[str, Any]) -> list[str]:
    wrong = []
    cameras = [camera.name for camera in told.policy.cameras]
    if not cameras:
        wrong.append("no camera is declared")
    if len(cameras) != len(told.views):
        wrong.append(
            f"{len(cameras)} cameras ({', '.join(cameras)}) are declared for its "
            f"{len(told.views)} views ({', '.join(told.views)})"
        )
    features = config.get("input_features")
    if isinstance(features, dict):
        trained = [key.removeprefix(VIEW) for key in features if key.startswith(VIEW)]
        if trained != list(told.views):
            wrong.append(f"views are {list(told.views)}, it was trained with {trained}")
    return wrong
