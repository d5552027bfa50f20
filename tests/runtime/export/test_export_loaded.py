"""LeRobot itself loads an export and finds the log in it: `pytest -m lerobot`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.export.export_runs import drawn_again, logs, pictures_of, psnr
from zetta.runtime.cli import main as cli
from zetta.runtime.core import Image
from zetta.runtime.episode_log import LoggedEpisode

MISSING = [name for name in ("torch", "datasets", "lerobot") if find_spec(name) is None]
pytestmark = [
    pytest.mark.lerobot,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)} (docs/policies.md)"),
    # Of LeRobot and what it needs, not of ours.
    pytest.mark.filterwarnings("ignore"),
]
OPERATORS = ("nms", "qnms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool",
             "deform_conv2d")  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[LoggedEpisode]]:
    folder = tmp_path_factory.mktemp("export")
    episodes = logs(folder / "run")
    with pytest.raises(SystemExit) as left:
        cli.main(["export", str(folder / "run"), "--lerobot", str(folder / "out")])
    assert left.value.code == 0
    return folder / "out", episodes


@pytest.fixture
def loaded(
    made: tuple[Path, list[LoggedEpisode]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return the data set as LeRobot loads it, with a decoder where it has none of its own."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    _let_torchvision_load()
    from lerobot.datasets import lerobot_dataset

    if find_spec("torchcodec") is None:
        monkeypatch.setattr(lerobot_dataset, "decode_video_frames", _decoded)
    return lerobot_dataset.LeRobotDataset("zetta/export", root=made[0], video_backend="pyav")


def _let_torchvision_load() -> None:
    """Declare the operators that torchvision lacks when it was built for another torch.

    Nothing here calls them; LeRobot imports torchvision for its transforms of pictures.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in OPERATORS:
            library.define(f"{name}(Tensor given) -> Tensor")
            library.define(f"_{name}_backward(Tensor given) -> Tensor")
        globals()["kept"] = library  # what it declares lives as long as it does


def _decoded(
    path: Path | str, timestamps: Sequence[float], tolerance_s: float, backend: str | None = None
) -> Any:
    """Return the pictures at some times, by the times that the container gives its frames."""
    import av
    import torch

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        times, images = [], []
        for frame in container.decode(stream):
            times.append(float(frame.pts * stream.time_base))
            images.append(frame.to_ndarray(format="rgb24"))
    nearest = [int(np.abs(np.array(times) - t).argmin()) for t in timestamps]
    assert all(abs(times[i] - t) < tolerance_s for i, t in zip(nearest, timestamps, strict=True))
    return torch.stack([torch.from_numpy(images[i]).permute(2, 0, 1) / 255.0 for i in nearest])


def as_image(tensor: Any) -> Image:
    return np.asarray((tensor.permute(1, 2, 0) * 255.0).round().numpy().astype(np.uint8))


def test_lerobot_finds_every_tick_of_the_logs(
    loaded: Any, made: tuple[Path, list[LoggedEpisode]]
) -> None:
    _, episodes = made
    assert loaded.num_episodes == len(episodes)
    assert len(loaded) == sum(len(e.ticks) for e in episodes)
    assert loaded.fps == 20
    ticks = [(k, tick) for k, episode in enumerate(episodes) for tick in episode.ticks]
    rows = loaded.hf_dataset
    for i, (k, tick) in enumerate(ticks):
        row = rows[i]
        assert row["episode_index"].item() == k
        assert np.array_equal(row["action"].numpy(), tick.action.astype(np.float32))
        assert row["source"] == tick.source
        assert row["intervention"].item() == tick.source.startswith("skill:")
        assert row["timestamp"].item() == np.float32(tick.index / 20.0)


def test_lerobot_shows_the_picture_of_each_tick(
    loaded: Any, made: tuple[Path, list[LoggedEpisode]]
) -> None:
    root, episodes = made
    pictures = [image for episode in episodes for image in drawn_again(episode, "front")]
    video = pictures_of(root / "videos/observation.images.front/chunk-000/file-000.mp4")
    starts = np.cumsum([0, *(len(e.ticks) for e in episodes)])[:-1]
    for i in sorted({*starts.tolist(), *(starts + 3).tolist(), *(starts - 1).tolist()[1:], 9}):
        item = loaded[i]
        assert item["task"] == episodes[0].header.instruction
        shown = as_image(item["observation.images.front"])
        assert psnr(shown, video[i]) > 40.0
        assert psnr(shown, pictures[i]) > 29.0


def test_lerobot_takes_action_chunks_and_statistics_from_it(
    loaded: Any, made: tuple[Path, list[LoggedEpisode]]
) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.utils import dataset_to_policy_features

    root, episodes = made
    steps = [k / 20.0 for k in range(4)]
    chunked = LeRobotDataset(
        "zetta/export", root=root, episodes=[1], delta_timestamps={"action": steps},
        video_backend="pyav",
    )  # fmt: skip
    rows = np.stack([t.action for t in episodes[1].ticks]).astype(np.float32)
    assert np.array_equal(chunked[5]["action"].numpy(), rows[5:9])
    assert chunked[len(rows) - 2]["action_is_pad"].tolist() == [False, False, True, True]
    every = np.concatenate([[t.action for t in e.ticks] for e in episodes])
    assert np.allclose(loaded.meta.stats["action"]["mean"], every.mean(axis=0), atol=1e-6)
    assert loaded.meta.stats["observation.images.front"]["std"].shape == (3, 1, 1)
    assert set(dataset_to_policy_features(loaded.features)) == {
        "observation.state", "action", "observation.images.front", "observation.images.wrist",
    }  # fmt: skip
