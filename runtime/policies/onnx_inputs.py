"""The inputs of a user's graph: each made from what is sensed, as its declaration says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image as Pictures

from zetta.runtime.core import Array, Image, Observation
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.proprio_parts import ProprioParts
from zetta.runtime.policies.tiny import text

Tensor: TypeAlias = npt.NDArray[np.generic]
Dimensions: TypeAlias = tuple[int | None, ...]
"""Lengths of the axes; None where any will do."""

UTF8: Final = "utf8"
TABLE: Final = "table"
ENCODINGS: Final = (text.ENCODER, UTF8, TABLE)


@dataclass(frozen=True, slots=True)
class Input:
    """A table `[inputs.NAME]`: where an input of the graph comes from."""

    source: Literal["camera", "state", "instruction", "noise"]
    dtype: Literal["float32", "float64", "float16", "uint8", "int32", "int64"] = "float32"
    camera: str = ""
    """Whose picture."""
    layout: Literal["", "HWC", "CHW"] = ""
    """Order of a picture's axes."""
    resize: tuple[int, ...] = ()
    """Height and width to which a picture is stretched, bilinearly; empty leaves it."""
    divide: float = 1.0
    """By what pixels are divided before `mean` and `std`."""
    mean: tuple[float, ...] = ()
    """Of each channel or number of the state; subtracted first."""
    std: tuple[float, ...] = ()
    parts: tuple[str, ...] = ()
    """What the state consists of; see `ProprioParts`."""
    encoding: str = ""
    """How an instruction becomes numbers: one of `ENCODINGS`."""
    length: int = 0
    """Bytes of a `utf8` instruction, padded with zeros."""
    table: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The numbers of each instruction that a model with the encoding `table` knows."""


class Source(Protocol):
    """Makes one input, without its batch axis."""

    shape: Dimensions

    def reset(self, instruction: str, generator: np.random.Generator) -> None:
        """Begin an episode."""
        ...

    def __call__(self, observation: Observation) -> Array:
        """Return the input of this moment."""
        ...


def make_source(name: str, told: Input, size: tuple[int, int] | None, wanted: Dimensions) -> Source:
    """Return what makes the input `name`.

    Args:
        name: of the input, for messages.
        told: its declaration.
        size: height and width of its camera's picture, if it has one.
        wanted: the shape that the graph takes, without the batch axis; noise is drawn in it.

    Raises:
        SpecMismatch: the declaration is incomplete or contradicts itself.
    """
    if told.source == "camera":
        return _Picture(name, told, size or (0, 0))
    if told.source == "state":
        return _State(name, told)
    if told.source == "instruction":
        return _Sentence(name, told)
    return _Noise(name, wanted)


class _Picture:
    def __init__(self, name: str, told: Input, size: tuple[int, int]) -> None:
        if not told.layout:
            raise SpecMismatch(f"inputs.{name} needs layout = 'HWC' or 'CHW'")
        if len(told.resize) not in (0, 2) or any(n < 1 for n in told.resize):
            raise SpecMismatch(f"inputs.{name}: resize is a height and a width, got {told.resize}")
        if told.dtype == "uint8" and (told.mean or told.std or told.divide != 1.0):
            raise SpecMismatch(f"inputs.{name}: uint8 pixels cannot be normalised")
        if not told.divide > 0.0:
            raise SpecMismatch(f"inputs.{name}: divide is above 0, got {told.divide:g}")
        self._camera, self._resize, self._divide = told.camera, told.resize, told.divide
        self._scale = _Scale(name, told, 3)
        self._first = told.layout == "CHW"
        height, width = told.resize or size
        self.shape: Dimensions = (3, height, width) if self._first else (height, width, 3)
        self._size = size

    def reset(self, instruction: str, generator: np.random.Generator) -> None:
        pass

    def __call__(self, observation: Observation) -> Array:
        picture = observation.images.get(self._camera)
        if picture is None:
            raise SpecMismatch(
                f"the observation holds no picture of the camera {self._camera!r}; "
                f"{suggest(self._camera, observation.images)}"
            )
        if picture.shape != (*self._size, 3):
            raise SpecMismatch(
                f"the picture of {self._camera!r} has the shape {picture.shape}; "
                f"expected {(*self._size, 3)}"
            )
        pixels = self._scale(stretched(picture, self._resize) / self._divide)
        return pixels.transpose(2, 0, 1) if self._first else pixels


def stretched(picture: Image, size: tuple[int, ...]) -> Image:
    """Return the picture stretched bilinearly to `size`, height and width; empty leaves it."""
    if not size or picture.shape[:2] == size:
        return picture
    drawn = Pictures.fromarray(picture).resize((size[1], size[0]), Pictures.Resampling.BILINEAR)
    return np.asarray(drawn, dtype=np.uint8)


class _State:
    def __init__(self, name: str, told: Input) -> None:
        if not told.parts:
            raise SpecMismatch(f"inputs.{name} needs parts, such as ['ee_pos', 'gripper_opening']")
        self._parts = ProprioParts(told.parts)
        self._scale = _Scale(name, told, self._parts.size)
        self.shape: Dimensions = (self._parts.size,)

    def reset(self, instruction: str, generator: np.random.Generator) -> None:
        pass

    def __call__(self, observation: Observation) -> Array:
        return self._scale(self._parts(observation.proprio))


class _Sentence:
    def __init__(self, name: str, told: Input) -> None:
        if told.encoding not in ENCODINGS:
            raise SpecMismatch(
                f"inputs.{name} has the encoding {told.encoding!r}; "
                f"{suggest(told.encoding, ENCODINGS)}"
            )
        if told.encoding == UTF8 and told.length < 1:
            raise SpecMismatch(f"inputs.{name}: the encoding 'utf8' needs a length in bytes")
        lengths = {len(row) for row in told.table.values()}
        if told.encoding == TABLE and len(lengths) != 1:
            raise SpecMismatch(f"inputs.{name}: a table of rows of one length is needed")
        self._told = told
        self._row = np.zeros(0)
        sizes = {UTF8: told.length, TABLE: max(lengths, default=0)}
        self.shape: Dimensions = (sizes.get(told.encoding, text.SIZE),)

    def reset(self, instruction: str, generator: np.random.Generator) -> None:
        told = self._told
        if told.encoding == text.ENCODER:
            self._row = text.encode(instruction).astype(np.float64)
        elif told.encoding == UTF8:
            self._row = _bytes(instruction, told.length)
        elif instruction in told.table:
            self._row = np.array(told.table[instruction])
        else:
            raise ConfigError(
                f"the model was not trained for the instruction {instruction!r}; "
                f"{suggest(instruction, told.table)}"
            )

    def __call__(self, observation: Observation) -> Array:
        return self._row


def _bytes(instruction: str, length: int) -> Array:
    raw = instruction.encode("utf-8")
    if len(raw) > length:
        raise ConfigError(
            f"the instruction has {len(raw)} bytes and the model takes {length}; "
            "say it shorter, for nothing is cut"
        )
    return np.array([*raw, *[0] * (length - len(raw))], dtype=np.float64)


class _Noise:
    def __init__(self, name: str, wanted: Dimensions) -> None:
        if None in wanted:
            raise SpecMismatch(f"inputs.{name}: noise needs axes of fixed length in the graph")
        self.shape = wanted
        self._lengths = [length for length in wanted if length is not None]

    def reset(self, instruction: str, generator: np.random.Generator) -> None:
        self._generator = generator

    def __call__(self, observation: Observation) -> Array:
        return self._generator.standard_normal(self._lengths)


class _Scale:
    """Subtracts the mean and divides by the standard deviation, where they are told."""

    def __init__(self, name: str, told: Input, size: int) -> None:
        for what, values in (("mean", told.mean), ("std", told.std)):
            if len(values) not in (0, size):
                raise SpecMismatch(f"inputs.{name}.{what} has {len(values)} numbers, not {size}")
            if not all(math.isfinite(value) for value in values):
                raise SpecMismatch(f"inputs.{name}.{what} holds a number that is not finite")
        if bool(told.mean) != bool(told.std):
            raise SpecMismatch(f"inputs.{name} has mean or std alone; give both or neither")
        if any(value <= 0.0 for value in told.std):
            raise SpecMismatch(f"inputs.{name}.std holds a number that is not above 0")
        self._mean, self._std = np.array(told.mean), np.array(told.std)

    def __call__(self, values: npt.ArrayLike) -> Array:
        plain = np.asarray(values, dtype=np.float64)
        return (plain - self._mean) / self._std if self._mean.size else plain
