"""A snapshot of an assembled episode goes on bit-exactly, whatever is deployed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.snapshot_runs import Diary, go_on, outcome
from zetta.primitives.motions_carrying import Held, Load
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.branching import BranchFactory
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import RunSpec, Sampled, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.loop import POLICY
from zetta.runtime.snapshot_ring import SnapshotRing, run_with_snapshots
from zetta.runtime.snapshots import EpisodeSnapshot, restore, saved
from zetta.runtime.wire import unpack
from zetta.sims.toy import ToySimulator
from zetta.skills.evolve.branches import Change, branch

SPEC = RunSpec("toy", "toy_pick", 0, Sampled(), 2, "toy/reach-clumsy", 2, "starter", "oracle")
"""An episode in which the starter bundle recovers once and the goal is reached."""
WATCHED = replace(SPEC, bundle="none", options={"signals": "yes"})


def run(spec: RunSpec, every: int) -> tuple[Diary, SnapshotRing]:
    diary, ring = Diary(), SnapshotRing(every, most=200)
    run_with_snapshots(Assembler().assemble(spec, sinks=[diary]).episode, ring)
    return diary, ring


def check_continued(spec: RunSpec, diary: Diary, snapshot: EpisodeSnapshot, most: int) -> None:
    again = Diary()
    go_on(Assembler().assemble(spec, sinks=[again]).episode, snapshot, most)
    assert again.ticks == diary.ticks[snapshot.tick : snapshot.tick + most]
    if snapshot.tick + most >= len(diary.ticks):
        assert outcome(again.result) == outcome(diary.result)


@pytest.mark.parametrize(
    ("bundle", "isolation"),
    [("none", "none"), ("starter", "none"), ("starter", "process"), ("sham", "none")],
)
def test_an_episode_goes_on_bit_exactly_from_any_tick(bundle: str, isolation: str) -> None:
    spec = replace(SPEC, bundle=bundle, options={"critic_isolation": isolation})
    diary, ring = run(spec, every=1)
    drove = [index for index, tick in enumerate(diary.ticks) if tick[1] != POLICY]
    assert bool(drove) == (bundle == "starter")
    after = drove[-1] + 2 if drove else 70
    if drove:
        kept = unpack(ring.before(after).localizer)
        assert set(kept["last_seen"]) == set(kept["tracks"]["tracks"]) == {"object", "receptacle"}
    for tick in {0, 1, 2, 6, 31, after}:
        snapshot = ring.before(tick)
        assert snapshot.tick == tick
        check_continued(spec, diary, snapshot, 10_000)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("bundle", "options"), [("none", {}), ("none", {"signals": "yes"}), ("starter", {})]
)
def test_looks_and_tracks_go_on_bit_exactly(bundle: str, options: dict[str, str]) -> None:
    spec = replace(SPEC, bundle=bundle, sensing="vision", options=options)
    diary, ring = run(spec, every=7)
    check_continued(spec, diary, ring.before(15), 40)
    check_continued(spec, diary, ring.before(len(diary.ticks) - 25), 10_000)


def test_the_snapshot_of_a_bundle_does_not_go_on_without_it() -> None:
    spec = replace(SPEC, options={"signals": "yes"})
    _, ring = run(spec, every=20)
    other = Assembler().assemble(replace(spec, bundle="none")).episode
    with pytest.raises(SpecMismatch, match="restore it with the same bundle"):
        other.restore(ring.before(20))


def test_the_snapshot_of_other_signals_is_refused() -> None:
    _, ring = run(WATCHED, every=50)
    fewer = Assembler().assemble(replace(WATCHED, options={})).episode
    with pytest.raises(SpecMismatch, match="same policy, bundle and sensing level"):
        fewer.restore(ring.before(0))


def test_a_skill_is_ordered_in_a_branch_of_an_episode_without_a_bundle() -> None:
    _, ring = run(WATCHED, every=10)
    factory = BranchFactory(Assembler(), WATCHED, "starter")
    (run_,) = branch(ring.before(30), Change("recovery", "fresh-sample"), [5], factory)
    assert run_.recovery_ticks > 0
    with pytest.raises(ConfigError, match="no skill 'regras'; did you mean 'regrasp'"):
        branch(ring.before(30), Change("recovery", "regras"), [5], factory)


def test_a_candidate_needs_every_signal() -> None:
    factory = BranchFactory(Assembler(), replace(WATCHED, options={}), "starter")
    with pytest.raises(ConfigError, match="set the option signals to 'yes'"):
        factory("regrasp", [])


def test_what_the_last_recovery_held_is_known_to_the_next_one() -> None:
    spec = replace(SPEC, sensing="oracle")
    env = ToySimulator().make("toy_pick", 0)
    first, second = (Sight(spec, env, None) for _ in range(2))
    load = Load(read_only([0.0, 0.0, -0.01]), read_only([0.04, 0.04, 0.05]), read_only(np.eye(3)))
    first.restore(replace(first.state(), held=Held(load, 0.031)))
    restore(second, "localizer", saved(first, "localizer"))
    held = second.robot().held
    assert (held.opening, held.load is None) == (0.031, False)
    assert saved(second, "localizer") == saved(first, "localizer")
