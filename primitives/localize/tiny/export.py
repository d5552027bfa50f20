"""From trained weights to what is served: four ONNX graphs, safetensors and a manifest.

The heads are cut off the trunk, so that a server asks them only about pixels that show a thing.

    python -m zetta.primitives.localize.tiny.export WEIGHTS OUT [SOURCE]
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx
import torch
from torch import Tensor, nn

from zetta.primitives.localize.tiny.geometry import BOTTOM, CROP, GRAY, PICTURE, TOP
from zetta.primitives.localize.tiny.manifest import (
    CROPS,
    FILES,
    HEADS,
    MANIFEST,
    NAMES,
    TRUNK,
    WEIGHTS,
    Calibration,
    Manifest,
    digest,
)
from zetta.primitives.localize.tiny.model import FEATURES, LENGTH, SHAPES, CropNet, Net
from zetta.primitives.localize.tiny.weights_file import load_weights
from zetta.runtime.errors import ConfigError, ZettaError

OPSET: Final = 18


class TrunkGraph(nn.Module):
    """One picture to features by pixel and how likely a thing is seen there."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Take planes (6, 192, 256); return features (pixels, 32) and probabilities (pixels,)."""
        features = self.net.trunk(planes[None])[0].flatten(1).T
        return features, self.net.seen(features)[:, 0].sigmoid()


class HeadsGraph(nn.Module):
    """Features and scaled surface points of N pixels to their votes, in metres."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def forward(self, known: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take features and points (N, 35).

        Returns:
            Offset (N, 3), extent (N, 3), turn (N, 2) and offsets of parts (N, P).
        """
        votes = self.net.votes(known[:, :FEATURES], known[:, FEATURES:])
        return (
            votes[:, :3] * LENGTH,
            votes[:, 3:6] * LENGTH,
            votes[:, 6:SHAPES],
            votes[:, SHAPES:] * LENGTH,
        )


class NamesGraph(nn.Module):
    """Features of N pixels to the log-probability of every name."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def forward(self, features: Tensor) -> Tensor:
        """Return log-probabilities. Shape (N, Q)."""
        return self.net.name(features).log_softmax(-1)


class CropsGraph(nn.Module):
    """N crops to the log-probability of every name."""

    def __init__(self, net: CropNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, crops: Tensor) -> Tensor:
        """Take uint8 crops (N, 32, 32, 4); return log-probabilities (N, Q)."""
        scaled = crops.permute(0, 3, 1, 2).float() / 255.0
        planes = torch.cat([scaled[:, :3] - GRAY, scaled[:, 3:]], 1)
        named: Tensor = self.net(planes)
        return named.log_softmax(-1)


def export(
    weights: Path, out: Path, source: str = "", calibration: Calibration | None = None
) -> Path:
    """Write the served form of trained weights.

    Args:
        weights: `weights.safetensors` of a training.
        out: folder; its files are replaced.
        source: how the weights came about; written into the manifest.
        calibration: how logits become a confidence; the defaults when None.

    Returns:
        The manifest's path.

    Raises:
        ConfigError: `weights` cannot be read.
    """
    net, crop_net, pins = load_weights(weights)
    net.eval()
    crop_net.eval()
    out.mkdir(parents=True, exist_ok=True)
    planes = torch.zeros(6, BOTTOM - TOP, PICTURE)
    # Any number but 1, which the exporter would take for a constant.
    features = torch.zeros(3, FEATURES)
    crops = torch.zeros(3, CROP, CROP, 4, dtype=torch.uint8)
    _write(TrunkGraph(net), planes, "planes", ("features", "seen"), False, out / TRUNK)
    known = torch.zeros(3, FEATURES + 3)
    votes = ("offset", "extent", "turn", "parts")
    _write(HeadsGraph(net), known, "known", votes, True, out / HEADS)
    _write(NamesGraph(net), features, "features", ("names",), True, out / NAMES)
    _write(CropsGraph(crop_net), crops, "crops", ("names",), True, out / CROPS)
    if weights.resolve() != (out / WEIGHTS).resolve():
        shutil.copyfile(weights, out / WEIGHTS)
    manifest = Manifest(
        render_profile=pins.render_profile,
        mujoco=pins.mujoco,
        source=source,
        data=pins.data,
        parameters=sum(p.numel() for m in (net, crop_net) for p in m.parameters()),
        calibration=calibration or Calibration(),
        files={name: digest(out / name) for name in FILES},
    )
    path = out / MANIFEST
    path.write_text(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False) + "\n")
    return path


def _write(
    graph: nn.Module,
    argument: Tensor,
    name: str,
    outputs: tuple[str, ...],
    many: bool,
    path: Path,
) -> None:
    dynamic = {n: {0: "n"} for n in (name, *outputs)} if many else {}
    with warnings.catch_warnings():
        # Deprecations inside the exporter; nothing a caller could act on.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        torch.onnx.export(
            graph.eval(),
            (argument,),
            str(path),
            input_names=[name],
            output_names=list(outputs),
            dynamic_axes=dynamic,
            opset_version=OPSET,
            dynamo=False,
        )
    onnx.checker.check_model(onnx.load(str(path)))


def main(arguments: Sequence[str]) -> None:
    """Export from the command line."""
    if len(arguments) not in (2, 3):
        raise ConfigError(
            "usage: python -m zetta.primitives.localize.tiny.export WEIGHTS OUT [SOURCE]"
        )
    export(Path(arguments[0]), Path(arguments[1]), source="".join(arguments[2:]))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ZettaError as error:
        sys.exit(f"error: {error}")
