"""Signals in the log: nothing is lost, little is stored, what was logged can be judged again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scripted_parts import Notebook, ScriptedArbiter
from signal_runs import estimate

from zetta.runtime.core import Estimate, Init, Motion, Outcome, Scene, Start, Tick
from zetta.runtime.episode_log import TICKS, EpisodeLog, RunFacts, read_episode
from zetta.runtime.loop import Episode
from zetta.runtime.policies.toy_reach import load
from zetta.runtime.signals import names_up_to
from zetta.runtime.signals_source import Signals
from zetta.sims.toy import ToySimulator

BYTES_PER_TICK = 1000
"""630 were measured for 69 ticks with every signal up to vision; longer episodes need less."""


def rise(ticks: int) -> Motion:
    for _ in range(ticks):
        yield np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, -1.0])
    return Outcome(True)


def logged(folder: Path) -> tuple[tuple[Tick, ...], tuple[Tick, ...], Signals, Scene]:
    """Run an episode with a recovery; return its ticks as they happened and as they were read."""
    env = ToySimulator().make("toy_pick", 0)
    scene = Scene(env.toy.task, Init(1))
    policy = load("toy/reach")

    def look() -> Mapping[str, Estimate]:
        return {"object": estimate("object", (0.1, 0.2, 0.44), env.observe().proprio.t)}

    signals = Signals(env.spec, max_level="vision", policy=policy.spec, look=look)
    notebook = Notebook()
    log = EpisodeLog(folder, "toy", RunFacts("toy/reach", policy.spec))
    arbiter = ScriptedArbiter({15: Start(rise(6), "skill:rise")})
    Episode(env, scene, arbiter, policy, signals=signals, sinks=[notebook, log]).run()
    return tuple(notebook.ticks), read_episode(folder).ticks, signals, scene


def assert_same(one: Mapping[str, float], other: Mapping[str, float]) -> None:
    names = sorted(one)
    assert names == sorted(other)
    np.testing.assert_array_equal([one[n] for n in names], [other[n] for n in names])


def test_every_signal_and_every_nan_comes_back_from_the_log(tmp_path: Path) -> None:
    happened, read, signals, _ = logged(tmp_path / "episode")

    assert len(happened) == len(read) > 30
    assert set(read[0].signals) == set(signals.names) == names_up_to("vision")
    assert any(np.isnan(value) for value in read[0].signals.values())
    for one, other in zip(happened, read, strict=True):
        assert_same(one.signals, other.signals)


def test_a_log_with_every_signal_stays_small(tmp_path: Path) -> None:
    _, read, _, _ = logged(tmp_path / "episode")

    assert (tmp_path / "episode" / TICKS).stat().st_size < BYTES_PER_TICK * len(read)


def test_logged_ticks_give_the_logged_signals_again(tmp_path: Path) -> None:
    _, ticks, before, scene = logged(tmp_path / "episode")
    env = ToySimulator().make("toy_pick", 0)
    again = Signals(env.spec, max_level="proprio")
    again.begin(scene)
    last: Tick | None = None
    for tick in ticks:
        action, driving = (last.action, last.source) if last is not None else (None, "policy")
        said = again.update(tick.index, tick.proprio, action, None, driving)
        assert_same(said, {name: tick.signals[name] for name in again.names})
        last = tick

    assert set(again.names) == names_up_to("proprio")
    assert {tick.source for tick in ticks} == {"policy", "skill:rise"}
    for name in again.names:
        np.testing.assert_array_equal(again.history.last(name, 101), before.history.last(name, 101))
