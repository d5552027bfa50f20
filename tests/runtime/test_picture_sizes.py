"""Pictures at any size: what they show, and that physics takes no notice."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.core import Env, Image, Init, Scene
from zetta.runtime.errors import ConfigError
from zetta.runtime.picture_sizes import PictureSize, SizedEnv, parse_size, pictures_of
from zetta.sims.remote import RemoteEnv
from zetta.sims.toy import ToyEnv, ToySimulator

SCENE = Scene(ToySimulator().task("toy_pick", 0), Init(0))
ACTION = np.array([0.4, -0.2, -0.5, 0.0, 0.0, 0.1, 1.0])


def made() -> ToyEnv:
    env = ToySimulator().make("toy_pick", 0)
    env.reset(SCENE)
    return env


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("big", "expected WIDTHxHEIGHT"),
        ("64x", "expected WIDTHxHEIGHT"),
        ("-64", "expected WIDTHxHEIGHT"),
        ("8", "16 to 4096"),
        ("99999x64", "16 to 4096"),
    ],
)
def test_what_is_no_size_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_size(text)


def test_a_height_alone_keeps_the_shape_of_each_camera() -> None:
    front, wrist = pictures_of(made(), ("front", "wrist"), PictureSize(96))

    assert front.shape == (96, 128, 3)
    assert wrist.shape == (96, 96, 3)


def test_a_larger_picture_shows_the_same_scene() -> None:
    env = made()
    (small,) = pictures_of(env, ("front",), None)
    (large,) = pictures_of(env, ("front",), PictureSize(small.shape[0] * 3))

    middles = large[1::3, 1::3]  # the same rays: the middle of a small pixel is that of a large one
    assert np.array_equal(middles, small)
    assert isinstance(env, SizedEnv)


def test_drawing_at_two_sizes_between_ticks_leaves_every_state_as_it_was() -> None:
    plain, drawn = made(), made()
    for _ in range(20):
        for size in (PictureSize(64), PictureSize(200, 100)):
            pictures_of(drawn, ("front", "wrist"), size)
        one, other = plain.step(ACTION), drawn.step(ACTION)
        assert one.success == other.success

    assert drawn.snapshot() == plain.snapshot()


def test_an_environment_in_a_process_of_its_own_draws_the_same_large_picture() -> None:
    with_worker = RemoteEnv("toy", "toy_pick", 0)
    try:
        with_worker.reset(SCENE)
        (there,) = pictures_of(with_worker, ("front",), PictureSize(120, 200))
    finally:
        with_worker.close()

    (here,) = pictures_of(made(), ("front",), PictureSize(120, 200))
    assert np.array_equal(there, here)


class OneSize(ToyEnv):
    """A world that draws at one size only."""

    def picture(self, camera: str, height: int, width: int) -> Image | None:
        return None


def test_a_world_that_draws_at_one_size_is_enlarged() -> None:
    env: Env = OneSize(made().toy)
    env.reset(SCENE)
    (large,) = pictures_of(env, ("wrist",), PictureSize(480))
    (own,) = pictures_of(env, ("wrist",), None)

    assert large.shape == (480, 480, 3)
    assert np.allclose(large[5::10, 5::10].astype(int).mean(), own.astype(int).mean(), atol=3)


def test_a_picture_that_would_be_too_wide_is_refused() -> None:
    with pytest.raises(ConfigError, match="each side"):
        pictures_of(made(), ("front",), PictureSize(4096))
