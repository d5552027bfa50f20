"""Train the tiny policy from shards. Reads files only; a killed training continues.

    python -m zetta.runtime.policies.tiny.train --out RUN --shards data/* --steps 6000

In `RUN`: `config.json` (what was asked for), `log.jsonl` (one line for each report),
`checkpoint.safetensors` (to continue from) and, at the end, `weights.safetensors` (the averaged
network, for `export.py`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.policies.tiny.batches import Batch, Pool, Sampler, Sampling
from zetta.runtime.policies.tiny.checkpoint import (
    Binding,
    Moment,
    load_checkpoint,
    load_weights,
    save_checkpoint,
    save_weights,
)
from zetta.runtime.policies.tiny.data import read_shard
from zetta.runtime.policies.tiny.inputs import TOP
from zetta.runtime.policies.tiny.losses import LossWeights, Terms, run, terms
from zetta.runtime.policies.tiny.model import ModelConfig, TinyPolicy
from zetta.runtime.policies.tiny.scores import Scores, evaluate
from zetta.runtime.policies.tiny.text import ENCODER

CHECKPOINT = "checkpoint.safetensors"
WEIGHTS = "weights.safetensors"
LOG = "log.jsonl"
CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """What fixes a training, together with its data."""

    steps: int = 6000
    """Batches; the learning rate falls to zero over them."""
    minutes: float | None = None
    """Ends the training earlier, with the learning rate falling over this time instead."""
    seed: int = 0
    width: float = 1.0
    learning_rate: float = 1.5e-3
    warm_up: int = 60
    weight_decay: float = 1e-4
    averaging: float = 0.998
    """Decay of the averaged weights, which are what is served."""
    clip: float = 5.0
    holdout: float = 0.04
    """Share of the episodes that is only looked at to report errors."""
    report_every: int = 100
    """Steps between two lines of the log."""
    evaluate_every: int = 500
    """Steps between two measurements on held-out samples."""
    checkpoint_minutes: float = 2.0
    init: str | None = None
    """`weights.safetensors` of an earlier training to start from."""
    sampling: Sampling = field(default_factory=Sampling)
    losses: LossWeights = field(default_factory=LossWeights)


@dataclass(frozen=True, slots=True)
class Report:
    """One line of the log."""

    step: int
    share: float
    """Of the budget, in [0, 1]."""
    elapsed_s: float
    cpu_per_step_s: float
    losses: dict[str, float]
    """Averages since the last report."""
    scores: Scores | None = None


def train(
    config: TrainConfig,
    shards: list[Path],
    out: Path,
    resume: bool = True,
    on_report: Callable[[Report], None] = lambda report: None,
) -> Path:
    """Train, and return the file of the averaged weights.

    Args:
        config: what fixes the training.
        shards: folders of `data.write_shard`.
        out: folder of the run.
        resume: continue from the checkpoint in `out`; else what is there is replaced.
        on_report: told each report.

    Raises:
        ConfigError: the data cannot be used, or `out` holds a training of another configuration.
    """
    torch.set_num_threads(1)
    pool = Pool([read_shard(folder) for folder in shards])
    training = _Training(config, pool, [_shard_key(folder) for folder in shards])
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / CHECKPOINT
    if resume and checkpoint.exists():
        training.resume(checkpoint)
    else:
        (out / LOG).unlink(missing_ok=True)
    asked = {"config": asdict(config), "shards": [str(folder) for folder in shards]}
    (out / CONFIG).write_text(json.dumps(asked, indent=1) + "\n")
    training.go(out, on_report)
    save_weights(out / WEIGHTS, training.averaged, training.binding)
    return out / WEIGHTS


class _Training:
    """A training between its first and its last step."""

    def __init__(self, config: TrainConfig, pool: Pool, data: list[str]) -> None:
        self._config, self._pool = config, pool
        self._rows, self._held = pool.split(config.holdout, config.seed)
        self._sampler = Sampler(pool, self._rows, config.sampling, config.seed)
        header = pool.header
        self.binding = Binding(
            model=ModelConfig(len(header.phases), config.width),
            phases=header.phases,
            render_profile=header.render_profile,
            control_hz=header.control_hz,
            encoder=ENCODER,
            crop=TOP,
            data=tuple(data),
            instructions=pool.instructions,
        )
        torch.manual_seed(config.seed)
        self.net = TinyPolicy(self.binding.model)
        self._start_from(config.init)
        self.averaged = TinyPolicy(self.binding.model)
        self.averaged.load_state_dict(self.net.state_dict())
        self._optimizer = torch.optim.AdamW(
            self.net.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self._step, self._before = 0, 0.0
        self._started = time.monotonic()
        text = json.dumps([asdict(config), asdict(self.binding)])
        self._key = hashlib.sha256(text.encode()).hexdigest()

    def _start_from(self, init: str | None) -> None:
        if init is None:
            mean, std = _spread(self._pool.samples.proprio[self._rows])
            self.net.proprio_mean.copy_(mean)
            self.net.proprio_std.copy_(std)
            return
        earlier, binding = load_weights(Path(init))
        if (binding.model, binding.phases) != (self.binding.model, self.binding.phases):
            raise ConfigError(
                f"{init} was trained as {binding.model} with phases {', '.join(binding.phases)}; "
                f"this training is {self.binding.model} with {', '.join(self.binding.phases)}"
            )
        self.net.load_state_dict(earlier.state_dict())

    def resume(self, checkpoint: Path) -> None:
        """Continue from a checkpoint of the same training."""
        moment = load_checkpoint(checkpoint, self.net, self.averaged, self._optimizer)
        if moment.key != self._key:
            raise ConfigError(
                f"{checkpoint.parent} holds a training of another configuration or other data; "
                "choose another folder, or start it anew without resuming"
            )
        self._step, self._before = moment.step, moment.elapsed_s
        self._started = time.monotonic()

    def go(self, out: Path, on_report: Callable[[Report], None]) -> None:
        """Take all remaining steps."""
        config = self._config
        sums: list[list[float]] = []
        saved, cpu = time.monotonic(), time.process_time()
        while (share := self._share()) < 1.0:
            sums.append(self._take_step(self._sampler.batch(self._step), share))
            self._step += 1
            if self._step % config.report_every == 0 or self._share() >= 1.0:
                spent = time.process_time() - cpu
                report = self._report(sums, spent / len(sums))
                with (out / LOG).open("a") as log:
                    log.write(json.dumps(asdict(report)) + "\n")
                on_report(report)
                sums, cpu = [], time.process_time()
            if time.monotonic() - saved > 60 * config.checkpoint_minutes:
                self._save(out)
                saved = time.monotonic()
        self._save(out)

    def _take_step(self, batch: Batch, share: float) -> list[float]:
        config = self._config
        warm = min(1.0, (self._step + 1) / config.warm_up)
        rate = config.learning_rate * warm * (0.5 * (1.0 + math.cos(math.pi * share)) + 0.005)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        found = terms(run(self.net, batch), batch)
        self._optimizer.zero_grad(set_to_none=True)
        found.total(config.losses).backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), config.clip)
        self._optimizer.step()
        # Early on an average over few steps, or the first random weights would linger.
        decay = min(config.averaging, (1.0 + self._step) / (10.0 + self._step))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.averaged.parameters()), list(self.net.parameters()), 1.0 - decay
            )
        return [term.item() for term in found]

    def _report(self, sums: list[list[float]], cpu_per_step: float) -> Report:
        share = self._share()
        measure = len(self._held) and (
            share >= 1.0 or self._step % self._config.evaluate_every == 0
        )
        return Report(
            step=self._step,
            share=min(share, 1.0),
            elapsed_s=self._elapsed(),
            cpu_per_step_s=cpu_per_step,
            losses=dict(zip(Terms._fields, np.mean(sums, 0).tolist(), strict=True)),
            scores=evaluate(self.averaged, self._pool, self._held) if measure else None,
        )

    def _share(self) -> float:
        share = self._step / self._config.steps
        if self._config.minutes is not None:
            share = max(share, self._elapsed() / (60.0 * self._config.minutes))
        return share

    def _elapsed(self) -> float:
        return self._before + time.monotonic() - self._started

    def _save(self, out: Path) -> None:
        moment = Moment(self._step, self._elapsed(), self._key)
        save_checkpoint(out / CHECKPOINT, self.net, self.averaged, self._optimizer, moment)


def _spread(
    proprio: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of proprioception; what never moves is not magnified."""
    mean, std = proprio.mean(0), proprio.std(0)
    return torch.from_numpy(mean), torch.from_numpy(np.maximum(std, 0.01).astype(np.float32))


def _shard_key(folder: Path) -> str:
    header = read_shard(folder).header
    return header.key or hashlib.sha256((folder / "samples.npz").read_bytes()).hexdigest()


def main(arguments: Sequence[str]) -> None:
    """Train from the command line, telling progress on stderr."""
    parser = argparse.ArgumentParser(prog="python -m zetta.runtime.policies.tiny.train")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--shards", type=Path, nargs="+", required=True, help="data folders")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--init", help="weights.safetensors to start from")
    parser.add_argument("--anew", action="store_true", help="do not continue what is there")
    given = parser.parse_args(arguments)
    config = TrainConfig(
        steps=given.steps,
        minutes=given.minutes,
        seed=given.seed,
        width=given.width,
        learning_rate=given.rate,
        init=given.init,
        sampling=Sampling(frames=given.frames),
    )
    train(config, given.shards, given.out, not given.anew, _tell)


def _tell(report: Report) -> None:
    losses = " ".join(f"{name} {value:.4f}" for name, value in report.losses.items())
    left = report.elapsed_s * (1.0 / max(report.share, 1e-6) - 1.0)
    line = f"step {report.step} {report.share:.0%} left {left / 60:.1f} min"
    print(f"{line} cpu/step {report.cpu_per_step_s:.3f} s  {losses}", file=sys.stderr, flush=True)
    if report.scores is not None:
        found = asdict(report.scores).items()
        print(
            "  held out: " + " ".join(f"{k} {v:.3g}" for k, v in found), file=sys.stderr, flush=True
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ZettaError as error:
        sys.exit(f"error: {error}")
