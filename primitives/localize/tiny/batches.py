"""Batches for the dense network: pictures of other colours, mirrored, and what is wanted there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from zetta.primitives.localize.tiny.data import Shard
from zetta.primitives.localize.tiny.geometry import GRAY, REACH, SPREAD, STRIDE, TOP
from zetta.primitives.localize.tiny.model import LENGTH
from zetta.runtime.errors import ConfigError

MOST_THINGS: Final = 10
ROUND: Final = 0.3
"""A box whose sides differ by this share has a clear yaw."""


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How pictures are changed."""

    tinted: float = 0.3
    """Share of things that get another colour."""
    mirrored: float = 0.3
    """Share of pictures that are mirrored left to right."""
    shift_m: float = 0.02
    """Spread of the origin of world coordinates, horizontally."""
    lift_m: float = 0.003
    """Spread of the ground's height."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs and wanted answers of B pictures."""

    planes: Tensor
    """Shape (B, 6, 192, 256)."""
    thing: Tensor
    """Index of the name at every coarse pixel, -1 for none. Shape (B, 96, 128)."""
    count: Tensor
    """Number of coarse pixels of the thing at this pixel. Shape (B, 96, 128)."""
    shape: Tensor
    """Offset, extent, yaw as the network gives them. Shape (B, 96, 128, 8)."""
    parts: Tensor
    """Offsets of parts; NaN where there is none. Shape (B, 96, 128, 3 * MOST_PARTS)."""


class Pool:
    """All training pictures."""

    def __init__(self, shards: list[Shard]) -> None:
        if not shards:
            raise ConfigError("there are no shards to learn from")
        pins = {(s.render_profile, s.mujoco) for s in shards}
        if len(pins) != 1:
            raise ConfigError(f"the shards mix renderings: {sorted(pins)}; draw them all alike")
        self.shards = shards
        self.index = np.array([(i, r) for i, s in enumerate(shards) for r in range(len(s))])

    def split(self, held: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of `index` to learn from, and `held` rows only to look at."""
        order = np.random.default_rng(seed).permutation(len(self.index))
        return order[held:], order[:held]

    def batch(
        self, rows: np.ndarray, augmentation: Augmentation | None, rng: np.random.Generator
    ) -> Batch:
        """Return the pictures of some rows of `index`."""
        picked = [(self.shards[i], int(r)) for i, r in self.index[rows]]
        raw = _Raw(
            torch.from_numpy(np.stack([s.pictures[r] for s, r in picked])),
            torch.from_numpy(
                np.stack([s.depth[r].astype(np.float32) * s.depth_unit for s, r in picked])
            ).float(),
            torch.from_numpy(np.stack([s.instances[r] for s, r in picked])).long(),
            torch.from_numpy(np.stack([s.cameras[r] for s, r in picked])).float(),
            _padded([s.things[r] for s, r in picked], -1),
            _padded([s.boxes[r] for s, r in picked], 0.0),
            _padded([s.parts[r] for s, r in picked], np.nan),
        )
        return raw.batch(augmentation, rng)


def _padded(rows: list[np.ndarray], fill: float) -> Tensor:
    full = np.full((len(rows), MOST_THINGS, *rows[0].shape[1:]), fill, rows[0].dtype)
    for into, row in zip(full, rows, strict=True):
        into[: len(row)] = row
    return torch.from_numpy(full)


@dataclass(frozen=True, slots=True)
class _Raw:
    pictures: Tensor
    depth: Tensor
    instances: Tensor
    cameras: Tensor
    things: Tensor
    boxes: Tensor
    parts: Tensor

    def batch(self, augmentation: Augmentation | None, rng: np.random.Generator) -> Batch:
        color = self.pictures.permute(0, 3, 1, 2).float() / 255.0  # (B, 3, H, W)
        points = _points(self.depth, self.cameras)
        instances, boxes, parts = self.instances, self.boxes.clone(), self.parts.clone()
        if augmentation is not None:
            color = _recolored(color, instances, augmentation.tinted, rng)
            mirror = torch.from_numpy(rng.random(len(color)) < augmentation.mirrored)
            color, points, instances = _mirrored(color, points, instances, mirror)
            boxes[mirror, :, 1] *= -1.0
            boxes[mirror, :, 6] *= -1.0
            parts[mirror, ..., 1] *= -1.0
        ground = points[:, 2].flatten(1).median(1).values
        origin = torch.zeros(len(color), 3)
        origin[:, 2] = ground
        if augmentation is not None:
            spread = [augmentation.shift_m, augmentation.shift_m, augmentation.lift_m]
            origin += torch.from_numpy(rng.normal(size=(len(color), 3)) * spread).float()
        scaled = (points - origin[:, :, None, None]) / torch.tensor(SPREAD)[None, :, None, None]
        planes = torch.cat([color - GRAY, scaled.clamp(-REACH, REACH)], 1)
        thing, count, shape, offsets = _wanted(points, instances, self.things, boxes, parts)
        return Batch(planes.contiguous(), thing, count, shape, offsets)


def _points(depth: Tensor, cameras: Tensor) -> Tensor:
    """Return world points. Shape (B, 3, H, W)."""
    _, height, width = depth.shape
    k, pose = cameras[:, :9].view(-1, 3, 3), cameras[:, 9:].view(-1, 4, 4)
    x = (torch.arange(width) + 0.5 - k[:, 0, 2:]) / k[:, 0, :1]  # (B, W)
    y = (torch.arange(height) + TOP + 0.5 - k[:, 1, 2:]) / k[:, 1, 1:2]  # (B, H)
    rays = torch.stack(
        [
            (x[:, None] * depth),
            (y[:, :, None] * depth),
            depth,
        ],
        1,
    )
    turned = torch.einsum("bij,bjhw->bihw", pose[:, :3, :3], rays)
    return turned + pose[:, :3, 3][:, :, None, None]


def _mirrored(
    color: Tensor, points: Tensor, instances: Tensor, mirror: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Mirror some pictures left to right about the plane y = 0, in which the camera stands."""
    pick = mirror[:, None, None, None]
    # One column further, so that odd columns, which carry the labels, stay odd.
    color = torch.where(pick, color.flip(3).roll(1, 3), color)
    turned = points.flip(3).roll(1, 3) * torch.tensor([1.0, -1.0, 1.0])[None, :, None, None]
    points = torch.where(pick, turned, points)
    return color, points, torch.where(mirror[:, None, None], instances.flip(2), instances)


def _recolored(color: Tensor, instances: Tensor, tinted: float, rng: np.random.Generator) -> Tensor:
    """Tint some things and change the light of every picture."""
    count = len(color)
    chosen = rng.random((count, MOST_THINGS + 1)) < tinted
    chosen[:, MOST_THINGS] = False  # what is no thing
    tints = np.where(chosen[..., None], rng.uniform(0.15, 1.5, (count, MOST_THINGS + 1, 3)), 0.0)
    strength = np.where(chosen, rng.uniform(0.3, 1.0, chosen.shape), 0.0)
    owner = torch.where(instances < 0, MOST_THINGS, instances)
    owner = owner.repeat_interleave(STRIDE, 1).repeat_interleave(STRIDE, 2)
    rows = torch.arange(count)[:, None, None]
    tint = torch.from_numpy(tints).float()[rows, owner].permute(0, 3, 1, 2)
    share = torch.from_numpy(strength).float()[rows, owner][:, None]
    gray = (color * torch.tensor([0.3, 0.59, 0.11])[None, :, None, None]).sum(1, keepdim=True)
    # Half of them keep their shades, so that what is dark stays dark; the others are painted over.
    painted = torch.from_numpy(rng.random(chosen.shape) < 0.5)[rows, owner][:, None]
    mean = _means(gray, owner).clamp(min=0.03)
    shade = torch.where(painted, (gray / mean).clamp(max=2.0) * 0.6, 1.2 * gray)
    color = (1 - share) * color + share * (shade * tint)
    gain = rng.uniform(0.8, 1.2, (count, 3, 1, 1)) * rng.uniform(0.8, 1.2, (count, 1, 1, 1))
    light = rng.uniform(-0.05, 0.05, (count, 1, 1, 1))
    color = color * torch.from_numpy(gain).float() + torch.from_numpy(light).float()
    noise = torch.from_numpy(rng.normal(0.0, 0.01, color.shape).astype(np.float32))
    return (color + noise).clamp(0.0, 1.0)


def _means(gray: Tensor, owner: Tensor) -> Tensor:
    """Return the mean of the thing that each pixel belongs to. Shape of `gray`."""
    flat, owners = gray.flatten(1), owner.flatten(1)
    zeros = torch.zeros(len(gray), MOST_THINGS + 1)
    total = zeros.scatter_add(1, owners, flat)
    count = zeros.scatter_add(1, owners, torch.ones_like(flat)).clamp(min=1.0)
    return torch.gather(total / count, 1, owners).view_as(gray)


def _wanted(
    points: Tensor, instances: Tensor, things: Tensor, boxes: Tensor, parts: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return name, pixel count, shape and offsets of parts for every coarse pixel."""
    batch = torch.arange(len(instances))[:, None, None]
    owner = instances.clamp(min=0)
    thing = torch.where(instances >= 0, things[batch, owner], -1)
    counts = torch.zeros(len(instances), MOST_THINGS)
    counts.scatter_add_(1, owner.flatten(1), (instances >= 0).flatten(1).float())
    coarse = points[:, :, STRIDE - 1 :: STRIDE, STRIDE - 1 :: STRIDE].permute(0, 2, 3, 1)
    box = boxes[batch, owner]  # (B, h, w, 7)
    sides = torch.sort(box[..., 3:5], dim=-1).values
    clear = ((sides[..., 1] / sides[..., 0].clamp(min=1e-3) - 1) / ROUND).clamp(0.0, 1.0)
    yaw = 2 * box[..., 6]
    shape = torch.cat(
        [
            (box[..., :3] - coarse) / LENGTH,
            box[..., 3:6] / LENGTH,
            (clear * torch.cos(yaw))[..., None],
            (clear * torch.sin(yaw))[..., None],
        ],
        -1,
    )
    offsets = (parts[batch, owner] - coarse[..., None, :]) / LENGTH
    return thing, counts[batch, owner], shape, offsets.flatten(3)
