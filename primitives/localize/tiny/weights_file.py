"""Trained weights of both networks as one safetensors file: nothing is pickled."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from zetta.primitives.localize.tiny.model import CropNet, Net
from zetta.primitives.localize.tiny.vocabulary import THINGS
from zetta.runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Pins:
    """What trained weights are bound to."""

    render_profile: str
    mujoco: str
    data: tuple[str, ...]
    """Keys of the shards."""


def save_weights(path: Path, net: Net, crop_net: CropNet, pins: Pins) -> None:
    """Write both networks, whole or not at all."""
    tensors = {f"net.{name}": value for name, value in net.state_dict().items()}
    tensors |= {f"crop.{name}": value for name, value in crop_net.state_dict().items()}
    notes = {"pins": json.dumps(asdict(pins)), "things": json.dumps(THINGS)}
    part = path.with_suffix(".part")
    save_file({n: v.detach().contiguous() for n, v in tensors.items()}, part, metadata=notes)
    part.replace(path)


def load_weights(path: Path) -> tuple[Net, CropNet, Pins]:
    """Read both networks.

    Raises:
        ConfigError: the file is missing, damaged or of another vocabulary.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}; train first with `zetta train localizer`")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = file.metadata() or {}
        things, raw = tuple(json.loads(notes["things"])), json.loads(notes["pins"])
        pins = Pins(raw["render_profile"], raw["mujoco"], tuple(raw["data"]))
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ConfigError(f"{path} holds no trained localiser: {error!r}") from error
    if things != THINGS:
        raise ConfigError(f"{path} knows other names than this version; train again")
    net, crop_net = Net(), CropNet()
    for module, prefix in ((net, "net."), (crop_net, "crop.")):
        module.load_state_dict(
            {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
        )
    return net, crop_net, pins
