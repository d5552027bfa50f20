"""`--critic-isolation process` as a user meets it: equal verdicts, and errors that are no score."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from zetta.critics.confinement import why_not
from zetta.critics.isolation import IsolatedMonitor
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.assemble import Assembler, find_simulator
from zetta.runtime.cli.evaluation_request import Typed, request, typed_command
from zetta.runtime.cli.options import check_options
from zetta.runtime.cli.run_answer import _arguments
from zetta.runtime.cli.run_episodes import Manner
from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.episode_log import LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError

confinable = pytest.mark.skipif(why_not() != "", reason=why_not() or "this machine can confine")

RUN = (
    "run", "--sim", "toy", "--suite", "toy_swap", "--bundle", "starter", "--sensing", "oracle",
    "--json",
)  # fmt: skip
ISOLATED = ("--critic-isolation", "process")


def leave(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    assert isinstance(left.value.code, int)
    return left.value.code


def logs(out: Path) -> list[LoggedEpisode]:
    return [read_episode(path) for path in sorted((out / "episodes").iterdir())]


@confinable
def test_live_verdicts_equal_those_in_process_tick_for_tick(tmp_path: Path) -> None:
    plain, apart = tmp_path / "plain", tmp_path / "apart"
    assert leave(*RUN, "--episodes", "3", "--out", str(plain)) == 0
    assert leave(*RUN, "--episodes", "3", "--out", str(apart), *ISOLATED) == 0
    said = driven = 0
    for one, other in zip(logs(plain), logs(apart), strict=True):
        assert [t.verdicts for t in one.ticks] == [t.verdicts for t in other.ticks]
        assert [t.source for t in one.ticks] == [t.source for t in other.ticks]
        assert [t.action.tolist() for t in one.ticks] == [t.action.tolist() for t in other.ticks]
        assert one.header.result.recoveries == other.header.result.recoveries
        said += sum(bool(t.verdicts) for t in one.ticks)
        driven += sum(t.source != "policy" for t in one.ticks)
    assert said
    assert driven
    assert json.loads((apart / "run.json").read_text())["options"] == {
        "critic_isolation": "process"
    }


@confinable
def test_a_killed_process_is_an_error_with_exit_code_1_and_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = IsolatedMonitor.begin

    def begin_and_die(self: IsolatedMonitor) -> None:
        begin(self)
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(IsolatedMonitor, "begin", begin_and_die)
    assert leave(*RUN, "--out", str(tmp_path / "out"), *ISOLATED) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["n"], answer["successes"], answer["errors"]) == (0, 0, 1)
    assert "WorkerDied" in answer["episodes"][0]["error"]
    assert "SIGKILL" in answer["episodes"][0]["error"]


@confinable
def test_the_process_ends_with_what_assembled_its_episode() -> None:
    spec = RunSpec(
        "toy", "toy_swap", 0, Init(0), policy="toy/reach", bundle="starter", sensing="oracle",
        options={"critic_isolation": "process"},
    )  # fmt: skip
    assembler, pids = Assembler(), []
    for _ in range(2):
        episode = assembler.assemble(spec).episode
        with episode:
            episode.begin()
            episode.tick()
            assert assembler._deployed is not None
            assert assembler._deployed.isolated is not None
            pids.append(assembler._deployed.isolated.pid)
    assert Path(f"/proc/{pids[1]}").exists()
    assembler.close()
    assert pids[0] != pids[1]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("bundle", ["none", "starter"])
def test_an_unknown_isolation_is_refused_before_anything_is_built(bundle: str) -> None:
    spec = RunSpec("toy", "toy_pick", 0, Init(0), bundle=bundle, policy="toy/reach")
    wrong = {"critic_isolation": "proces"}
    with pytest.raises(ConfigError, match="did you mean 'process'"):
        check_options(RunSpec(**{**_fields(spec), "options": wrong}))


def _fields(spec: RunSpec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in RunSpec.__slots__}


@confinable
def test_the_wish_reaches_the_children_of_several_tasks_and_the_command_of_an_evaluation() -> None:
    toy = find_simulator("toy")
    specs = plan(Wishes("toy", tasks="0,1", bundle="starter", critic_isolation="process"), toy)
    arguments = _arguments(specs[0], specs, Manner())
    assert arguments[arguments.index("critic_isolation=process") - 1] == "--option"
    typed = Typed("toy", "toy_pick", arms="none,starter", policies="toy/reach", inits="0",
                  critic_isolation="process")  # fmt: skip
    evaluation = request(typed, toy)
    assert evaluation.options == {"critic_isolation": "process"}
    assert "--critic-isolation process" in typed_command(evaluation)


def test_the_default_is_written_nowhere() -> None:
    toy = find_simulator("toy")
    assert "critic_isolation" not in plan(Wishes("toy"), toy)[0].options
