"""A log is whole or absent, reads back as it was, and replays to the bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_parts import FixedRows, Notebook, ScriptedArbiter, ScriptedPolicy, toy

from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import (
    Abort,
    ArmState,
    EnvSpec,
    Init,
    Proprio,
    Sampled,
    Scene,
    Task,
    Tick,
    Truth,
    Verdict,
)
from zetta.runtime.episode_log import (
    HEADER,
    TRUTH,
    EpisodeLog,
    RunFacts,
    read_episode,
    read_header,
    read_truth,
)
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.loop import Episode
from zetta.runtime.records import from_json, to_json
from zetta.runtime.tick_tables import read_ticks, read_truth_table, write_ticks, write_truth_table
from zetta.sims.toy import ToySimulator

FACTS = RunFacts("scripted", versions={"toy": "1"}, command="zetta run --sim toy")


def logged(folder: Path, max_steps: int = 12) -> Notebook:
    """Log an episode of the scripted policy and keep what a second sink saw."""
    env, scene = toy(max_steps)
    notebook = Notebook()
    sinks = [EpisodeLog(folder, "toy", FACTS), notebook]
    Episode(env, scene, PolicyOnly(), ScriptedPolicy(), sinks=sinks).run()
    return notebook


def same_tick(one: Tick, other: Tick) -> bool:
    """Whether two ticks are bit-equal."""
    plain = [(t.index, t.source, t.verdicts, dict(t.signals), t.proprio.t) for t in (one, other)]
    arms = zip(one.proprio.arms, other.proprio.arms, strict=True)
    return (
        plain[0] == plain[1]
        and np.array_equal(one.action, other.action)
        and all(
            np.array_equal(a.ee_pos, b.ee_pos)
            and np.array_equal(a.ee_quat, b.ee_quat)
            and np.array_equal(a.joint_pos, b.joint_pos)
            and (a.gripper_opening, a.gripper_velocity) == (b.gripper_opening, b.gripper_velocity)
            for a, b in arms
        )
    )


def test_a_log_reads_back_as_the_sinks_saw_it(tmp_path: Path) -> None:
    notebook = logged(tmp_path / "e")
    record = read_episode(tmp_path / "e")

    assert record.header.result == notebook.results[0]
    assert record.header.run == FACTS
    assert record.header.spec.action.names == ToySimulator().make("toy_pick", 0).spec.action.names
    assert record.header.complete
    # A tick before the first chunk has no dispersion; in a column that is NaN.
    assert np.isnan(record.ticks[0].signals["dispersion"])
    assert all(map(same_tick, record.ticks[1:], notebook.ticks[1:]))
    assert record.poses is not None
    assert np.array_equal(record.poses, [*notebook.poses, notebook.last_pose])


def test_what_a_kernel_did_is_logged_with_its_tick(tmp_path: Path) -> None:
    ticks = read_episode(logged_folder(tmp_path)).ticks
    said = ["changed: speed", "", "refused: jump"]
    told = [replace(tick, guard=guard) for tick, guard in zip(ticks[:3], said, strict=True)]
    write_ticks(tmp_path / "t.parquet", told, ("arm",))
    assert [tick.guard for tick in read_ticks(tmp_path / "t.parquet", ("arm",))] == said
    assert {tick.guard for tick in ticks} == {""}


def logged_folder(folder: Path) -> Path:
    """Log an episode below `folder`; return where."""
    logged(folder / "e")
    return folder / "e"


def test_replaying_the_logged_actions_gives_bit_equal_poses(tmp_path: Path) -> None:
    env, scene = toy(160)
    expert = MotionOnly(lambda: ToySimulator().expert(env, noise=0.05, seed=3), "oracle:expert")
    Episode(env, scene, expert, sinks=[EpisodeLog(tmp_path / "e", "toy", FACTS)]).run()
    record = read_episode(tmp_path / "e")

    again = ToySimulator().make("toy_pick", 0)
    again.reset(record.header.scene)
    poses = [again.pose()]
    for tick in record.ticks:
        again.step(tick.action)
        poses.append(again.pose())
    assert record.header.result.success
    assert np.array_equal(record.poses, poses)


def test_truth_lies_in_a_file_of_its_own(tmp_path: Path) -> None:
    notebook = logged(tmp_path / "e")
    truths = read_truth(tmp_path / "e")
    moments = [notebook.settled, *notebook.steps]

    assert len(truths) == len(moments)
    for truth, step in zip(truths, moments, strict=True):
        assert truth is not None
        assert step.truth is not None
        assert truth.predicates == step.truth.predicates
        assert all(np.array_equal(truth.objects[n], p) for n, p in step.truth.objects.items())
    objects = notebook.settled.truth.objects if notebook.settled.truth else {}
    others = [p.read_bytes() for p in (tmp_path / "e").iterdir() if p.name != TRUTH]
    assert objects
    assert not any(name.encode() in content for name in objects for content in others)


def test_an_error_keeps_the_partial_log_and_marks_it(tmp_path: Path) -> None:
    rows = np.zeros((6, 7))
    rows[3, 0] = float("nan")
    env, scene = toy()
    log = EpisodeLog(tmp_path / "e", "toy", FACTS)
    with pytest.raises(SpecMismatch):
        Episode(env, scene, PolicyOnly(), FixedRows(rows), sinks=[log]).run()

    record = read_episode(tmp_path / "e")
    assert not record.header.complete
    assert record.header.result.reason == "error"
    assert "dx = nan" in record.header.result.detail
    assert len(record.ticks) == 3
    assert record.poses is not None
    assert len(record.poses) == 3
    assert list(tmp_path.iterdir()) == [tmp_path / "e"]


def test_an_episode_without_a_tick_is_logged(tmp_path: Path) -> None:
    env, scene = toy()
    log = EpisodeLog(tmp_path / "e", "toy", FACTS)
    arbiter = ScriptedArbiter({0: Abort("not today")})
    Episode(env, scene, arbiter, ScriptedPolicy(), sinks=[log]).run()

    record = read_episode(tmp_path / "e")
    assert record.ticks == ()
    assert record.poses is not None
    assert record.header.result.detail == "not today"


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from scripted_parts import Notebook, ScriptedPolicy, toy
from zetta.runtime.arbiter import PolicyOnly
from zetta.runtime.episode_log import EpisodeLog, RunFacts
from zetta.runtime.loop import Episode

class Killer(Notebook):
    def tick(self, tick, step, pose):
        if tick.index == 5:
            os.kill(os.getpid(), signal.SIGKILL)

env, scene = toy()
log = EpisodeLog(Path({folder!r}), "toy", RunFacts("scripted"))
Episode(env, scene, PolicyOnly(), ScriptedPolicy(), sinks=[log, Killer()]).run()
"""


def test_a_kill_in_mid_episode_leaves_nothing_that_is_named_as_whole(tmp_path: Path) -> None:
    script = KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path / "e"))
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)

    assert child.returncode == -signal.SIGKILL
    assert not (tmp_path / "e").exists()
    assert all(p.name.startswith(".") for p in tmp_path.iterdir())


def test_a_log_is_never_written_over_another(tmp_path: Path) -> None:
    logged(tmp_path / "e")
    with pytest.raises(ConfigError, match="exists already"):
        EpisodeLog(tmp_path / "e", "toy", FACTS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_infrastructure_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InfraError, match="cannot write the log"):
        logged(tmp_path / "e")


def test_a_log_that_cannot_be_finished_is_an_infrastructure_error(tmp_path: Path) -> None:
    env, scene = toy(3)

    class Blocker(Notebook):
        def tick(self, *moment: object) -> None:
            (tmp_path / "e").mkdir(exist_ok=True)
            (tmp_path / "e" / "foreign").touch()

    sinks = [EpisodeLog(tmp_path / "e", "toy", FACTS), Blocker()]
    with pytest.raises(InfraError, match="cannot write the log"):
        Episode(env, scene, PolicyOnly(), ScriptedPolicy(), sinks=sinks).run()
    assert not (tmp_path / "e" / HEADER).exists()


def nothing(folder: Path) -> None:
    folder.mkdir()


def no_json(folder: Path) -> None:
    folder.mkdir()
    (folder / HEADER).write_text("{")


def other_format(folder: Path) -> None:
    logged(folder)
    plain = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**plain, "format": "zetta-episode-99"}))


def unknown_field(folder: Path) -> None:
    logged(folder)
    plain = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**plain, "surprise": 1}))


def broken_table(folder: Path) -> None:
    logged(folder)
    (folder / "ticks.parquet").write_bytes(b"PAR1 not really")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (nothing, "is no episode log"),
        (no_json, "is not JSON"),
        (other_format, "zetta-episode-99"),
        (unknown_field, "surprise"),
        (broken_table, "cannot be read"),
    ],
)
def test_what_is_no_log_is_refused_in_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    damage(tmp_path / "e")
    with pytest.raises((ConfigError, SpecMismatch), match=words):
        read_episode(tmp_path / "e")


def test_a_header_is_read_without_its_tables(tmp_path: Path) -> None:
    logged(tmp_path / "e")
    (tmp_path / "e" / "ticks.parquet").unlink()

    assert read_header(tmp_path / "e").result.ticks == 12


# --------------------------------------------------------------------------- tables and records

finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=8)
verdicts = st.builds(
    Verdict,
    decision=st.sampled_from(["pass", "recover", "abort"]),
    reason=text,
    critic=text,
    skill=st.none() | text,
    evidence=st.dictionaries(text, finite, max_size=2),
)


@st.composite
def tick_lists(draw: st.DrawFn) -> list[Tick]:
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    odd = draw(st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, 1 / 3]))

    def arm() -> ArmState:
        return ArmState(
            rng.normal(size=3), rng.normal(size=4), rng.normal(size=6), odd, rng.normal()
        )

    return [
        Tick(
            index=i,
            proprio=Proprio(odd, (arm(), arm()), rng.normal(size=3)),
            action=rng.normal(size=14),
            source=draw(text),
            signals={"gap": odd, "odd name.1": rng.normal()},
            verdicts=tuple(draw(st.lists(verdicts, max_size=2))),
        )
        for i in range(draw(st.integers(0, 3)))
    ]


@settings(max_examples=25)
@given(tick_lists())
def test_ticks_of_two_arms_on_a_base_survive_the_table(
    tmp_path_factory: pytest.TempPathFactory, ticks: list[Tick]
) -> None:
    path = tmp_path_factory.mktemp("t") / "ticks.parquet"
    write_ticks(path, ticks, ("left", "right"))
    back = read_ticks(path, ("left", "right"))

    assert len(back) == len(ticks)
    assert all(map(same_tick, ticks, back))
    assert [repr(tick.proprio.base) for tick in back] == [repr(t.proprio.base) for t in ticks]


def test_truth_may_be_missing_at_single_moments(tmp_path: Path) -> None:
    truth = Truth({"cup": np.arange(7.0)}, {"on cup plate": True}, {"drawer": -0.1})
    write_truth_table(tmp_path / "t", [None, truth])
    nothing_known, back = read_truth_table(tmp_path / "t")

    assert nothing_known is None
    assert back is not None
    assert back.objects["cup"].tolist() == list(range(7))
    assert (back.predicates, back.joints) == (truth.predicates, truth.joints)


scenes = st.builds(
    Scene,
    task=st.builds(Task, text, st.integers(), text, st.integers()),
    layout=st.builds(Init, st.integers(0)) | st.just(Sampled()),
    seed=st.integers(0),
)


@given(scenes)
def test_a_scene_survives_json(scene: Scene) -> None:
    assert from_json(Scene, json.loads(json.dumps(to_json(scene)))) == scene


def test_every_convention_of_an_environment_survives_json() -> None:
    spec = ToySimulator().make("toy_two_arm", 0).spec

    assert from_json(EnvSpec, json.loads(json.dumps(to_json(spec)))) == spec


@pytest.mark.parametrize("plain", [3, {"seed": "x"}, {"task": 1}, {"no": 1}, {"layout": "other"}])
def test_what_is_no_record_is_refused(plain: object) -> None:
    with pytest.raises(SpecMismatch):
        from_json(Scene, plain)
