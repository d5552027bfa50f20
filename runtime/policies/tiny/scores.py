"""How well a network does on held-out samples, in units a person can judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from zetta.runtime.policies.tiny.batches import Batch, Index, Pool, near, plain_batch
from zetta.runtime.policies.tiny.inputs import Float32
from zetta.runtime.policies.tiny.losses import Heard, run
from zetta.runtime.policies.tiny.model import LENGTH_UNIT, TinyPolicy

CHUNK: Final = 96
WRONG_M: Final = 0.06
"""A focus farther off than this is another thing or place."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors over some samples; NaN where nothing was labelled."""

    samples: int
    focus_mm: float
    """Median horizontal error of the focus."""
    near_mm: float
    """The same over samples whose focus is near."""
    wrong: float
    """Share of samples whose focus is more than 6 cm off."""
    height_mm: float
    """Median vertical error of the focus."""
    dest_mm: float
    """Median horizontal error of the destination."""
    agent_px: float
    """Median error of the focus in the scene picture, network pixels."""
    wrist_px: float
    path_mm: float
    """Mean error over the chunk."""
    close: float
    """Share of gripper commands that are right."""
    phase: float
    """Share of phases that are right."""


def evaluate(net: TinyPolicy, pool: Pool, rows: Index, most: int = 768) -> Scores:
    """Measure `net` on at most `most` of some sample rows, evenly spread."""
    picked = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]
    parts = []
    with torch.inference_mode():
        for start in range(0, len(picked), CHUNK):
            batch = plain_batch(pool, picked[start : start + CHUNK])
            parts.append(_errors(run(net, batch), batch))
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    focus = columns["focus"]
    return Scores(
        samples=len(picked),
        focus_mm=_median(focus) * 1e3,
        near_mm=_median(focus[columns["near"] > 0]) * 1e3,
        wrong=_mean(np.where(np.isnan(focus), np.nan, focus > WRONG_M)),
        height_mm=_median(columns["height"]) * 1e3,
        dest_mm=_median(columns["dest"]) * 1e3,
        agent_px=_median(columns["agent_px"]),
        wrist_px=_median(columns["wrist_px"]),
        path_mm=_mean(columns["path"]) * 1e3,
        close=_mean(columns["close"]),
        phase=_mean(columns["phase"]),
    )


def _errors(heard: Heard, batch: Batch) -> dict[str, Float32]:
    """Return the errors of each query, NaN where it has no label. Shapes (Q,)."""
    labels, answer = batch.labels, heard.answer
    points = answer.points.numpy() * LENGTH_UNIT
    masked = np.where(labels.mask > 0, 1.0, np.nan)
    path = np.linalg.norm(answer.path.numpy() * LENGTH_UNIT - labels.path, axis=-1)
    right = (answer.close.numpy() > 0) == (labels.close > 0.5)
    pixels = [
        np.where(
            labels.visible[:, camera, 0] > 0,
            np.linalg.norm(heard.pixels[camera][:, 0].numpy() - labels.px[:, camera, 0], axis=-1),
            np.nan,
        )
        for camera in range(2)
    ]
    phase = (answer.phase.argmax(-1).numpy() == labels.phase).astype(np.float32)
    return {
        "focus": np.linalg.norm((points[:, 0] - labels.focus)[:, :2], axis=-1),
        "height": np.abs(points[:, 0, 2] - labels.focus[:, 2]),
        "dest": np.linalg.norm((points[:, 1] - labels.dest)[:, :2], axis=-1),
        "near": near(labels).astype(np.float32),
        "agent_px": pixels[0],
        "wrist_px": pixels[1],
        "path": _row_mean(path * masked),
        "close": _row_mean(right * masked),
        "phase": np.where(labels.phase >= 0, phase, np.nan),
    }


def _row_mean(values: Float32) -> Float32:
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(1)
    return np.where(known.any(1), total / np.maximum(known.sum(1), 1), np.nan)


def _median(values: Float32) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _mean(values: Float32) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
