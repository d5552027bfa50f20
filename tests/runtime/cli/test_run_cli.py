"""`zetta run` and `zetta replay` as a user meets them, on the toy world."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image as Pillow

from zetta.runtime import registry
from zetta.runtime.cli import assemble, run_episodes
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.live import LiveLine
from zetta.runtime.cli.options import check_arms
from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import ArmState, Array, EnvSpec, Init, Proprio, RunSpec, Scene, Step, Tick
from zetta.runtime.episode_log import read_episode
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.pictures import moments, strip_moments
from zetta.runtime.policies.random_actions import ONE_ARM, action_of
from zetta.sims.remote import RemoteEnv
from zetta.sims.toy import ToyEnv, ToySimulator
from zetta.sims.toy_tasks import toy_task

EXPERT = ("--policy", "oracle/expert", "--sensing", "oracle")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def leave(*args: str) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    assert isinstance(left.value.code, int)
    return left.value.code


def answer_of(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    """Run `zetta run --sim toy --json` and return the one object it prints."""
    assert leave("run", "--sim", "toy", "--json", *args) == code
    out = capsys.readouterr().out
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


# --------------------------------------------------------------------------- what it answers


def test_the_json_answer_keeps_its_contract(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_of(capsys, *EXPERT, "--episodes", "2", "--init", "3")

    first, second = answer["episodes"]
    promised = {
        "suite", "task", "init", "seed", "instruction", "success", "ticks", "sources",
        "interventions", "wall_s", "log", "error",
    }  # fmt: skip
    everywhere = {"versions", "bundle", "policy", "render_profile", "sensing", "command"}
    assert promised <= set(first)
    assert everywhere <= set(answer)
    assert (first["init"], second["init"]) == (3, 4)
    assert first["success"]
    assert first["error"] is None
    assert first["sources"] == {"oracle:expert": first["ticks"]}
    assert (answer["successes"], answer["n"], answer["errors"]) == (2, 2, 0)
    assert answer["interval"] == pytest.approx([0.342, 1.0], abs=1e-3)
    assert answer["policy"]["name"] == "oracle/expert"
    assert answer["oracle"] is True
    assert answer["versions"]["toy"]


def test_the_run_folder_holds_logs_strips_and_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = answer_of(capsys, *EXPERT, "--out", "here")

    (episode,) = answer["episodes"]
    record = read_episode(Path(episode["log"]))
    assert Path(episode["log"]).is_relative_to(Path("here").absolute())
    assert record.header.result.success
    assert record.header.run.sensing == "oracle"
    assert record.header.run.command.startswith("zetta ")
    assert json.loads(Path("here/run.json").read_text()) == answer
    with Pillow.open(episode["strip"]) as strip:
        assert strip.width > 8 * 150


def test_the_last_line_is_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("run", "--sim", "toy", *EXPERT, "--video") == 0

    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    path = Path(lines[-1].removeprefix("look at "))
    assert path.suffix == ".mp4"
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    record = read_episode(path.parent)
    assert frames == len(moments(record, every=2))
    assert seconds == pytest.approx(record.header.result.ticks / 20, abs=0.3)
    assert "solved 1/1 (95 % interval 21-100 %) [oracle]" in lines
    assert "building the world" in captured.err


def test_with_the_simulator_alone_it_says_what_to_try_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert leave("run", "--sim", "toy") == 0

    captured = capsys.readouterr()
    assert "toy/reach" in captured.err
    assert "zetta run --sim toy --list" in captured.out


def test_an_unsolved_episode_is_a_result_unless_success_is_required(
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = ("run", "--sim", "toy", "--policy", "random")

    assert leave(*args) == 0
    assert "solved 0/1" in capsys.readouterr().out
    assert leave(*args, "--require-success") == 1


def test_several_tasks_run_in_processes_of_their_own_and_come_back_in_order(
    capfd: pytest.CaptureFixture[str],
) -> None:
    args = ("--task", "2,0", "--episodes", "2", "--seed", "5", "--init", "sampled")
    assert leave("run", "--sim", "toy", "--json", *EXPERT, *args) == 0
    answer = json.loads(capfd.readouterr().out)

    scenes = [(e["task"], e["init"], e["seed"]) for e in answer["episodes"]]
    assert scenes == [(2, "sampled", 5), (2, "sampled", 6), (0, "sampled", 5), (0, "sampled", 6)]
    assert all(Path(e["log"]).is_dir() for e in answer["episodes"])
    assert answer["n"] == 4


def test_two_runs_at_once_with_closed_stdin_never_collide() -> None:
    program = (sys.executable, "-m", "zetta.runtime.cli.main", "run", "--sim", "toy", "--video")
    line = f"exec {shlex.join([*program, '--json', *EXPERT])} <&-"
    children = [
        subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [json.loads(child.communicate()[0]) for child in children]

    assert [child.returncode for child in children] == [0, 0]
    folders = {answer["folder"] for answer in answers}
    assert len(folders) == 2
    assert all(answer["episodes"][0]["video"] for answer in answers)


def test_realtime_runs_no_faster_than_the_control_rate(capsys: pytest.CaptureFixture[str]) -> None:
    (episode,) = answer_of(capsys, *EXPERT, "--realtime")["episodes"]

    assert episode["wall_s"] >= (episode["ticks"] - 1) / 20


# --------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--sim", "toi"), "unknown simulator 'toi'; did you mean 'toy'"),
        (("--sim", "toy", "--suite", "toy_pik"), "did you mean 'toy_pick'"),
        (("--sim", "toy", "--task", "99"), "tasks 0 to 3, not 99"),
        (("--sim", "toy", "--task", "x"), "--task takes numbers"),
        (("--sim", "toy", "--init", "99"), "has the inits 0-9, got 99"),
        (("--sim", "toy", "--init", "8", "--episodes", "3"), "got 10"),
        (("--sim", "toy", "--init", "first"), "--init is a number or 'sampled'"),
        (("--sim", "toy", "--seed", "-1"), "a seed is 0 or greater"),
        (("--sim", "toy", "--episodes", "0"), "at least 1"),
        (("--sim", "toy", "--policy", "zetta/tinny"), "did you mean 'zetta/tiny'"),
        (("--sim", "toy", "--policy", "oracle/expret"), "did you mean 'oracle/expert'"),
        (("--sim", "toy", "--policy", "oracle/expert"), "add --sensing oracle"),
        (("--sim", "toy", "--sensing", "visoin"), "did you mean 'vision'"),
        (("--sim", "toy", "--sensing", "proprio"), "sensing level 'proprio'"),
        (("--sim", "toy", "--policy", "random", "--temperature", "1"), "has no temperature"),
        (("--sim", "toy", "--render", "fats"), "did you mean 'fast'"),
        (("--sim", "toy", "--list", "--suite", "toy_swop"), "did you mean 'toy_swap'"),
        (("--sim", "toy", "--suite", "toy_two_arm"), "policy"),
    ],
)
def test_what_does_not_exist_costs_one_clear_sentence(
    args: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("run", *args) == 1

    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1
    assert words in error[0]
    assert "unexpected" not in error[0]


def test_without_libero_it_names_the_install_line_and_the_toy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(assemble, "find_spec", lambda package: None)

    assert leave("run", "--sim", "libero") == 1
    error = capsys.readouterr().err
    assert "pip install 'zetta[libero]'" in error
    assert "zetta run --sim toy" in error


def test_a_used_folder_is_not_written_into(capsys: pytest.CaptureFixture[str]) -> None:
    Path("used").mkdir()
    Path("used/thesis.txt").touch()

    assert leave("run", "--sim", "toy", *EXPERT, "--out", "used") == 1
    assert "already holds 'thesis.txt'" in capsys.readouterr().err


# --------------------------------------------------------------------------- errors on the way


class FaultyEnv(ToyEnv):
    """Its machinery fails in init 1."""

    def reset(self, scene: Scene) -> Step:
        step = super().reset(scene)
        self.faulty = scene.layout == Init(1)
        return step

    def step(self, action: Array) -> Step:
        step = super().step(action)
        if self.faulty and step.proprio.t > 0.2:
            raise InfraError("the cable came off")
        return step


class FaultySimulator(ToySimulator):
    """Named by its dotted name, like any simulator."""

    def make(self, suite: str, index: int, render: str = "fast", faults: Any = None) -> ToyEnv:
        return FaultyEnv(toy_task(suite, index), render)


def test_an_infrastructure_error_is_no_score_and_the_next_episode_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "SIMS", {"toy": f"{__name__}:FaultySimulator"})
    answer = answer_of(capsys, *EXPERT, "--episodes", "3", code=1)

    errors = [episode["error"] for episode in answer["episodes"]]
    assert errors == [None, "InfraError: the cable came off", None]
    assert (answer["successes"], answer["n"], answer["errors"]) == (2, 2, 1)
    broken = read_episode(Path(answer["episodes"][1]["log"]))
    assert not broken.header.complete
    assert len(broken.ticks) == answer["episodes"][1]["ticks"] > 0


def test_a_video_that_fails_costs_the_episode_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise InfraError("no encoder")

    monkeypatch.setattr(run_episodes, "write_video", fail)
    assert leave("run", "--sim", "toy", "--json", *EXPERT, "--video") == 0
    captured = capsys.readouterr()

    (episode,) = json.loads(captured.out)["episodes"]
    assert episode["success"]
    assert episode["video"] is None
    assert episode["strip"]
    assert "no picture of this episode: no encoder" in captured.err


def test_a_child_that_dies_is_an_error_of_its_episodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    answer = answer_of(capsys, *EXPERT, "--task", "0-1", code=1)

    assert ["ended with code 1" in episode["error"] for episode in answer["episodes"]] == [True] * 2
    assert answer["n"] == 0


def test_what_a_child_finished_before_it_was_killed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    killed = tmp_path / "killed"
    killed.write_text(f'#!/bin/sh\n{sys.executable} "$@" --episodes 1 >&2\nkill -9 $$\n')
    killed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killed))
    args = ("run", "--sim", "toy", "--json", *EXPERT, "--task", "0-1", "--episodes", "2")

    assert leave(*args) == 1
    episodes = json.loads(capfd.readouterr().out)["episodes"]
    assert [(e["task"], e["init"], e["success"]) for e in episodes] == [
        (0, 0, True),
        (0, 1, False),
        (1, 0, True),
        (1, 1, False),
    ]
    assert "ended with code -9" in episodes[1]["error"]


# --------------------------------------------------------------------------- the plan


def test_scenes_depend_on_the_options_alone() -> None:
    specs = plan(Wishes("toy", tasks="1-2", init="2", episodes=2, seed=9), ToySimulator())

    scenes = [(spec.task, spec.layout, spec.seed) for spec in specs]
    assert scenes == [(1, Init(2), 9), (1, Init(3), 9), (2, Init(2), 9), (2, Init(3), 9)]


def test_all_tasks_of_a_suite_can_be_asked_for() -> None:
    specs = plan(Wishes("toy", tasks="all"), ToySimulator())

    assert [spec.task for spec in specs] == list(range(ToySimulator().suites()["toy_pick"]))


@pytest.mark.parametrize("text", ["", "1,1", "0-2,1", "2-1", "-1", "1-", "1,,2"])
def test_a_list_of_tasks_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--task"):
        plan(Wishes("toy", tasks=text or " "), ToySimulator())


def test_listing_gives_every_task_of_every_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("run", "--sim", "toy", "--list", "--json") == 0
    suites = json.loads(capsys.readouterr().out)["suites"]
    assert {s["suite"]: len(s["tasks"]) for s in suites} == ToySimulator().suites()

    assert leave("run", "--sim", "toy", "--list", "--suite", "toy_stack") == 0
    assert "stack the red cube" in capsys.readouterr().out


# --------------------------------------------------------------------------- the composition root


def spec(**changes: Any) -> RunSpec:
    return replace(RunSpec("toy", "toy_pick", 0, Init(0), policy="toy/reach"), **changes)


def test_the_environment_of_the_last_task_is_kept() -> None:
    assembler = Assembler()
    first, second = assembler.assemble(spec()), assembler.assemble(spec(layout=Init(1)))
    other = assembler.assemble(spec(task=1))

    assert first.env is second.env
    assert other.env is not first.env


def test_a_simulator_that_draws_with_opengl_gets_one_task_for_each_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assemble, "MANY_WORLDS", frozenset())
    assembler = Assembler()
    assembler.assemble(spec())

    with pytest.raises(InfraError, match="each task in a process of its own"):
        assembler.assemble(spec(task=1))


def test_a_world_in_a_process_of_its_own_gives_the_same_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assemble, "MANY_WORLDS", frozenset())
    apart, within = Assembler(), Assembler()
    try:
        remote = apart.assemble(spec(options={"worker": "yes"}))
        assert isinstance(remote.env, RemoteEnv)
        results = [made.episode.run() for made in (remote, within.assemble(spec()))]
        assert replace(results[0], wall_s=0.0) == replace(results[1], wall_s=0.0)
        # A worker ends with its world, so another task may follow.
        other = apart.assemble(spec(task=1, options={"worker": "yes"}))
        assert other.env is not remote.env
    finally:
        apart.close()


def test_a_spec_alone_is_enough_for_an_episode() -> None:
    result = assemble.assemble(spec(policy="oracle/expert", sensing="oracle")).run()

    assert result.success
    assert result.sources == {"oracle:expert": result.ticks}


@pytest.mark.parametrize(
    "changes", [{"bundle": "b1"}, {"options": {"temprature": "1"}}, {"policy": "no/such"}]
)
def test_an_unknown_part_of_a_spec_is_refused(changes: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        assemble.assemble(spec(**changes))


def test_random_motion_of_several_arms_says_how_to_name_them() -> None:
    action = action_of(("left", "right"))
    two = EnvSpec("twins", 20.0, action, (), arms=("left", "right"))
    check_arms(spec(policy="random@left,right"), two)
    check_arms(spec(policy="random"), EnvSpec("one", 20.0, ONE_ARM, ()))

    with pytest.raises(ConfigError, match="--policy random@left,right"):
        check_arms(spec(policy="random"), two)


# --------------------------------------------------------------------------- the live line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_line_shows_tick_source_and_instruction_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    env = ToySimulator().make("toy_pick", 0)
    scene = Scene(env.toy.task, Init(0))
    step = env.reset(scene)
    arm = ArmState(np.zeros(3), np.zeros(4), np.zeros(7), 0.0)
    with LiveLine("episode 1/1") as line:
        line.begin(scene, env.spec, "put it there", step)
        line._shown = 0.0
        line.tick(Tick(41, Proprio(0.0, (arm,)), np.zeros(7), "skill:regrasp"), step, None)

    shown = terminal.getvalue()
    assert "tick 42/160" in shown
    assert "skill:regrasp" in shown
    assert shown.endswith("\x1b[2K") or shown.rstrip().endswith("\x1b[?25h")


# --------------------------------------------------------------------------- zetta replay


@pytest.fixture
def episode(capsys: pytest.CaptureFixture[str]) -> Path:
    answer = answer_of(capsys, *EXPERT, "--out", "logged")
    return Path(answer["episodes"][0]["log"])


def test_replay_draws_the_same_strip_again(
    episode: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("replay", str(episode), "--strip", "again.png", "--json") == 0

    assert json.loads(capsys.readouterr().out)["written"] == [str(Path("again.png").resolve())]
    with Pillow.open(episode / "strip.png") as first, Pillow.open("again.png") as again:
        assert np.array_equal(first, again)


def test_replay_writes_a_film_of_one_camera(
    episode: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--video", "f.mp4", "--camera", "wrist", "--every", "5")
    assert leave("replay", "logged", *args) == 0

    record = read_episode(episode)
    frames, _ = imageio_ffmpeg.count_frames_and_secs("f.mp4")
    assert frames == len(moments(record, every=5))
    assert capsys.readouterr().out.splitlines()[-1] == f"look at {Path('f.mp4').resolve()}"


def test_replay_never_overwrites_and_names_what_is_missing(
    episode: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.mp4").touch()
    for args, words in (
        ((str(episode), "--video", "mine.mp4"), "exists already"),
        ((str(episode), "--video", "no/where.mp4"), "there is no folder"),
        (("nowhere",), "there is no folder nowhere"),
        ((".", "--camera", "wrst", "--strip", "s.png"), "did you mean 'wrist'"),
        ((str(episode), "--every", "0"), "--every"),
    ):
        assert leave("replay", *args) == 1
        assert words in capsys.readouterr().err
    assert Path("mine.mp4").stat().st_size == 0


def test_a_strip_has_the_first_and_the_last_moment(episode: Path) -> None:
    record = read_episode(episode)
    chosen = strip_moments(record, 6)

    assert len(chosen) == 6
    assert (chosen[0].row, chosen[-1].row) == (0, len(record.ticks))
    assert (chosen[0].caption, chosen[-1].caption) == ("tick 0", "end: success")


def test_a_policy_that_runs_ahead_needs_real_time(capsys: pytest.CaptureFixture[str]) -> None:
    refused = answer_of(capsys, "--inference", "async", code=1)
    assert "needs --realtime" in refused["error"]["message"]
    refused = answer_of(capsys, "--inference", "asynk", code=1)
    assert "did you mean 'async'" in refused["error"]["message"]
    refused = answer_of(capsys, *EXPERT, "--realtime", "--inference", "async", code=1)
    assert "infers nothing" in refused["error"]["message"]


def test_the_manner_of_inference_is_part_of_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = answer_of(capsys, "--policy", "toy/reach-exact", "--realtime", "--inference", "async")

    (episode,) = answer["episodes"]
    assert answer["options"]["inference"] == "async"
    assert episode["error"] is None
    assert 0 < episode["inferences"] <= episode["ticks"] / 4 + 1
