"""The figures of `zetta bench arm`: what they are made of, not how good this machine is."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import served
from zetta.hw_drivers.simple_side import GRIPPER_MAX, HOME, SimpleSide
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.bench_arm import SERVING, Measured, arm_figures, figures_of, measured
from zetta.runtime.cli.bench_wire import ready_child
from zetta.runtime.core import EpisodeResult, Init, Scene, Task
from zetta.runtime.errors import ConfigError

NAMES = (
    "arm_late_ticks",
    "arm_wake_p99",
    "arm_state_age_p50",
    "arm_state_age_p99",
    "arm_watchdog_holds",
    "arm_command_p50",
    "arm_command_p99",
)


def seen(late: int = 1, holds: int = 0, age_s: float = 0.004, wake_s: float = 0.002) -> Measured:
    result = EpisodeResult(
        scene=Scene(Task("arm", 0, "sway", 200), Init(0)),
        success=False,
        reason="truncated",
        ticks=200,
        sources={"skill:bench": 200},
        interventions=0,
        wall_s=10.0,
        late_ticks=late,
    )
    return Measured(result, holds, [0.001] * 200, [wake_s] * 200, [age_s] * 600, [0.007] * 200)


def by_name(figures: list[Figure]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


def test_figures_are_shares_quantiles_and_a_ratio_to_the_bare_timer() -> None:
    figures = by_name(figures_of(seen()))

    assert tuple(figures) == NAMES
    assert figures["arm_late_ticks"].value == 0.5
    assert figures["arm_state_age_p99"].value == pytest.approx(4.0)
    assert figures["arm_command_p50"].value == pytest.approx(7.0)
    wake = figures["arm_wake_p99"]
    assert (wake.value, wake.baseline) == (pytest.approx(2.0), pytest.approx(1.0))
    assert wake.ratio == pytest.approx(0.5)
    assert wake.met is None


@pytest.mark.parametrize(
    ("measured", "name"),
    [
        (seen(late=3), "arm_late_ticks"),
        (seen(holds=1), "arm_watchdog_holds"),
        (seen(age_s=0.021), "arm_state_age_p99"),
    ],
)
def test_a_target_that_is_missed_is_told(measured: Measured, name: str) -> None:
    good, bad = by_name(figures_of(seen())), by_name(figures_of(measured))

    assert good[name].met is True
    assert bad[name].met is False


def test_the_loop_on_an_arm_is_measured_tick_by_tick() -> None:
    side = SimpleSide()
    with served(side) as running:
        figures = by_name(measured(running.url, 1.0, 20.0, still=False))

    assert tuple(figures) == NAMES
    assert all(math.isfinite(figure.value) for figure in figures.values())
    assert figures["arm_wake_p99"].baseline is not None
    heights = np.array([target.ee_pos for target in side.targets])
    assert float(np.ptp(heights[:, 1])) > 0.0  # it swayed


def test_a_running_arm_is_let_hold(capsys: pytest.CaptureFixture[str]) -> None:
    side = SimpleSide()
    with served(side) as running:
        line = ("bench", "arm", "--sim", "toy", "--suite", "toy_pick", "--url", running.url)
        with pytest.raises(SystemExit) as left:
            cli.main((*line, "--seconds", "1", "--json"))
    answer = json.loads(capsys.readouterr().out)

    assert left.value.code == 0
    assert tuple(figure["name"] for figure in answer["figures"]) == NAMES
    assert len(side.targets) > 0
    for target in side.targets:
        assert target.ee_pos == pytest.approx(HOME, abs=1e-9)
        assert target.gripper_opening == pytest.approx(GRIPPER_MAX)


def test_the_arm_of_its_own_runs_in_another_process() -> None:
    command = [sys.executable, "-c", SERVING.format(side="simple")]
    with ready_child(command) as (line, process):
        url = json.loads(line)["url"]
        assert url.startswith("tcp://127.0.0.1:")
        assert process > 0
        figures = by_name(measured(url, 0.5, 20.0, still=True))
    assert tuple(figures) == NAMES


@pytest.mark.parametrize(("seconds", "hz"), [(60.0, 0.5), (60.0, 500.0), (0.2, 20.0)])
def test_what_is_no_measurement_is_refused(seconds: float, hz: float) -> None:
    with pytest.raises(ConfigError, match="1 to 200 Hz for 10 ticks"):
        arm_figures(seconds, hz)
