"""Measure the tiny localiser on labelled pictures that it has not learnt from.

    python -m zetta.primitives.localize.tiny.score DATA [--weights FOLDER] [--json FILE]

`DATA` holds shards of `zetta.sims.libero.sightings shipped`. A thing counts as visible when at
least six coarse pixels (24 of the picture) show it, or, for a fixture and its parts, sixty. Every
instance is compared with the nearest sighting of its own name; a name that no instance has is
absent. Times are CPU milliseconds of a look on one thread, drawing left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.localize.tiny.data import Shard, read_shard, shards_in
from zetta.primitives.localize.tiny.serve import SINGLE, WEIGHTS_FOLDER, TinyFinder, load
from zetta.primitives.localize.tiny.vocabulary import PARTS, THINGS
from zetta.runtime.core import Observation, Proprio
from zetta.runtime.errors import ZettaError

VISIBLE, VISIBLE_FIXTURE = 6, 60
"""Coarse pixels from which a thing counts as visible."""
NEAR: Final = 0.015
"""Metres within which an estimate is good enough to grasp."""
MISSED: Final = 1.0
"""Error in metres of what was not found."""
ALL_NAMES: Final = (*THINGS, *(part for parts in PARTS.values() for part in parts))


@dataclass(frozen=True, slots=True)
class Measured:
    """One visible instance and the nearest sighting of its name."""

    suite: str
    task: int
    name: str
    kind: str
    """`movable`, `fixture` or `part`."""
    goal: bool
    """Whether the task is about it."""
    xy: float
    """Horizontal error of the centre, metres; `MISSED` when nothing was found."""
    z: float
    width: float
    """Error of the narrow side, metres."""
    yaw: float
    """Error of the yaw modulo half a turn, radians; NaN where it means nothing."""
    confidence: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What was measured on one suite."""

    suite: str
    movable: dict[str, float]
    goal_objects: dict[str, float]
    fixtures: dict[str, float]
    parts: dict[str, dict[str, float]]
    absent_reported: float
    """Share of absent names that were reported."""
    absent_asked: int
    cpu_ms: float
    """Median CPU time of a look."""
    misses: dict[str, int] = field(default_factory=dict)
    """Names beyond `NEAR`, with their number."""


def measure(finder: TinyFinder, shard: Shard) -> tuple[list[Measured], list[bool], list[float]]:
    """Return every visible instance, whether each absent name was reported, and CPU seconds."""
    rows: list[Measured] = []
    absent: list[bool] = []
    seconds: list[float] = []
    for row in range(len(shard)):
        observation = _observation(shard, row)
        started = time.process_time()
        found = finder.find(observation, ALL_NAMES)
        seconds.append(time.process_time() - started)
        rows += _compare(shard, row, found)
        present = {THINGS[t] for t in shard.things[row] if t >= 0}
        reported = {sighting.name for sighting in found}
        absent += [name in reported for name in THINGS if name not in present]
    return rows, absent, seconds


def _observation(shard: Shard, row: int) -> Observation:
    picture, depth = shard.whole(row)
    camera = shard.camera(row)
    name = camera.name
    return Observation(Proprio(0.0, ()), "", {name: picture}, {name: depth}, {name: camera})


def _compare(shard: Shard, row: int, found: Sequence[Sighting]) -> list[Measured]:
    rows = []
    instances = np.array(shard.instances[row])
    for index, thing in enumerate(shard.things[row]):
        if thing < 0:
            continue
        name, box = THINGS[thing], shard.boxes[row, index]
        fixed = name in SINGLE and name != "basket"
        if int((instances == index).sum()) < (VISIBLE_FIXTURE if fixed else VISIBLE):
            continue
        goal = name in shard.goals
        kind = "fixture" if fixed else "movable"
        rows.append(_error(shard, name, kind, goal, box, found))
        for part, position in zip(PARTS.get(name, ()), shard.parts[row, index], strict=False):
            if np.isfinite(position).all():
                place = np.concatenate([position, [np.nan] * 4])
                rows.append(_error(shard, part, "part", goal, place, found))
    return rows


def _error(
    shard: Shard, name: str, kind: str, goal: bool, box: np.ndarray, found: Sequence[Sighting]
) -> Measured:
    own = [s for s in found if s.name == name]
    if not own:
        return Measured(
            shard.suite, shard.task, name, kind, goal, MISSED, MISSED, MISSED, np.nan, 0.0
        )
    away = [float(np.linalg.norm(s.position[:2] - box[:2])) for s in own]
    nearest = own[int(np.argmin(away))]
    sides = np.sort(box[3:5])
    turn = nearest.yaw - float(box[6])
    clear = bool(sides[1] > 1.3 * sides[0])
    return Measured(
        suite=shard.suite,
        task=shard.task,
        name=name,
        kind=kind,
        goal=goal,
        xy=min(away),
        z=abs(float(nearest.position[2] - box[2])),
        width=abs(float(np.min(nearest.extent[:2]) - sides[0])),
        yaw=abs(float((turn + np.pi / 2) % np.pi - np.pi / 2)) if clear else np.nan,
        confidence=nearest.confidence,
    )


def summarise(
    suite: str, rows: Iterable[Measured], absent: Sequence[bool], seconds: Sequence[float]
) -> Summary:
    """Return the figures of one suite."""
    mine = [r for r in rows if r.suite == suite]
    movable = [r for r in mine if r.kind == "movable"]
    parts = sorted({r.name for r in mine if r.kind == "part"})
    far = [r.name for r in mine if r.xy > NEAR]
    return Summary(
        suite=suite,
        movable=_figures(movable),
        goal_objects=_figures([r for r in movable if r.goal]),
        fixtures=_figures([r for r in mine if r.kind == "fixture"]),
        parts={part: _figures([r for r in mine if r.name == part]) for part in parts},
        absent_reported=float(np.mean(absent)) if absent else 0.0,
        absent_asked=len(absent),
        cpu_ms=1000 * float(np.median(seconds)),
        misses={name: far.count(name) for name in sorted(set(far))},
    )


def _figures(rows: Sequence[Measured]) -> dict[str, float]:
    if not rows:
        return {"n": 0}
    xy = np.array([r.xy for r in rows])
    found = [r for r in rows if r.xy < MISSED]
    yaws = [r.yaw for r in found if np.isfinite(r.yaw)]
    widths = [r.width for r in found if np.isfinite(r.width)]
    figures = {
        "n": float(len(rows)),
        "median_mm": 1000 * float(np.median(xy)),
        "p90_mm": 1000 * float(np.percentile(xy, 90)),
        "under_15_mm": float((xy < NEAR).mean()),
        "z_median_mm": 1000 * float(np.median([r.z for r in rows])),
    }
    if widths:
        figures["width_median_mm"] = 1000 * float(np.median(widths))
    if yaws:
        figures["yaw_median_deg"] = float(np.rad2deg(np.median(yaws)))
        figures["yaw_p90_deg"] = float(np.rad2deg(np.percentile(yaws, 90)))
    return figures


def score(finder: TinyFinder, folders: Sequence[Path]) -> list[Summary]:
    """Return the figures of every suite among some shards."""
    by_suite: dict[str, tuple[list[Measured], list[bool], list[float]]] = {}
    for folder in folders:
        shard = read_shard(folder)
        kept = by_suite.setdefault(shard.suite, ([], [], []))
        rows, absent, seconds = measure(finder, shard)
        kept[0].extend(rows)
        kept[1].extend(absent)
        kept[2].extend(seconds)
    return [summarise(suite, *found) for suite, found in sorted(by_suite.items())]


def main(arguments: Sequence[str]) -> None:
    """Print a table, and write all figures as JSON when asked to."""
    parser = argparse.ArgumentParser(prog="python -m zetta.primitives.localize.tiny.score")
    parser.add_argument("data", type=Path, help="folder of shards")
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FOLDER)
    parser.add_argument("--json", type=Path, help="file for all figures")
    given = parser.parse_args(arguments)
    summaries = score(load(given.weights), shards_in(given.data))
    print("suite                    n  median   p90 mm  <15 mm  goal<15  fixtures  absent  ms")
    for one in summaries:
        m, g, f = one.movable, one.goal_objects, one.fixtures
        print(
            f"{one.suite:22s} {m['n']:4.0f} {m.get('median_mm', 0):7.1f} {m.get('p90_mm', 0):8.1f} "
            f"{m.get('under_15_mm', 0):7.3f} {g.get('under_15_mm', 0):8.3f} "
            f"{f.get('median_mm', 0):9.1f} {one.absent_reported:7.3f} {one.cpu_ms:4.0f}"
        )
        for part, p in one.parts.items():
            print(f"    {part:28s} {p['n']:4.0f} {p['median_mm']:7.1f} {p['p90_mm']:8.1f}")
        if one.misses:
            print(f"    beyond 15 mm: {one.misses}")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in summaries], indent=1) + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ZettaError as error:
        sys.exit(f"error: {error}")
