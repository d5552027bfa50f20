"""Conformal calibration of a library: reference ranks, and the bound itself."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.critics.calibration import (
    LEVELS,
    Scores,
    calibrate,
    conformal_rank,
    sure_bound,
    sure_rank,
    values_at,
)
from zetta.critics.parameters import Parameter, parse_parameters
from zetta.runtime.errors import ConfigError

# n: conformal rank at alpha .05 and .10, then the ranks that hold with 90 % confidence.
REFERENCE = {
    19: (19, 18, None, None),
    20: (20, 19, None, None),
    39: (38, 36, None, 38),
    50: (49, 46, 50, 49),
    99: (95, 90, 98, 94),
    100: (96, 91, 99, 95),
    200: (191, 181, 195, 186),
    500: (476, 451, 482, 460),
}


@pytest.mark.parametrize("n", REFERENCE)
def test_ranks_are_those_of_the_reference_table(n: int) -> None:
    ranks = (
        conformal_rank(n, 0.05),
        conformal_rank(n, 0.10),
        sure_rank(n, 0.05),
        sure_rank(n, 0.10),
    )
    assert ranks == REFERENCE[n]


def test_the_sure_bound_is_the_inverse_of_the_sure_rank() -> None:
    assert sure_bound(100, 95) <= 0.10 < sure_bound(100, 94)


def draw(rng: np.random.Generator, n: int) -> Scores:
    """Draw scores of five critics that depend on one another through the episode."""
    mood = rng.normal(size=(n, 1))
    raw = mood + rng.normal(size=(n, 5)) + np.array([0.0, 1.0, -1.0, 2.0, 0.5])
    return np.clip(np.rint(2.0 * raw), 0, LEVELS).astype(np.int64)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_the_share_of_new_successes_with_any_alarm_stays_below_alpha(alpha: float) -> None:
    rng = np.random.default_rng(11)
    names = list("abcde")
    shares = []
    for _ in range(60):
        found = calibrate(names, draw(rng, 60), draw(rng, 60), alpha)
        fresh = draw(rng, 400)
        fires = [
            fresh[:, j] > level
            for j, name in enumerate(names)
            if (level := found.levels[name]) is not None
        ]
        shares.append(np.any(fires, axis=0).mean() if fires else 0.0)
    # Sixty calibrations: the standard error of the mean is below half a percent.
    assert np.mean(shares) <= alpha + 0.012
    assert np.mean(shares) > 0.1 * alpha


def test_uncalibrated_critics_would_have_broken_the_bound() -> None:
    rng = np.random.default_rng(11)
    assert (draw(rng, 400) > 0).any(axis=1).mean() > 0.5


def test_too_few_successes_switch_every_critic_off() -> None:
    rng = np.random.default_rng(1)
    found = calibrate(list("abcde"), draw(rng, 20), draw(rng, 18), 0.05)
    assert set(found.levels.values()) == {None}
    assert found.rank is None


def test_a_critic_that_never_fires_on_successes_keeps_its_defaults() -> None:
    rng = np.random.default_rng(2)
    fit, held_out = draw(rng, 60), draw(rng, 60)
    fit[:, 0] = held_out[:, 0] = 0
    assert calibrate(list("abcde"), fit, held_out, 0.1).levels["a"] == 0


def test_a_critic_that_fires_in_every_success_at_every_level_is_switched_off() -> None:
    rng = np.random.default_rng(2)
    fit, held_out = draw(rng, 60), draw(rng, 60)
    fit[:, 0] = held_out[:, 0] = LEVELS + 1
    assert calibrate(list("abcde"), fit, held_out, 0.1).levels["a"] is None


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_an_alpha_that_is_no_share_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match="alpha"):
        calibrate(["a"], np.ones((3, 1), dtype=np.int64), np.ones((3, 1), dtype=np.int64), alpha)


def test_levels_move_parameters_from_their_defaults_to_the_strict_bound() -> None:
    parameters = {
        "hold": Parameter("hold", 0.2, 0.1, 1.2, stricter="up"),
        "far": Parameter("far", 0.1, 0.0, 0.2, stricter="down"),
        "rise": Parameter("rise", 0.1, 0.0, 0.2),
    }
    assert values_at(parameters, 0) == {"hold": 0.2, "far": 0.1}
    assert values_at(parameters, LEVELS) == pytest.approx({"hold": 1.2, "far": 0.0})


def test_stricter_is_up_or_down() -> None:
    text = '[a]\ndefault = 1\nlow = 0\nhigh = 2\nstricter = "sideways"\n'
    (problem,) = parse_parameters(text)[1]
    assert "stricter" in str(problem)
    parameters, problems = parse_parameters(text.replace("sideways", "down"))
    assert not problems
    assert parameters["a"].stricter == "down"
