"""The state of a training as one safetensors file: nothing is pickled."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.model import ModelConfig, TinyPolicy


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a training has come."""

    step: int
    elapsed_s: float
    key: str
    """Digest of the configuration and the data."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a trained network is bound to: without these its numbers mean nothing."""

    model: ModelConfig
    phases: tuple[str, ...]
    render_profile: str
    control_hz: float
    encoder: str
    crop: int
    data: tuple[str, ...]
    """Content keys of the shards."""
    instructions: tuple[str, ...]


def save_checkpoint(
    path: Path,
    net: TinyPolicy,
    averaged: TinyPolicy,
    optimizer: torch.optim.Optimizer,
    moment: Moment,
) -> None:
    """Write everything that training continues from, whole or not at all."""
    tensors = {f"net.{k}": v for k, v in net.state_dict().items()}
    tensors |= {f"averaged.{k}": v for k, v in averaged.state_dict().items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in slots.items()}
    _write(path, tensors, {"moment": json.dumps(asdict(moment))})


def load_checkpoint(
    path: Path, net: TinyPolicy, averaged: TinyPolicy, optimizer: torch.optim.Optimizer
) -> Moment:
    """Continue from a checkpoint.

    Raises:
        ConfigError: the file is damaged or of another network.
    """
    tensors, notes = _read(path)
    _fill(path, net, _part(tensors, "net."))
    _fill(path, averaged, _part(tensors, "averaged."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        index, _, slot = name.partition(".")
        state.setdefault(int(index), {})[slot] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    return Moment(**json.loads(notes["moment"]))


def save_weights(path: Path, net: TinyPolicy, binding: Binding) -> None:
    """Write a trained network and what it is bound to."""
    _write(path, dict(net.state_dict()), {"binding": json.dumps(asdict(binding))})


def load_weights(path: Path) -> tuple[TinyPolicy, Binding]:
    """Read a trained network.

    Raises:
        ConfigError: the file is missing, damaged or no such network.
    """
    tensors, notes = _read(path)
    try:
        raw = json.loads(notes["binding"])
        binding = Binding(
            model=ModelConfig(**raw["model"]),
            phases=tuple(raw["phases"]),
            render_profile=raw["render_profile"],
            control_hz=raw["control_hz"],
            encoder=raw["encoder"],
            crop=raw["crop"],
            data=tuple(raw["data"]),
            instructions=tuple(raw["instructions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} holds no trained tiny policy: {error!r}") from error
    net = TinyPolicy(binding.model)
    _fill(path, net, tensors)
    return net, binding


def _fill(path: Path, net: TinyPolicy, tensors: dict[str, Tensor]) -> None:
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ConfigError(f"{path} is of another network: {first}") from error


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _write(path: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    save_file({k: v.detach().contiguous() for k, v in tensors.items()}, part, metadata=notes)
    part.replace(path)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}; train first with `zetta train tiny`")
    try:
        with safe_open(path, framework="pt") as file:
            names: list[str] = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path} cannot be read as safetensors: {error}") from error
