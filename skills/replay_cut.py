"""Makes replay windows out of logged episodes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from zetta.runtime.core import Array, read_only
from zetta.runtime.episode_log import read_episode
from zetta.runtime.errors import ConfigError, suggest
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import REPLAY
from zetta.skills.package_page import NAME
from zetta.skills.replay import Expectation, ReplayWindow, window_text


def add_window(
    package: SkillPackage, episode: Path, ticks: str, expect: str, name: str = ""
) -> Path:
    """Write a part of a logged episode into a package, as a replay window.

    Args:
        package: gets the window, which changes its hash and breaks its signature.
        episode: folder of the episode's log.
        ticks: first and last tick, such as `60-120`.
        expect: what the critic must do on it.
        name: of the window; made of expectation, episode and ticks when it is empty.

    Returns:
        The file that was written.

    Raises:
        ConfigError: ticks, expectation or name are none, the log lacks a signal, or the window
            exists.
        SpecMismatch: the log is of another format.
    """
    span = re.fullmatch(r"(\d{1,7})-(\d{1,7})", ticks)
    if span is None:
        raise ConfigError(f"got the ticks {ticks!r}; expected first and last, such as 60-120")
    if expect not in get_args(Expectation):
        raise ConfigError(f"got {expect!r}; {suggest(expect, get_args(Expectation))}")
    name = name or f"{expect}-{episode.resolve().name}-{ticks}"
    if not NAME.fullmatch(name):
        raise ConfigError(f"the window cannot be named {name!r}; use words joined by hyphens")
    path = package.folder / REPLAY / f"{name}.json"
    first, last = int(span[1]), int(span[2])
    window = cut_episode(
        episode, name, package.signals, cast(Expectation, expect), (first, last + 1)
    )
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(window_text(window))
    except FileExistsError:
        raise ConfigError(f"{path} exists already; choose another name with --window") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    return path


def cut(
    name: str,
    ticks: Mapping[str, Array],
    control_hz: float,
    expect: Expectation,
    source: str,
    span: tuple[int, int],
) -> ReplayWindow:
    """Return a part of recorded signals as a replay window.

    Args:
        name: of the window.
        ticks: values by signal. Shape (T,) each.
        control_hz: ticks per second.
        expect: what the critic must do on it.
        source: where the values come from.
        span: first tick, and the tick after the last.

    Raises:
        ConfigError: the span lies outside the record.
    """
    first, after = span
    length = len(next(iter(ticks.values()))) if ticks else 0
    if not 0 <= first < after <= length:
        raise ConfigError(
            f"got the ticks {first} to {after - 1}; the record has the ticks 0 to {length - 1}"
        )
    signals = {signal: read_only(values[first:after]) for signal, values in ticks.items()}
    return ReplayWindow(name, control_hz, expect, None, source, signals)


def cut_episode(
    folder: Path, name: str, signals: Sequence[str], expect: Expectation, span: tuple[int, int]
) -> ReplayWindow:
    """Return a part of a logged episode as a replay window.

    Args:
        folder: of the episode's log.
        name: of the window.
        signals: what it is to hold.
        expect: what the critic must do on it.
        span: first tick, and the tick after the last.

    Raises:
        ConfigError: the log lacks a signal, or the span lies outside of it.
        SpecMismatch: the log is of another format.
    """
    episode = read_episode(folder)
    lacking = [s for s in signals if not any(s in tick.signals for tick in episode.ticks)]
    if lacking:
        raise ConfigError(
            f"the log {folder} lacks {', '.join(lacking)}; log an episode with --bundle and a "
            "bundle that reads them, or with --signals"
        )
    record = {
        signal: read_only([tick.signals.get(signal, math.nan) for tick in episode.ticks])
        for signal in signals
    }
    source = f"{folder.resolve().as_posix()}, ticks {span[0]} to {span[1] - 1}"
    return cut(name, record, episode.header.spec.control_hz, expect, source, span)
