"""The author `search`: what it hands back, why, and what it never does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.skills.evolve.search_briefs import drawn_brief, toy_brief
from zetta.runtime.core import SENSING_LEVELS
from zetta.runtime.errors import ConfigError
from zetta.skills.compiled import run_windows
from zetta.skills.evolve.authors import Draft, NoDraft, Rejection
from zetta.skills.evolve.critic_arrays import corpus_of
from zetta.skills.evolve.critic_templates import TEMPLATES
from zetta.skills.evolve.critic_trees import CLOCKS, tree_templates, usable_signals
from zetta.skills.evolve.draft_check import load_draft, replayed_alarms, write_draft
from zetta.skills.evolve.payoffs import Trials, payoff_table
from zetta.skills.evolve.recovery_programs import (
    PROGRAMS,
    find_program,
    program_of,
    program_package,
    statements_of,
)
from zetta.skills.evolve.search_author import SearchAuthor, hypothesis_key
from zetta.skills.package import inspect, load_skill

pytest.importorskip("cmaes")
pytest.importorskip("sklearn")
BRIEF = drawn_brief()


def proposed(brief=BRIEF) -> Draft:
    draft = SearchAuthor().propose(brief)
    assert isinstance(draft, Draft), draft
    return draft


def rejection(draft: Draft, hypothesis: str | None = None) -> Rejection:
    told = draft.hypothesis if hypothesis is None else hypothesis
    return Rejection(told, "gate", "no better than a random trigger", draft.digest)


@pytest.fixture(scope="module")
def draft() -> Draft:
    return proposed()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_makes_a_package_without_problems_whose_critic_never_fires(name, tmp_path):
    folder = tmp_path / f"try-{name}"
    folder.mkdir()
    for path, text in program_package(PROGRAMS[name], folder.name).items():
        (folder / path).write_text(text, encoding="utf-8")
    seen = inspect(folder)
    assert (seen.problems, seen.notices) == ((), ())
    package = load_skill(folder)
    assert program_of(package.recovery_source) == name
    assert (replayed_alarms(package, BRIEF.failures[:2]) < 0).all()


def test_an_unknown_program_is_named():
    with pytest.raises(ConfigError, match="regrasp"):
        find_program("regrsp")


def test_the_draft_is_a_package_without_problems_and_its_windows_are_met(draft, tmp_path):
    write_draft(draft, tmp_path / draft.name)
    seen = inspect(tmp_path / draft.name)
    assert (seen.problems, seen.notices) == ((), ())
    assert seen.package is not None
    assert seen.package.page.provenance.made_by == "search"
    assert all(outcome.passed for outcome in run_windows(seen.package))


def test_the_draft_fires_in_failures_only(draft):
    package = load_draft(draft)
    assert (replayed_alarms(package, BRIEF.failures) >= 0).mean() > 0.8
    assert (replayed_alarms(package, BRIEF.successes) >= 0).mean() < 0.1
    assert program_of(package.recovery_source) in ("regrasp", "fetch")


def test_one_brief_gives_one_draft(draft):
    again = proposed()
    assert (again.files, again.hypothesis) == (draft.files, draft.hypothesis)


def test_a_rejected_draft_is_not_handed_in_again_and_its_hypothesis_is_avoided(draft):
    equal = proposed(replace(BRIEF, rejected=(rejection(draft, "something else"),)))
    assert equal.digest != draft.digest
    other = proposed(replace(BRIEF, rejected=(rejection(draft),)))
    key = draft.hypothesis.partition(": ")[0]
    assert not other.hypothesis.startswith(key)


def test_with_every_pair_rejected_there_is_no_draft(draft):
    brief, seen = BRIEF, []
    for template in TEMPLATES:
        for program in PROGRAMS:
            seen.append(rejection(draft, hypothesis_key(template.name, program)))
    for program in PROGRAMS:
        for signal in usable_signals(corpus_of(BRIEF.failures), "vision"):
            name = f"unlike-{signal.replace('_', '-')}"
            seen.append(rejection(draft, hypothesis_key(name, program)))
    answer = SearchAuthor().propose(replace(brief, rejected=tuple(seen)))
    assert isinstance(answer, NoDraft)
    assert "no critic and recovery pay" in answer.reason


@pytest.mark.parametrize("edits", [20, 18])
def test_no_draft_has_more_statements_than_it_may(edits):
    answer = SearchAuthor().propose(replace(BRIEF, edits=edits))
    if isinstance(answer, Draft):
        assert statements_of(answer.files["critic.py"], answer.files["recovery.py"]) <= edits
    assert isinstance(SearchAuthor().propose(replace(BRIEF, edits=5)), NoDraft)


@pytest.mark.parametrize("sensing", ["proprio", "policy"])
def test_critics_read_nothing_above_the_sensing_level(sensing):
    answer = proposed(replace(BRIEF, sensing=sensing))
    package = load_draft(answer)
    assert program_of(package.recovery_source) == "rise"
    assert SENSING_LEVELS.index(package.level) <= SENSING_LEVELS.index(sensing)


def test_without_a_recovery_that_helped_there_is_no_draft():
    trials = tuple(t for t in BRIEF.trials if t.program in ("unchanged", "fresh sample"))
    answer = SearchAuthor().propose(replace(BRIEF, trials=trials))
    assert isinstance(answer, NoDraft)
    assert "no recovery helped" in answer.reason


def test_the_payoff_is_for_timing_and_for_telling_failures_from_successes():
    episodes = (*BRIEF.failures, *BRIEF.successes)
    trials, size = Trials(BRIEF, episodes), len(BRIEF.failures)
    anywhere = [np.ones(len(e.ticks), np.bool_) for e in episodes]
    table = payoff_table("regrasp", trials, episodes, size, anywhere)
    everybody = np.arange(len(episodes))
    timely = np.array([-1 if e.divergence is None else e.divergence + 5 for e in episodes])
    late = np.where(timely < 0, -1, timely + 40)
    blind = np.full(len(episodes), 65)
    never = np.full(len(episodes), -1)
    good = table.payoff(timely, everybody)
    assert good > table.payoff(late, everybody) + 0.1
    assert table.payoff(late, everybody) > table.payoff(blind, everybody)
    assert good > table.payoff(blind, everybody) + 0.3
    assert table.payoff(never, everybody) == 0.0


def test_a_tree_reads_no_clock_no_place_and_nothing_of_the_scene():
    episodes = (*BRIEF.failures, *BRIEF.successes)
    corpus = corpus_of(episodes)
    signals = usable_signals(corpus, "vision")
    assert not set(signals) & {*CLOCKS, "ee_x", "object_x", "object_height", "receptacle_y"}
    size = len(BRIEF.failures)
    trees = list(tree_templates(corpus, episodes, size, np.arange(len(episodes)), "vision", 0))
    assert trees
    for tree in trees:
        assert tree.body.count("return") <= 8
        assert f"p.{tree.parameters[0].name}" in tree.body


def test_names_of_deployed_skills_are_not_taken(draft):
    deployed = load_draft(draft)
    other = proposed(replace(BRIEF, parent=(deployed,)))
    assert other.name != draft.name or "other numbers" in other.hypothesis


def test_a_deployed_skill_with_bad_numbers_gets_better_ones(draft, tmp_path):
    folder = tmp_path / draft.name
    write_draft(draft, folder)
    present = load_skill(folder).parameters["empty_for"]
    text = (folder / "params.toml").read_text(encoding="utf-8")
    spoilt = text.replace(f"default = {present.default!r}", f"default = {present.high!r}")
    (folder / "params.toml").write_text(spoilt, encoding="utf-8")
    deployed = load_skill(folder)
    # Everything new was rejected before.
    rejected = tuple(
        rejection(draft, hypothesis_key(t.name, p)) for t in TEMPLATES for p in PROGRAMS
    )
    rejected += tuple(
        rejection(draft, hypothesis_key(f"unlike-{s.replace('_', '-')}", p))
        for s in usable_signals(corpus_of(BRIEF.failures), "vision")
        for p in PROGRAMS
    )
    rejected = tuple(replace(each, digest="") for each in rejected)
    answer = proposed(replace(BRIEF, parent=(deployed,), rejected=rejected))
    assert answer.name == deployed.name
    assert answer.files["critic.py"] == deployed.critic_source
    assert answer.files["params.toml"] != (folder / "params.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_toy_failures_of_a_camera_that_is_off_get_a_skill_that_tells_them(tmp_path):
    brief = toy_brief(tmp_path, range(10), ("regrasp",), branched=2, runs=1)
    answer = proposed(brief)
    package = load_draft(answer)
    assert (replayed_alarms(package, brief.failures) >= 0).mean() > 0.5
    assert Path(package.folder).name == answer.name
