"""Finding plain things without training, over scenes of the toy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from zetta.primitives.localize.clouds import HandShape, believable, clouds, pixels, world_points
from zetta.primitives.localize.geometry import GeometryFinder, described
from zetta.primitives.localize.geometry_colours import WORDS, classes
from zetta.primitives.localize.geometry_segments import find_support
from zetta.primitives.localize.heights import Workspace, height_grid
from zetta.primitives.localize.role_localizer import RoleLocalizer
from zetta.primitives.localize.sightings import Sighting
from zetta.runtime.core import Landmark, Look, Observation, Sampled, Scene, Sense
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_tasks import TABLE_Z, suites, toy_task

TASKS = [(suite, index) for suite, count in suites().items() for index in range(count)]


def noisy(observation: Observation, rng: np.random.Generator) -> Observation:
    """Return what a real depth sensor makes of it: 2 mm + 0.5 % of range, holes at edges."""
    depth = {}
    for name, exact in observation.depth.items():
        d = exact.astype(np.float64)
        measured = d + rng.normal(0.0, 1.0, d.shape) * (0.002 + 0.005 * d)
        edge = ndimage.maximum_filter(d, 3) - ndimage.minimum_filter(d, 3) > 0.03
        measured[edge & (rng.random(d.shape) < 0.5)] = 0.0
        depth[name] = measured.astype(np.float32)
    return replace(observation, depth=depth)


def scene(
    suite: str, index: int, seed: int, render: str = "fast"
) -> tuple[ToyEnv, tuple[Landmark, ...]]:
    """Return an environment at the start of a drawn scene, and the truth about it."""
    env = ToyEnv(toy_task(suite, index), render)
    env.reset(Scene(env.toy.task, Sampled(), seed))
    return env, env.landmarks()


def lower(env: ToyEnv, ticks: int = 10) -> None:
    """Bring every hand down and forward, into the picture."""
    row = np.zeros(env.spec.action.size)
    row[0::7], row[2::7] = 0.3, -0.6
    for _ in range(ticks):
        env.step(row)


def errors(
    count: int, noise: bool, cameras: tuple[str, ...] = ("front",), hand_in_view: bool = False
) -> Iterator[float]:
    """Yield the horizontal error of every thing of drawn scenes; inf for what is missing."""
    rng = np.random.default_rng(1)
    for k in range(count):
        # A step of 5 visits every suite.
        env, _ = scene(*TASKS[5 * k % len(TASKS)], seed=100 + k)
        if hand_in_view:
            lower(env)
        observation = env.observe(cameras, depth=True)
        if noise:
            observation = noisy(observation, rng)
        found = GeometryFinder().find(observation, [m.name for m in env.landmarks()])
        for mark in env.landmarks():
            best = named(found, mark.name)
            yield np.inf if best is None else float(np.hypot(*(best.position - mark.position)[:2]))


def named(found: tuple[Sighting, ...], name: str) -> Sighting | None:
    """Return the surest sighting of a name."""
    own = [s for s in found if s.name == name]
    return max(own, key=lambda s: s.confidence) if own else None


def test_everything_is_found_within_millimetres_in_small_pictures() -> None:
    own = np.array(list(errors(9, noise=False)))

    assert len(own) >= 35
    assert np.median(own) < 0.001
    assert np.percentile(own, 90) < 0.003
    assert own.max() < 0.01


def test_noise_of_a_real_depth_sensor_costs_millimetres() -> None:
    own = np.array(list(errors(9, noise=True)))

    assert np.median(own) <= 0.003
    assert np.percentile(own, 90) <= 0.012
    assert own.max() < 0.03


def test_hand_in_view_changes_nothing() -> None:
    own = np.array(list(errors(5, noise=False, hand_in_view=True)))

    assert np.percentile(own, 90) < 0.004
    assert own.max() < 0.015


def test_size_height_and_yaw_are_those_of_the_thing() -> None:
    env, marks = scene("toy_distractors", 0, seed=4, render="full")
    found = GeometryFinder().find(env.observe(["front"], depth=True), [m.name for m in marks])
    for mark in marks:
        sighting = named(found, mark.name)
        assert sighting is not None
        np.testing.assert_allclose(sighting.extent, mark.extent, atol=0.003)
        assert sighting.position[2] == pytest.approx(mark.position[2], abs=0.001)
        if "cube" in mark.name:
            turn = sighting.yaw - mark.yaw
            assert abs((turn + np.pi / 4) % (np.pi / 2) - np.pi / 4) < 0.03


def test_wrist_camera_alone_and_together_with_the_front_one_gives_one_sighting() -> None:
    env, marks = scene("toy_pick", 0, seed=2)
    cube = next(m for m in marks if m.name == "red cube")
    for _ in range(40):
        arm = env.observe().proprio.arms[0].ee_pos
        row = np.zeros(7)
        row[:3] = np.clip((cube.position + np.array([-0.05, 0.0, 0.14]) - arm) * 10.0, -1.0, 1.0)
        env.step(row)
    both = GeometryFinder().find(env.observe(["front", "wrist"], depth=True), ["red cube"])
    wrist = GeometryFinder(cameras=("wrist",)).find(
        env.observe(["front", "wrist"], depth=True), ["red cube"]
    )

    assert (len(both), len(wrist)) == (1, 1)
    for sighting in (*both, *wrist):
        np.testing.assert_allclose(sighting.position, cube.position, atol=0.004)


def test_thing_is_followed_through_grasp_transport_and_stacking() -> None:
    simulator = ToySimulator()
    env, _ = scene("toy_stack", 0, seed=5)
    step, motion = env.restore(env.snapshot()), simulator.expert(env)
    asked, looks, off = next(motion), 0, []
    while not (step.terminated or step.truncated):
        if isinstance(asked, Look):
            asked = motion.send(Sense(step.proprio))
            continue
        step, looks = env.step(asked), looks + 1
        if looks % 5 == 0:
            truth = next(m for m in env.landmarks() if m.name == "red cube")
            found = GeometryFinder().find(env.observe(["front"], depth=True), ["red cube"])
            best = named(found, "red cube")
            off.append(np.inf if best is None else np.linalg.norm(best.position - truth.position))
        asked = motion.send(Sense(step.proprio))

    assert step.success
    assert len(off) >= 6
    assert max(off) < 0.012


def test_colour_and_shape_must_both_fit() -> None:
    env, _ = scene("toy_distractors", 0, seed=1)
    observation = env.observe(["front"], depth=True)
    names = ["green cube", "red plate", "red ball", "cyan plate", "purple can"]

    assert [s.name for s in GeometryFinder().find(observation, names) if s.confidence > 0.5] == []


def test_the_side_of_a_red_thing_that_is_brown_in_shade_is_a_part_of_it() -> None:
    env, truth = scene("toy_pick", 0, seed=1, render="full")
    seen = env.observe(["front"], depth=True)
    image = seen.images["front"].copy()
    red = np.isin(classes(image), [WORDS.index("red"), WORDS.index("brown")])
    top = np.nonzero(red)[0].min() + np.ptp(np.nonzero(red)[0]) // 2
    red[:top] = False
    image[red] = (110, 20, 20)  # what a lamp overhead leaves of the front
    assert {WORDS[k] for k in classes(image[red])} == {"brown"}

    found = named(
        GeometryFinder().find(replace(seen, images={"front": image}), ["red cube"]), "red cube"
    )
    cube = next(mark for mark in truth if mark.name == "red cube")
    assert found is not None
    assert found.confidence > 0.5
    np.testing.assert_allclose(found.position, cube.position, atol=0.006)


def test_general_words_find_all_and_directions_choose_one() -> None:
    env, marks = scene("toy_pick", 0, seed=3)
    observation = env.observe(["front"], depth=True)
    finder = GeometryFinder()
    plates = finder.find(observation, ["plate"])
    left = finder.find(observation, ["left plate"])
    truth = min((m for m in marks if "plate" in m.name), key=lambda m: float(m.position[1]))

    assert len(plates) == 2
    assert len(left) == 1
    np.testing.assert_allclose(left[0].position, truth.position, atol=0.005)


def test_names_beyond_colour_and_shape_are_left_to_other_finders() -> None:
    env, _ = scene("toy_pick", 0, seed=3)
    names = ["alphabet soup", "handle of top drawer", "", "shiny cube"]

    assert GeometryFinder().find(env.observe(["front"], depth=True), names) == ()
    assert [described(name) for name in (*names, "big red cube", "left block")] == [
        False, False, False, False, True, True,
    ]  # fmt: skip


def test_nothing_is_found_without_depth_or_in_the_dark() -> None:
    env, _ = scene("toy_pick", 0, seed=3)
    observation = env.observe(["front"], depth=True)
    dark = replace(observation, depth={"front": np.zeros((48, 64), dtype=np.float32)})

    assert GeometryFinder().find(env.observe(["front"]), ["red cube"]) == ()
    assert GeometryFinder().find(dark, ["red cube"]) == ()


def test_finding_is_deterministic_and_leaves_the_observation_alone() -> None:
    env, marks = scene("toy_distractors", 2, seed=9)
    observation = env.observe(["front"], depth=True)
    names = [m.name for m in marks]
    first, second = (GeometryFinder().find(observation, names) for _ in range(2))

    assert len(first) == len(second) == len(names)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.position, b.position)
        assert not a.position.flags.writeable


def test_roles_of_a_toy_instruction_are_found_from_pictures() -> None:
    env, marks = scene("toy_distractors", 1, seed=7)
    localizer = RoleLocalizer(GeometryFinder())
    found = localizer.locate(env.observe(["front"], depth=True), ("object", "receptacle"))
    where = {m.name: m.position for m in marks}

    assert localizer.level == "vision"
    np.testing.assert_allclose(found["object"].position, where["cyan can"], atol=0.006)
    np.testing.assert_allclose(found["receptacle"].position, where["green plate"], atol=0.006)


# --------------------------------------------------------------------------- points and heights


def test_points_and_pixels_are_inverse() -> None:
    env, _ = scene("toy_pick", 1, seed=0)
    observation = env.observe(["front"], depth=True)
    camera = observation.cameras["front"]
    points = world_points(observation.depth["front"], camera)
    rows, columns = np.indices((48, 64))

    found = pixels(points.reshape(-1, 3), camera)
    np.testing.assert_array_equal(found[:, 0], rows.ravel())
    np.testing.assert_array_equal(found[:, 1], columns.ravel())


def test_pixels_between_two_depths_are_not_believed() -> None:
    depth = np.full((5, 9), 1.0, dtype=np.float32)
    depth[:, :4] = 0.7
    depth[2, 4] = 0.85
    depth[0, 0] = 0.0
    expected = np.ones((5, 9), dtype=bool)
    expected[2, 4] = expected[0, 0] = False

    np.testing.assert_array_equal(believable(depth), expected)


@pytest.mark.parametrize("noise", [False, True])
def test_support_is_the_table(noise: bool) -> None:
    env, _ = scene("toy_distractors", 0, seed=0)
    observation = env.observe(["front"], depth=True)
    if noise:
        observation = noisy(observation, np.random.default_rng(0))
    [cloud] = clouds(observation, HandShape())
    support = find_support(cloud, Workspace())

    assert support is not None
    assert support.at(0.1, 0.1) == pytest.approx(TABLE_Z, abs=0.002)
    assert (support.noise > 0.003) == noise


def test_heights_are_those_of_table_and_things() -> None:
    env, marks = scene("toy_pick", 2, seed=6, render="full")
    grid = height_grid(env.observe(["front"], depth=True))

    assert grid is not None
    for mark in marks:
        cell = np.floor((mark.position[:2] - grid.origin) / grid.cell).astype(int)
        top = mark.position[2] + mark.extent[2] / 2.0
        assert grid.heights[tuple(cell)] == pytest.approx(top, abs=0.003)
    assert np.nanmedian(grid.heights) == pytest.approx(TABLE_Z, abs=0.002)
    assert grid.cell == 0.01
    np.testing.assert_allclose(grid.origin / grid.cell, np.round(grid.origin / grid.cell))


def test_own_hand_is_no_obstacle_but_what_stands_below_is() -> None:
    env, marks = scene("toy_pick", 0, seed=6)
    lower(env, ticks=14)
    hand = env.observe().proprio.arms[0]
    grid = height_grid(env.observe(["front", "wrist"], depth=True))
    tallest = max(float(m.position[2] + m.extent[2] / 2.0) for m in marks)

    assert grid is not None
    assert hand.ee_pos[2] < TABLE_Z + 0.15
    assert np.nanmax(grid.heights) == pytest.approx(tallest, abs=0.004)


def test_no_depth_gives_no_heights() -> None:
    env, _ = scene("toy_pick", 0, seed=6)

    assert height_grid(env.observe(["front"])) is None


def test_colour_words_hold_under_shade() -> None:
    image = np.array(
        [[[220, 30, 30], [132, 18, 18], [40, 60, 220], [235, 215, 30], [240, 130, 20]],
         [[205, 40, 205], [30, 205, 215], [18, 108, 24], [240, 240, 240], [20, 20, 22]]],
        dtype=np.uint8,
    )  # fmt: skip

    assert [[WORDS[k] for k in row] for row in classes(image)] == [
        ["red", "red", "blue", "yellow", "orange"],
        ["magenta", "cyan", "green", "white", "black"],
    ]
