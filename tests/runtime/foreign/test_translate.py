"""Conventions are carried out exactly: pictures, states, commands, and the way back."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.runtime.core import ArmState, Observation, Proprio, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.foreign import pictures, states, translate
from zetta.runtime.foreign.conventions import Convention, Turn, convention
from zetta.runtime.foreign.robots import (
    CONVENTIONS,
    GR00T_LIBERO,
    GR00T_ROBOCASA,
    OPENPI_ALOHA,
    OPENPI_DROID,
    OPENPI_LIBERO,
)
from zetta.runtime.foreign.translate import Form

IDS = [f"{c.protocol}-{c.name}" for c in CONVENTIONS]


def forms(c: Convention) -> tuple[Form, ...]:
    return ("openpi",) if c.protocol == "openpi" else ("n1.5", "n1.6", "n1.6-flat")


EVERY = [(c, form) for c in CONVENTIONS for form in forms(c)]
EVERY_IDS = [f"{c.name}-{form}" for c, form in EVERY]


def observed(c: Convention, seed: int = 0) -> Observation:
    """Return what a robot of the convention could sense."""
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(c.arms):
        quat = rng.normal(size=4)
        arms.append(
            ArmState(
                read_only(rng.uniform(-0.5, 0.5, 3)),
                read_only(quat / np.linalg.norm(quat)),
                read_only(rng.uniform(-1, 1, c.joints)),
                float(rng.uniform(0, c.stroke_m)),
            )
        )
    base = read_only(rng.uniform(-1, 1, 3)) if c.name == "robocasa" else None
    images = {
        cam.name: read_only(rng.integers(0, 256, (cam.height, cam.width, 3)), np.uint8)
        for cam in c.cameras
    }
    return Observation(Proprio(0.4, tuple(arms), base), "stack the cups", images)


@pytest.mark.parametrize("c", CONVENTIONS, ids=IDS)
def test_a_convention_is_consistent(c: Convention) -> None:
    assert sum(part.size for part in c.rows) == c.action.size
    assert 1 <= c.replan_steps <= c.horizon
    assert len({p.path for p in c.pictures} | {s.path for s in c.states}) == len(c.pictures) + len(
        c.states
    )
    assert {c.action.gripper_open, c.action.gripper_close} == {c.action.low[-1], c.action.high[-1]}
    assert convention(c.protocol, c.name) is c


def test_an_unknown_convention_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="libero"):
        convention("openpi", "liberro")


# --------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("turn", ["none", "mirror", "flip", "rotate"])
def test_a_turn_undoes_itself_and_names_the_corner_that_comes_first(turn: Turn) -> None:
    image = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    corner = {"none": (0, 0), "mirror": (0, 2), "flip": (1, 0), "rotate": (1, 2)}[turn]
    assert pictures.turned(image, turn)[0, 0].tolist() == image[corner].tolist()
    assert np.array_equal(pictures.turned(pictures.turned(image, turn), turn), image)


def test_liberos_picture_is_the_raw_rows_rotated_as_the_published_client_does() -> None:
    upright = np.random.default_rng(0).integers(0, 256, (256, 256, 3)).astype(np.uint8)
    raw = upright[::-1]  # what robosuite hands out
    expected = np.ascontiguousarray(raw[::-1, ::-1])
    assert np.array_equal(pictures.turned(upright, OPENPI_LIBERO.pictures[0].turn), expected)


@pytest.mark.parametrize("shape", [(256, 256), (480, 640), (640, 480), (100, 100), (224, 224)])
def test_scaling_with_a_margin_equals_the_reference_to_the_bit(shape: tuple[int, int]) -> None:
    tools = pytest.importorskip(
        "openpi_client.image_tools", reason="needs openpi-client, which make setup installs"
    )
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    reference = tools.resize_with_pad(image, 224, 224)
    assert np.array_equal(pictures.padded(image, (224, 224)), reference)


@pytest.mark.parametrize("shape", [(256, 256), (480, 640), (720, 1280)])
def test_the_margin_is_cut_off_again(shape: tuple[int, int]) -> None:
    image = np.full((*shape, 3), 200, np.uint8)
    back = pictures.unpadded(pictures.padded(image, (224, 224)), shape)
    assert back.shape == image.shape
    assert (back == 200).all()


def test_aloha_pictures_have_their_channels_first() -> None:
    asked = translate.request(observed(OPENPI_ALOHA), "go", OPENPI_ALOHA, "openpi")
    assert asked["images"]["cam_high"].shape == (3, 224, 224)
    assert asked["state"].shape == (14,)


# --------------------------------------------------------------------------- states


def test_liberos_state_is_place_axis_angle_and_two_fingers() -> None:
    quat = np.array([0.9996, -0.0009, -0.0279, -0.0003])
    quat /= np.linalg.norm(quat)
    arm = ArmState(read_only([0.1, 0.2, 0.3]), read_only(quat), read_only(np.zeros(7)), 0.06)
    numbers = states.vector(Proprio(0.0, (arm,)), OPENPI_LIBERO.states[0].parts, OPENPI_LIBERO)
    assert numbers.shape == (8,)
    assert numbers[:3].tolist() == [0.1, 0.2, 0.3]
    # A negative w turns by more than half a turn: the axis is kept, not reversed.
    assert numbers[3] > math.pi * 0.99
    assert np.linalg.norm(numbers[3:6]) > math.pi
    assert numbers[6:].tolist() == [0.03, -0.03]


def test_axis_angles_equal_the_simulators_own() -> None:
    own = pytest.importorskip(
        "robosuite.utils.transform_utils", reason="needs zetta[libero]"
    ).quat2axisangle
    for quat in np.random.default_rng(2).normal(size=(50, 4)):
        unit = quat / np.linalg.norm(quat)
        assert np.array_equal(states.axis_angle(unit.copy()), own(unit.copy()))


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_a_quaternion_comes_back_with_its_sign(numbers: list[float]) -> None:
    quat = np.array(numbers) / np.linalg.norm(numbers)
    back = states.quaternion(states.axis_angle(quat))
    if abs(quat[3] + 1) > 1e-9:  # a whole turn has no axis
        np.testing.assert_allclose(back, quat, atol=1e-6)


def test_grippers_are_told_as_shares_the_two_ways() -> None:
    def share(c: Convention, opening: float) -> float:
        arm = ArmState(
            read_only(np.zeros(3)), read_only([0, 0, 0, 1]), read_only(np.zeros(c.joints)), opening
        )
        parts = tuple(p for s in c.states for p in s.parts if p.sense.startswith("gripper"))
        return float(states.vector(Proprio(0.0, (arm,) * c.arms), parts, c)[0])

    assert share(OPENPI_DROID, OPENPI_DROID.stroke_m) == 0.0
    assert share(OPENPI_DROID, 0.0) == 1.0
    assert share(OPENPI_ALOHA, OPENPI_ALOHA.stroke_m) == 1.0
    assert share(OPENPI_ALOHA, 0.0) == 0.0


def test_a_robot_of_another_make_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="arms"):
        states.vector(observed(OPENPI_DROID).proprio, OPENPI_ALOHA.states[0].parts, OPENPI_ALOHA)
    with pytest.raises(SpecMismatch, match="mobile base"):
        states.vector(
            observed(GR00T_LIBERO).proprio, GR00T_ROBOCASA.states[0].parts, GR00T_ROBOCASA
        )
    six = ArmState(read_only(np.zeros(3)), read_only([0, 0, 0, 1]), read_only(np.zeros(6)), 0.0)
    with pytest.raises(SpecMismatch, match="6 numbers of joint_pos"):
        states.vector(Proprio(0.0, (six,)), OPENPI_DROID.states[0].parts, OPENPI_DROID)


def test_a_missing_picture_is_named() -> None:
    seen = observed(OPENPI_LIBERO)
    partial = Observation(seen.proprio, "go", {"agentview": seen.images["agentview"]})
    with pytest.raises(SpecMismatch, match="wrist"):
        translate.request(partial, "go", OPENPI_LIBERO, "openpi")


# --------------------------------------------------------------------------- there and back


@pytest.mark.parametrize(("c", "form"), EVERY, ids=EVERY_IDS)
def test_a_request_is_read_back_as_what_was_sensed(c: Convention, form: Form) -> None:
    seen = observed(c)
    back = translate.observation(translate.request(seen, "stack", c, form), 1.5, c, form)
    assert back.instruction == "stack"
    assert back.proprio.t == 1.5
    told = {part.sense for state in c.states for part in state.parts}
    for ours, theirs in zip(seen.proprio.arms, back.proprio.arms, strict=True):
        assert theirs.gripper_opening == pytest.approx(ours.gripper_opening, abs=1e-6)
        if told & {"ee_pos", "ee_pos_base"}:
            np.testing.assert_allclose(theirs.ee_pos, ours.ee_pos, atol=1e-6)
            np.testing.assert_allclose(theirs.ee_quat, ours.ee_quat, atol=1e-6)
        else:
            assert np.isnan(theirs.ee_pos).all()
        if "joint_pos" in told:
            np.testing.assert_allclose(theirs.joint_pos, ours.joint_pos, atol=1e-6)
    for camera in c.cameras:
        assert back.images[camera.name].shape == (camera.height, camera.width, 3)


@pytest.mark.parametrize(("c", "form"), EVERY, ids=EVERY_IDS)
def test_an_answer_is_read_back_as_the_rows_that_were_given(c: Convention, form: Form) -> None:
    rng = np.random.default_rng(3)
    low, high = np.array(c.action.low), np.array(c.action.high)
    given_rows = rng.uniform(low, high, (c.horizon, c.action.size))
    for switch in c.switches:
        given_rows[:, switch.index] = rng.choice([low[switch.index], high[switch.index]], c.horizon)
    back = translate.rows(translate.answer(given_rows, c, form), c, form)
    np.testing.assert_allclose(back, given_rows, atol=1e-6)


def test_pictures_of_256_pixels_cross_gr00t_unchanged() -> None:
    seen = observed(GR00T_LIBERO)
    asked = translate.request(seen, "go", GR00T_LIBERO, "n1.6")
    assert asked["video"]["image"].shape == (1, 1, 256, 256, 3)
    assert asked["language"] == {"annotation.human.action.task_description": [["go"]]}
    back = translate.observation(asked, 0.0, GR00T_LIBERO, "n1.6")
    assert np.array_equal(back.images["agentview"], seen.images["agentview"])


def test_the_older_generation_has_flat_keys_and_one_axis_of_time() -> None:
    asked = translate.request(observed(GR00T_LIBERO), "go", GR00T_LIBERO, "n1.5")
    assert asked["video.image"].shape == (1, 256, 256, 3)
    assert asked["state.x"].shape == (1, 1)
    assert asked["state.gripper"].shape == (1, 2)
    assert asked["annotation.human.action.task_description"] == ["go"]


def test_gr00ts_one_opens_and_its_zero_closes_the_libero_gripper() -> None:
    answer = {f"action.{r.key}": np.zeros((2, 1), np.float32) for r in GR00T_LIBERO.rows}
    answer["action.gripper"] = np.array([[0.9], [0.1]], np.float32)
    ours = translate.rows(answer, GR00T_LIBERO, "n1.5")
    assert ours[:, 6].tolist() == [-1.0, 1.0]


def test_what_leaves_the_range_is_cut_as_the_controller_would() -> None:
    ours = translate.rows({"actions": np.full((10, 7), 1.3)}, OPENPI_LIBERO, "openpi")
    assert (ours == 1.0).all()


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"actions": np.zeros((10, 8))}, "rows of 7"),
        ({"actions": np.full((10, 7), np.nan)}, "not finite"),
        ({"actions": np.zeros((0, 7))}, "no rows"),
        ({"actions": [[0.0] * 7]}, "array"),
        ({"action": np.zeros((10, 7))}, "actions"),
        ([1, 2], "map"),
        (None, "map"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(answer: Any, said: str) -> None:
    with pytest.raises(SpecMismatch, match=said):
        translate.rows(answer, OPENPI_LIBERO, "openpi")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("observation/image", np.zeros((224, 224, 3), np.float32)),
        ("observation/image", np.zeros((3, 224, 224), np.uint8)),
        ("observation/image", np.zeros((0, 224, 3), np.uint8)),
        ("observation/image", "a picture"),
        ("observation/state", np.zeros(7)),
        ("observation/state", np.full(8, np.inf)),
        ("observation/state", [0.0] * 8),
        ("prompt", ""),
        ("prompt", "  "),
        ("prompt", 5),
        ("prompt", "x" * 10_000),
    ],
)
def test_a_request_that_does_not_fit_is_refused(key: str, value: Any) -> None:
    asked = translate.request(observed(OPENPI_LIBERO), "go", OPENPI_LIBERO, "openpi")
    with pytest.raises(SpecMismatch, match=key.rpartition("/")[2]):
        translate.observation(asked | {key: value}, 0.0, OPENPI_LIBERO, "openpi")
    del asked[key]
    with pytest.raises(SpecMismatch, match=key):
        translate.observation(asked, 0.0, OPENPI_LIBERO, "openpi")


def test_a_batch_of_several_robots_is_refused() -> None:
    asked = translate.request(observed(GR00T_LIBERO), "go", GR00T_LIBERO, "n1.6")
    video = cast(dict[str, Any], asked["video"])
    video["image"] = np.zeros((2, 1, 256, 256, 3), np.uint8)
    with pytest.raises(SpecMismatch, match="image"):
        translate.observation(asked, 0.0, GR00T_LIBERO, "n1.6")
