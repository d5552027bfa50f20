"""The scripted policy for the twin's table: what it sees, where it goes, when it misses."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.core import ArmState, Array, Camera, Observation, Proprio, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.twin_reach import (
    CAMERA,
    FOLLOWS,
    MISS_M,
    REPLAN,
    STEP_M,
    TwinReach,
    load,
    whim,
)

CUBE = np.array([0.50, 0.10, 0.045])
PLATE = np.array([0.45, -0.15, 0.016])
TASK = "put the red cube on the yellow plate"
HIT, MISS = 2, 0
DOWN = (1.0, 0.0, 0.0, 0.0)


def picture() -> tuple[Array, Array, Camera]:
    """Return what a camera one metre above the table sees, and its calibration."""
    size, focal = CAMERA.height, 300.0
    K = np.array([[focal, 0.0, size / 2], [0.0, focal, size / 2], [0.0, 0.0, 1.0]])
    T = np.eye(4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    T[:3, 3] = (0.5, 0.0, 1.0)
    image = np.full((size, size, 3), 180, dtype=np.uint8)
    depth = np.ones((size, size), dtype=np.float32)
    column, row = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5)
    for place, half, colour in ((CUBE, 0.0225, (200, 20, 20)), (PLATE, 0.07, (230, 200, 20))):
        z = 1.0 - place[2]
        x, y = 0.5 + (column - size / 2) / focal * z, -(row - size / 2) / focal * z
        inside = (abs(x - place[0]) < half) & (abs(y - place[1]) < half)
        image[inside], depth[inside] = colour, z
    return image, depth, Camera(CAMERA.name, read_only(K), read_only(T))


def seen(t: float, site: Array, opening: float = 0.08, blind: bool = False) -> Observation:
    state = ArmState(read_only(site), read_only(DOWN), read_only(np.zeros(7)), opening, 0.0)
    image, depth, camera = picture()
    if blind:
        image = np.full_like(image, 180)
    return Observation(
        Proprio(t, (state,)),
        TASK,
        {CAMERA.name: read_only(image, np.uint8)},
        {CAMERA.name: read_only(depth, np.float32)},
        {CAMERA.name: camera},
    )


def driven(policy: TwinReach, ticks: int, opening: float = 0.08) -> tuple[Array, Array]:
    """Return where the grip site was, and how the gripper was commanded, at every tick."""
    site, sites, grips = np.array([0.42, 0.0, 0.32]), [], []
    for tick in range(0, ticks, REPLAN):
        for row in policy.infer(seen(tick / 20.0, site, opening)).actions[:REPLAN]:
            site = site + FOLLOWS * STEP_M * row[:3]
            sites.append(site)
            grips.append(row[6])
    return np.array(sites), np.array(grips)


def first_closing(sites: Array, grips: Array) -> Array:
    return np.asarray(sites[np.argmax(grips > 0.0)])


def test_it_closes_where_the_thing_stands_and_opens_over_the_plate() -> None:
    policy = load("twin/reach")
    policy.reset(TASK, HIT)
    sites, grips = driven(policy, 300)
    assert np.abs(first_closing(sites, grips)[:2] - CUBE[:2]).max() < 0.02
    closed = np.flatnonzero(grips > 0.0)
    let_go = sites[closed[-1] + 1]
    assert np.abs(let_go[:2] - PLATE[:2]).max() < 0.02
    assert sites[-1][2] > 0.1
    assert grips[-1] < 0.0


def test_a_seed_that_misses_closes_beside_the_thing_across_the_fingers_and_carries_on() -> None:
    policy = load("twin/reach-clumsy")
    assert whim(MISS, 0.5).missed
    assert not whim(HIT, 0.5).missed
    policy.reset(TASK, MISS)
    sites, grips = driven(policy, 300)
    missed = first_closing(sites, grips) - CUBE
    assert abs(missed[0]) == pytest.approx(MISS_M, abs=0.02)
    assert abs(missed[1]) < 0.02
    assert np.abs(sites[np.flatnonzero(grips > 0.0)[-1]][:2] - PLATE[:2]).max() < 0.02


def test_reset_with_something_in_the_hand_goes_on_with_it() -> None:
    policy = load("twin/reach-clumsy")
    policy.reset(TASK, MISS)
    sites, grips = driven(policy, 60, opening=0.045)
    assert (grips[:20] > 0.0).all()
    assert np.abs(sites[-1][:2] - PLATE[:2]).max() < 0.05


def test_what_is_not_seen_is_waited_for() -> None:
    policy = load("twin/reach")
    policy.reset(TASK, HIT)
    site = np.array([0.42, 0.0, 0.32])
    rows = policy.infer(seen(0.0, site, blind=True)).actions
    assert not rows[:, :6].any()
    assert policy.infer(seen(0.2, site)).actions[:, :3].any()


def test_equal_seeds_give_equal_rows() -> None:
    one, other = load("twin/reach-clumsy"), load("twin/reach-clumsy")
    for policy in (one, other):
        policy.reset(TASK, 5)
    site = np.array([0.42, 0.0, 0.32])
    assert np.array_equal(one.infer(seen(0.0, site)).actions, other.infer(seen(0.0, site)).actions)


def test_it_refuses_what_it_does_not_understand() -> None:
    policy = load("twin/reach")
    with pytest.raises(SpecMismatch, match="comes before"):
        policy.infer(seen(0.0, np.zeros(3)))
    with pytest.raises(ConfigError, match="say it like"):
        policy.reset("tidy the kitchen", 0)
    policy.reset(TASK, 0)
    with pytest.raises(SpecMismatch, match="needs picture"):
        policy.infer(Observation(seen(0.0, np.zeros(3)).proprio, TASK, {}, {}, {}))
    with pytest.raises(ConfigError, match="unknown policy"):
        load("twin/grab")
