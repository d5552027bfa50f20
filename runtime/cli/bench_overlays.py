"""How exactly a position can be read off a picture: with the grid that is drawn in, and without."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from zetta.primitives.localize.heights import height_grid
from zetta.primitives.localize.table import seen_table
from zetta.primitives.overlays_sheet import Sheet
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess
from zetta.runtime.cli.grid_reader import (
    Crossing,
    best_linear_map,
    corner_map,
    crossings_shown,
    read_exactly,
    read_linearly,
    read_with_grid,
)
from zetta.runtime.cli.sight import SurveyedEnv
from zetta.runtime.core import Array, Env, Init, Landmark, Observation, Scene, Simulator
from zetta.runtime.errors import ConfigError

POINTING_PX: Final = 3.0
"""Standard deviation, along each axis, of every place that a reader takes off a picture of 512
pixels: the foot of a thing and each crossing alike."""
ON_TABLE_M: Final = 0.01
"""What begins less than this above the table stands on it."""
TARGET: Final = 2.0
"""How many times smaller the median error is to be with the grid."""
ARMS: Final = ("grid", "corners", "linear", "exact")


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing of one scene, read by every reader; horizontal errors in metres."""

    on_table: bool
    grid: float
    """NaN where no cell of the grid shows whole."""
    corners: float
    linear: float
    exact: float


def overlay_figures(sim: str, suite: str, tasks: Sequence[int], scenes: int) -> list[Figure]:
    """Read the first `scenes` layouts of each task, each task in a process of its own."""
    readings: list[Reading] = []
    for task in tasks:
        with ArmProcess(ArmPlace(sim, suite, task, "fast")) as process:
            readings += [Reading(**each) for each in process.ask("overlays", scenes=scenes)]
    return list(figures_of(suite, readings))


def figures_of(suite: str, readings: Sequence[Reading]) -> Iterator[Figure]:
    """Yield median and 90th percentile of each reader, over what every reader could read."""
    for where, kept in (
        ("table", [r for r in readings if r.on_table]),
        ("raised", [r for r in readings if not r.on_table]),
    ):
        if not kept:
            continue
        read = [r for r in kept if not math.isnan(r.grid)]
        name = f"{suite}_{where}"
        yield Figure(f"{name}_things", float(len(kept)), "")
        yield Figure(f"{name}_in_the_grid", len(read) / len(kept), "", higher_is_better=True)
        if not read:
            continue
        for share, label in ((0.5, "p50"), (0.9, "p90")):
            cm = {
                arm: 100.0 * float(np.quantile([getattr(r, arm) for r in read], share))
                for arm in ARMS
            }
            target = TARGET if where == "table" and label == "p50" else None
            yield Figure(
                f"{name}_grid_{label}", cm["grid"], "cm", cm["corners"],
                cm["corners"] / cm["grid"], target,
            )  # fmt: skip
            yield Figure(f"{name}_best_linear_{label}", cm["linear"], "cm")
            yield Figure(f"{name}_calibrated_{label}", cm["exact"], "cm")


# --------------------------------------------------------------------------- in the child


def read_pictures(
    simulator: Simulator, env: Env, place: ArmPlace, request: Mapping[str, Any]
) -> list[dict[str, object]]:
    """Read scenes and return what `Reading` holds, as plain values.

    Raises:
        ConfigError: the environment tells no truth about places, or no table is seen.
    """
    if not isinstance(env, SurveyedEnv):
        raise ConfigError(f"the environment {env.spec.name} tells no simulator truth about places")
    name = next(camera.name for camera in env.spec.cameras if camera.mount == "world")
    task = simulator.task(place.suite, place.task)
    found: list[Reading] = []
    for index in range(request["scenes"]):
        env.reset(Scene(task, Init(index)))
        observation = env.observe((name,), depth=True)
        seed = [zlib.crc32(place.suite.encode()), place.task, index]
        found += _read_scene(observation, name, env.landmarks(), np.random.default_rng(seed))
    return [asdict(reading) for reading in found]


def _read_scene(
    observation: Observation, name: str, things: Sequence[Landmark], rng: np.random.Generator
) -> Iterator[Reading]:
    table = seen_table(height_grid(observation))
    if table is None:
        raise ConfigError(f"no table is seen through {name}; there is nothing to draw a grid on")
    sheet = Sheet(observation.images[name], observation.cameras[name])
    spread = POINTING_PX * sheet.unit
    shown = crossings_shown(observation, name, table)
    linear = best_linear_map(table, sheet.camera, sheet.size)
    corners = corner_map(table, sheet.camera)
    for thing in things:
        bottom = float(thing.position[2] - thing.extent[2] / 2.0)
        foot = sheet.where(np.array([*thing.position[:2], bottom]))
        if foot is None or " of " in thing.name:
            continue  # a place or a part is no thing that stands somewhere
        at = np.array(foot) + rng.normal(0.0, spread, 2)
        read = read_with_grid(at, _as_read(shown, spread, rng))
        yield Reading(
            abs(bottom - table.height) < ON_TABLE_M,
            math.nan if read is None else _error(read, thing),
            _error(read_linearly(at, corners), thing),
            _error(read_linearly(at, linear), thing),
            _error(read_exactly(at, table, sheet.camera), thing),
        )


def _as_read(
    shown: Sequence[Crossing], spread: float, rng: np.random.Generator
) -> tuple[Crossing, ...]:
    """Return crossings where a reader takes them to be."""
    moved = rng.normal(0.0, spread, (len(shown), 2))
    return tuple(
        replace(c, at=(c.at[0] + float(m[0]), c.at[1] + float(m[1])))
        for c, m in zip(shown, moved, strict=True)
    )


def _error(xy: Array, thing: Landmark) -> float:
    return float(np.linalg.norm(xy - thing.position[:2]))
