"""Crops of single things, from which a second network tells look-alikes apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from zetta.primitives.localize.tiny.batches import Pool
from zetta.primitives.localize.tiny.geometry import GRAY, crop
from zetta.primitives.localize.tiny.model import CropNet
from zetta.primitives.localize.tiny.vocabulary import THINGS

LEAST_PIXELS: Final = 6
"""Coarse pixels below which a thing is not cut out."""
TINTED: Final = 0.3
LOOKALIKES: Final = frozenset(THINGS[:10])
"""Things of which every one is cut out twice: they are small and many."""


@dataclass(frozen=True, slots=True)
class Crops:
    """N crops and what they show."""

    images: npt.NDArray[np.uint8]
    """RGB and mask. Shape (N, 32, 32, 4)."""
    things: npt.NDArray[np.int64]
    """Index of the name. Shape (N,)."""


def cut(pool: Pool, seed: int = 0) -> Crops:
    """Cut every labelled thing out of every picture, a little beside its true middle."""
    rng = np.random.default_rng(seed)
    images, things = [], []
    for shard in pool.shards:
        for row in range(len(shard)):
            instances, picture = np.array(shard.instances[row]), np.array(shard.pictures[row])
            camera = shard.camera(row)
            for index, thing in enumerate(shard.things[row]):
                mask = instances == index
                if thing < 0 or int(mask.sum()) < LEAST_PIXELS:
                    continue
                for _ in range(2 if THINGS[thing] in LOOKALIKES else 1):
                    torn = mask & (rng.random(mask.shape) > 0.08) if rng.random() < 0.7 else mask
                    center = shard.boxes[row, index, :3] + rng.normal(0.0, 0.004, 3)
                    images.append(crop(picture, torn, center, camera))
                    things.append(int(thing))
    return Crops(np.stack(images), np.array(things, np.int64))


class CropTask:
    """Losses of the crop network on random crops."""

    terms: tuple[str, ...] = ("name",)

    def __init__(self, net: CropNet, crops: Crops, size: int, held: int, seed: int) -> None:
        self._net, self._crops, self._size, self._seed = net, crops, size, seed
        order = np.random.default_rng(seed).permutation(len(crops.things))
        self._rows, self._held = order[held:], order[:held]

    def losses(self, step: int) -> tuple[Tensor, list[float]]:
        """Return the loss of one step and its terms."""
        rng = np.random.default_rng([self._seed, step, 1])
        rows = rng.choice(self._rows, self._size)
        images = _recolored(planes(self._crops.images[rows]), rng)
        wanted = torch.from_numpy(self._crops.things[rows])
        loss = functional.cross_entropy(self._net(images), wanted, label_smoothing=0.03)
        return loss, [float(loss)]

    def scores(self, net: CropNet) -> dict[str, float]:
        """Return the share of right names among held-out crops."""
        net.eval()
        with torch.no_grad():
            named = net(planes(self._crops.images[self._held])).argmax(1)
        right = named == torch.from_numpy(self._crops.things[self._held])
        return {"names_right": float(right.float().mean())}


def planes(images: npt.NDArray[np.uint8]) -> Tensor:
    """Return crops as the network takes them. Shape (N, 4, 32, 32)."""
    scaled = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255.0
    return torch.cat([scaled[:, :3] - GRAY, scaled[:, 3:]], 1)


def _recolored(images: Tensor, rng: np.random.Generator) -> Tensor:
    count = len(images)
    color, mask = images[:, :3] + GRAY, images[:, 3:]

    def draw(low: float, high: float, channels: int) -> Tensor:
        return torch.from_numpy(rng.uniform(low, high, (count, channels, 1, 1))).float()

    gray = (color * torch.tensor([0.3, 0.59, 0.11])[None, :, None, None]).sum(1, keepdim=True)
    share = draw(0.3, 1.0, 1) * (draw(0.0, 1.0, 1) < TINTED) * mask
    covered = mask.sum((2, 3), keepdim=True).clamp(min=1.0)
    mean = ((gray * mask).sum((2, 3), keepdim=True) / covered).clamp(min=0.03)
    painted = draw(0.0, 1.0, 1) < 0.5
    shade = torch.where(painted, (gray / mean).clamp(max=2.0) * 0.6, 1.2 * gray)
    color = (1 - share) * color + share * shade * draw(0.15, 1.5, 3)
    color = color * draw(0.85, 1.15, 3) * draw(0.8, 1.2, 1) + draw(-0.05, 0.05, 1)
    return torch.cat([color.clamp(0.0, 1.0) - GRAY, mask], 1)
