"""What the network is trained for: the future path, and where it should be looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from zetta.runtime.policies.tiny.batches import Batch
from zetta.runtime.policies.tiny.inputs import AGENT_SHAPE, WRIST_SHAPE
from zetta.runtime.policies.tiny.model import GRIDS, LENGTH_UNIT, STRIDE, Answer, Seen, TinyPolicy

SIGMA_PX: Final = 3.0
"""Width of the target of a heat map."""
KEYPOINT_UNIT_PX: Final = 48.0


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Share of each term; the first five are per unit as in `Terms`."""

    path: float = 5.0
    rot: float = 5.0
    close: float = 1.0
    points: float = 2.0
    phase: float = 0.2
    heat: float = 0.3
    keypoint: float = 1.0


class Terms(NamedTuple):
    """The terms of the loss, each an average over what is labelled."""

    path: Tensor
    """0.1 m."""
    rot: Tensor
    """Radians."""
    close: Tensor
    points: Tensor
    """0.1 m."""
    phase: Tensor
    heat: Tensor
    keypoint: Tensor
    """48 pixels."""

    def total(self, weights: LossWeights) -> Tensor:
        """Return the weighted sum."""
        parts = [
            getattr(weights, name) * term for name, term in zip(self._fields, self, strict=True)
        ]
        return torch.stack(parts).sum()


class Heard(NamedTuple):
    """Everything the network said about a batch."""

    answer: Answer
    heats: tuple[Tensor, Tensor]
    pixels: tuple[Tensor, Tensor]


def run(net: TinyPolicy, batch: Batch) -> Heard:
    """Let the network see a batch, look with plain attention, and answer."""
    agent, wrist = torch.from_numpy(batch.agent), torch.from_numpy(batch.wrist)
    frame, slot = torch.from_numpy(batch.frame), torch.from_numpy(batch.slot)
    proprio, lang = torch.from_numpy(batch.labels.proprio), torch.from_numpy(batch.lang)
    slots = int(batch.slot.max()) + 1
    seen: tuple[Seen, Seen] = net.see(agent, wrist)
    known = net.context(seen, frame, proprio, lang)
    heats = net.look(seen, known, frame, slot, slots)
    attention = (heats[0].softmax(-1), heats[1].softmax(-1))
    answer, pixels = net.act(seen, known, heats, attention, frame, slot, slots)
    return Heard(answer, heats, pixels)


def terms(heard: Heard, batch: Batch) -> Terms:
    """Compare what was said with the labels."""
    labels, answer = batch.labels, heard.answer
    share = torch.from_numpy(batch.importance)
    rows = torch.from_numpy(labels.mask) * share[:, None]  # (Q, H)
    path = torch.from_numpy(labels.path) / LENGTH_UNIT
    points = torch.stack([torch.from_numpy(labels.focus), torch.from_numpy(labels.dest)], 1)
    known = torch.isfinite(points).all(-1)
    phase = torch.from_numpy(labels.phase).long()
    heat, keypoint = _attention_terms(heard, batch)
    return Terms(
        path=_mean((answer.path - path).abs().mean(-1), rows),
        rot=_mean((answer.rot - torch.from_numpy(labels.rot)).abs().mean(-1), rows),
        close=_mean(
            functional.binary_cross_entropy_with_logits(
                answer.close, torch.from_numpy(labels.close), reduction="none"
            ),
            rows,
        ),
        points=_mean(
            (answer.points - points.nan_to_num() / LENGTH_UNIT).abs().mean(-1),
            known * share[:, None],
        ),
        phase=_mean(
            functional.cross_entropy(answer.phase, phase.clamp_min(0), reduction="none"),
            (phase >= 0) * share,
        ),
        heat=heat,
        keypoint=keypoint,
    )


def _attention_terms(heard: Heard, batch: Batch) -> tuple[Tensor, Tensor]:
    share = torch.from_numpy(batch.importance)[:, None]
    px = torch.from_numpy(batch.labels.px)
    visible = torch.from_numpy(batch.labels.visible)
    heat, keypoint = torch.zeros(()), torch.zeros(())
    for camera, shape in enumerate((AGENT_SHAPE, WRIST_SHAPE)):
        target = px[:, camera].nan_to_num()  # (Q, role, 2)
        limit = target.new_tensor([shape[1] - 0.5, shape[0] - 0.5])
        # A shift may have moved a point out of the picture.
        inside = ((target > 0.5) & (target < limit)).all(-1)
        weight = inside * visible[:, camera] * share
        logs = heard.heats[camera].log_softmax(-1)
        wanted = heat_target(target, GRIDS[camera])
        heat = heat + _mean(-(wanted * logs).sum(-1), weight)
        off = (heard.pixels[camera] - target).abs().mean(-1) / KEYPOINT_UNIT_PX
        keypoint = keypoint + _mean(off, weight)
    return heat, keypoint


def heat_target(px: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return Gaussians around pixels, adding up to 1. Shape (..., 2) to (..., cells)."""
    rows, columns = (torch.arange(n) * float(STRIDE) + STRIDE / 2 for n in grid)
    across = torch.exp(-((columns - px[..., :1]) ** 2) / (2 * SIGMA_PX**2))
    down = torch.exp(-((rows - px[..., 1:]) ** 2) / (2 * SIGMA_PX**2))
    both = down[..., :, None] * across[..., None, :]  # (..., rows, columns)
    return (both / both.sum((-2, -1), keepdim=True).clamp_min(1e-6)).flatten(-2)


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean, 0 where nothing has weight."""
    return (values * weights).sum() / weights.sum().clamp_min(1e-6)
