"""A bundle whose critics were calibrated: the record, and what it is made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from zetta.critics.calibration import LEVELS, Calibration, Scores, values_at
from zetta.critics.critic import Critic, compile_critic
from zetta.critics.parameters import bound_values
from zetta.critics.problems import read_program
from zetta.critics.shadow import moments
from zetta.primitives.roles import roles_or_none
from zetta.runtime.core import Tick
from zetta.runtime.embodiment import Embodiment
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.records import from_json, to_json
from zetta.runtime.signals import SignalHistory
from zetta.skills.bundles import LoadedBundle
from zetta.skills.package_files import CRITIC

Replayed: TypeAlias = tuple[Sequence[Tick], str, float]
"""Ticks, instruction and control rate of a logged episode."""


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """What `zetta critics calibrate` writes."""

    bundle: str
    digest: str
    """Of the bundle; a calibration holds for this set of critics and for no other."""
    policy: str
    """Its name; of one behind a socket what its server says that it is, and not the address."""
    policy_digest: str
    alpha: float
    sure_alpha: float
    fitted: int
    calibrated: int
    levels: Mapping[str, int | None]
    """By critic; null switches it off."""
    parameters: Mapping[str, Mapping[str, float]]
    """What the levels mean, by critic."""
    suites: tuple[str, ...] = ()
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    embodiment: Embodiment | None = None
    """On what the episodes ran; None in files of the time when there were simulators only."""
    localizer: str = ""
    """What found things in pictures; empty where it was not noted."""


class Ladder:
    """The critics of a bundle, each at every level of strictness."""

    def __init__(self, bundle: LoadedBundle, control_hz: float) -> None:
        self._fits = {package.name: package for package in bundle.packages}
        self._steps: dict[str, tuple[Critic, ...]] = {}
        for package in bundle.packages:
            self._steps[package.name] = tuple(
                compile_critic(
                    package.critic_source,
                    str(package.folder / CRITIC),
                    package.name,
                    control_hz,
                    parameters=package.parameters,
                    values=values_at(package.parameters, level),
                )
                for level in range(LEVELS + 1)
            )
        for watcher in bundle.watchers:
            self._steps[watcher.name] = (watcher.compile(control_hz),) * (LEVELS + 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the critics, in bundle order."""
        return tuple(self._steps)

    def scores(self, ticks: Sequence[Tick], instruction: str, control_hz: float) -> list[int]:
        """Return one more than the strictest level at which each critic fires in an episode.

        A critic whose skill does not fit the instruction never fires.
        """
        climbing = {n: 0 for n in self._steps if self._fit(n, instruction)}
        for _, history in moments(ticks, control_hz):
            for name, score in climbing.items():
                # A stricter critic may fire where a looser one does not, so all are asked.
                for level in range(LEVELS, score - 1, -1):
                    if _fires(self._steps[name][level], history):
                        climbing[name] = level + 1
                        break
        return [climbing.get(name, 0) for name in self._steps]

    def first_alarm(
        self,
        ticks: Sequence[Tick],
        instruction: str,
        control_hz: float,
        levels: Mapping[str, int | None],
    ) -> int | None:
        """Return the first tick at which any critic fires at its level, or None."""
        armed = [
            self._steps[name][level]
            for name, level in levels.items()
            if level is not None and self._fit(name, instruction)
        ]
        for tick, history in moments(ticks, control_hz):
            if any(_fires(critic, history) for critic in armed):
                return tick.index
        return None

    def parameters(self, found: Calibration) -> Mapping[str, Mapping[str, float]]:
        """Return the numbers that the calibrated levels stand for."""
        return {
            name: values_at(self._fits[name].parameters, level)
            for name, level in found.levels.items()
            if level is not None and name in self._fits
        }

    def _fit(self, name: str, instruction: str) -> bool:
        package = self._fits.get(name)
        if package is None:
            return True
        return package.fits(roles_or_none(instruction))


def scores_of(ladder: Ladder, episodes: Iterable[Replayed]) -> Scores:
    """Return the scores of episodes, given as ticks, instruction and rate. Shape (N, J)."""
    rows = [ladder.scores(*episode) for episode in episodes]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(ladder.names))


def _fires(critic: Critic, history: SignalHistory) -> bool:
    return critic.armed(history) and critic.judge(history).decision != "pass"


def write_calibration(path: Path, record: CalibrationRecord) -> None:
    """Write a calibration as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(record), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_calibration(path: Path, bundle: LoadedBundle) -> CalibrationRecord:
    """Return the calibration of a bundle.

    Raises:
        ConfigError: it cannot be read, or the bundle has changed since.
        SpecMismatch: it is no calibration.
    """
    try:
        plain = json.loads(read_program(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"the calibration {path} cannot be read: {error}") from error
    record = from_json(CalibrationRecord, plain)
    if record.digest != bundle.digest:
        raise ConfigError(
            f"{path} calibrates the bundle {record.digest[:12]} and this one is "
            f"{bundle.digest[:12]}; a threshold holds for one set of critics, so calibrate again"
        )
    packages = {package.name: package for package in bundle.packages}
    for name, values in record.parameters.items():
        if name not in packages:
            raise ConfigError(f"{path} names the critic {name!r}; {suggest(name, packages)}")
        bound_values(packages[name].parameters, values)
    return record
