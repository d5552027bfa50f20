"""The networks learn from shards, a killed training continues, and what is exported agrees."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tiny_localizer_shards import BOX, write_shard

from zetta.primitives.localize.tiny.vocabulary import THINGS
from zetta.runtime.errors import ConfigError

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(
        find_spec("torch") is None,
        reason="torch is not installed; install it with: pip install 'zetta[train]'",
    ),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
]


def test_unchanged_batches_are_what_the_server_sees(tmp_path: Path) -> None:
    from zetta.primitives.localize.tiny import geometry
    from zetta.primitives.localize.tiny.batches import Pool
    from zetta.primitives.localize.tiny.data import read_shard

    shard = read_shard(write_shard(tmp_path / "a-0"))
    batch = Pool([shard]).batch(np.array([2]), None, np.random.default_rng(0))
    served = geometry.planes(geometry.view(*shard.whole(2), shard.camera(2)))
    assert np.allclose(batch.planes[0].numpy(), served, atol=1e-5)


def test_wanted_offsets_lead_from_every_pixel_to_the_middle(tmp_path: Path) -> None:
    from zetta.primitives.localize.tiny import geometry
    from zetta.primitives.localize.tiny.batches import Augmentation, Pool
    from zetta.primitives.localize.tiny.data import read_shard
    from zetta.primitives.localize.tiny.model import LENGTH

    shard = read_shard(write_shard(tmp_path / "a-0"))
    pool, rng = Pool([shard]), np.random.default_rng(0)
    plain = pool.batch(np.array([0]), None, rng)
    points = geometry.view(*shard.whole(0), shard.camera(0)).coarse
    on = plain.thing[0].numpy() >= 0
    assert on.sum() == (BOX[0].stop - BOX[0].start) * (BOX[1].stop - BOX[1].start)
    ends = points[on] + plain.shape[0].numpy()[on][:, :3] * LENGTH
    assert np.allclose(ends, shard.boxes[0, 0, :3], atol=1e-5)
    mirrored = pool.batch(np.array([0]), Augmentation(0.0, 1.0, 0.0, 0.0), rng)
    flipped = mirrored.thing[0].numpy() >= 0
    assert np.array_equal(flipped, on[:, ::-1])
    # World y points to the right of the picture, and the sine of twice the yaw turns round.
    there, here = mirrored.shape[0].numpy()[flipped], plain.shape[0].numpy()[:, ::-1][flipped]
    signs = np.array([1, -1, 1, 1, 1, 1, 1, -1])
    assert np.allclose(there, here * signs, atol=1e-3)


def test_a_killed_training_continues_and_refuses_other_data(tmp_path: Path) -> None:
    from zetta.primitives.localize.tiny.train import TrainConfig, train_both

    data = tmp_path / "data"
    write_shard(data / "a-0", count=8)
    config = TrainConfig(steps=2, batch=2, crop_steps=0, held=2)
    weights = train_both(config, data, tmp_path / "run")
    seen: list[int] = []
    train_both(config, data, tmp_path / "run", lambda name, report: seen.append(report.step))
    assert weights.exists()
    assert seen == []  # nothing was left to do
    write_shard(data / "b-0", count=8, name="butter")
    with pytest.raises(ConfigError, match="other data"):
        train_both(config, data, tmp_path / "run")


def test_exported_graphs_agree_with_the_network(tmp_path: Path) -> None:
    import torch

    from zetta.primitives.localize.tiny import geometry
    from zetta.primitives.localize.tiny.data import read_shard
    from zetta.primitives.localize.tiny.export import export
    from zetta.primitives.localize.tiny.model import CropNet, Net
    from zetta.primitives.localize.tiny.serve import load
    from zetta.primitives.localize.tiny.weights_file import Pins, save_weights

    torch.manual_seed(0)
    net, crop_net = Net().eval(), CropNet().eval()
    save_weights(tmp_path / "weights.safetensors", net, crop_net, Pins("fast", "3.17.0", ()))
    export(tmp_path / "weights.safetensors", tmp_path / "served", "a test")
    finder = load(tmp_path / "served")
    shard = read_shard(write_shard(tmp_path / "a-0"))
    planes = geometry.planes(geometry.view(*shard.whole(0), shard.camera(0)))
    features, seen = finder._trunk.run(None, {"planes": planes})
    with torch.no_grad():
        expected = net.trunk(torch.from_numpy(planes)[None])[0].flatten(1).T
        names = net.name(expected[:50]).log_softmax(-1)
    assert np.allclose(features, expected.numpy(), atol=1e-4)
    assert seen.shape == (96 * 128,)
    (served,) = finder._names.run(None, {"features": features[:50]})
    assert served.shape == (50, len(THINGS))
    assert np.allclose(served, names.numpy(), atol=1e-4)
