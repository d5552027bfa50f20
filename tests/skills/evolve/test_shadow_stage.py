"""Shadow replay over episodes held out, and how strict critics must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.skills.evolve.drafts import (
    BODY,
    INSTRUCTION,
    MAX_STEPS,
    draft_of,
    episodes,
    watched,
)
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import from_json, to_json
from zetta.skills.bundles import LoadedBundle, load_bundle
from zetta.skills.evolve.authors import Draft, WatchedEpisode
from zetta.skills.evolve.candidates import bundle_name, write_candidate
from zetta.skills.evolve.shadow_stage import (
    ShadowResult,
    ShadowRules,
    shadow,
)

STALL_S = 1.0
"""Default of the draft's `stall`: it fires once `stalled_for` has reached this."""


def bundle_of(folder: Path, *drafts: Draft) -> LoadedBundle:
    """Return a bundle of drafts, heard in the order given."""
    whole = LoadedBundle("none")
    for draft in drafts:
        parents = [package.folder for package in whole.packages]
        place = write_candidate(draft, parents, folder / draft.name)
        names = [*(p.name for p in whole.packages), draft.name]
        whole = load_bundle(bundle_name(place, names))
    return whole


def stalled(
    name: str,
    success: bool,
    at: int | None,
    ticks: int = 100,
    length: int = 30,
    instruction: str = INSTRUCTION,
    skill_until: int = 0,
) -> WatchedEpisode:
    """Return an episode in which the hand is stuck from a tick on, so that 1 s is full 20 later."""
    since = [0 if at is None else k - at + 1 for k in range(ticks)]
    stuck = [s / 20.0 if 0 < s <= length else 0.0 for s in since]
    sources = ["skill:x" if k < skill_until else "policy" for k in range(ticks)]
    signals = {"stalled_for": stuck, "policy_drives": [1.0] * ticks}
    return watched(name, success, signals, instruction, sources, MAX_STEPS)


def found_at(result: ShadowResult) -> list[int | None]:
    return [alarm.tick for alarm in result.alarms]


def test_it_counts_alarms_in_time_false_ones_and_what_baselines_find(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of())
    failures = [stalled(f"{k}", False, at, 200) for k, at in enumerate((0, 40, 129, 132, None))]
    successes = [stalled("s", True, 30, 60), *(stalled(f"s{k}", True, None, 50) for k in range(4))]

    result = shadow(bundle, "unstick", failures, successes)

    assert found_at(result) == [19, 59, 148, 151, None, 49, None, None, None, None]
    found = result.found
    assert (found.failures, found.found, found.timely) == (5, 4, 3)  # 151 leaves less than 25 %
    assert (found.successes, found.false_alarms) == (5, 1)
    assert result.false_alarm_bound == pytest.approx(0.6574, abs=1e-4)  # 1 of 5
    assert found.lead == pytest.approx(1.0 - (59 + 148) / 2 / MAX_STEPS)
    # One success outlasts tick 50, so an alarm at 50 for all has one false alarm and finds all.
    assert (result.fixed_tick.false_alarms, result.fixed_tick.timely) == (1, 5)
    assert result.shuffled.timely < found.timely
    assert (result.passed, result.reasons, result.notes) == (True, (), ())


def test_real_rehearsals_are_told_apart(tmp_path: Path) -> None:
    logs = episodes(3, 3)
    result = shadow(bundle_of(tmp_path, draft_of()), "unstick", logs[:3], logs[3:])
    assert result.passed
    assert (result.found.timely, result.found.false_alarms) == (3, 0)


@pytest.mark.parametrize(
    ("ats", "reason"),
    [
        ((None, None, None), "in time in 0 of 3 held-out failures; at least 1 are needed"),
        ((150, None, None), "in time in 0 of 3 held-out failures (1 more too late)"),
        ((), "in time in 0 of 0"),
        ((20,) + (None,) * 5, "in time in 1 of 6 held-out failures; at least 2 are needed"),
    ],
)
def test_it_is_refused_when_it_fires_too_rarely(
    tmp_path: Path, ats: Sequence[int | None], reason: str
) -> None:
    failures = [stalled(f"{k}", False, at, 200) for k, at in enumerate(ats)]
    result = shadow(bundle_of(tmp_path, draft_of()), "unstick", failures, [])
    assert not result.passed
    assert reason in result.reasons[0]


def test_it_is_refused_when_it_fires_on_successes(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of())
    failures = [stalled("f", False, 10)]
    successes = [stalled(f"{k}", True, 20 if k < 2 else None) for k in range(7)]

    result = shadow(bundle, "unstick", failures, successes)

    assert result.reasons == ("it takes over in 2 of 7 held-out successes; at most 1 are allowed",)
    assert shadow(bundle, "unstick", failures, [*successes, stalled("8", True, None)]).passed
    assert shadow(bundle, "unstick", failures, successes, ShadowRules(false_share=0.3)).passed


def test_nothing_is_claimed_without_a_success(tmp_path: Path) -> None:
    result = shadow(bundle_of(tmp_path, draft_of()), "unstick", [stalled("f", False, 10)], [])
    assert result.passed
    assert result.false_alarm_bound == 1.0
    assert "no success was held out" in result.notes[0]


def test_a_skill_that_does_not_fit_the_instruction_never_fires(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of(roles="[receptacle]"))
    fitting = stalled("a", False, 10)
    other = stalled("b", False, 10, instruction="turn on the stove")
    result = shadow(bundle, "unstick", [fitting, other], [])
    assert found_at(result) == [29, None]
    assert result.unfit == 1


def test_while_another_skill_drives_nothing_takes_over(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of())
    driven = stalled("f", False, 0, skill_until=25)
    result = shadow(bundle, "unstick", [driven], [])
    assert found_at(result) == [26]
    assert "in 1 of 1 episodes a skill drove" in result.notes[0]


def test_the_precondition_must_hold_too(tmp_path: Path) -> None:
    episode = stalled("f", False, 0)
    late = tuple(
        replace(t, signals={**t.signals, "policy_drives": float(t.index >= 24)})
        for t in episode.ticks
    )
    result = shadow(bundle_of(tmp_path, draft_of()), "unstick", [replace(episode, ticks=late)], [])
    assert found_at(result) == [24]


def test_an_abort_is_an_alarm_whoever_drives(tmp_path: Path) -> None:
    body = f'if now(w.stalled_for) > p.stall * 0.5:\n    return abort("enough")\n{BODY}'
    bundle = bundle_of(tmp_path, draft_of(body))
    driven = stalled("s", True, 0, skill_until=25)
    assert found_at(shadow(bundle, "unstick", [], [driven])) == [10]


def test_another_skill_that_comes_first_is_named(tmp_path: Path) -> None:
    hasty = draft_of(BODY.replace("p.stall", "p.stall * 0.5").replace("stuck", "s"), "hasty")
    same = draft_of(BODY.replace("stuck", "same"), "same")
    failures = [stalled("f", False, 10)]
    bundle = bundle_of(tmp_path / "a", draft_of(), hasty)
    result = shadow(bundle, "unstick", failures, [])
    assert (result.alarms[0].tick, result.alarms[0].before, result.preempted) == (29, "hasty", 1)
    first, second = bundle_of(tmp_path / "b", same, draft_of()), bundle_of(
        tmp_path / "c", draft_of(), same)  # fmt: skip
    assert shadow(first, "unstick", failures, []).preempted == 1
    assert shadow(second, "unstick", failures, []).preempted == 0


def test_the_numbers_of_the_bundle_are_used(tmp_path: Path) -> None:
    bundle = replace(bundle_of(tmp_path, draft_of()), parameters={"unstick": {"stall": 0.5}})
    assert found_at(shadow(bundle, "unstick", [stalled("f", False, 0)], [])) == [9]


def test_errors_are_sentences(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of())
    with pytest.raises(ConfigError, match=r"no skill 'unstuck'.*unstick"):
        shadow(bundle, "unstuck", [], [])
    bare = stalled("f", False, 0)
    bare = replace(bare, ticks=tuple(replace(t, signals={}) for t in bare.ticks))
    with pytest.raises(ConfigError, match="holds no signals"):
        shadow(bundle, "unstick", [bare], [])


def test_a_result_is_a_record(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, draft_of())
    result = shadow(bundle, "unstick", [stalled("f", False, 0)], [stalled("s", True, None)])
    assert from_json(ShadowResult, to_json(result)) == result
