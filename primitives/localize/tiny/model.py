"""The networks: a U-Net that votes, names that modulate it, and a classifier of crops.

At every coarse pixel the U-Net says whether a thing is seen there, where that thing's centre and
its parts are (as offsets from the surface point), and how large and how turned it is. A name is
the mean of its words' embeddings and modulates the same 32 features (FiLM, Perez et al. 2018), so
all names share the trunk; it is asked only where something is seen. The votes are given the surface
point itself beside the features: an offset is a place that many pixels agree on less a point that
only this pixel knows. Look-alikes are told apart by a second, tiny network on a metric crop of the
full picture.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from zetta.primitives.localize.tiny.geometry import SPREAD
from zetta.primitives.localize.tiny.vocabulary import MOST_PARTS, THINGS, WORDS

FEATURES: Final = 32
CHANNELS: Final = (16, 32, 64, 128)
SHAPES: Final = 8
"""Offset 3, extent 3 (both in `LENGTH`), cosine and sine of twice the yaw."""
OUTPUTS: Final = SHAPES + 3 * MOST_PARTS
HIDDEN: Final = 64
LENGTH: Final = 0.05
"""Metres that count as 1."""


def block(inward: int, outward: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    """Return a convolution with batch normalisation and a rectifier."""
    return nn.Sequential(
        nn.Conv2d(inward, outward, kernel, stride, (kernel - 1) // 2, bias=False),
        nn.BatchNorm2d(outward),
        nn.ReLU(inplace=True),
    )


class Trunk(nn.Module):
    """The U-Net. From (B, 6, 192, 256) to (B, 32, 96, 128)."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d = CHANNELS
        self.e1 = block(6, a, 2, 4)
        self.e2 = nn.Sequential(block(a, b, 2), block(b, b))
        self.e3 = nn.Sequential(block(b, c, 2), block(c, c))
        self.e4 = nn.Sequential(block(c, d, 2), block(d, d), block(d, d))
        self.u3, self.d3 = block(d, c, 1, 1), block(c, c)
        self.u2, self.d2 = block(c, b, 1, 1), block(b, b)
        self.u1, self.d1 = block(b, a, 1, 1), block(a, a)
        self.out = block(a + b, FEATURES, 1, 1)

    def forward(self, planes: Tensor) -> Tensor:
        """Return features at half the resolution."""
        x1 = self.e1(planes)
        x2 = self.e2(x1)
        x3 = self.e3(x2)
        y3 = self.d3(_twice(self.u3(self.e4(x3))) + x3)
        y2 = self.d2(_twice(self.u2(y3)) + x2)
        y1 = self.d1(_twice(self.u1(y2)) + x1)
        features: Tensor = self.out(torch.cat([y1, _twice(y2)], 1))
        return features


class Net(nn.Module):
    """Trunk and heads; the heads take features of single pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.seen = nn.Linear(FEATURES, 1)
        self.voter = nn.Sequential(
            nn.Linear(FEATURES + 3, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUTPUTS)
        )
        self.shortcut = nn.Linear(FEATURES + 3, OUTPUTS)
        self.register_buffer("metric", torch.tensor(SPREAD) / LENGTH)
        self._begin()
        self.words = nn.Embedding(len(WORDS), FEATURES)
        self.film = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 2 * FEATURES))
        self.answer = nn.Linear(FEATURES, 1)
        self.register_buffer("spelling", spelling())

    def _begin(self) -> None:
        """Let the votes for parts begin as places that are the same for every pixel."""
        with torch.no_grad():
            self.shortcut.weight[:, FEATURES:] = 0.0
            for row in range(SHAPES, OUTPUTS):
                self.shortcut.weight[row, FEATURES + (row - SHAPES) % 3] = -1.0

    def votes(self, features: Tensor, points: Tensor) -> Tensor:
        """Return the votes of N pixels.

        Args:
            features: shape (N, 32).
            points: surface points, scaled as in the input planes. Shape (N, 3).
        """
        votes: Tensor = self.voter(torch.cat([features, points], 1)) + self.shortcut(
            torch.cat([features, points * self.metric], 1)
        )
        return votes

    def modulation(self) -> Tensor:
        """Return scale and shift of the features for every name. Shape (Q, 64)."""
        spelled: Tensor = self.spelling
        modulation: Tensor = self.film(spelled @ self.words.weight)
        return modulation

    def name(self, features: Tensor) -> Tensor:
        """Return the logit of every name for N pixels. From (N, 32) to (N, Q)."""
        scale, shift = self.modulation().chunk(2, 1)
        modulated = torch.relu(features[:, None] * (1 + scale) + shift)  # (N, Q, 32)
        logits: Tensor = modulated @ self.answer.weight[0] + self.answer.bias
        return logits


class CropNet(nn.Module):
    """Names a crop. From (B, 4, 32, 32) to (B, Q)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            block(4, 24),
            block(24, 32, 2),
            block(32, 48),
            block(48, 64, 2),
            block(64, 96, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(96, len(THINGS)),
        )

    def forward(self, crops: Tensor) -> Tensor:
        """Return logits of the names."""
        logits: Tensor = self.net(crops)
        return logits


def spelling() -> Tensor:
    """Return the share of every word in every name. Shape (Q, words)."""
    shares = torch.zeros(len(THINGS), len(WORDS))
    for row, name in zip(shares, THINGS, strict=True):
        for word in name.split():
            row[WORDS.index(word)] += 1 / len(name.split())
    return shares


def _twice(features: Tensor) -> Tensor:
    return functional.interpolate(features, scale_factor=2.0, mode="nearest")
