"""The network of pi0: transformers' own, with pictures and prompts prepared as its processor does.

The processor itself is not used: it needs torchvision, and it passes on what it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors import SafetensorError
from torch.nn import functional
from transformers import AutoTokenizer, PI0ForConditionalGeneration
from transformers.utils import logging

from zetta.runtime.core import Array, Image
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.pi0.folder import Checkpoint, Preparation

IMAGE: Final = "<image>"
DTYPES: Final = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class Network:
    """Draws chunks in the network's own, normalised units."""

    def __init__(self, checkpoint: Checkpoint, device: Any, dtype: str) -> None:
        """Load weights and tokenizer from the folder; nothing is fetched.

        Raises:
            ConfigError: something is missing, damaged or of another model.
        """
        logging.disable_progress_bar()
        self._device, self._dtype = device, DTYPES[dtype]
        self._preparation = checkpoint.preparation
        self._views = len(checkpoint.told.views)
        self._longest = checkpoint.told.prompt_tokens
        self._model = _read_model(checkpoint.folder).to(device=device, dtype=self._dtype).eval()
        self._tokenizer = _read_tokenizer(checkpoint.folder)
        config = self._model.config
        self.chunk = (int(config.chunk_size), int(config.max_action_dim))
        self.steps = int(config.num_inference_steps)
        self._state_size = int(config.max_state_dim)
        token = self._tokenizer.convert_tokens_to_ids(IMAGE)
        if token != config.vlm_config.image_token_id:
            raise ConfigError(
                f"the tokenizer in {checkpoint.folder} gives pictures the token {token} and the "
                f"network expects {config.vlm_config.image_token_id}; they belong to two models"
            )

    def tokens(self, instruction: str) -> Any:
        """Return the prompt as tokens, those of the pictures first. Shape (1, N).

        Raises:
            ConfigError: it is longer than what the checkpoint was trained with.
        """
        words = f"{self._tokenizer.bos_token}{instruction}\n"
        told = self._tokenizer(words, add_special_tokens=False)["input_ids"]
        if len(told) > self._longest:
            raise ConfigError(
                f"the instruction has {len(told)} tokens and the checkpoint was trained with up "
                f"to {self._longest}; say it shorter, for nothing is cut"
            )
        image = self._tokenizer.convert_tokens_to_ids(IMAGE)
        ids = [image] * (self._preparation.tokens * self._views) + list(told)
        return torch.tensor([ids], dtype=torch.long, device=self._device)

    def pixels(self, pictures: Sequence[Image]) -> Any:
        """Return the pictures as the network takes them. Shape (1, views, 3, height, width)."""
        made = [prepared(picture, self._preparation) for picture in pictures]
        return torch.stack(made)[None].to(device=self._device, dtype=self._dtype)

    def sample(self, tokens: Any, pixels: Any, state: Array, noise: Array, steps: int) -> Array:
        """Return a chunk for each draw of noise.

        Args:
            tokens: see `tokens`.
            pixels: see `pixels`.
            state: normalised. Shape (S,).
            noise: standard normal. Shape (draws, H, max_action_dim).
            steps: of denoising.

        Returns:
            Normalised actions. Shape (draws, H, max_action_dim).
        """
        draws = len(noise)
        padded = np.zeros(self._state_size)
        padded[: len(state)] = state
        views = torch.ones((draws, self._views), dtype=torch.bool, device=self._device)
        ids = tokens.expand(draws, -1)
        with torch.no_grad():
            said = self._model.sample_actions(
                state=self._tensor(padded)[None].expand(draws, -1),
                input_ids=ids,
                pixel_values=pixels.expand(draws, -1, -1, -1, -1),
                noise=self._tensor(noise),
                attention_mask=torch.ones_like(ids),
                pixel_attention_mask=views,
                num_steps=steps,
            )
        return np.asarray(said.float().cpu().numpy(), dtype=np.float64)

    def _tensor(self, values: Array) -> Any:
        # By float32: numpy has no bfloat16, and the draws must not depend on the device.
        plain = torch.from_numpy(np.asarray(values, dtype=np.float32))
        return plain.to(device=self._device, dtype=self._dtype)


def prepared(picture: Image, to: Preparation) -> Any:
    """Return a picture scaled bicubically, normalised and filled up with zeros. Shape (3, h, w)."""
    height, width = picture.shape[:2]
    ratio = min(to.longest[0] / height, to.longest[1] / width)
    size = (int(height * ratio), int(width * ratio))
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None]
    if size != (height, width):
        # In bytes, as transformers does it: by way of floats some pixels would differ by one.
        pixels = functional.interpolate(pixels, size=size, mode="bicubic", antialias=True)
    mean, std = (torch.tensor(values)[:, None, None] for values in (to.mean, to.std))
    normal = (pixels[0].float() * to.factor - mean) / std
    return functional.pad(normal, (0, to.padded[1] - size[1], 0, to.padded[0] - size[0]))


def _read_model(folder: Path) -> Any:
    try:
        model, report = PI0ForConditionalGeneration.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, TypeError, SafetensorError) as error:
        raise ConfigError(
            f"{folder} cannot be loaded: {_first_line(error)}; write it with save_pretrained"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ConfigError(
            f"the weights in {folder} lack {len(missing)} tensors, such as {missing[0]}; "
            "a network that is partly random is not run"
        )
    return model


def _read_tokenizer(folder: Path) -> Any:
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{folder} holds no usable tokenizer: {_first_line(error)}; write it with "
            "save_pretrained of PI0Processor"
        ) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
