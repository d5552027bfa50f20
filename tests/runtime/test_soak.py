from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zetta.runtime.cli.bench_soak import series_figures, soak_figures
from zetta.runtime.errors import ConfigError
from zetta.runtime.soak import Slope, descendants, sample, slope

SECONDS = list(range(600))


def noise(spread: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, spread, len(SECONDS))


@given(st.floats(-1e3, 1e3), st.floats(-50.0, 50.0))
@example(0.0, 6.886060042461866e-161)
def test_slope_of_a_line_is_found_in_units_an_hour(start: float, per_hour: float) -> None:
    found = slope(SECONDS, [start + per_hour * second / 3600 for second in SECONDS])
    assert found.per_hour == pytest.approx(per_hour, abs=1e-6)
    assert found.low <= found.per_hour <= found.high


def test_interval_holds_zero_for_noise_and_not_for_a_leak_in_it() -> None:
    holds = [slope(SECONDS, 500.0 + noise(0.5, seed)) for seed in range(100)]
    assert sum(each.low <= 0.0 <= each.high for each in holds) >= 88  # 95 wanted; a fixed draw
    leaking = slope(SECONDS, 500.0 + noise(0.5) + 60.0 * np.array(SECONDS) / 3600)
    assert leaking.low > 10.0
    assert not leaking.negligible(10.0)


def test_what_happens_while_caches_fill_is_not_growth() -> None:
    filled = [500.0 + min(second, 150) for second in SECONDS]
    assert slope(SECONDS, filled) == Slope(0.0, 0.0, 0.0)


def test_too_few_samples_say_nothing() -> None:
    with pytest.raises(ValueError, match="need 24"):
        slope(range(20), range(20))


@pytest.mark.parametrize(
    ("found", "negligible"),
    [
        (Slope(5.0, -1.0, 11.0), True),
        (Slope(5.0, 4.0, 6.0), True),
        (Slope(9.0, 7.0, 11.0), False),
        (Slope(-20.0, -21.0, -19.0), True),
    ],
)
def test_growth_is_told_from_none_by_its_interval(found: Slope, negligible: bool) -> None:
    assert found.negligible(10.0) is negligible
    certain, *_ = series_figures("memory", "MB", 10.0, found)
    assert certain.met is negligible


def test_sample_sees_memory_files_and_children_of_a_process(tmp_path: Path) -> None:
    before = sample(0.0)
    hold = f"import sys; held = open({str(tmp_path / 'x')!r}, 'w'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = sample(1.0)
        below = descendants(os.getpid())
        child.communicate(b"\n")
    assert child.pid in below
    assert after.children_bytes - before.children_bytes > 1e6
    assert after.files >= before.files + 5  # our two pipe ends, its three, its file
    assert child.pid not in descendants(os.getpid())


def test_soak_of_no_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="--minutes must be at least 1"):
        soak_figures(0.5)


SOAK_MINUTES = 1.0


@pytest.mark.slow
@pytest.mark.timeout(60 * SOAK_MINUTES + 300)
def test_nothing_grows_over_rollouts_at_full_speed() -> None:
    figures = {figure.name: figure for figure in soak_figures(SOAK_MINUTES)}
    missed = {name: f.value for name, f in figures.items() if f.met is False}
    assert missed == {}
    assert figures["soak_rollouts"].value > 0
