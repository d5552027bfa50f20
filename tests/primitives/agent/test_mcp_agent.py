"""The agent that decides in calls: what a call is answered with, and what stops it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from toy_calls import PATIENCE_S, toy_drive

from zetta.primitives.agent.drive_log import read_summary, read_turns
from zetta.primitives.agent.mcp_agent import McpAgent
from zetta.primitives.overlays import NO_OVERLAYS
from zetta.runtime.errors import ConfigError
from zetta.runtime.pacing import MonotonicClock


def test_a_call_is_answered_with_what_came_of_its_commands(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        came = drive.agent.submit(["move z -5", "gripper close"]).result(PATIENCE_S)
        assert [result.completed for result in came.results] == [True, True]
        moved = came.results[0].moved
        assert moved is not None
        assert moved[2] == pytest.approx(-0.05, abs=0.01)
        assert came.turn is not None
        assert came.turn.index == 1
        assert [picture.name for picture in came.turn.pictures] == ["front", "wrist"]


def test_refused_commands_move_nothing_and_say_why(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        came = drive.agent.submit(["move z 2", "pick green moon"]).result(PATIENCE_S)
        assert came.results == ()
        assert "green moon" in came.remarks[0]
        assert "nothing was carried out" in came.remarks[0]


def test_a_dry_run_refuses_what_a_call_would_refuse(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        good = drive.agent.rehearse(["move z -50"]).result(PATIENCE_S)
        assert good.understood == ("move z -20 cm; z -50 cm was clipped to -20 cm",)
        assert not good.refusal
        bad = drive.agent.rehearse(["move z 1", "fly away"]).result(PATIENCE_S)
        assert len(bad.understood) == 1
        assert "fly" in bad.refusal
        deep = drive.agent.rehearse(["move z -20"] * 4).result(PATIENCE_S)
        assert "workspace" in deep.refusal
        turn = drive.agent.turn
        assert turn is not None
        assert turn.index == 0  # nothing was decided


def test_looks_show_the_chosen_cameras_with_and_without_overlays(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        drawn, _ = drive.agent.look(["wrist"], None).result(PATIENCE_S)
        plain, moving = drive.agent.look(["wrist"], NO_OVERLAYS).result(PATIENCE_S)
        assert [picture.name for picture in plain.pictures] == ["wrist"]
        assert plain.pictures[0].image.shape == drawn.pictures[0].image.shape
        assert not np.array_equal(plain.pictures[0].image, drawn.pictures[0].image)
        assert moving == ""
        with pytest.raises(ConfigError, match="no camera 'attic'"):
            drive.agent.look(["attic"], None).result(PATIENCE_S)


def test_a_stop_ends_the_motion_and_what_was_to_follow(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log", MonotonicClock()) as drive:
        agent = drive.agent
        call = agent.submit(["wait 5", "move z -5"])
        while not agent.look((), None).result(PATIENCE_S)[1]:
            pass  # the paced world looks between two ticks
        with pytest.raises(ConfigError, match="still being carried out"):
            agent.submit(["move z 1"])
        assert agent.stop() == "wait 5 s"
        came = call.result(PATIENCE_S)
        assert [result.stop for result in came.results] == ["interrupted"]
        assert agent.stop() == ""
        again = agent.submit(["move z -1"]).result(PATIENCE_S)
        assert again.results[0].completed


def test_commands_that_nobody_took_up_can_be_stopped() -> None:
    agent = McpAgent()
    call = agent.submit(["move z 1"])
    assert agent.stop() == "commands that had not begun"
    came = call.result(0)
    assert came.results == ()
    assert came.remarks == ("it was stopped before it began",)
    agent.close()
    with pytest.raises(ConfigError, match="the episode is over: the agent was closed"):
        agent.submit(["move z 1"])


def test_after_the_end_every_call_is_refused(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        agent = drive.agent
        agent.leave("somebody leaves first")
        drive.thread.join(PATIENCE_S)
        assert agent.over.startswith("the episode is over: somebody leaves first")
        with pytest.raises(ConfigError, match="the episode is over"):
            agent.submit(["move z 1"])
        with pytest.raises(ConfigError, match="the episode is over"):
            agent.look((), None)
        with pytest.raises(ConfigError, match="the episode is over"):
            agent.stop()


def test_done_is_verified_and_the_log_holds_what_was_said(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log") as drive:
        denied = drive.agent.submit(["done"]).result(PATIENCE_S)
        assert denied.verification is not None
        assert denied.verification.verified is False
        assert denied.turn is not None
        drive.agent.remember("the cube is light")
        drive.agent.submit(["pick red cube", "place on yellow plate"]).result(PATIENCE_S)
        last = drive.agent.submit(["done"]).result(PATIENCE_S)
        assert last.turn is None
        assert last.over == (
            "the episode is over: done; by the evidence the task is done; "
            "the world counts it as solved"
        )
        drive.thread.join(PATIENCE_S)
        assert drive.result is not None
        assert drive.result.success
        assert set(drive.result.sources) == {"agent:mcp"}
    turns = read_turns(tmp_path / "log")
    assert [turn.answer.commands[0] for turn in turns] == ["done", "pick red cube", "done"]
    assert turns[-1].answer.memory == "the cube is light"
    summary = read_summary(tmp_path / "log")
    assert (summary.agent, summary.ended, summary.verified) == ("mcp", "done", True)


def test_who_leaves_during_a_motion_stops_it_and_ends_the_episode(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log", MonotonicClock()) as drive:
        call = drive.agent.submit(["wait 5", "wait 5"])
        while not drive.agent.look((), None).result(PATIENCE_S)[1]:
            pass
        drive.agent.leave("the client is gone")
        came = call.result(PATIENCE_S)
        assert [result.stop for result in came.results] == ["interrupted"]
        drive.thread.join(PATIENCE_S)
    summary = read_summary(tmp_path / "log")
    assert summary.ended == "the client is gone"
    assert summary.verified is False


def test_an_episode_without_ticks_left_answers_the_call_that_waits(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log", step_budget="30") as drive:
        came = drive.agent.submit(["wait 5"]).result(PATIENCE_S)
        assert came.over.startswith("the episode is over: the control steps")
        assert came.remarks == ("it ended while these commands were carried out",)


def test_an_episode_that_ends_by_itself_leaves_no_thread_that_waits(tmp_path: Path) -> None:
    with toy_drive(tmp_path / "log", MonotonicClock(), step_budget="3") as drive:
        drive.thread.join(PATIENCE_S)
        assert drive.agent.over.startswith("the episode is over: the control steps")
        for thread in threading.enumerate():
            if thread.name.startswith("agent"):
                thread.join(PATIENCE_S)
                assert not thread.is_alive()


def test_too_many_questions_at_a_time_are_refused(tmp_path: Path) -> None:
    from zetta.primitives.agent.called_cockpit import QUESTIONS_MOST, Questions

    questions = Questions()
    asked = [questions.ask(lambda: 1) for _ in range(QUESTIONS_MOST)]
    with pytest.raises(ConfigError, match="wait for theirs first"):
        questions.ask(lambda: 1)
    asked[0].cancel()
    assert questions.serve()
    assert questions.serve()
    assert asked[1].result(0) == 1
    questions.close("it is over")
    with pytest.raises(ConfigError, match="it is over"):
        asked[2].result(0)
    with pytest.raises(ConfigError, match="it is over"):
        questions.ask(lambda: 1)
