"""How exactly a position can be read off a picture: with the grid that is drawn in, and without."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from zetta.primitives.localize.table import Table, table_in
from zetta.primitives.overlays_sheet import Sheet
from zetta.primitives.projection import place_of, project
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess
from zetta.runtime.cli.grid_reader import (
    Crossing,
    continued,
    crossings_shown,
    linear_map,
    read_exactly,
    read_linearly,
    read_with_grid,
)
from zetta.runtime.core import Array, Env, Init, Landmark, Observation, Scene, Simulator
from zetta.runtime.errors import ConfigError
from zetta.sims.surveyed import Surveyed

POINTING_PX: Final = 3.0
"""Standard deviation, along each axis, of every place that a reader takes off a picture of 512
pixels: the foot of a thing and each crossing alike."""
ON_TABLE_M: Final = 0.01
"""What begins less than this above the table stands on it."""
SPOTS: Final = 10
"""Bare spots that are tried in each scene."""
REACH_M: Final = 0.40
"""Spots lie within this of the hand, in x and in y."""
BARE_M: Final = 0.012
TARGET: Final = 2.0
"""How many times smaller the median error is to be with the grid."""


What: TypeAlias = Literal["spot", "table", "raised"]
"""A bare spot of the table, a thing on the table, a thing on or above something else."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One place, and where each reader takes it to be. x and y, metres."""

    what: What
    at: tuple[float, float]
    """Where the reader points at in the picture."""
    truth: tuple[float, float]
    grid: tuple[float, float] | None
    """None where no cell of the grid is known whole."""
    calibrated: tuple[float, float]


def overlay_figures(sim: str, suite: str, tasks: Sequence[int], scenes: int) -> list[Figure]:
    """Read the first `scenes` layouts of each task, each task in a process of its own."""
    readings: list[Reading] = []
    for task in tasks:
        with ArmProcess(ArmPlace(sim, suite, task, "fast")) as process:
            readings += [Reading(**each) for each in process.ask("overlays", scenes=scenes)]
    return list(figures_of(suite, readings))


def figures_of(suite: str, readings: Sequence[Reading]) -> Iterator[Figure]:
    """Yield median and 90th percentile of each reader, over what every reader could read.

    The baseline is the best linear reader that does not know the layouts: one map for the whole
    suite, fitted to the true places of spots all over where the hand works.
    """
    linear = _fitted([r for r in readings if r.what == "spot"])
    for what in ("spot", "table", "raised"):
        kept = [r for r in readings if r.what == what]
        if any(r.grid is not None for r in kept):
            yield from _figures_about(f"{suite}_{what}", kept, linear)


def _fitted(readings: Sequence[Reading]) -> Array:
    return linear_map(np.array([r.at for r in readings]), np.array([r.truth for r in readings]))


def _figures_about(name: str, kept: Sequence[Reading], linear: Array) -> Iterator[Figure]:
    read = [r for r in kept if r.grid is not None]
    told = _fitted(read)
    yield Figure(f"{name}_places", float(len(kept)), "")
    yield Figure(f"{name}_in_the_grid", len(read) / len(kept), "", higher_is_better=True)
    errors = {
        "grid": [math.dist(r.grid, r.truth) for r in read if r.grid is not None],
        "linear": [math.dist(read_linearly(np.array(r.at), linear), r.truth) for r in read],
        "told": [math.dist(read_linearly(np.array(r.at), told), r.truth) for r in read],
        "calibrated": [math.dist(r.calibrated, r.truth) for r in read],
    }
    judged = not name.endswith("raised")
    for share, label in ((0.5, "p50"), (0.9, "p90")):
        cm = {who: 100.0 * float(np.quantile(each, share)) for who, each in errors.items()}
        yield Figure(
            f"{name}_grid_{label}", cm["grid"], "cm", cm["linear"], cm["linear"] / cm["grid"],
            TARGET if judged and label == "p50" else None,
        )  # fmt: skip
        if name.endswith("table"):
            yield Figure(f"{name}_told_{label}", cm["told"], "cm")
        yield Figure(f"{name}_calibrated_{label}", cm["calibrated"], "cm")


# --------------------------------------------------------------------------- in the child


def read_pictures(
    simulator: Simulator, env: Env, place: ArmPlace, request: Mapping[str, Any]
) -> list[dict[str, object]]:
    """Read scenes and return what `Reading` holds, as plain values.

    Raises:
        ConfigError: the environment tells no truth about places, or no table is seen.
    """
    if not isinstance(env, Surveyed):
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
    table = table_in(observation)
    if table is None:
        raise ConfigError(f"no table is seen through {name}; there is nothing to draw a grid on")
    reader = _Reader(observation, name, table, rng)
    for thing in things:
        if " of " in thing.name:
            continue  # a place or a part is no thing that stands somewhere
        bottom = float(thing.position[2] - thing.extent[2] / 2.0)
        what: What = "table" if abs(bottom - table.height) < ON_TABLE_M else "raised"
        yield from reader.read(what, np.array([*thing.position[:2], bottom]))
    hand = observation.proprio.arms[0].ee_pos
    for _ in range(SPOTS):
        spot = np.array([*(hand[:2] + rng.uniform(-REACH_M, REACH_M, 2)), table.height])
        if _bare(spot, observation, name):
            yield from reader.read("spot", spot)


class _Reader:
    """All readers before one picture."""

    def __init__(
        self, observation: Observation, name: str, table: Table, rng: np.random.Generator
    ) -> None:
        self._table, self._rng = table, rng
        self._sheet = Sheet(observation.images[name], observation.cameras[name])
        self._spread = POINTING_PX * self._sheet.unit
        self._shown = crossings_shown(observation, name, table)

    def read(self, what: What, foot: Array) -> Iterator[Reading]:
        """Yield what is read of a place; nothing where it is outside the picture."""
        sheet = self._sheet
        place = sheet.where(foot)
        if place is None:
            return
        at = np.array(place) + self._rng.normal(0.0, self._spread, 2)
        grid = read_with_grid(at, continued(_as_read(self._shown, self._spread, self._rng)))
        yield Reading(
            what,
            _pair(at / sheet.factor),
            _pair(foot),
            None if grid is None else _pair(grid),
            _pair(read_exactly(at, self._table, sheet.camera)),
        )


def _bare(spot: Array, observation: Observation, name: str) -> bool:
    """Say whether a point of the table is seen, with nothing before it or on it."""
    depth, camera = observation.depth[name], observation.cameras[name]
    place = place_of(spot, camera, (depth.shape[1], depth.shape[0]))
    if place is None:
        return False
    row, column = min(int(place[1]), depth.shape[0] - 1), min(int(place[0]), depth.shape[1] - 1)
    far = float(project(spot, camera)[1][0])
    return abs(float(depth[row, column]) - far) < BARE_M


def _as_read(
    shown: Sequence[Crossing], spread: float, rng: np.random.Generator
) -> tuple[Crossing, ...]:
    """Return crossings where a reader takes them to be."""
    moved = rng.normal(0.0, spread, (len(shown), 2))
    return tuple(
        replace(c, at=(c.at[0] + float(m[0]), c.at[1] + float(m[1])))
        for c, m in zip(shown, moved, strict=True)
    )


def _pair(values: Array) -> tuple[float, float]:
    return (float(values[0]), float(values[1]))
