"""What speaks for the diagnosis of one failure: the signals around the divergence, and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.core import SENSING_LEVELS, Env
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.runtime.pictures import choose_cameras, moments_at, write_strip
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.diagnosis import FailureDiagnosis

BEFORE_S: Final = 1.0
AFTER_S: Final = 1.5
STRIP_STEPS_S: Final = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0)
"""When the pictures of a strip were seen, seconds from the divergence."""
RESULTS: Final = "results"
"""Figures are kept below this folder, and never pictures."""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One tick."""

    tick: int
    source: str
    """Who acted."""
    signals: Mapping[str, float]
    """What could be sensed without simulator truth."""


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """The ticks around the divergence of one failure."""

    failure: FailureDiagnosis
    instruction: str
    rows: tuple[EvidenceRow, ...]


def evidence_of(failure: FailureDiagnosis, logged: LoggedEpisode) -> FailureEvidence:
    """Return the signals from a second before a divergence to a second and a half after it.

    Nothing of simulator truth is in them, so an author may read them. A failure without a
    divergence shows its end.
    """
    hz = logged.header.spec.control_hz
    centre = _centre(failure)
    first = max(centre - round(BEFORE_S * hz), 0)
    rows = [
        EvidenceRow(tick.index, tick.source, _sensed(tick.signals))
        for tick in logged.ticks[first : centre + round(AFTER_S * hz) + 1]
    ]
    return FailureEvidence(failure, logged.header.instruction, tuple(rows))


def write_failure_strip(
    path: Path, env: Env, failure: FailureDiagnosis, logged: LoggedEpisode
) -> None:
    """Draw the moments around a divergence again.

    Args:
        path: PNG to write, nowhere below a folder called `results`.
        env: holds the episode's scene.
        failure: whose divergence is shown.
        logged: its log, with poses.

    Raises:
        ConfigError: the path lies below `results`, or the log holds no poses.
        SpecMismatch: `env` cannot draw a logged moment.
        InfraError: the file cannot be written.
    """
    write_strip_around(path, env, logged, _centre(failure))


def write_strip_around(path: Path, env: Env, logged: LoggedEpisode, tick: int | None) -> None:
    """Draw the moments around a tick again, or without one the whole episode.

    Raises:
        ConfigError, SpecMismatch, InfraError: see `write_failure_strip`.
    """
    check_picture_folder(path.parent)
    hz = logged.header.spec.control_hz
    rows = [] if tick is None else [tick + round(step * hz) for step in STRIP_STEPS_S]
    write_strip(path, env, logged, choose_cameras(env.spec), chosen=moments_at(logged, rows))


def check_picture_folder(folder: Path) -> None:
    """Refuse to keep pictures where only figures are kept.

    Raises:
        ConfigError: `folder` is `results` or lies below it.
    """
    if RESULTS in folder.resolve().parts:
        raise ConfigError(
            f"{folder} lies below a folder {RESULTS!r}, where no pictures are kept; choose another "
            "folder with --out"
        )


def _centre(failure: FailureDiagnosis) -> int:
    return failure.ticks - 1 if failure.divergence is None else failure.divergence


def _sensed(signals: Mapping[str, float]) -> dict[str, float]:
    """Return what does not come from simulator truth; an installed signal has no level to doubt."""
    return {
        name: value
        for name, value in signals.items()
        if name not in SIGNALS or SIGNALS[name].level != SENSING_LEVELS[-1]
    }
