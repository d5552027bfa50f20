"""The loop that both networks are trained in: resumable, with averaged weights."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.checkpoint import Moment, load_checkpoint, save_checkpoint

CHECKPOINT_MINUTES: Final = 1.5
REPORT_EVERY: Final = 50
WARM_UP: Final = 60
CLIP: Final = 5.0
AVERAGING: Final = 0.995
"""Decay of the averaged weights, which are what is served."""


class Learning(Protocol):
    """What is learnt."""

    terms: tuple[str, ...]

    def losses(self, step: int) -> tuple[Tensor, list[float]]:
        """Return the loss of one step and its terms."""
        ...

    def scores(self, net: nn.Module) -> dict[str, float]:
        """Return errors on held-out data."""
        ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast."""

    steps: int
    learning_rate: float
    minutes: float | None = None
    """Ends the training earlier, with the learning rate falling over this time instead."""


@dataclass(frozen=True, slots=True)
class Report:
    """One line of the log."""

    step: int
    share: float
    elapsed_s: float
    cpu_per_step_s: float
    losses: dict[str, float]
    scores: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a training keeps its files."""

    folder: Path
    name: str

    @property
    def checkpoint(self) -> Path:
        """File to continue from."""
        return self.folder / f"{self.name}-checkpoint.safetensors"

    @property
    def log(self) -> Path:
        """One JSON line for each report."""
        return self.folder / f"{self.name}.jsonl"


def train(
    net: nn.Module,
    averaged: nn.Module,
    task: Learning,
    schedule: Schedule,
    place: Place,
    key: str,
    on_report: Callable[[Report], None] = lambda report: None,
) -> None:
    """Train `net`, keeping its running average in `averaged`; continue what is there.

    Raises:
        ConfigError: `place` holds a training of something else.
    """
    optimizer = torch.optim.AdamW(
        net.parameters(), lr=schedule.learning_rate, weight_decay=1e-4, fused=True
    )
    step, before = 0, 0.0
    place.folder.mkdir(parents=True, exist_ok=True)
    if place.checkpoint.exists():
        moment = load_checkpoint(place.checkpoint, net, averaged, optimizer)
        if moment.key != key:
            raise ConfigError(
                f"{place.folder} holds a training of other data or another schedule; choose "
                "another folder"
            )
        step, before = moment.step, moment.elapsed_s
    started = saved = time.monotonic()
    cpu, sums = time.process_time(), list[list[float]]()

    def elapsed() -> float:
        return before + time.monotonic() - started

    while (share := _share(step, elapsed(), schedule)) < 1.0:
        sums.append(_take_step(net, averaged, optimizer, task, step, share, schedule))
        step += 1
        ended = _share(step, elapsed(), schedule) >= 1.0
        if step % REPORT_EVERY == 0 or ended:
            spent = (time.process_time() - cpu) / len(sums)
            means = dict(zip(task.terms, np.mean(sums, 0).tolist(), strict=True))
            scored = ended or step % (4 * REPORT_EVERY) == 0
            scores = task.scores(averaged) if scored else None
            report = Report(step, min(share, 1.0), elapsed(), spent, means, scores)
            with place.log.open("a") as log:
                log.write(json.dumps(asdict(report)) + "\n")
            on_report(report)
            cpu, sums = time.process_time(), []
        if ended or time.monotonic() - saved > 60 * CHECKPOINT_MINUTES:
            save_checkpoint(
                place.checkpoint, net, averaged, optimizer, Moment(step, elapsed(), key)
            )
            saved = time.monotonic()


def _share(step: int, elapsed_s: float, schedule: Schedule) -> float:
    share = step / schedule.steps
    if schedule.minutes is not None:
        share = max(share, elapsed_s / (60.0 * schedule.minutes))
    return share


def _take_step(
    net: nn.Module,
    averaged: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: Learning,
    step: int,
    share: float,
    schedule: Schedule,
) -> list[float]:
    net.train()
    warm = min(1.0, (step + 1) / WARM_UP)
    rate = schedule.learning_rate * warm * (0.5 * (1.0 + math.cos(math.pi * share)) + 0.005)
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss, terms = task.losses(step)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
    optimizer.step()
    # Early on an average over few steps, or the first random weights would linger.
    decay = min(AVERAGING, (1.0 + step) / (10.0 + step))
    with torch.no_grad():
        for mine, theirs in zip(averaged.parameters(), net.parameters(), strict=True):
            mine.lerp_(theirs, 1.0 - decay)
        for mine, theirs in zip(averaged.buffers(), net.buffers(), strict=True):
            mine.copy_(theirs)
    return terms
