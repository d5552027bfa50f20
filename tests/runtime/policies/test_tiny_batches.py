"""From shards to batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_blobs

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.batches import (
    NO_AUGMENTATION,
    Augmentation,
    Pool,
    Sampler,
    Sampling,
    disturbed,
    plain_batch,
)
from zetta.runtime.policies.tiny.data import Shard, read_shard
from zetta.runtime.policies.tiny.text import encode

STILL = Sampling(frames=6, queries=2, augmentation=NO_AUGMENTATION)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Shard]:
    root = tmp_path_factory.mktemp("data")
    return [read_shard(tiny_blobs.write(root / str(k), frames=8, seed=k)) for k in range(2)]


@pytest.fixture(scope="module")
def pool(shards: list[Shard]) -> Pool:
    return Pool(shards)


def all_rows(pool: Pool) -> np.ndarray:
    return np.arange(len(pool))


def test_a_batch_is_fixed_by_seed_and_step(pool: Pool) -> None:
    one, two = (Sampler(pool, all_rows(pool), Sampling(frames=5), seed=3) for _ in range(2))
    for step in (4, 0):
        for a, b in zip(one.batch(step)[:6], two.batch(step)[:6], strict=True):
            assert np.array_equal(a, b)
    assert not np.array_equal(one.batch(0).agent, one.batch(1).agent)


def test_pictures_and_labels_belong_together(pool: Pool, shards: list[Shard]) -> None:
    batch = Sampler(pool, all_rows(pool), STILL, seed=0).batch(0)
    for row, frame in enumerate(batch.frame):
        number = int(batch.labels.frame[row])
        shard = shards[number // 8]
        assert np.array_equal(
            (batch.agent[frame] * 255).round(), shard.agent[number % 8].transpose(2, 0, 1)
        )
        text = pool.instructions[batch.labels.instruction[row]]
        assert np.array_equal(batch.lang[row], encode(text))


def test_no_frame_has_more_queries_than_asked_for_and_slots_count_up(pool: Pool) -> None:
    batch = Sampler(pool, all_rows(pool), STILL, seed=0).batch(0)
    for frame in range(STILL.frames):
        assert batch.slot[batch.frame == frame].tolist() == [0, 1]
        assert len(set(batch.labels.instruction[batch.frame == frame])) == 2


def test_every_query_of_a_frame_gets_its_turn(pool: Pool) -> None:
    sampler = Sampler(pool, all_rows(pool), replace(STILL, queries=1), seed=0)
    asked = np.concatenate([sampler.batch(step).labels.instruction for step in range(10)])
    assert set(asked.tolist()) == {0, 1, 2}


def test_a_sample_without_weight_is_never_drawn(shards: list[Shard]) -> None:
    shard = shards[0]
    weight = (shard.samples.instruction == 1).astype(np.float32)
    pool = Pool([replace(shard, samples=replace(shard.samples, weight=weight))])
    sampler = Sampler(pool, all_rows(pool), STILL, seed=0)
    assert {int(i) for step in range(5) for i in sampler.batch(step).labels.instruction} == {1}
    with pytest.raises(ConfigError, match="weight above 0"):
        Sampler(pool, np.flatnonzero(pool.samples.weight == 0), STILL, seed=0)


def test_heavier_frames_are_drawn_more_often(shards: list[Shard]) -> None:
    shard = shards[0]
    weight = np.where(shard.samples.frame == 0, 21.0, 1.0).astype(np.float32)
    pool = Pool([replace(shard, samples=replace(shard.samples, weight=weight))])
    sampler = Sampler(pool, all_rows(pool), replace(STILL, near=1.0), seed=0)
    frames = np.concatenate([sampler.batch(step).labels.frame for step in range(20)])
    assert np.mean(frames == 0) == pytest.approx(0.75, abs=0.05)


def test_a_shifted_picture_takes_its_points_along() -> None:
    picture = np.zeros((1, 96, 128, 3), np.uint8)
    picture[0, 40:44, 60:64] = 255
    rng = np.random.default_rng(1)
    plain = Augmentation(4, 4, 0.0, 0.0, 0.0, 0.0, 0.0)
    moved = [disturbed(picture, 4, plain, rng) for _ in range(12)]
    assert len({tuple(move[0]) for _, move in moved}) > 3
    for planes, move in moved:
        rows, columns = np.nonzero(planes[0, 0])
        assert [columns.mean() - 61.5, rows.mean() - 41.5] == move[0].tolist()


def test_held_out_episodes_share_no_frame_with_training(pool: Pool) -> None:
    training, held = pool.split(0.25, seed=0)
    assert len(training) + len(held) == len(pool)
    assert len(set(pool.episode[held].tolist())) == 4
    assert not set(pool.samples.frame[training]) & set(pool.samples.frame[held])


def test_a_plain_batch_reads_each_picture_once(pool: Pool) -> None:
    batch = plain_batch(pool, all_rows(pool)[::-1])
    assert len(batch.agent) == 16
    assert len(batch.labels) == len(pool)
    assert batch.slot.max() == 2


def test_shards_of_different_recipes_do_not_mix(shards: list[Shard]) -> None:
    header = replace(shards[1].header, render_profile="full")
    with pytest.raises(ConfigError, match="render_profile 'full'"):
        Pool([shards[0], replace(shards[1], header=header)])
    with pytest.raises(ConfigError, match="no data shard"):
        Pool([])
