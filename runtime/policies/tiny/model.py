"""The network: pictures are encoded without language, and language asks where to look.

Each camera gives features at a quarter and at an eighth of its resolution. A query made from the
instruction, proprioception and a summary of both pictures is compared with both levels; the sum is
a heat map over the finer grid. Its soft maximum and the features found there go to a small trunk
that predicts the hand's future path. Because the encoder knows no language, one pass serves any
number of instructions; because the heat map is supervised with the projected point, the policy
learns to see rather than to remember.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from zetta.runtime.policies.tiny.data import HORIZON
from zetta.runtime.policies.tiny.inputs import AGENT_SHAPE, PROPRIO, WRIST_SHAPE
from zetta.runtime.policies.tiny.text import SIZE as LANG

STRIDE: Final = 4
"""Pixels of the network's picture per cell of a heat map."""
LENGTH_UNIT: Final = 0.1
"""Metres per unit of every predicted length."""
GRIDS: Final = tuple((h // STRIDE, w // STRIDE) for h, w in (AGENT_SHAPE, WRIST_SHAPE))
"""Rows and columns of each camera's heat map."""
WAVES: Final = 2
"""Spatial frequencies of the position basis."""
PLACES: Final = 5 + 4 * WAVES
"""Functions of the position basis: a query can prefer a place of the picture."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What fixes the shape of the network."""

    phases: int
    """Phases of the scripted expert that an auxiliary head names."""
    width: float = 1.0
    """Multiplies every layer's width."""

    @property
    def channels(self) -> tuple[int, int, int]:
        """Channels of the three convolutions."""
        return (_eights(32 * self.width), _eights(64 * self.width), _eights(64 * self.width))

    @property
    def hidden(self) -> int:
        """Width of the trunk."""
        return _eights(256 * self.width)


class Seen(NamedTuple):
    """What an encoder makes of F pictures."""

    fine: Tensor
    """Shape (F, C0, rows * columns)."""
    coarse: Tensor
    """Half as many rows and columns. Shape (F, C2, rows * columns / 4)."""
    summary: Tensor
    """Shape (F, 32)."""


class Answer(NamedTuple):
    """What the network says to Q queries. Lengths in units of 0.1 m."""

    path: Tensor
    """Shape (Q, H, 3)."""
    rot: Tensor
    """Radians. Shape (Q, H, 3)."""
    close: Tensor
    """Logits. Shape (Q, H)."""
    points: Tensor
    """Focus and destination relative to the hand. Shape (Q, 2, 3)."""
    phase: Tensor
    """Logits. Shape (Q, phases)."""


class Encoder(nn.Module):
    """Two levels of features of one camera."""

    def __init__(self, channels: Sequence[int]) -> None:
        super().__init__()
        first, second, third = channels
        self.stem = _Block(3, first, kernel=7, stride=4)
        self.down = _Block(first, second, kernel=3, stride=2)
        self.deep = _Block(second, third, kernel=3, stride=1)
        self.summary = nn.Linear(third, 32)

    def forward(self, pictures: Tensor) -> Seen:
        """Encode pictures in [0, 1]. Shape (F, 3, height, width)."""
        fine = self.stem(pictures - 0.45)
        coarse = self.deep(self.down(fine))
        return Seen(fine.flatten(2), coarse.flatten(2), self.summary(coarse.mean((2, 3))))


class TinyPolicy(nn.Module):
    """The whole network. `look` finds, `act` decides; sampling happens between the two."""

    proprio_mean: Tensor
    proprio_std: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        first, _, third = config.channels
        self.config = config
        lang, hidden = 64, config.hidden
        self.register_buffer("proprio_mean", torch.zeros(PROPRIO))
        self.register_buffer("proprio_std", torch.ones(PROPRIO))
        self.encoders = nn.ModuleList([Encoder(config.channels) for _ in GRIDS])
        self.lang = nn.Sequential(nn.Linear(LANG, 128), nn.SiLU(), nn.Linear(128, lang), nn.SiLU())
        self.parts = (first, third, PLACES)
        known = lang + PROPRIO + 2 * 32
        self.felt = slice(lang, lang + PROPRIO)
        self.ask = nn.Sequential(
            nn.Linear(known, 128), nn.SiLU(), nn.Linear(128, 4 * sum(self.parts))
        )
        self.trunk = nn.Sequential(
            nn.Linear(known + 4 * (3 + first + third), hidden),
            nn.LayerNorm(hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
        )
        # Where the maxima lie and where the hand is: a path of its own, or the few numbers that
        # matter drown among the features.
        self.geometry = nn.Sequential(
            nn.Linear(8 + PROPRIO, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU()
        )
        self.points = nn.Linear(hidden + 128, 6)
        self.phase = nn.Linear(hidden, config.phases)
        self.plan = nn.Sequential(
            nn.Linear(hidden + 6 + config.phases, hidden), nn.SiLU(), nn.Linear(hidden, 7 * HORIZON)
        )
        for index, grid in enumerate(GRIDS):
            self.register_buffer(f"basis_{index}", _position_basis(grid), persistent=False)
            self.register_buffer(f"centres_{index}", cell_centres(grid), persistent=False)
            rows, columns = (_doubling(n // 2) for n in grid)
            self.register_buffer(f"rows_{index}", rows, persistent=False)
            self.register_buffer(f"columns_{index}", columns, persistent=False)

    def see(self, agent: Tensor, wrist: Tensor) -> tuple[Seen, Seen]:
        """Encode F pairs of pictures in [0, 1]. Shapes (F, 3, 96, 128) and (F, 3, 96, 96)."""
        return self.encoders[0](agent), self.encoders[1](wrist)

    def context(
        self, seen: tuple[Seen, Seen], frame: Tensor, proprio: Tensor, lang: Tensor
    ) -> Tensor:
        """Return what a query knows before it looks. Shape (Q, known).

        Args:
            seen: of F frames.
            frame: which frame each query is about. Shape (Q,).
            proprio: in SI units. Shape (Q, 11).
            lang: instruction vectors. Shape (Q, 256).
        """
        feeling = (proprio - self.proprio_mean) / self.proprio_std
        summaries = torch.cat([s.summary for s in seen], 1)[frame]
        return torch.cat([self.lang(lang), feeling, summaries], 1)

    def look(
        self, seen: tuple[Seen, Seen], known: Tensor, frame: Tensor, slot: Tensor, slots: int
    ) -> tuple[Tensor, Tensor]:
        """Return each camera's heat logits. Shapes (Q, 2, cells).

        Args:
            seen: of F frames.
            known: `context`. Shape (Q, known).
            frame: which frame each query is about. Shape (Q,).
            slot: running number of a query within its frame. Shape (Q,).
            slots: most queries that one frame has.
        """
        asked = self.questions(known)
        heats = []
        for index, features in enumerate(seen):
            table = asked.new_zeros(len(features.fine), slots, 2, asked.shape[-1])
            table = table.index_put((frame, slot), asked[:, index])
            heat = self.heat(index, features, table.flatten(1, 2))
            heats.append(heat.view(len(table), slots, 2, -1)[frame, slot])
        return heats[0], heats[1]

    def questions(self, known: Tensor) -> Tensor:
        """Return what each query looks for. Shape (Q, camera, role, parts)."""
        return self.ask(known).view(len(known), 2, 2, -1)

    def heat(self, index: int, seen: Seen, query: Tensor) -> Tensor:
        """Compare queries with both levels. Shapes (F, N, parts) to (F, N, cells)."""
        fine, coarse, place = query.split(self.parts, -1)
        rows, columns = self._buffer("rows", index), self._buffer("columns", index)
        half = [n // 2 for n in GRIDS[index]]
        small = torch.bmm(coarse, seen.coarse).unflatten(-1, half)
        up = (rows @ small @ columns.T).flatten(-2)
        return (torch.bmm(fine, seen.fine) + up) * 0.25 + place @ self._buffer("basis", index)

    def act(
        self,
        seen: tuple[Seen, Seen],
        known: Tensor,
        heats: tuple[Tensor, Tensor],
        attention: tuple[Tensor, Tensor],
        frame: Tensor,
        slot: Tensor,
        slots: int,
    ) -> tuple[Answer, tuple[Tensor, Tensor]]:
        """Decide, given where to look.

        Args:
            seen: of F frames.
            known: `context`. Shape (Q, known).
            heats: heat logits. Shapes (Q, 2, cells).
            attention: weights over the cells, adding up to 1. Shapes (Q, 2, cells).
            frame: which frame each query is about. Shape (Q,).
            slot: running number of a query within its frame. Shape (Q,).
            slots: most queries that one frame has.

        Returns:
            The answer, and each camera's points in pixels. Shapes (Q, 2, 2).
        """
        found = []
        for index, (features, weights) in enumerate(zip(seen, attention, strict=True)):
            table = weights.new_zeros(len(features.fine), slots, 2, weights.shape[-1])
            table = table.index_put((frame, slot), weights)
            gathered = self.gather(index, features, table.flatten(1, 2))
            found.append(gathered.view(len(table), slots, -1)[frame, slot])
        return self.conclude(known, (found[0], found[1]), heats, attention)

    def gather(self, index: int, seen: Seen, weights: Tensor) -> Tensor:
        """Average both levels under attention. Shapes (F, N, cells) to (F, N, C0 + C2)."""
        rows, columns = self._buffer("rows", index), self._buffer("columns", index)
        # Weights go down by the transpose of how logits went up.
        small = (rows.T @ weights.unflatten(-1, GRIDS[index]) @ columns).flatten(-2)
        fine = torch.bmm(weights, seen.fine.transpose(1, 2))
        return torch.cat([fine, torch.bmm(small, seen.coarse.transpose(1, 2))], -1)

    def conclude(
        self,
        known: Tensor,
        found: tuple[Tensor, Tensor],
        heats: tuple[Tensor, Tensor],
        attention: tuple[Tensor, Tensor],
    ) -> tuple[Answer, tuple[Tensor, Tensor]]:
        """Decide, given what was found where each camera was looked at.

        Args:
            known: `context`. Shape (Q, known).
            found: `gather`, both roles side by side. Shapes (Q, 2 * (C0 + C2)).
            heats: heat logits. Shapes (Q, 2, cells).
            attention: weights. Shapes (Q, 2, cells).

        Returns:
            The answer, and each camera's points in pixels. Shapes (Q, 2, 2).
        """
        parts, places, pixels = [known, *found], [known[:, self.felt]], []
        for index, (weights, heat) in enumerate(zip(attention, heats, strict=True)):
            height, width = (AGENT_SHAPE, WRIST_SHAPE)[index]
            px = weights @ self._buffer("centres", index)
            places.append((px / px.new_tensor([width / 4, height / 4]) - 2).flatten(1))
            parts += [places[-1], heat.logsumexp(-1) * 0.1]
            pixels.append(px)
        z = self.trunk(torch.cat(parts, 1))
        points = self.points(torch.cat([z, self.geometry(torch.cat(places, 1))], 1))
        phase = self.phase(z)
        plan = self.plan(torch.cat([z, points, phase.softmax(-1)], 1)).view(-1, HORIZON, 7)
        answer = Answer(plan[..., :3], plan[..., 3:6], plan[..., 6], points.view(-1, 2, 3), phase)
        return answer, (pixels[0], pixels[1])

    def _buffer(self, name: str, index: int) -> Tensor:
        return self.get_buffer(f"{name}_{index}")


class _Block(nn.Module):
    """Convolution, group normalisation, rectifier."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.GroupNorm(8, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(self.conv(x)))


def cell_centres(grid: tuple[int, int]) -> Tensor:
    """Return column and row of each cell's centre in pixels. Shape (cells, 2)."""
    rows, columns = (torch.arange(n) * float(STRIDE) + STRIDE / 2 for n in grid)
    return torch.stack([columns.repeat(grid[0]), rows.repeat_interleave(grid[1])], 1)


def _position_basis(grid: tuple[int, int]) -> Tensor:
    """Return smooth functions of the place in the picture. Shape (PLACES, cells)."""
    centres = cell_centres(grid) / STRIDE
    u = centres[:, 0] / grid[1] * 2 - 1
    v = centres[:, 1] / grid[0] * 2 - 1
    waves = [
        wave(math.pi * k * axis)
        for k in range(1, WAVES + 1)
        for axis in (u, v)
        for wave in (torch.sin, torch.cos)
    ]
    return torch.stack([u, v, u * u, v * v, u * v, *waves])


def _doubling(count: int) -> Tensor:
    """Return the matrix that doubles a sampling bilinearly. Shape (2 * count, count)."""
    fine = (torch.arange(2 * count) + 0.5) / 2 - 0.5
    distance = (fine.clamp(0, count - 1)[:, None] - torch.arange(count)[None]).abs()
    return (1 - distance).clamp_min(0)


def _eights(number: float) -> int:
    """Round to a multiple of 8: groups and vector units want it."""
    return max(8, round(number / 8) * 8)
