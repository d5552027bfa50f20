"""Labelled RGB-D pictures of the scene camera: what a localiser learns from, or is scored on.

    python -m zetta.sims.libero.sightings scattered OUT COUNT SUITE:TASK
    python -m zetta.sims.libero.sightings shipped OUT COUNT SUITE:TASK

`scattered` draws scenes of `sightings_scatter.py`, for training; every picture has a seed of its
own, so the same command gives the same pictures. `shipped` draws the first COUNT init states that
ship with a task, for scoring. A process draws one task only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Array, Init, Observation, Scene
from zetta.runtime.errors import ConfigError
from zetta.sims.libero import catalog
from zetta.sims.libero.env import CAMERAS, PICTURE_SIZE, LiberoEnv
from zetta.sims.libero.landmarks import Named, NamedWorld, survey
from zetta.sims.libero.sightings_scatter import Scatter
from zetta.sims.libero.sightings_shards import (
    MOST_PARTS,
    Head,
    Row,
    ShardWriter,
    finished_rows,
)

SCATTERED, SHIPPED = "scattered", "shipped"
CAMERA = "agentview"
TRAINING_INIT = 20
"""Where arm and resting poses are taken from; nothing stays where this state has it."""
SAVE_EVERY = 20
_STREAM = 23


def draw(
    kind: str,
    suite: str,
    task: int,
    count: int,
    out: Path,
    on_row: Callable[[int], None] = lambda index: None,
) -> int:
    """Draw the rows that a shard still lacks and return how many it has.

    Args:
        kind: `scattered` or `shipped`.
        suite: suite name.
        task: task index.
        count: rows wanted.
        out: folder of shards; this one is `OUT/SUITE-TASK`.
        on_row: told the index of each finished row.

    Raises:
        ConfigError: unknown kind or task, or a shard of another size is there.
    """
    if kind not in (SCATTERED, SHIPPED):
        raise ConfigError(f"unknown kind {kind!r}; expected {SCATTERED} or {SHIPPED}")
    folder = out / f"{suite}-{task}"
    first = finished_rows(folder, count)
    if first >= count:
        return first
    env = LiberoEnv(suite, task)
    try:
        _draw_rows(env, kind, folder, first, count, on_row)
    finally:
        env.close()
    return count


def _draw_rows(
    env: LiberoEnv,
    kind: str,
    folder: Path,
    first: int,
    count: int,
    on_row: Callable[[int], None],
) -> None:
    env.reset(Scene(env.task, Init(TRAINING_INIT if kind == SCATTERED else 0), 0))
    head = head_of(env, kind, count)
    writer = ShardWriter(folder, head)
    scatter = Scatter(env) if kind == SCATTERED else None
    for index in range(first, count):
        if scatter is None:
            env.reset(Scene(env.task, Init(index), index))
        else:
            _scatter(scatter, env.task.suite, env.task.index, index)
        writer.write(index, row_of(env, head))
        on_row(index)
        if (index + 1) % SAVE_EVERY == 0 or index + 1 == count:
            writer.finish(index + 1)


def _scatter(scatter: Scatter, suite: str, task: int, index: int) -> None:
    number = sorted(catalog.suites()).index(suite)
    for attempt in range(5):
        try:
            scatter.arrange(np.random.default_rng([_STREAM, number, task, index, attempt]))
        except ArithmeticError:
            continue
        return
    raise ConfigError(f"{suite}#{task}: scene {index} exploded five times; this is a bug")


def head_of(env: LiberoEnv, kind: str, count: int) -> Head:
    """Return the head of a shard of this environment."""
    found = survey(NamedWorld(env.control))
    parts = {n.landmark.name: tuple(p.name for p in n.parts) for n in found if n.parts}
    world = NamedWorld(env.control)
    by_thing = {n.thing: n.landmark.name for n in found}
    mentioned = {thing for g in world.goals for thing in (g.subject, g.target)}
    return Head(
        suite=env.task.suite,
        task=env.task.index,
        render_profile=env.spec.render_profile,
        mujoco=env.spec.versions["mujoco"],
        kind=kind,
        names=tuple(sorted({n.landmark.name for n in found})),
        parts=parts,
        goals=tuple(sorted(by_thing[t] for t in mentioned if t in by_thing)),
        wanted=count,
    )


def row_of(env: LiberoEnv, head: Head) -> Row:
    """Draw and label the present scene."""
    seen = env.observe((CAMERA,), depth=True)
    found = survey(NamedWorld(env.control), as_shipped=head.kind == SHIPPED)
    things = [n.landmark for n in found]
    boxes = [np.concatenate([t.position, t.extent, [t.yaw]]) for t in things]
    parts = np.full((len(found), MOST_PARTS, 3), np.nan)
    for row, named in zip(parts, found, strict=True):
        for part in named.parts:
            row[head.parts[named.landmark.name].index(part.name)] = part.position
    return Row(
        picture=seen.images[CAMERA],
        depth=seen.depth[CAMERA],
        instances=instances(env, found),
        camera=_camera(seen),
        things=np.array([head.names.index(t.name) for t in things], np.int16),
        boxes=np.array(boxes),
        parts=parts,
    )


def instances(env: LiberoEnv, found: Sequence[Named]) -> npt.NDArray[np.int8]:
    """Return which thing is seen at every pixel, -1 for none. Shape (256, 256)."""
    model = env.control.env.sim.model._model
    owner = np.full(model.nbody, -1, np.int8)
    for index, named in enumerate(found):
        owner[env.control.env.obj_body_id[named.thing]] = index
    for body in range(1, model.nbody):  # parents come first
        if owner[body] < 0:
            owner[body] = owner[model.body_parentid[body]]
    of_geom = np.append(owner[np.asarray(model.geom_bodyid)], np.int8(-1))
    geoms = env.renderer().geoms(CAMERAS[CAMERA], PICTURE_SIZE, PICTURE_SIZE)
    return np.asarray(of_geom[geoms])  # geom -1 reads the last entry


def _camera(seen: Observation) -> Array:
    camera = seen.cameras[CAMERA]
    return np.concatenate([camera.intrinsics.ravel(), camera.T_world_cam.ravel()])


def main(arguments: Sequence[str]) -> None:
    """Draw from the command line."""
    parser = argparse.ArgumentParser(prog="python -m zetta.sims.libero.sightings")
    parser.add_argument("kind", choices=(SCATTERED, SHIPPED))
    parser.add_argument("out", type=Path, help="folder of shards")
    parser.add_argument("count", type=int, help="pictures of the task")
    parser.add_argument("task", metavar="SUITE:TASK")
    given = parser.parse_args(arguments)
    suite, _, task = given.task.partition(":")
    count = draw(given.kind, suite, int(task), given.count, given.out)
    print(f"{given.task} {count} pictures", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
