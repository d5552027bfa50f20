"""Train the tiny localiser from labelled pictures. Reads files only; a killed training continues.

    python -m zetta.primitives.localize.tiny.train --out RUN --data DATA --steps 2500

`DATA` is a folder of shards of `zetta.sims.libero.sightings`. In `RUN`: checkpoints, logs and, at
the end, `weights.safetensors` of both networks, for `export.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from zetta.primitives.localize.tiny.batches import Pool
from zetta.primitives.localize.tiny.crops import CropTask, cut
from zetta.primitives.localize.tiny.data import read_shard, shards_in
from zetta.primitives.localize.tiny.dense import DenseTask
from zetta.primitives.localize.tiny.model import CropNet, Net
from zetta.primitives.localize.tiny.training import Place, Report, Schedule, train
from zetta.primitives.localize.tiny.weights_file import Pins, load_weights, save_weights
from zetta.runtime.errors import ZettaError

WEIGHTS: Final = "weights.safetensors"


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """What fixes a training, together with its data."""

    steps: int = 2500
    minutes: float | None = None
    """Wall time of the dense network; the learning rate falls over it."""
    learning_rate: float = 4e-3
    batch: int = 8
    crop_steps: int = 1500
    crop_batch: int = 64
    crop_rate: float = 3e-3
    held: int = 80
    """Pictures that are only looked at."""
    seed: int = 0
    init: str | None = None
    """`weights.safetensors` of an earlier training to start from."""


def train_both(
    config: TrainConfig,
    data: Path,
    out: Path,
    on_report: Callable[[str, Report], None] = lambda name, report: None,
) -> Path:
    """Train both networks and return the file of their averaged weights.

    Raises:
        ConfigError: the data cannot be used, or `out` holds a training of something else.
    """
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    shards = [read_shard(folder) for folder in shards_in(data)]
    pool = Pool(shards)
    net, averaged, crop_net, crop_averaged = Net(), Net(), CropNet(), CropNet()
    if config.init is not None:
        earlier, earlier_crop, _ = load_weights(Path(config.init))
        net.load_state_dict(earlier.state_dict())
        crop_net.load_state_dict(earlier_crop.state_dict())
    averaged.load_state_dict(net.state_dict())
    crop_averaged.load_state_dict(crop_net.state_dict())
    keys = tuple(shard.key for shard in shards)
    key = hashlib.sha256(json.dumps([asdict(config), keys]).encode()).hexdigest()
    if config.crop_steps:
        crops = CropTask(crop_net, cut(pool), config.crop_batch, 600, config.seed)
        train(
            crop_net,
            crop_averaged,
            crops,
            Schedule(config.crop_steps, config.crop_rate),
            Place(out, "crops"),
            key,
            lambda report: on_report("crops", report),
        )
    train(
        net,
        averaged,
        DenseTask(net, pool, config.batch, config.held, config.seed),
        Schedule(config.steps, config.learning_rate, config.minutes),
        Place(out, "dense"),
        key,
        lambda report: on_report("dense", report),
    )
    pins = Pins(pool.shards[0].render_profile, pool.shards[0].mujoco, keys)
    save_weights(out / WEIGHTS, averaged, crop_averaged, pins)
    return out / WEIGHTS


def main(arguments: Sequence[str]) -> None:
    """Train from the command line, telling progress on stderr."""
    given = TrainConfig()
    parser = argparse.ArgumentParser(prog="python -m zetta.primitives.localize.tiny.train")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--data", type=Path, required=True, help="folder of shards")
    parser.add_argument("--steps", type=int, default=given.steps)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--rate", type=float, default=given.learning_rate)
    parser.add_argument("--crop-steps", type=int, default=given.crop_steps)
    parser.add_argument("--seed", type=int, default=given.seed)
    parser.add_argument("--init", help="weights.safetensors to start from")
    asked = parser.parse_args(arguments)
    config = TrainConfig(
        steps=asked.steps,
        minutes=asked.minutes,
        learning_rate=asked.rate,
        crop_steps=asked.crop_steps,
        seed=asked.seed,
        init=asked.init,
    )
    print(train_both(config, asked.data, asked.out, _tell))


def _tell(name: str, report: Report) -> None:
    losses = " ".join(f"{term} {value:.4f}" for term, value in report.losses.items())
    scores = " ".join(f"{score} {value:.4f}" for score, value in (report.scores or {}).items())
    head = f"{name} step {report.step} {report.share:.0%} {report.elapsed_s / 60:.1f} min"
    print(f"{head} cpu/step {report.cpu_per_step_s:.3f} s  {losses}  {scores}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ZettaError as error:
        sys.exit(f"error: {error}")
