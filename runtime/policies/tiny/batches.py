"""Shards become batches: frames drawn by weight, their samples as queries, augmented.

A batch is a pure function of the seed and the step, so a resumed training sees what an
uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Image
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.data import Samples, Shard
from zetta.runtime.policies.tiny.inputs import AGENT_SHAPE, WRIST_SHAPE, Float32
from zetta.runtime.policies.tiny.text import encode

NEAR_M: Final = 0.08
"""Horizontal distance to the focus below which a sample counts as near."""

Index: TypeAlias = npt.NDArray[np.signedinteger]


class Batch(NamedTuple):
    """F frames and Q queries about them."""

    agent: Float32
    """In [0, 1] before augmentation. Shape (F, 3, 96, 128)."""
    wrist: Float32
    """Shape (F, 3, 96, 96)."""
    frame: Index
    """Which frame of the batch each query is about. Shape (Q,)."""
    slot: Index
    """Running number of a query within its frame. Shape (Q,)."""
    lang: Float32
    """Shape (Q, 256)."""
    importance: Float32
    """Share of each query in the loss. Shape (Q,)."""
    labels: Samples
    """The samples, with pixels moved as the pictures were. Q rows."""


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How much pictures and proprioception are disturbed."""

    shift_agent: int = 1
    """Pixels; one is 7 mm on the table, and the label in metres does not move with the picture."""
    shift_wrist: int = 2
    contrast: float = 0.15
    colour: float = 0.06
    brightness: float = 0.05
    position: float = 0.002
    """Metres of noise on the hand's position."""
    gripper: float = 0.001


NO_AUGMENTATION: Final = Augmentation(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a batch is drawn."""

    frames: int = 32
    queries: int = 8
    """Most samples of one frame in a batch."""
    near: float = 2.0
    """Importance of samples whose focus is near, against the others."""
    augmentation: Augmentation = Augmentation()


class Pool:
    """All frames and samples of several shards under one numbering."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        """Join shards.

        Raises:
            ConfigError: there are none, or they disagree about phases, rate or pictures.
        """
        _refuse_unlike(shards)
        self.header = shards[0].header
        self._shards = tuple(shards)
        counts = [len(shard.agent) for shard in shards]
        self._first = np.concatenate([[0], np.cumsum(counts)])
        table = {text: None for shard in shards for text in shard.header.instructions}
        self.instructions = tuple(table)
        self.lang = np.stack([encode(text) for text in self.instructions])
        number = {text: i for i, text in enumerate(self.instructions)}
        parts = [_renumbered(s, int(f), number) for s, f in zip(shards, self._first, strict=False)]
        shard_of = np.repeat(np.arange(len(shards)), [len(part) for part in parts])
        joined = join(parts)
        # Episodes count within a shard: make them unique.
        episode = np.unique(np.stack([shard_of, joined.episode], 1), axis=0, return_inverse=True)[1]
        order = np.argsort(joined.frame, kind="stable")
        self.samples = take(joined, order)
        self.episode: Index = episode.ravel()[order]
        self.near = near(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def frames(self, which: Index) -> tuple[Image, Image]:
        """Read pictures by frame number. Shapes (F, 96, 128, 3) and (F, 96, 96, 3)."""
        agent = np.empty((len(which), *AGENT_SHAPE, 3), dtype=np.uint8)
        wrist = np.empty((len(which), *WRIST_SHAPE, 3), dtype=np.uint8)
        home = np.searchsorted(self._first, which, side="right") - 1
        for index in np.unique(home):
            rows = np.flatnonzero(home == index)
            local = which[rows] - self._first[index]
            agent[rows] = self._shards[index].agent[local]
            wrist[rows] = self._shards[index].wrist[local]
        return agent, wrist

    def split(self, share: float, seed: int) -> tuple[Index, Index]:
        """Split sample rows by episode into training and held-out rows."""
        episodes = np.unique(self.episode)
        count = round(share * len(episodes)) if share > 0 else 0
        held = np.random.default_rng([seed, 7]).permutation(episodes)[:count]
        out = np.isin(self.episode, held)
        return np.flatnonzero(~out), np.flatnonzero(out)


class Sampler:
    """Draws training batches from some rows of a pool."""

    def __init__(self, pool: Pool, rows: Index, sampling: Sampling, seed: int) -> None:
        """Raises ConfigError when no row has any weight."""
        self._pool, self._sampling, self._seed = pool, sampling, seed
        self._rows = rows[pool.samples.weight[rows] > 0]
        if not len(self._rows):
            raise ConfigError("no training sample has a weight above 0")
        frame = pool.samples.frame[self._rows]
        self._frames, self._start, self._count = np.unique(
            frame, return_index=True, return_counts=True
        )
        importance = np.where(pool.near[self._rows], sampling.near, 1.0)
        weight = np.maximum.reduceat(pool.samples.weight[self._rows] * importance, self._start)
        self._share = np.cumsum(weight / weight.sum())

    def batch(self, step: int) -> Batch:
        """Return the batch of a training step."""
        rng = np.random.default_rng([self._seed, step])
        count = self._sampling.frames
        # One draw from each of `count` equal slices: less noise than independent draws.
        places = (np.arange(count) + rng.random(count)) / count
        chosen = np.minimum(np.searchsorted(self._share, places), len(self._frames) - 1)
        rows, frame, slot = self._queries(chosen, rng)
        labels = take(self._pool.samples, rows)
        agent, wrist = self._pool.frames(self._frames[chosen])
        shaking = self._sampling.augmentation
        agent_f, move_a = disturbed(agent, shaking.shift_agent, shaking, rng)
        wrist_f, move_w = disturbed(wrist, shaking.shift_wrist, shaking, rng)
        return Batch(
            agent=agent_f,
            wrist=wrist_f,
            frame=frame,
            slot=slot,
            lang=self._pool.lang[labels.instruction],
            importance=np.where(self._pool.near[rows], self._sampling.near, 1.0).astype(np.float32),
            labels=_moved(labels, move_a[frame], move_w[frame], shaking, rng),
        )

    def _queries(self, chosen: Index, rng: np.random.Generator) -> tuple[Index, Index, Index]:
        """Return rows, frame of the batch and slot of at most `queries` samples a frame."""
        counts = self._count[chosen]
        frame = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._rows[np.repeat(self._start[chosen], counts) + within]
        shuffled = np.lexsort((rng.random(len(frame)), frame))
        kept = within < self._sampling.queries  # `within` also ranks the shuffled rows of a frame
        return rows[shuffled][kept], frame[kept], within[kept]


def plain_batch(pool: Pool, rows: Index) -> Batch:
    """Return given sample rows as they are, one picture a query."""
    labels = take(pool.samples, rows)
    frames, frame = np.unique(labels.frame, return_inverse=True)
    order = np.argsort(frame, kind="stable")
    rows, frame, labels = rows[order], frame[order], take(labels, order)
    first = np.searchsorted(frame, np.arange(len(frames)))
    rng = np.random.default_rng(0)
    agent, wrist = pool.frames(frames)
    return Batch(
        agent=disturbed(agent, 0, NO_AUGMENTATION, rng)[0],
        wrist=disturbed(wrist, 0, NO_AUGMENTATION, rng)[0],
        frame=frame,
        slot=np.arange(len(rows)) - first[frame],
        lang=pool.lang[labels.instruction],
        importance=np.ones(len(rows), dtype=np.float32),
        labels=labels,
    )


def disturbed(
    pictures: Image, shift: int, amount: Augmentation, rng: np.random.Generator
) -> tuple[Float32, Float32]:
    """Shift pictures, change their colours, and bring them to [0, 1] with channels first.

    Returns:
        The pictures, shape (F, 3, height, width), and by how much (columns, rows) their contents
        moved, shape (F, 2), pixels.
    """
    count, height, width, _ = pictures.shape
    move = rng.integers(-shift, shift + 1, (count, 2))
    if shift:
        border = ((0, 0), (shift, shift), (shift, shift), (0, 0))
        padded = np.pad(pictures, border, mode="edge")
        pictures = np.empty_like(pictures)
        # A loop over slices: gathering by index takes twenty times as long.
        for i, (right, down) in enumerate(shift - move):
            pictures[i] = padded[i, down : down + height, right : right + width]
    gain = 1.0 + amount.contrast * rng.standard_normal((count, 1, 1, 1))
    gain = gain + amount.colour * rng.standard_normal((count, 3, 1, 1))
    bias = amount.brightness * rng.standard_normal((count, 1, 1, 1))
    planes = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).astype(np.float32)
    planes *= (gain / 255.0).astype(np.float32)
    planes += bias.astype(np.float32)
    return planes, move.astype(np.float32)


def near(samples: Samples) -> npt.NDArray[np.bool_]:
    """Say whose focus is horizontally near the hand. Shape (S,)."""
    # A comparison with NaN is false: a sample without a focus is not near.
    return np.asarray((samples.focus[:, :2] ** 2).sum(1) < NEAR_M**2)


def take(samples: Samples, rows: Index) -> Samples:
    """Return some rows of `samples`."""
    return Samples(**{f.name: getattr(samples, f.name)[rows] for f in fields(samples)})


def join(parts: Sequence[Samples]) -> Samples:
    """Return the rows of several tables, one after the other."""
    return Samples(
        **{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Samples)}
    )


def _renumbered(shard: Shard, first_frame: int, number: dict[str, int]) -> Samples:
    values = {f.name: getattr(shard.samples, f.name) for f in fields(Samples)}
    table = np.array([number[text] for text in shard.header.instructions], dtype=np.int32)
    values["frame"] = values["frame"] + np.int32(first_frame)
    values["instruction"] = table[values["instruction"]]
    return Samples(**values)


def _moved(
    labels: Samples,
    move_agent: Float32,
    move_wrist: Float32,
    amount: Augmentation,
    rng: np.random.Generator,
) -> Samples:
    values = {f.name: getattr(labels, f.name) for f in fields(labels)}
    px = labels.px + np.stack([move_agent, move_wrist], 1)[:, :, None, :]
    values["px"] = px
    proprio = labels.proprio.copy()
    proprio[:, :3] += amount.position * rng.standard_normal((len(labels), 3))
    proprio[:, 9] += amount.gripper * rng.standard_normal(len(labels))
    values["proprio"] = proprio
    return Samples(**values)


def _refuse_unlike(shards: Sequence[Shard]) -> None:
    if not shards:
        raise ConfigError("no data shard was given; make data with `zetta train tiny`")
    first = shards[0]
    for shard in shards[1:]:
        for what in ("phases", "render_profile", "control_hz", "cameras"):
            one, other = getattr(first.header, what), getattr(shard.header, what)
            if one != other:
                raise ConfigError(
                    f"{shard.folder} has {what} {other!r} and {first.folder} has {one!r}; "
                    "train on shards of one recipe"
                )
