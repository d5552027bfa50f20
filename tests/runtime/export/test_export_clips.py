"""Which episodes and ticks are chosen, and what is left out and counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.export.export_runs import FACTS, SKILL_AT, SKILL_TICKS, Sweeping, columns_of, log
from tests.runtime.scripted_parts import ScriptedArbiter, toy
from zetta.runtime.core import Abort, Init, Scene
from zetta.runtime.episode_log import HEADER, EpisodeHeader, EpisodeLog, read_episode
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.export.clips import Clip, Selection, Wishes, select, stretches
from zetta.runtime.export.features import state_names, whole_state
from zetta.runtime.loop import Episode
from zetta.runtime.records import from_json, to_json
from zetta.sims.toy import ToySimulator


def rewrite(folder: Path, **changes: object) -> None:
    """Change the header of a log."""
    header = from_json(EpisodeHeader, json.loads((folder / HEADER).read_text()))
    (folder / HEADER).write_text(json.dumps(to_json(replace(header, **changes))))  # type: ignore[arg-type]


def test_failed_machinery_and_oracles_are_left_out_and_counted(tmp_path: Path) -> None:
    log(tmp_path / "a")
    log(tmp_path / "b")
    log(tmp_path / "c", facts=replace(FACTS, sensing="oracle"))
    rewrite(tmp_path / "b", complete=False)
    chosen = select([tmp_path], Wishes())
    assert [Path(clip.folder).name for clip in chosen.clips] == ["a"]
    assert chosen.skipped == {"cut short by an error": 1, "with oracle sensing": 1}
    with_oracle = select([tmp_path], Wishes(with_oracle=True))
    assert [Path(clip.folder).name for clip in with_oracle.clips] == ["a", "c"]


def test_an_episode_that_an_oracle_drove_is_left_out_whatever_it_sensed(tmp_path: Path) -> None:
    episode = log(tmp_path / "a")
    log(tmp_path / "b")
    result = replace(episode.header.result, sources={"oracle:expert": 24})
    rewrite(tmp_path / "a", result=result)
    assert select([tmp_path], Wishes()).skipped == {"with oracle sensing": 1}


def test_only_solved_episodes_where_that_is_wanted(tmp_path: Path) -> None:
    episode = log(tmp_path / "a")
    log(tmp_path / "b")
    rewrite(tmp_path / "a", result=replace(episode.header.result, success=True))
    chosen = select([tmp_path], Wishes(successes=True))
    assert [Path(clip.folder).name for clip in chosen.clips] == ["a"]
    assert chosen.skipped == {"not solved": 1}


def test_interventions_become_clips_with_a_margin(tmp_path: Path) -> None:
    episode = log(tmp_path / "a", ticks=40, skills=(5, 25))
    log(tmp_path / "b", skills=())
    chosen = select([tmp_path], Wishes(only_interventions=True, margin=3))
    spans = [(clip.first, clip.first + clip.ticks) for clip in chosen.clips]
    assert spans == [(2, 5 + SKILL_TICKS + 3), (22, 25 + SKILL_TICKS + 3)]
    assert chosen.skipped == {"without interventions": 1}
    columns = columns_of(episode, chosen).of(episode, chosen.clips[0])
    assert columns["tick"].tolist() == list(range(2, 5 + SKILL_TICKS + 3))
    assert columns["intervention"].tolist() == [False] * 3 + [True] * SKILL_TICKS + [False] * 3
    assert not columns["next.done"].any()  # the episode went on


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 6))
def test_clips_hold_every_intervention_once_and_nothing_farther_than_the_margin(
    driven: list[bool], margin: int
) -> None:
    sources = ["skill:a" if skill else "policy" for skill in driven]
    covered = [i for first, end in stretches(sources, margin) for i in range(first, end)]
    expected = {
        i for i in range(len(driven))
        if any(driven[max(0, i - margin) : i + margin + 1])
    }  # fmt: skip
    assert covered == sorted(expected)


def test_two_control_rates_or_actions_do_not_go_into_one_data_set(tmp_path: Path) -> None:
    episode = log(tmp_path / "a")
    log(tmp_path / "b")
    rewrite(tmp_path / "b", spec=replace(episode.header.spec, control_hz=10.0))
    with pytest.raises(SpecMismatch, match=r"another control rate .*10 Hz, expected 20 Hz"):
        select([tmp_path], Wishes())
    action = replace(episode.header.spec.action, frame="hand")
    rewrite(tmp_path / "b", spec=replace(episode.header.spec, action=action))
    with pytest.raises(SpecMismatch, match="another action"):
        select([tmp_path], Wishes())


def test_a_folder_without_logs_and_a_selection_of_nothing_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no logged episode"):
        select([tmp_path], Wishes())
    log(tmp_path / "a")
    with pytest.raises(ConfigError, match="1 not solved"):
        select([tmp_path], Wishes(successes=True))


def test_clips_of_one_world_follow_each_other(tmp_path: Path) -> None:
    log(tmp_path / "1", task=0)
    log(tmp_path / "2", task=1)
    log(tmp_path / "3", task=0)
    chosen = select([tmp_path], Wishes())
    assert [Path(clip.folder).name for clip in chosen.clips] == ["1", "3", "2"]


def test_each_number_of_a_state_has_a_name_of_its_own() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_two_arm", 0)
    proprio = env.reset(Scene(simulator.task("toy_two_arm", 0), Init(0))).proprio
    parts = whole_state(proprio)
    names = state_names(parts, env.spec.arms)
    assert len(set(names)) == len(names)
    assert names[0] == "left_ee_x"
    assert names[-1].startswith("right_joint_")


def test_an_aborted_episode_ends_without_success(tmp_path: Path) -> None:
    env, scene = toy(30)
    sinks = [EpisodeLog(tmp_path / "a", "toy", FACTS)]
    Episode(env, scene, ScriptedArbiter({SKILL_AT: Abort("no")}), Sweeping(), sinks=sinks).run()
    episode = read_episode(tmp_path / "a")
    chosen = select([tmp_path], Wishes())
    columns = columns_of(episode, chosen).of(episode, chosen.clips[0])
    assert columns["next.done"].tolist() == [*[False] * (SKILL_AT - 1), True]
    assert not columns["next.success"].any()


def test_success_counts_from_the_tick_after_which_the_goal_held(tmp_path: Path) -> None:
    episode = log(tmp_path / "a")
    result = replace(episode.header.result, success=True, first_success=20)
    episode = replace(episode, header=replace(episode.header, result=result))
    clip = Clip("a", "", ("toy", "toy_pick", 0, "fast"), "", 0, 24)
    selection = Selection(episode.header.spec, (clip,), ("policy", "skill:lift"))
    columns = columns_of(episode, selection).of(episode, clip)
    assert np.flatnonzero(columns["next.success"]).tolist() == [19, 20, 21, 22, 23]
    assert np.flatnonzero(columns["next.reward"]).tolist() == [19]
