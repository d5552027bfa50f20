"""The other kind of candidate: a deployed skill that keeps its programs and gets other numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from zetta.critics.parameters import Parameter
from zetta.runtime.errors import ScreenError
from zetta.skills.evolve.authors import Brief, Draft, WatchedEpisode
from zetta.skills.evolve.critic_arrays import ArrayProgram, Corpus, NotInArrays
from zetta.skills.evolve.critic_tuning import OpenCritic, Tuned, screen, tune
from zetta.skills.evolve.payoffs import Trials, driven_by_policy, payoff_table, split_flags
from zetta.skills.evolve.recovery_programs import program_of
from zetta.skills.evolve.window_arrays import Ticks
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import PARAMETERS, REPLAY, read_files

TEXTS: Final = (".md", ".py", ".toml", ".json")
MOST_NUMBERS: Final = 12
"""A critic with more numbers is not tuned: so few failures do not set so many."""


@dataclass(frozen=True, slots=True)
class Retuned:
    """A deployed skill with other numbers."""

    package: SkillPackage
    tuned: Tuned
    gain: float
    """Pay-off on episodes that did not set the numbers, minus that of the present ones."""


def retuned_skills(
    brief: Brief,
    trials: Trials,
    corpus: Corpus,
    episodes: Sequence[WatchedEpisode],
    halves: tuple[Ticks, Ticks],
) -> list[Retuned]:
    """Return deployed skills for which other numbers pay, the best one first.

    A skill is looked at when its recovery was tried in branches and its critic fires in some
    failure of the group under some numbers.
    """
    found = []
    for package in brief.parent:
        try:
            one = _retuned(package, brief, trials, corpus, episodes, halves)
        except NotInArrays:
            continue
        if one is not None and one.gain > 0.0:
            found.append(one)
    return sorted(found, key=lambda each: (-each.gain, each.package.name))


def _retuned(
    package: SkillPackage,
    brief: Brief,
    trials: Trials,
    corpus: Corpus,
    episodes: Sequence[WatchedEpisode],
    halves: tuple[Ticks, Ticks],
) -> Retuned | None:
    tried = [
        name
        for name in (package.name, program_of(package.recovery_source))
        if name in trials.programs
    ]
    parameters = _own_numbers(package)
    if not tried or not 0 < len(parameters) <= MOST_NUMBERS:
        return None
    defaults = {p.name: p.default for p in package.parameters.values()}
    precondition = ArrayProgram(package.recovery_source, "precondition", corpus)
    startable = driven_by_policy(corpus) & precondition.fires(defaults)
    table = payoff_table(
        tried[0], trials, episodes, len(brief.failures), split_flags(startable, corpus)
    )
    critic = OpenCritic(
        ArrayProgram(package.critic_source, "check", corpus), tuple(parameters.values()), corpus
    )
    samples = screen(critic, startable, np.random.default_rng(brief.seed))
    if not any((sample.alarms[: len(brief.failures)] >= 0).any() for sample in samples):
        return None
    tuned = tune(critic, table, startable, halves, samples, brief.seed)
    present = float(np.mean([table.payoff(samples[0].alarms, half) for half in halves]))
    return Retuned(package, tuned, tuned.held_out - present)


def _own_numbers(package: SkillPackage) -> Mapping[str, Parameter]:
    """Return the numbers that the critic reads and the recovery does not."""
    both = {
        name: (f"p.{name}" in package.critic_source, f"p.{name}" in package.recovery_source)
        for name in package.parameters
    }
    return {name: package.parameters[name] for name, read in both.items() if read == (True, False)}


def retuned_draft(one: Retuned) -> Draft | None:
    """Return the package with its new numbers, without replay windows; None when it is gone."""
    package = one.package
    try:
        contents = read_files(package.folder).contents
    except ScreenError:
        return None
    files = {
        path: text.decode("utf-8")
        for path, text in contents.items()
        if Path(path).suffix in TEXTS and not path.startswith(f"{REPLAY}/")
    }
    files[PARAMETERS] = _with_defaults(files[PARAMETERS], one.tuned.values)
    changed = ", ".join(
        f"{name} {value:g}"
        for name, value in one.tuned.values.items()
        if value != package.parameters[name].default
    )
    hypothesis = (
        f"{package.name}, other numbers: its critic pays {one.gain:.2f} more for each failure with "
        f"{changed}."
    )
    return Draft(package.name, files, hypothesis)


def _with_defaults(text: str, values: Mapping[str, float]) -> str:
    """Return a `params.toml` with other defaults and everything else as it was."""
    lines, table = [], ""
    for line in text.splitlines():
        head = re.match(r"\s*\[([a-z0-9_]+)\]", line)
        table = head[1] if head else table
        if table in values and re.match(r"\s*default\s*=", line):
            line = f"default = {float(values[table])!r}"
        lines.append(line)
    return "\n".join(lines) + "\n"
