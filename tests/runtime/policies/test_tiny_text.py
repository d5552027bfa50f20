"""Instructions as vectors."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.text import SIZE, encode


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pick the cream cheese and place it in the basket",) * 2,
        (
            "pick up the milk and place it in the basket",
            "Pick the milk, and put it in the basket.",
        ),
        ("open the cabinet's middle drawer", "open the cabinet’s middle drawer"),
        ("pick the akita black bowl on the stove", "pick up the black bowl on the stove"),
    ],
)
def test_words_that_open_any_instruction_do_not_count(one: str, other: str) -> None:
    assert np.array_equal(encode(one), encode(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("put the bowl on the plate", "put the plate on the bowl"),
        ("turn on the stove", "turn off the stove"),
        ("pick up the milk", "pick up the butter"),
    ],
)
def test_what_differs_in_meaning_differs_in_its_vector(one: str, other: str) -> None:
    a, b = encode(one), encode(other)
    assert float(a @ b) / SIZE < 0.9


def test_every_vector_has_the_same_length() -> None:
    for text in ("milk", "put both the alphabet soup and the tomato sauce in the basket"):
        assert np.mean(encode(text) ** 2) == pytest.approx(1.0, abs=1e-5)


def test_the_encoding_is_the_one_that_models_were_trained_with() -> None:
    signs = (encode("put the wine bottle on the rack") > 0).tobytes()
    assert hashlib.sha256(signs).hexdigest()[:16] == "3cfb2c4280f99ba8"


def test_an_instruction_without_meaning_is_refused() -> None:
    with pytest.raises(ConfigError, match="names nothing"):
        encode("pick it up and place it")
