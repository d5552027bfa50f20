"""From trained weights to what is served: two ONNX graphs, safetensors and a manifest.

The network is cut where attention is chosen, so that a server can draw it: `look.onnx` ends in heat
maps, `act.onnx` begins with attention over them.
"""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx
import torch
from torch import Tensor, nn

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.checkpoint import Binding, load_weights
from zetta.runtime.policies.tiny.data import HORIZON
from zetta.runtime.policies.tiny.inputs import AGENT_SHAPE, WRIST_SHAPE
from zetta.runtime.policies.tiny.manifest import (
    ACT,
    LOOK,
    MANIFEST,
    WEIGHTS,
    Execution,
    Manifest,
    digest,
)
from zetta.runtime.policies.tiny.model import GRIDS, LENGTH_UNIT, Seen, TinyPolicy

OPSET: Final = 18
LOOK_OUTPUTS: Final = ("fine_a", "coarse_a", "fine_w", "coarse_w", "known", "heat_a", "heat_w")
ACT_OUTPUTS: Final = ("path", "rot", "close", "points", "phase", "pixels_a", "pixels_w")


class LookGraph(nn.Module):
    """One observation to features, context and heat logits."""

    def __init__(self, net: TinyPolicy) -> None:
        super().__init__()
        self.net = net

    def forward(
        self, agent: Tensor, wrist: Tensor, proprio: Tensor, lang: Tensor
    ) -> tuple[Tensor, ...]:
        """Take pictures as uint8 (height, width, 3), proprio (11,), lang (256,)."""
        planes = [p.permute(2, 0, 1).unsqueeze(0).float() / 255.0 for p in (agent, wrist)]
        seen = self.net.see(planes[0], planes[1])
        frame = torch.zeros(1, dtype=torch.long)
        known = self.net.context(seen, frame, proprio.unsqueeze(0), lang.unsqueeze(0))
        asked = self.net.questions(known)
        heats = [self.net.heat(i, seen[i], asked[:, i])[0] for i in range(2)]
        features = (seen[0].fine, seen[0].coarse, seen[1].fine, seen[1].coarse)
        return (*features, known, heats[0], heats[1])


class ActGraph(nn.Module):
    """Features and D choices of attention to D answers, in SI units and probabilities."""

    def __init__(self, net: TinyPolicy) -> None:
        super().__init__()
        self.net = net

    def forward(
        self,
        fine_a: Tensor,
        coarse_a: Tensor,
        fine_w: Tensor,
        coarse_w: Tensor,
        known: Tensor,
        heat_a: Tensor,
        heat_w: Tensor,
        attention_a: Tensor,
        attention_w: Tensor,
    ) -> tuple[Tensor, ...]:
        """Take what `LookGraph` gave, and attention of shapes (D, 2, cells)."""
        draws = attention_a.shape[0]
        seen = (Seen(fine_a, coarse_a, known), Seen(fine_w, coarse_w, known))
        attention = (attention_a, attention_w)
        found = [
            self.net.gather(i, seen[i], attention[i].flatten(0, 1).unsqueeze(0)).view(draws, -1)
            for i in range(2)
        ]
        heats = [h.unsqueeze(0).expand(draws, -1, -1) for h in (heat_a, heat_w)]
        answer, pixels = self.net.conclude(
            known.expand(draws, -1), (found[0], found[1]), (heats[0], heats[1]), attention
        )
        return (
            answer.path * LENGTH_UNIT,
            answer.rot,
            answer.close.sigmoid(),
            answer.points * LENGTH_UNIT,
            answer.phase.softmax(-1),
            *pixels,
        )


def export(weights: Path, out: Path, execution: Execution | None = None, source: str = "") -> Path:
    """Write the served form of trained weights.

    Args:
        weights: `weights.safetensors` of a training.
        out: folder of the variant; its files are replaced.
        execution: how chunks are executed; the defaults when None.
        source: how the weights came about; written into the manifest.

    Returns:
        The manifest's path.

    Raises:
        ConfigError: `weights` cannot be read.
    """
    net, binding = load_weights(weights)
    net.eval()
    out.mkdir(parents=True, exist_ok=True)
    _write_look(net, out / LOOK)
    _write_act(net, out / ACT)
    if weights.resolve() != (out / WEIGHTS).resolve():
        shutil.copyfile(weights, out / WEIGHTS)
    manifest = _manifest(binding, execution or Execution(), out, source)
    path = out / MANIFEST
    path.write_text(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False) + "\n")
    return path


def _manifest(binding: Binding, execution: Execution, out: Path, source: str) -> Manifest:
    return Manifest(
        phases=binding.phases,
        instructions=binding.instructions,
        render_profile=binding.render_profile,
        control_hz=binding.control_hz,
        encoder=binding.encoder,
        crop=binding.crop,
        horizon=HORIZON,
        grids=GRIDS,
        execution=execution,
        source=source,
        data=binding.data,
        parameters=sum(p.numel() for p in TinyPolicy(binding.model).parameters()),
        width=binding.model.width,
        files={name: digest(out / name) for name in (LOOK, ACT, WEIGHTS)},
    )


def _write_look(net: TinyPolicy, path: Path) -> None:
    arguments = (
        torch.zeros(*AGENT_SHAPE, 3, dtype=torch.uint8),
        torch.zeros(*WRIST_SHAPE, 3, dtype=torch.uint8),
        torch.zeros(len(net.proprio_mean)),
        torch.zeros(net.lang[0].in_features),
    )
    _write(LookGraph(net), arguments, ("agent", "wrist", "proprio", "lang"), LOOK_OUTPUTS, {}, path)


def _write_act(net: TinyPolicy, path: Path) -> None:
    cells = [rows * columns for rows, columns in GRIDS]
    first, _, third = net.config.channels
    draws = 3  # any number but 1, which the exporter would take for a constant
    arguments = (
        *(torch.zeros(1, c, n) for cell in cells for c, n in ((first, cell), (third, cell // 4))),
        torch.zeros(1, net.lang[-2].out_features + len(net.proprio_mean) + 64),
        *(torch.zeros(2, cell) for cell in cells),
        *(torch.full((draws, 2, cell), 1.0 / cell) for cell in cells),
    )
    many = {name: {0: "draws"} for name in ("attention_a", "attention_w", *ACT_OUTPUTS)}
    inputs = (*LOOK_OUTPUTS, "attention_a", "attention_w")
    _write(ActGraph(net), arguments, inputs, ACT_OUTPUTS, many, path)


def _write(
    graph: nn.Module,
    arguments: tuple[Tensor, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    dynamic: dict[str, dict[int, str]],
    path: Path,
) -> None:
    with warnings.catch_warnings():
        # Deprecations inside the exporter; nothing a caller could act on.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        torch.onnx.export(
            graph,
            arguments,
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=dynamic,
            opset_version=OPSET,
            dynamo=False,
        )
    onnx.checker.check_model(onnx.load(str(path)))


def main(arguments: Sequence[str]) -> None:
    """Run as `python -m zetta.runtime.policies.tiny.export WEIGHTS OUT [SOURCE]`."""
    if len(arguments) not in (2, 3):
        raise ConfigError(
            "usage: python -m zetta.runtime.policies.tiny.export WEIGHTS OUT [SOURCE]"
        )
    export(Path(arguments[0]), Path(arguments[1]), source="".join(arguments[2:]))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
