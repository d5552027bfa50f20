"""`zetta bench rollouts`, `worker` and `--plot` on the toy."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cli_eval import answered, leave

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_plot import attained, draw_figures
from zetta.runtime.cli.bench_rollouts import episodes_per_minute
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.errors import InfraError
from zetta.runtime.rollouts.launchers import Job
from zetta.runtime.rollouts.pool import PoolSettings

HIGHER = Figure("rollouts", 40.0, "episodes/min", 25.0, 1.6, 1.7, higher_is_better=True)


def test_worker_and_rollouts_are_measured_in_one_command_and_drawn(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "figures.png"
    asked = ["bench", "worker", "rollouts", "--sim", "toy", "--blocks", "1", "--ticks", "20"]
    answer = answered(capfd, *asked, "--seconds", "1", "--plot", str(picture))
    figures = {figure["name"]: figure for figure in answer["figures"]}
    steps = figures["worker_toy_steps"]
    assert steps["ratio"] == pytest.approx(steps["value"] / steps["baseline"])
    assert (steps["target"], steps["higher_is_better"]) == (0.93, True)
    assert figures["worker_toy_steps_look_every_8"]["target"] is None
    rollouts = figures["rollouts_toy_two_processes"]
    assert rollouts["ratio"] == pytest.approx(rollouts["value"] / rollouts["baseline"])
    assert rollouts["target"] == 1.7
    assert answer["machine"]["load_average"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_too_few_episodes_for_a_block_are_an_error(tmp_path: Path) -> None:
    used = PoolSettings("faulty_episodes:make", tmp_path, stagger_s=0.0)
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy="oracle/expert", sensing="oracle")
    with pytest.raises(InfraError, match=r"1 episodes ended before 60 s had passed"):
        episodes_per_minute(used, [Job("0", "toy_pick/0", spec)], 60.0)


@pytest.mark.parametrize(
    ("figure", "times"),
    [
        (Figure("a", 5.0, "ms"), None),
        (Figure("a", 5.0, "ms", target=10.0), 2.0),
        (Figure("a", 5.0, "1/s", target=10.0, higher_is_better=True), 0.5),
        (Figure("a", 0.0, "MB/h", target=0.0), None),
        (HIGHER, pytest.approx(1.6 / 1.7)),
    ],
)
def test_bars_say_how_many_times_the_target_is_attained(
    figure: Figure, times: float | None
) -> None:
    assert attained(figure) == times


def test_figures_without_targets_are_not_drawn(tmp_path: Path) -> None:
    assert not draw_figures([Figure("a", 5.0, "ms")], tmp_path / "none.png")
    assert draw_figures([HIGHER], tmp_path / "one.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


def test_plot_that_cannot_be_drawn_is_refused_before_anything_is_measured(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert leave("bench", "loop", "--sim", "toy", "--plot", "figures.txt") == 1
    assert "--plot takes a .png, .svg or .pdf file" in capfd.readouterr().err

    monkeypatch.setattr("zetta.runtime.cli.bench_plot.find_spec", lambda name: None)
    assert leave("bench", "loop", "--sim", "toy", "--plot", "figures.png") == 1
    assert "pip install 'zetta[evolve]'" in capfd.readouterr().err
