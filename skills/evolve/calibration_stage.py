"""How strict a draft's critic must be, from successes that its author has not seen.

The numbers of a draft were tuned on the half of the development block that its author knows, so
how often it disturbs a success there says little. Before the candidate is committed they are made
as strict as the other half asks for; the rank of that half is conformal (`critics/calibration.py`).

The critics that are deployed already keep their numbers. They were on while these episodes ran, so
a success in which nothing intervened is one that they leave alone; how often the whole library
disturbs such a success is therefore decided by the new critic, and that is what is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from zetta.critics.calibration import calibrate, conformal_rank
from zetta.critics.parameters import parse_parameters
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import LoadedBundle
from zetta.skills.calibrated import Ladder, Replayed, scores_of
from zetta.skills.compiled import run_windows
from zetta.skills.evolve.alarms import check_signals, untouched
from zetta.skills.evolve.authors import Draft, WatchedEpisode
from zetta.skills.evolve.skill_texts import parameters_text
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import PARAMETERS, REPLAY

ALPHA: Final = 0.1
"""Share of successes that a new critic may disturb."""


@dataclass(frozen=True, slots=True)
class CalibratedNumbers:
    """How strict the critic of one skill is to be."""

    calibrated: bool
    """False when there were too few successes; then every number stays as the author wrote it."""
    level: int | None
    """Steps of strictness above the author's numbers; None when no level keeps the bound: then they
    stay, and it is for shadow replay and the gate to say whether alarms in successes do harm."""
    values: Mapping[str, float] = field(default_factory=dict)
    """The numbers at this level."""
    alpha: float = ALPHA
    sure_alpha: float = 1.0
    """Bound that holds with 90 % confidence in the draw of the calibration successes."""
    held_out: int = 0
    """Successes that the threshold is from: the author has not seen them."""
    note: str = ""
    """All this in a sentence."""


def calibrated_numbers(
    package: SkillPackage, held_out: Sequence[WatchedEpisode], alpha: float = ALPHA
) -> CalibratedNumbers:
    """Return how strict a new critic must be to leave a new success alone.

    Args:
        package: the candidate's new skill, or the one with new numbers.
        held_out: successes that its author has not seen. Ones in which somebody intervened are
            left out.
        alpha: share of new successes in which it may fire, on average over such draws.

    Raises:
        ConfigError: `alpha` is no share, logs of several control rates, or one without signals.
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError(f"alpha is a share between 0 and 1, got {alpha:g}")
    own = [episode for episode in held_out if untouched(episode)]
    for episode in own:
        check_signals(episode.ticks)
    if conformal_rank(len(own), alpha) is None:
        return _too_few(len(own), alpha)
    rates = {episode.control_hz for episode in own}
    if len(rates) != 1:
        said = ", ".join(f"{rate:g}" for rate in sorted(rates))
        raise ConfigError(f"these logs are of several control rates ({said} Hz); give one rate")
    ladder = Ladder(LoadedBundle(package.name, packages=(package,)), rates.pop())
    scores = scores_of(ladder, map(_replayed, own))
    # Of one critic alone any ranks that keep the order give the same threshold: these are exact.
    found = calibrate(ladder.names, scores, scores, alpha)
    level = found.levels[package.name]
    return CalibratedNumbers(
        True, level, ladder.parameters(found).get(package.name, {}), alpha, found.sure_alpha,
        len(own), _note(level, package, len(own), alpha),
    )  # fmt: skip


def as_strict(parameters: str, values: Mapping[str, float]) -> str:
    """Return a `params.toml` with other defaults; bounds, units and words stay."""
    known, _ = parse_parameters(parameters)
    changed = [replace(p, default=float(values.get(name, p.default))) for name, p in known.items()]
    return parameters_text(changed)


def stricter_draft(draft: Draft, package: SkillPackage, values: Mapping[str, float]) -> Draft:
    """Return a draft with other default numbers, without the windows that they no longer meet.

    Args:
        draft: as its author wrote it.
        package: the draft as it was loaded, at the author's numbers.
        values: the new numbers.
    """
    unmet = {f"{REPLAY}/{each.window}.json" for each in run_windows(package, values)
             if not each.passed}  # fmt: skip
    files = {path: text for path, text in draft.files.items() if path not in unmet}
    return replace(draft, files={**files, PARAMETERS: as_strict(draft.files[PARAMETERS], values)})


def _too_few(own: int, alpha: float) -> CalibratedNumbers:
    needed = math.ceil(1.0 / alpha - 1.0 - 1e-9)
    return CalibratedNumbers(
        False, None, alpha=alpha, held_out=own,
        note=f"{own} held-out successes without interventions are too few for alpha {alpha:g}: "
        f"{needed} are needed; the author's numbers stay",
    )  # fmt: skip


def _note(level: int | None, package: SkillPackage, own: int, alpha: float) -> str:
    asked = f"at most {alpha:.0%} of successes disturbed, by {own} held-out ones"
    if level is None:
        if not any(p.stricter for p in package.parameters.values()):
            return f"{asked}: it disturbs more, and no number says which way is stricter"
        return f"{asked}: it disturbs more at every level of strictness; the author's numbers stay"
    if level == 0:
        return f"{asked}: the author's numbers do"
    return f"{asked}: made stricter by {level} of 10 steps"


def _replayed(episode: WatchedEpisode) -> Replayed:
    return episode.ticks, episode.instruction, episode.control_hz
