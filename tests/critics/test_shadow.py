"""Verdicts of a log equal those of the live run, the one that ended the episode included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.critics.critic_texts import compiled, critic_of
from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.monitor import CriticMonitor
from zetta.critics.shadow import replay_verdicts
from zetta.runtime.cli.replay_critics import _compare
from zetta.runtime.core import Init, Scene
from zetta.runtime.episode_log import EpisodeLog, LoggedEpisode, RunFacts, read_episode
from zetta.runtime.loop import Episode
from zetta.runtime.registry import policy
from zetta.runtime.signals import SIGNALS
from zetta.runtime.signals_source import Signals
from zetta.runtime.skill_arbiter import SkillArbiter
from zetta.sims.toy import ToySimulator
from zetta.skills.bundles import LoadedBundle, Watcher

DIGEST = "0" * 64


def text_after(seconds: float) -> str:
    """Return a critic that aborts after so many seconds."""
    body = f'if now(w.elapsed) >= {seconds}:\n    return abort("too long")\nreturn ok()'
    return critic_of(body).replace('SKILL = "regrasp"\n', "")


def monitor_after(seconds: float) -> CriticMonitor:
    return CriticMonitor([compiled(text_after(seconds))])


def bundle_after(seconds: float) -> LoadedBundle:
    checked = analyse_critic(text_after(seconds), "test.py", SIGNALS, {})
    assert isinstance(checked, CheckedCritic)
    watcher = Watcher("test", Path("test.py"), checked, SIGNALS)
    return LoadedBundle("own", watchers=(watcher,), digest=DIGEST)


def logged(folder: Path, seconds: float) -> LoggedEpisode:
    toy = ToySimulator()
    env, scene = toy.make("toy_pick", 0), Scene(toy.task("toy_pick", 0), Init(0))
    driver = policy("toy/reach")
    signals = Signals(env.spec, policy=driver.spec, max_level="policy")
    arbiter = SkillArbiter(monitor_after(seconds), {}, signals.history)
    log = EpisodeLog(folder, "toy", RunFacts("toy/reach", bundle_digest=DIGEST))
    Episode(env, scene, arbiter, driver, signals=signals, sinks=[log]).run()
    return read_episode(folder)


@pytest.mark.parametrize(("seconds", "ticks"), [(0.5, 10), (0.0, 0)])
def test_the_verdict_that_ended_an_episode_is_in_its_log_and_in_the_replay(
    tmp_path: Path, seconds: float, ticks: int
) -> None:
    episode = logged(tmp_path / "log", seconds)
    result = episode.header.result
    assert (result.reason, result.ticks, len(episode.ticks)) == ("abort", ticks, ticks)
    assert result.stop is not None
    assert result.stop.index == ticks
    (verdict,) = result.stop.verdicts
    assert (verdict.decision, verdict.evidence["elapsed"]) == ("abort", pytest.approx(seconds))
    again = replay_verdicts(episode.ticks, monitor_after(seconds), 20.0, result.stop)
    assert again == ((),) * ticks + (result.stop.verdicts,)
    assert any(np.isnan(value) for value in result.stop.signals.values())


def test_an_episode_that_ends_otherwise_has_no_stop(tmp_path: Path) -> None:
    episode = logged(tmp_path / "log", 99.0)
    assert episode.header.result.stop is None
    assert len(replay_verdicts(episode.ticks, monitor_after(99.0), 20.0)) == len(episode.ticks)


@pytest.mark.parametrize(
    ("seconds", "first", "differs_at"), [(0.5, 10, None), (0.3, 6, 6), (9.0, None, 10)]
)
def test_the_command_compares_the_last_verdict_too(
    tmp_path: Path, seconds: float, first: int | None, differs_at: int | None
) -> None:
    episode = logged(tmp_path / "log", 0.5)
    compared = _compare(tmp_path / "log", episode, bundle_after(seconds))
    assert (compared.first, compared.differs_at) == (first, differs_at)
    assert compared.same_bundle
