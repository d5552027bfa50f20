"""Demonstrations: what is labelled, and what is kept for evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.data import HORIZON
from zetta.sims.libero.demonstrations import (
    CALM_TICKS,
    DISTURBED_TICKS,
    EVALUATION_INITS,
    Disturbance,
    Recording,
    RecordingSpec,
    read,
    refuse_evaluation_init,
    save,
)
from zetta.sims.libero.shards import labels


def recording(disturbed: list[int], ticks: int = 60) -> Recording:
    """Return a straight motion with noise at some ticks."""
    felt = np.zeros((ticks, 9), np.float32)
    felt[:, 0] = 0.01 * np.arange(ticks)
    felt[:, 6] = 1.0  # xyzw: no rotation
    noisy = np.zeros(ticks, bool)
    noisy[disturbed] = True
    nothing = np.zeros((ticks, 3), np.float32)
    return Recording(
        spec=RecordingSpec("libero_object", 0, 10, 0),
        instruction="pick up the soup",
        actions=np.zeros((ticks, 7), np.float32),
        closing=-np.ones(ticks, np.float32),
        proprio=felt,
        focus=nothing,
        destination=nothing,
        phase=("approach",) * ticks,
        labelled=np.ones(ticks, bool),
        disturbed=noisy,
        poses=np.zeros((ticks // 4, 5), np.float32),
    )


def test_noise_comes_in_spells_between_calm_ones() -> None:
    noise, wanted = Disturbance(1.0, seed=4), np.array([0.2, 0, 0, 0, 0, 0, 1.0])
    rows = []
    for _ in range(400):
        executed = noise.applied(wanted, "approach")
        rows.append((noise.active, not np.allclose(executed, wanted)))
    active, moved = np.array(rows).T
    assert (moved <= active).all()
    assert moved.sum() > 0.9 * active.sum()
    edges = np.flatnonzero(np.diff(active.astype(int))) + 1
    lengths = np.diff(edges)[::2], np.diff(edges)[1::2]  # the first edge begins a spell
    assert set(lengths[0]) <= set(range(*DISTURBED_TICKS))
    assert set(lengths[1]) <= set(range(*CALM_TICKS))


def test_a_path_is_labelled_up_to_the_first_disturbed_tick() -> None:
    made = recording(disturbed=[20, 21])
    assert labels(made, 0).mask.tolist() == [1.0] * HORIZON
    assert labels(made, 12).mask.tolist() == [1.0] * 8 + [0.0] * (HORIZON - 8)
    assert labels(made, 21).mask.sum() == 0
    assert labels(made, 22).mask.sum() == HORIZON
    np.testing.assert_allclose(labels(made, 22).path[:3, 0], [0.01, 0.02, 0.03], atol=1e-6)


def test_recordings_survive_the_disk(tmp_path: Path) -> None:
    save(tmp_path / "demo.npz", [recording([3]), recording([])])
    back = list(read(tmp_path / "demo.npz"))
    assert [r.disturbed.sum() for r in back] == [1, 0]
    assert back[0].spec == recording([]).spec
    assert back[0].phase == recording([]).phase


@pytest.mark.parametrize("init", sorted(EVALUATION_INITS))
def test_init_states_of_the_evaluation_are_refused(init: int) -> None:
    with pytest.raises(ConfigError, match="kept for evaluation"):
        refuse_evaluation_init(init)


def test_damaged_recordings_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "demo.npz"
    save(path, [recording([3])])
    whole = path.read_bytes()
    for damaged in (b"", whole[:200], whole[:-40], whole[:400] + b"x" + whole[401:]):
        path.write_bytes(damaged)
        with pytest.raises(ConfigError, match="holds no recordings"):
            list(read(path))
