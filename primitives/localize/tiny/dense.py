"""What the dense network is trained for."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from zetta.primitives.localize.tiny.batches import Augmentation, Batch, Pool
from zetta.primitives.localize.tiny.geometry import STRIDE
from zetta.primitives.localize.tiny.model import LENGTH, SHAPES, Net

NAMED_PIXELS, VOTING_PIXELS = 60, 300
"""Pixels of a thing that are asked for its name and for votes, on average; all would cost time."""
SMOOTH: Final = 0.1
WEIGHTS: Final = {"seen": 1.0, "name": 1.5, "offset": 1.0, "shape": 0.3, "parts": 1.0}
TERMS: Final = tuple(WEIGHTS)


class DenseTask:
    """Losses of the dense network on random batches."""

    terms: tuple[str, ...] = TERMS

    def __init__(self, net: Net, pool: Pool, size: int, held: int, seed: int) -> None:
        self._net, self._pool, self._size, self._seed = net, pool, size, seed
        self._rows, self._held = pool.split(held, seed)

    def losses(self, step: int) -> tuple[Tensor, list[float]]:
        """Return the loss of one step and its terms."""
        rng = np.random.default_rng([self._seed, step])
        rows = rng.choice(self._rows, self._size)
        batch = self._pool.batch(rows, Augmentation(), rng)
        parts = losses(self._net, batch)
        total = sum((WEIGHTS[n] * parts[n] for n in TERMS), torch.zeros(()))
        return total, [float(parts[n]) for n in TERMS]

    def scores(self, net: Net) -> dict[str, float]:
        """Return errors on held-out pictures: names right (share), centres (median metres)."""
        rng = np.random.default_rng(0)
        right, away = [], []
        net.eval()
        with torch.no_grad():
            for start in range(0, len(self._held), self._size):
                batch = self._pool.batch(self._held[start : start + self._size], None, rng)
                features = net.trunk(batch.planes).permute(0, 2, 3, 1)
                on = batch.thing >= 0
                votes = net.votes(features[on], points_of(batch)[on])
                error = (votes[:, :3] - batch.shape[on][:, :3]) * LENGTH
                away.append(error.norm(dim=1))
                some = torch.rand(int(on.sum())) < 0.1
                named = net.name(features[on][some]).argmax(1)
                right.append((named == batch.thing[on][some]).float())
        return {
            "names_right": float(torch.cat(right).mean()),
            "vote_error_m": float(torch.cat(away).median()),
        }


def points_of(batch: Batch) -> Tensor:
    """Return the scaled surface points of the coarse pixels. Shape (B, h, w, 3)."""
    return batch.planes[:, 3:, STRIDE - 1 :: STRIDE, STRIDE - 1 :: STRIDE].permute(0, 2, 3, 1)


def losses(net: Net, batch: Batch) -> dict[str, Tensor]:
    """Return every term of the loss."""
    features = net.trunk(batch.planes).permute(0, 2, 3, 1)  # (B, h, w, 32)
    on = batch.thing >= 0
    few = torch.where(on, 1 + 100 / (batch.count + 5), torch.ones(()))
    seen = functional.binary_cross_entropy_with_logits(
        net.seen(features)[..., 0], on.float(), weight=few, reduction="sum"
    )
    asked = on & (torch.rand_like(batch.count) < NAMED_PIXELS / batch.count)
    importance = _importance(batch.count[asked], NAMED_PIXELS, 1 + 100 / (batch.count[asked] + 5))
    named = functional.cross_entropy(
        net.name(features[asked]), batch.thing[asked], reduction="none"
    )
    voting = on & (torch.rand_like(batch.count) < VOTING_PIXELS / batch.count)
    votes = net.votes(features[voting], points_of(batch)[voting])
    wanted = batch.shape[voting]
    count = batch.count[voting]
    weight = _importance(count, VOTING_PIXELS, 1 / (count + 10))
    away = functional.smooth_l1_loss(votes[:, :SHAPES], wanted, reduction="none", beta=SMOOTH)
    return {
        "seen": seen / few.sum(),
        "name": (named * importance).sum(),
        "offset": (away[:, :3].sum(1) * weight).sum(),
        "shape": (away[:, 3:].sum(1) * weight).sum(),
        "parts": _part_loss(votes[:, SHAPES:], batch.parts[voting], weight),
    }


def _importance(count: Tensor, kept: int, weight: Tensor) -> Tensor:
    """Return the share of each pixel in a loss, made up for those that were left out."""
    raw = weight * (count / kept).clamp(min=1.0)
    return raw / raw.sum().clamp(min=1e-6)


def _part_loss(votes: Tensor, wanted: Tensor, importance: Tensor) -> Tensor:
    there = torch.isfinite(wanted)
    weight = there * importance[:, None]
    total = weight.sum()
    if float(total) == 0.0:
        return votes.sum() * 0.0
    target = torch.where(there, wanted, 0.0)
    away = functional.smooth_l1_loss(votes, target, reduction="none", beta=SMOOTH)
    # Three coordinates of one part count as one.
    return 3 * (away * weight).sum() / total
