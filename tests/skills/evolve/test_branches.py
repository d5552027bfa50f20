"""Branches of toy episodes in which something goes wrong on order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.runtime.snapshot_runs import Diary
from zetta.runtime import registry
from zetta.runtime.cli.deploy import Candidate, deploy
from zetta.runtime.core import EpisodeSink, Init, RunSpec, Scene
from zetta.runtime.errors import ConfigError, Timeout
from zetta.runtime.loop import Episode
from zetta.runtime.skill_arbiter import SkillArbiter
from zetta.runtime.snapshot_ring import SnapshotRing, run_with_snapshots
from zetta.runtime.snapshots import EpisodeSnapshot
from zetta.sims.toy import ToySimulator
from zetta.sims.toy_faults import ToyFaults
from zetta.skills.evolve.branch_support import supports
from zetta.skills.evolve.branches import (
    FRESH_SAMPLE,
    UNCHANGED,
    BranchFactory,
    Change,
    Continuation,
    Prepared,
    branch,
)

TOY = ToySimulator()
DROPPED = ToyFaults(slip_at=30, slip_scale=0.0)
"""The thing slips out of the hand on its way; nothing slips by itself."""
LOST_AT = 34


def factory_of(init: int, policy: str = "toy/reach-exact", budget: int = 125) -> BranchFactory:
    """Return a factory of episodes in which the thing is dropped."""
    task = replace(TOY.task("toy_pick", 0), max_steps=budget)
    env, scene = TOY.make("toy_pick", 0, faults=DROPPED), Scene(task, Init(init))
    driver = registry.policy(policy)
    spec = RunSpec("toy", "toy_pick", 0, Init(init), sensing="oracle", options={"signals": "yes"})

    def prepare(skill: str, sinks: Sequence[EpisodeSink]) -> Prepared:
        candidate = Candidate("starter", skill) if skill else None
        parts = deploy(spec, env, scene, driver.spec, candidate)
        episode = Episode(
            env, scene, parts.arbiter, driver, signals=parts.signals,
            localizer=parts.localizer, sinks=sinks,
        )  # fmt: skip
        arbiter = parts.arbiter if isinstance(parts.arbiter, SkillArbiter) else None
        return Prepared(episode, arbiter)

    return prepare


def failed(factory: BranchFactory, diary: Diary | None = None) -> EpisodeSnapshot:
    """Let the episode fail and return the snapshot before it went wrong."""
    ring = SnapshotRing(every=10)
    sinks = [] if diary is None else [diary]
    assert not run_with_snapshots(factory("", sinks).episode, ring).success
    return ring.before(LOST_AT)


def test_the_right_recovery_of_a_dropped_thing_is_supported_and_a_wrong_one_is_not() -> None:
    right, wrong = Change("recovery", "pick-up-again"), Change("recovery", "fresh-sample")
    found: dict[Change, list[Continuation]] = {right: [], wrong: []}
    for init in range(5):
        factory = factory_of(init)
        snapshot = failed(factory)
        assert snapshot.tick == 30
        controls = [
            run
            for change in (UNCHANGED, FRESH_SAMPLE)
            for run in branch(snapshot, change, [1], factory, LOST_AT)
        ]
        for change, runs in found.items():
            runs += [*controls, *branch(snapshot, change, [1], factory, LOST_AT)]
    said = supports(found[right])
    assert said.finding == "supported", said.reason
    assert [(s.successes, s.runs) for s in said.scores] == [(0, 5), (0, 5), (5, 5)]
    assert (said.against_fresh.p, said.null.p) == (pytest.approx(1 / 32), 1.0)
    refused = supports(found[wrong])
    assert refused.finding == "not supported"
    assert all(run.recovery_ticks > 0 for run in found[wrong] if run.change == wrong)


def test_unchanged_is_what_happened_and_a_fresh_sample_is_not() -> None:
    factory, diary = factory_of(0, "toy/reach"), Diary()
    snapshot = failed(factory, diary)
    same = branch(snapshot, UNCHANGED, [0, 1], factory, LOST_AT)
    fresh = branch(snapshot, FRESH_SAMPLE, [1, 2], factory, LOST_AT)
    # This policy draws all that it does at its reset, so other luck later changes nothing.
    assert same[0].trace == same[1].trace
    assert len({run.trace for run in (*same, *fresh)}) == 3
    assert [run.ticks for run in same] == [len(diary.ticks) - LOST_AT] * 2
    assert branch(snapshot, FRESH_SAMPLE, [2], factory, LOST_AT) == fresh[1:]


def test_unchanged_takes_other_draws_where_a_policy_draws_every_chunk() -> None:
    factory = factory_of(0, "random", budget=60)
    snapshot = failed(factory)
    runs = branch(snapshot, UNCHANGED, [1, 2], factory, LOST_AT)
    assert runs[0].trace != runs[1].trace


class Flaky:
    """A factory whose machinery fails the first times that it is asked."""

    def __init__(self, factory: BranchFactory, failures: int) -> None:
        self.factory, self.left, self.asked = factory, failures, 0

    def __call__(self, skill: str, sinks: Sequence[EpisodeSink]) -> Prepared:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise Timeout("nothing came back in 5 s")
        return self.factory(skill, sinks)


@pytest.mark.parametrize("failures", [1, 2])
def test_an_error_of_the_machinery_is_tried_once_more_and_never_scored(failures: int) -> None:
    factory = factory_of(0, "random", budget=40)
    snapshot = failed(factory)
    flaky = Flaky(factory, failures)
    (run,) = branch(snapshot, UNCHANGED, [1], flaky)
    assert flaky.asked == 2
    if failures == 1:
        assert branch(snapshot, UNCHANGED, [1], factory) == (run,)
    else:
        assert run.success is None
        assert run.error == "Timeout: nothing came back in 5 s"


def test_bad_requests_are_explained() -> None:
    factory = factory_of(0, "random", budget=40)
    snapshot = failed(factory)
    with pytest.raises(ConfigError, match="each once"):
        branch(snapshot, UNCHANGED, [1, 1], factory)
    with pytest.raises(ConfigError, match="each once"):
        branch(snapshot, UNCHANGED, [], factory)
    with pytest.raises(ConfigError, match="take an earlier snapshot"):
        branch(snapshot, UNCHANGED, [1], factory, at=3)
    with pytest.raises(ConfigError, match="a recovery names its skill"):
        Change("recovery")
    with pytest.raises(ConfigError, match="seed -1"):
        branch(snapshot, UNCHANGED, [-1], factory)

    def without_arbiter(skill: str, sinks: Sequence[EpisodeSink]) -> Prepared:
        return Prepared(factory("", sinks).episode)

    with pytest.raises(ConfigError, match="cannot be ordered"):
        branch(snapshot, Change("recovery", "regrasp"), [1], without_arbiter)
