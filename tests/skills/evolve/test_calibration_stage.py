"""How strict a draft's critic is made before it is committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.drafts import PARAMETERS, draft_of, episodes
from tests.skills.evolve.test_shadow_stage import STALL_S, bundle_of, stalled
from zetta.critics.parameters import parse_parameters
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.evolve.calibration_stage import (
    CalibratedNumbers,
    as_strict,
    calibrated_numbers,
    stricter_draft,
)
from zetta.skills.evolve.draft_check import replayed_alarms, with_windows
from zetta.skills.evolve.shadow_stage import shadow
from zetta.skills.package import SkillPackage


@pytest.fixture
def package(tmp_path: Path) -> SkillPackage:
    return bundle_of(tmp_path, draft_of()).packages[0]


def successes_of(*lengths: int) -> list[WatchedEpisode]:
    """Return successes in which the hand was stuck for so many ticks."""
    return [stalled(f"{k}", True, 5, 90, n) for k, n in enumerate(lengths)]


def test_too_few_successes_leave_the_numbers_of_the_author(package: SkillPackage) -> None:
    found = calibrated_numbers(package, successes_of(*[30] * 8))
    assert (found.calibrated, found.level, dict(found.values)) == (False, None, {})
    assert found.note == (
        "8 held-out successes without interventions are too few for alpha 0.1: 9 are needed; the "
        "author's numbers stay"
    )
    assert calibrated_numbers(package, successes_of(*[30] * 9)).calibrated


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.3, 0.5])
def test_as_many_successes_as_are_asked_for_are_enough(package: SkillPackage, alpha: float) -> None:
    said = calibrated_numbers(package, [], alpha).note
    needed = int(said.split(": ")[1].split()[0])
    assert calibrated_numbers(package, successes_of(*[0] * needed), alpha).calibrated
    few = successes_of(*[0] * (needed - 1))
    assert not calibrated_numbers(package, few, alpha).calibrated


def test_a_critic_becomes_as_strict_as_held_out_successes_ask_for(tmp_path: Path) -> None:
    draft = draft_of()
    bundle = bundle_of(tmp_path / "lax", draft)
    quiet = calibrated_numbers(bundle.packages[0], successes_of(*[0] * 20))
    strict = calibrated_numbers(bundle.packages[0], successes_of(*[35] * 20))

    assert (quiet.level, quiet.values) == (0, {"stall": STALL_S})
    # Stuck for 35 ticks, 1.75 s: level 3 asks for 1.6 s and fires, level 4 for 1.8 s and does not.
    assert (strict.level, strict.held_out) == (4, 20)
    assert strict.values["stall"] == pytest.approx(1.8)
    assert strict.note.endswith("by 20 held-out ones: made stricter by 4 of 10 steps")
    text = as_strict(draft.files["params.toml"], strict.values)
    stricter = replace(draft, files={**draft.files, "params.toml": text})
    silenced = bundle_of(tmp_path / "strict", stricter)
    assert shadow(silenced, "unstick", [], successes_of(35)).found.false_alarms == 0
    assert shadow(bundle, "unstick", [], successes_of(35)).found.false_alarms == 1
    before, after = (parse_parameters(d.files["params.toml"])[0] for d in (draft, stricter))
    assert {n: replace(p, default=0.0) for n, p in after.items()} == {
        n: replace(p, default=0.0) for n, p in before.items()
    }


def test_windows_that_stricter_numbers_do_not_meet_go(tmp_path: Path) -> None:
    logs = episodes(1, 1)
    bare = draft_of()
    loaded = bundle_of(tmp_path / "bare", bare).packages[0]
    alarms = replayed_alarms(loaded, logs)
    draft = with_windows(bare, loaded, logs, alarms)
    package = bundle_of(tmp_path / "lax", draft).packages[0]
    windows = {path for path in draft.files if path.startswith("replay/")}
    assert {w.expect for w in package.windows} == {"fires", "silent"}

    strict = stricter_draft(draft, package, {"stall": 3.0})

    kept = {path for path in strict.files if path.startswith("replay/")}
    loaded = bundle_of(tmp_path / "strict", strict).packages[0]
    assert kept < windows
    assert {w.expect for w in loaded.windows} == {"silent"}
    assert loaded.parameters["stall"].default == 3.0
    assert stricter_draft(draft, package, {"stall": STALL_S}).files.keys() == draft.files.keys()


def test_one_disturbed_success_of_nineteen_is_forgiven(package: SkillPackage) -> None:
    """alpha 0.1 of 20 (the new one counted) are two, of which the new one may be one."""
    one = calibrated_numbers(package, successes_of(35, *[0] * 18))
    two = calibrated_numbers(package, successes_of(35, 35, *[0] * 17))
    assert (one.level, two.level) == (0, 4)


def test_a_critic_that_no_level_keeps_quiet_keeps_its_numbers(tmp_path: Path) -> None:
    loose = draft_of(params=PARAMETERS.replace("high = 3.0", "high = 1.2"))
    blind = draft_of(params=PARAMETERS.replace('stricter = "up"\n', ""))
    for draft, why in ((loose, "at every level of strictness"), (blind, "which way is stricter")):
        package = bundle_of(tmp_path / why, draft).packages[0]
        found = calibrated_numbers(package, successes_of(*[35] * 40))
        assert (found.calibrated, found.level, dict(found.values)) == (True, None, {})
        assert why in found.note


def test_successes_in_which_a_skill_drove_are_left_out(package: SkillPackage) -> None:
    touched = [stalled(f"t{k}", True, 5, 90, 80, skill_until=3) for k in range(20)]
    found = calibrated_numbers(package, [*touched, *successes_of(*[0] * 20)])
    assert (found.held_out, found.level) == (20, 0)


def test_errors_are_sentences(package: SkillPackage) -> None:
    logs = successes_of(*[0] * 20)
    with pytest.raises(ConfigError, match="several control rates"):
        calibrated_numbers(package, [replace(logs[0], control_hz=10.0), *logs])
    bare = replace(logs[0], ticks=tuple(replace(t, signals={}) for t in logs[0].ticks))
    with pytest.raises(ConfigError, match="holds no signals"):
        calibrated_numbers(package, [bare])
    with pytest.raises(ConfigError, match="alpha is a share"):
        calibrated_numbers(package, [], 1.0)


def test_it_is_a_record(package: SkillPackage) -> None:
    found = calibrated_numbers(package, successes_of(*[0] * 20))
    assert from_json(CalibratedNumbers, to_json(found)) == found
