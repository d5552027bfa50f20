"""Detectors and segmenters of transformers, read from folders.

Pictures are prepared here and not by the packages' image processors: those need torchvision, and
their names and results changed between versions. What they would do is read from
`preprocessor_config.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures
from transformers import AutoModelForZeroShotObjectDetection, AutoTokenizer, SamModel

from zetta.primitives.localize.clouds import Mask
from zetta.primitives.localize.openvocab_boxes import Box, Detector, Segmenter
from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError, suggest

_DETECTORS = ("grounding-dino", "owlv2", "owlvit")
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_QUERY_LENGTH = 16
"""Tokens of an OWL query."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a picture becomes the input of a network."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    shortest: int = 0
    longest: int = 0
    """Sides to which the picture is scaled, keeping its proportions; 0 when it is stretched."""
    height: int = 0
    width: int = 0
    """Size to which the picture is stretched."""


def load_detector(folder: Path) -> Detector:
    """Read a detector.

    Raises:
        ConfigError: the folder holds a model of another kind, or an incomplete one.
    """
    kind = _kind(folder)
    if kind not in _DETECTORS:
        raise ConfigError(
            f"{folder} holds a model of type {kind!r}, which is no detector; "
            f"{suggest(kind, _DETECTORS)}"
        )
    model = _read(AutoModelForZeroShotObjectDetection, folder).eval()
    tokenizer = _read(AutoTokenizer, folder)
    if kind == "grounding-dino":
        return GroundingDino(model, tokenizer, preparation(folder, _IMAGENET, 800, 1333))
    return Owl(model, tokenizer, preparation(folder, _CLIP, 0, 0), padded=kind == "owlv2")


def load_segmenter(folder: Path) -> Segmenter:
    """Read SAM.

    Raises:
        ConfigError: the folder holds a model of another kind, or an incomplete one.
    """
    kind = _kind(folder)
    if kind != "sam":
        raise ConfigError(f"{folder} holds a model of type {kind!r}; a segmenter is of type 'sam'")
    return Sam(_read(SamModel, folder).eval(), preparation(folder, _IMAGENET, 0, 1024))


def _kind(folder: Path) -> str:
    return str(json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type"))


def _read(source: Any, folder: Path) -> Any:
    try:
        return source.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(
            f"{folder} is incomplete: {text}; write it with save_pretrained of model and processor"
        ) from None


def preparation(
    folder: Path,
    colours: tuple[tuple[float, ...], tuple[float, ...]],
    shortest: int,
    longest: int,
) -> Preparation:
    """Return what `preprocessor_config.json` says, or the given values where it is silent."""
    path = folder / "preprocessor_config.json"
    told = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    size = told.get("size") or {}
    return Preparation(
        tuple(told.get("image_mean") or colours[0]),
        tuple(told.get("image_std") or colours[1]),
        int(size.get("shortest_edge", 0 if "height" in size else shortest)),
        int(size.get("longest_edge", 0 if "height" in size else longest)),
        int(size.get("height", 0)),
        int(size.get("width", 0)),
    )


def scaled(image: Image, to: Preparation) -> Image:
    """Return the picture in the size that the network wants."""
    height, width = image.shape[:2]
    if to.height and to.width:
        new = (to.width, to.height)
    else:
        scale = to.shortest / min(height, width) if to.shortest else np.inf
        scale = min(scale, to.longest / max(height, width)) if to.longest else scale
        new = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = Pictures.fromarray(image).resize(new, Pictures.Resampling.BILINEAR)
    return np.asarray(picture, dtype=np.uint8)


def tensor(image: Image, to: Preparation) -> torch.Tensor:
    """Return normalised pixels. Shape (1, 3, height, width)."""
    pixels = (image.astype(np.float32) / 255.0 - to.mean) / to.std
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32))


class GroundingDino:
    """One phrase at a time: the score of a box is that of its best token."""

    def __init__(self, model: Any, tokenizer: Any, to: Preparation) -> None:
        self._model, self._tokenizer, self._to = model, tokenizer, to

    def detect(self, image: Image, names: Sequence[str]) -> list[Box]:
        """Return the boxes of every name."""
        pixels = tensor(scaled(image, self._to), self._to)
        height, width = image.shape[:2]
        found: list[Box] = []
        for name in names:
            words = self._tokenizer(f"{name}.", return_tensors="pt")
            with torch.inference_mode():
                result = self._model(
                    pixel_values=pixels,
                    input_ids=words.input_ids,
                    attention_mask=words.attention_mask,
                )
            scores = result.logits[0].sigmoid().max(dim=-1).values.numpy()
            corners = _corners(result.pred_boxes[0].numpy(), height, width)
            found += [Box(name, c, float(s)) for c, s in zip(corners, scores, strict=True)]
        return found


class Owl:
    """OWL-ViT and OWLv2: all names at once."""

    def __init__(self, model: Any, tokenizer: Any, to: Preparation, padded: bool) -> None:
        self._model, self._tokenizer, self._to, self._padded = model, tokenizer, to, padded

    def detect(self, image: Image, names: Sequence[str]) -> list[Box]:
        """Return the boxes of every name."""
        height, width = picture = image.shape[:2]
        if self._padded:
            # OWLv2 sees a square with grey to the right and below.
            side = max(height, width)
            square = np.full((side, side, 3), 128, dtype=np.uint8)
            square[:height, :width] = image
            image, height, width = square, side, side
        vision = self._model.config.vision_config.image_size
        to = Preparation(self._to.mean, self._to.std, height=vision, width=vision)
        words = self._tokenizer(
            list(names), padding="max_length", max_length=_QUERY_LENGTH, truncation=True,
            return_tensors="pt",
        )  # fmt: skip
        with torch.inference_mode():
            result = self._model(
                pixel_values=tensor(scaled(image, to), to),
                input_ids=words.input_ids,
                attention_mask=words.attention_mask,
            )
        scores = result.logits[0].sigmoid().numpy()  # (boxes, names)
        corners = _corners(result.pred_boxes[0].numpy(), height, width)
        # The grey margin shows nothing.
        corners = np.minimum(corners, [picture[1], picture[0], picture[1], picture[0]])
        best = scores.argmax(axis=1)
        return [
            Box(names[k], c, float(s[k])) for c, s, k in zip(corners, scores, best, strict=True)
        ]


class Sam:
    """Outlines from boxes; the picture is encoded once for all boxes in it."""

    def __init__(self, model: Any, to: Preparation) -> None:
        self._model, self._to = model, to
        self._image: Image | None = None
        self._embedding: torch.Tensor | None = None

    def outline(self, image: Image, corners: Array) -> Mask:
        """Return the pixels of the thing in a box. Shape (height, width)."""
        side = int(self._model.config.vision_config.image_size)
        scale = side / max(image.shape[:2])
        if self._image is not image or self._embedding is None:
            self._image, self._embedding = image, self._encoded(image, side)
        with torch.inference_mode():
            result = self._model(
                image_embeddings=self._embedding,
                input_boxes=torch.tensor(corners * scale, dtype=torch.float32)[None, None],
                multimask_output=False,
            )
        logits = result.pred_masks[0, 0, 0].numpy()
        ratio = logits.shape[0] / side * scale
        rows = ((np.arange(image.shape[0]) + 0.5) * ratio).astype(np.int64)
        columns = ((np.arange(image.shape[1]) + 0.5) * ratio).astype(np.int64)
        return np.asarray(logits[rows[:, None], columns[None]] > 0.0)

    def _encoded(self, image: Image, side: int) -> torch.Tensor:
        to = Preparation(self._to.mean, self._to.std, longest=side)
        pixels = tensor(scaled(image, to), to)
        square = torch.zeros((1, 3, side, side))
        square[:, :, : pixels.shape[2], : pixels.shape[3]] = pixels
        with torch.inference_mode():
            embedding: torch.Tensor = self._model.get_image_embeddings(square)
        return embedding


def _corners(boxes: Array, height: int, width: int) -> Array:
    """Turn centres and sizes, as shares of the picture, into corners in pixels. Shape (N, 4)."""
    middle, half = boxes[:, :2], boxes[:, 2:] / 2.0
    corners = np.concatenate([middle - half, middle + half], axis=1)
    size = np.array([width, height, width, height], dtype=np.float64)
    return np.asarray(np.clip(corners, 0.0, 1.0) * size)
