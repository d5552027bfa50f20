"""`zetta eval` and `zetta bench` as a user meets them, on the toy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zetta.runtime import registry
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.evaluation_request import Typed, forecast, request, typed_command
from zetta.runtime.cli.number_lists import number_text, parse_numbers, parse_policies
from zetta.runtime.errors import ConfigError

EXPERT = ["--policies", "oracle/expert", "--sensing", "oracle"]
ONE_TASK = ["eval", "--sim", "toy", "--suites", "toy_pick", "--tasks", "0", *EXPERT]


def leave(*args: str) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    code = left.value.code
    assert isinstance(code, int)
    return code


def answered(capfd: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    """Run the command with `--json` and return its object."""
    assert leave(*args, "--json") == 0
    answer = json.loads(capfd.readouterr().out)
    assert isinstance(answer, dict)
    return answer


def test_json_answer_keeps_the_contract_and_the_folder_holds_the_tables(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    answer = answered(capfd, *ONE_TASK, "--inits", "0-1", "--out", str(out))
    arm = answer["arms"]["none"]
    assert (arm["successes"], arm["n"]) == (2, 2)
    assert arm["interval"] == pytest.approx([0.3424, 1.0], abs=1e-3)
    assert arm["suites"]["toy_pick"]["tasks"]["0"]["successes"] == 2
    assert answer["sensing"] == "oracle"
    assert answer["versions"]["toy"]
    assert answer["command"] == " ".join(
        ["zetta", *ONE_TASK[:-4], "--inits", "0-1", "--arms", "none", *EXPERT, "--render", "fast"]
    )
    tables = (out / "tables.md").read_text()
    assert "| none | 2/2 |" in tables
    assert answer["command"] in tables
    (shard,) = out.glob("*/episodes-*.jsonl")
    record = json.loads(shard.read_text().splitlines()[1])["record"]
    assert record["scene_digest"]
    assert record["sources"] == {"oracle:expert": record["ticks"]}
    assert record["predicates"] == {"on red_cube green_plate": True}


def test_parent_killed_in_mid_evaluation_is_resumed_to_the_same_tables(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["eval", "--sim", "toy", "--suites", "toy_pick", "--tasks", "0-1", *EXPERT]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    answered(capfd, *asked, "--out", str(whole))
    program = f"from zetta.runtime.cli.main import main; main({[*asked, '--out', str(killed)]!r})"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as parent:
        finished = wait_for_rows(killed, 3)
        parent.send_signal(signal.SIGKILL)
    assert 3 <= finished < 20
    assert not (killed / "results.json").exists()
    answered(capfd, *asked, "--out", str(killed), "--resume")
    assert (killed / "tables.md").read_bytes() == (whole / "tables.md").read_bytes()


def wait_for_rows(out: Path, wanted: int, timeout_s: float = 60.0) -> int:
    """Return how many rows there are as soon as there are `wanted`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        rows = sum(path.read_bytes().count(b"\n") - 1 for path in out.glob("*/episodes-*.jsonl"))
        if rows >= wanted:
            return rows
        time.sleep(0.01)
    pytest.fail(f"fewer than {wanted} rows within {timeout_s} s")


def test_a_folder_with_foreign_files_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(SystemExit) as left:
        cli.main(["eval", "--sim", "toy", "--suites", "toy_pick", "--out", str(tmp_path)])
    assert left.value.code == 1
    assert "thesis.txt" in capfd.readouterr().err


def test_plan_alone_runs_nothing_and_counts_everything(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = answered(capfd, *ONE_TASK, "--policy-seeds", "0-2", "--plan")
    assert answer["plan"]["episodes"] == 10 * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("random@left,right", ("random@left,right",)),
        ("random@left,right, random", ("random@left,right", "random")),
        ("onnx:x@device=cpu,samples=4,toy/reach", ("onnx:x@device=cpu,samples=4", "toy/reach")),
        ("toy/reach,mine", ("toy/reach", "mine")),
    ],
)
def test_what_names_no_policy_belongs_to_the_one_before_it(
    text: str, names: tuple[str, ...]
) -> None:
    assert parse_policies(text, "--policies", registry.names("policies")) == names


def test_a_forecast_counts_the_given_budget_of_ticks_in_plain_words() -> None:
    simulator = find_simulator("toy")
    typed = Typed("toy", "toy_pick", tasks="0", inits="0", policies="toy/reach")
    one = forecast(request(typed, simulator), simulator, 1)
    given = request(replace(typed, options=("step_budget=7",), inits="0-4"), simulator)
    several = forecast(given, simulator, 1)

    assert one.most_ticks == simulator.task("toy_pick", 0).max_steps
    assert "1 task x 1 scene x 1 arm = 1 episode, at most" in str(one)
    assert several.most_ticks == 5 * 7
    assert "1 task x 5 scenes x 1 arm = 5 episodes, at most 35 ticks" in str(several)


def test_second_evaluation_in_a_folder_without_resume_is_refused_in_one_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    answered(capfd, *ONE_TASK, "--inits", "0", "--out", out)
    assert leave(*ONE_TASK, "--inits", "0", "--out", out) == 1
    assert "already holds 1 of 1 episodes; add --resume" in capfd.readouterr().err
    assert leave(*ONE_TASK, "--inits", "1", "--out", out, "--resume") == 1
    assert "another evaluation" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"suites": "toy_pik"}, "no suite 'toy_pik'; did you mean 'toy_pick'"),
        ({"tasks": "9"}, "'toy_pick' has tasks 0 to 3, not 9"),
        ({"inits": "0-99"}, "has the inits 0-9, got 10"),
        ({"tasks": "x"}, "--tasks takes numbers such as 0-9"),
        ({"tasks": "3-1"}, "runs backwards"),
        ({"tasks": "1,1"}, "names a number twice"),
        ({"policies": "toy/reech"}, "did you mean 'toy/reach'"),
        ({"policies": "toy/reach,left"}, "unknown policy 'left'"),
        ({"policies": "random@left,right,random@left,right"}, "each once"),
        ({"options": ("step_budget=0",)}, "at least 1; got '0'"),
        ({"arms": "none,none"}, "each once"),
        ({"arms": "bundels/x"}, "unknown bundle 'bundels/x'"),
        ({"layout": "smapled"}, "--layout is init or sampled"),
        ({"layout": "sampled"}, "takes --seeds"),
        ({"seeds": "0-3"}, "--seeds belongs to --layout sampled"),
        ({"sensing": "orcale"}, "did you mean 'oracle'"),
        ({"temperature": "warm"}, "is a number, got 'warm'"),
        ({"options": ("noise",)}, "takes NAME=VALUE"),
        ({"options": ("nois=1",)}, "did you mean 'noise'"),
        ({"suites": "toy_pick,toy_stack"}, "different numbers of tasks"),
    ],
)
def test_bad_request_is_refused_before_anything_starts(typed: dict[str, Any], said: str) -> None:
    asked = {"sim": "toy", "suites": "toy_pick", "policies": "toy/reach", **typed}
    with pytest.raises(ConfigError) as refused:
        request(Typed(**asked), find_simulator("toy"))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "typed",
    [
        Typed("toy", "toy_pick,toy_slip", tasks="0,2-3", inits="1-3", arms="none"),
        Typed("toy", "toy_pick", layout="sampled", seeds="4-6", policies="toy/reach,random"),
        Typed("toy", "toy_pick", policies="random@left,right,toy/reach,random"),
        Typed("toy", "toy_pick", policy_seeds="0-7", temperature="1", options=("noise=0.1",)),
        Typed("toy", "toy_pick", sensing="oracle", render="full,fast", policies="oracle/expert"),
    ],
)
def test_reported_command_asks_for_the_same_evaluation(typed: Typed) -> None:
    simulator = find_simulator("toy")
    evaluation = request(typed, simulator)
    _, _, *words = typed_command(evaluation).split()
    names = [word[2:].replace("-", "_") for word in words[::2]]
    values = dict(zip(names, words[1::2], strict=True))
    options = tuple(filter(None, [values.pop("option", "")]))
    assert request(Typed(**values, options=options), simulator) == evaluation


@pytest.mark.parametrize("text", ["0", "0-9", "0,2,5-7", "7-8,1"])
def test_lists_of_numbers_are_written_as_they_are_read(text: str) -> None:
    numbers = parse_numbers(text, "--tasks")
    assert parse_numbers(number_text(numbers), "--tasks") == numbers
    assert number_text(numbers) == text


def test_bench_prints_figures_with_their_targets(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "loop", "sim", "--sim", "toy", "--blocks", "1", "--ticks", "9"]
    answer = answered(capfd, *asked, "--pictures", "2")
    figures = {figure["name"]: figure for figure in answer["figures"]}
    wanted = {"name", "value", "baseline", "ratio", "target", "higher_is_better", "met"}
    assert all(wanted <= set(figure) for figure in figures.values())
    look = figures["look_every_8_ticks_fast"]
    assert look["target"] == 3.5
    assert look["ratio"] == pytest.approx(look["baseline"] / look["value"])
    assert look["met"] == (look["ratio"] >= 3.5)
    assert figures["loop_toy"]["baseline"] is None


def test_unknown_benchmark_is_named_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    assert leave("bench", "smi", "--sim", "toy") == 1
    assert "unknown benchmark 'smi'; did you mean 'sim'" in capfd.readouterr().err


def test_workers_have_one_thread_each() -> None:
    from zetta.runtime.cli.worker_environment import worker_environment

    variables = worker_environment("toy")
    assert variables["OMP_NUM_THREADS"] == "1"
    assert set(os.environ) <= set(variables)
