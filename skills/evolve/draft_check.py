"""A draft read as its readers will: loaded from files, and replayed by the real critic."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from zetta.critics.shadow import moments
from zetta.primitives.robot import Robot
from zetta.runtime.core import Array
from zetta.skills.compiled import CompiledSkill, compile_skill
from zetta.skills.evolve.authors import Draft, WatchedEpisode
from zetta.skills.evolve.window_arrays import Ticks
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.package_files import REPLAY
from zetta.skills.replay import Expectation, meet, replay, window_text
from zetta.skills.replay_cut import cut

BEFORE_S: Final = 5.0
AFTER_S: Final = 0.5
"""How much of an episode a replay window shows around the alarm."""


def load_draft(draft: Draft) -> SkillPackage:
    """Return the package that a draft is.

    Raises:
        ScreenError: something is wrong with it; a line for each problem.
    """
    with tempfile.TemporaryDirectory(prefix="zetta-") as parent:
        folder = Path(parent) / draft.name
        write_draft(draft, folder)
        return load_skill(folder)


def write_draft(draft: Draft, folder: Path) -> None:
    """Write the files of a draft into a folder, which is made."""
    for path, text in draft.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def replayed_alarms(package: SkillPackage, episodes: Sequence[WatchedEpisode]) -> Ticks:
    """Return the first tick of each episode at which the skill would start, or -1. Shape (E,)."""
    found = []
    for episode in episodes:
        skill = compile_skill(package, control_hz=episode.control_hz, robot=_no_robot)
        found.append(_first(skill, episode))
    return np.array(found, dtype=np.int64)


def with_windows(
    draft: Draft, package: SkillPackage, episodes: Sequence[WatchedEpisode], alarms: Ticks
) -> Draft:
    """Return the draft with a window of a failure on which it fires, and one of a success.

    Args:
        draft: without windows.
        package: the same, loaded.
        episodes: logged ones.
        alarms: first tick at which it starts in each, or -1. Shape (E,).
    """
    usual = int(np.median(alarms[alarms >= 0])) if (alarms >= 0).any() else 0
    windows: dict[str, str] = {}
    for episode, alarm in zip(episodes, alarms, strict=True):
        if not episode.success and alarm >= 0 and "fires" not in windows:
            windows |= _window(package, episode, int(alarm), "fires")
        if episode.success and alarm < 0 and "silent" not in windows and episode.ticks:
            windows |= _window(package, episode, min(usual, len(episode.ticks) - 1), "silent")
    named = {f"{REPLAY}/{expect}.json": text for expect, text in windows.items()}
    return replace(draft, files={**draft.files, **named})


def _window(
    package: SkillPackage, episode: WatchedEpisode, at: int, expect: Expectation
) -> Mapping[str, str]:
    """Return the text of a window by its expectation, or nothing when it is not met."""
    hz = episode.control_hz
    span = (
        max(0, at - round(BEFORE_S * hz)),
        min(len(episode.ticks), at + round(AFTER_S * hz) + 1),
    )
    columns = {name: _column(episode, name) for name in package.signals}
    source = f"a logged {'success' if episode.success else 'failure'}"
    window = cut(expect, columns, hz, expect, source, span)
    skill = compile_skill(package, control_hz=hz, robot=_no_robot)
    seen = replay(window, skill.critic, skill.precondition, package.signals)
    return {expect: window_text(window)} if meet(window, seen).passed else {}


def _column(episode: WatchedEpisode, name: str) -> Array:
    return np.array([tick.signals.get(name, np.nan) for tick in episode.ticks])


def _first(skill: CompiledSkill, episode: WatchedEpisode) -> int:
    for tick, history in moments(episode.ticks, episode.control_hz):
        if tick.signals.get("policy_drives", 1.0) <= 0.5 or not skill.critic.armed(history):
            continue
        if skill.critic.judge(history).decision == "recover" and skill.precondition(history):
            return tick.index
    return -1


def _no_robot() -> Robot:
    raise AssertionError("replaying starts no recovery")
