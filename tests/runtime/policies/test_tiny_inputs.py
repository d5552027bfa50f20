"""What the network sees of an observation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Image
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.policies.tiny.inputs import (
    CAMERAS,
    TOP,
    CameraName,
    inside_px,
    network_inputs,
    network_px,
    proprio_vector,
    shrink_agent,
    shrink_wrist,
)

SHRINK = {"agentview": shrink_agent, "wrist": shrink_wrist}


@pytest.mark.parametrize("camera", CAMERAS)
@settings(deadline=None, max_examples=20)
@given(colour=st.tuples(*(st.integers(0, 255),) * 3))
def test_a_plain_picture_keeps_its_colour(camera: CameraName, colour: tuple[int, int, int]) -> None:
    picture = np.full((256, 256, 3), colour, np.uint8)
    assert np.array_equal(np.unique(SHRINK[camera](picture).reshape(-1, 3), axis=0), [colour])


def test_a_small_picture_is_the_area_average_of_the_large_one() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    fine = picture.astype(np.float64)
    thirds = fine.repeat(3, 0).repeat(3, 1).reshape(96, 8, 96, 8, 3).mean((1, 3))
    halves = fine.reshape(128, 2, 128, 2, 3).mean((1, 3))[TOP : TOP + 96]
    assert np.abs(shrink_wrist(picture) - thirds).max() <= 0.5
    assert np.abs(shrink_agent(picture) - halves).max() <= 0.5


@pytest.mark.parametrize("camera", CAMERAS)
def test_a_point_moves_with_the_picture(camera: CameraName) -> None:
    picture = np.zeros((256, 256, 3), np.uint8)
    picture[92:108, 152:168] = 255  # centre: column 160, row 100
    light = SHRINK[camera](picture)[..., 0].astype(np.float64)
    rows, columns = np.mgrid[: light.shape[0], : light.shape[1]] + 0.5
    centroid = [(columns * light).sum() / light.sum(), (rows * light).sum() / light.sum()]
    assert network_px(camera, [160.0, 100.0]) == pytest.approx(centroid, abs=0.02)


def test_what_was_cut_off_is_not_inside() -> None:
    points = network_px(
        "agentview", [[128.0, 2 * TOP - 1.0], [128.0, 2 * TOP + 1.0], [np.nan, 9.0]]
    )
    assert inside_px("agentview", points).tolist() == [False, True, False]


def test_a_missing_or_foreign_picture_is_refused_by_name() -> None:
    blobs, hand = tiny_blobs.scene(np.random.default_rng(0))
    seen = tiny_blobs.observation(blobs, hand)
    small: Image = np.zeros((128, 128, 3), np.uint8)
    with pytest.raises(SpecMismatch, match="wrist"):
        network_inputs(replace(seen, images={"agentview": seen.images["agentview"]}))
    with pytest.raises(SpecMismatch, match=r"\(128, 128, 3\)"):
        network_inputs(replace(seen, images={**seen.images, "wrist": small}))


def test_proprioception_holds_two_columns_of_the_rotation() -> None:
    turn = Rotation.from_rotvec([0.3, -1.0, 2.0])
    arm = replace(tiny_blobs.arm(np.array([0.1, 0.2, 0.3])), ee_quat=turn.as_quat())
    vector = proprio_vector(replace(arm, gripper_opening=0.05, gripper_velocity=-0.1))
    matrix = turn.as_matrix()
    expected = [0.1, 0.2, 0.3, *matrix[:, 0], *matrix[:, 1], 0.05, -0.1]
    assert vector == pytest.approx(expected, abs=1e-6)
