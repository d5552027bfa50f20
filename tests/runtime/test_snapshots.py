"""When an episode can be copied, what is refused, and how many copies are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.scripted_parts import ScriptedPolicy, toy
from tests.runtime.snapshot_runs import Diary, go_on, outcome
from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import Init, Motion, Outcome, Scene
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.loop import Episode
from zetta.runtime.registry import policy
from zetta.runtime.snapshot_ring import SnapshotRing, run_with_snapshots
from zetta.runtime.snapshots import EpisodeSnapshot, generator_from, generator_text

HOLD = np.array([0.0] * 6 + [-1.0])


def episode(name: str = "toy/reach", seed: int = 0, diary: Diary | None = None) -> Episode:
    env, scene = toy(max_steps=40)
    sinks = [] if diary is None else [diary]
    return Episode(env, scene, PolicyOnly(), policy(name), policy_seed=seed, sinks=sinks)


def begun(ticks: int, name: str = "toy/reach") -> Episode:
    running = episode(name)
    running.begin()
    for _ in range(ticks):
        running.tick()
    return running


@pytest.mark.parametrize("name", ["toy/reach", "random"])
@pytest.mark.parametrize("tick", [0, 1, 3, 4, 39])
def test_a_policys_chunk_and_draws_go_on_bit_exactly(name: str, tick: int) -> None:
    diary, again, ring = Diary(), Diary(), SnapshotRing(every=1)
    run_with_snapshots(episode(name, 3, diary), ring)
    # The seed of the new episode does not matter: that of the snapshot goes on.
    go_on(episode(name, 9, again), ring.before(tick))
    assert again.ticks == diary.ticks[tick:]
    assert outcome(again.result) == outcome(diary.result)


def test_the_copied_episode_itself_is_not_disturbed() -> None:
    plain, copied = Diary(), Diary()
    episode("random", diary=plain).run()
    run_with_snapshots(episode("random", diary=copied), SnapshotRing(every=1))
    assert copied.ticks == plain.ticks


def test_a_snapshot_does_not_change_when_the_episode_goes_on() -> None:
    running = begun(5)
    snapshot = running.snapshot()
    before = snapshot.digest
    for _ in range(5):
        running.tick()
    assert snapshot.digest == before != running.snapshot().digest


def test_only_a_running_episode_is_copied() -> None:
    with pytest.raises(ConfigError, match="only a running episode"):
        episode().snapshot()
    over = episode()
    over.run()
    with pytest.raises(ConfigError, match="only a running episode"):
        over.snapshot()


def test_a_driving_motion_is_not_copied() -> None:
    def hold() -> Motion:
        while True:
            yield HOLD
        return Outcome(True)

    env, scene = toy()
    with Episode(env, scene, MotionOnly(hold, "skill:hold"), policy("toy/reach")) as running:
        running.begin()
        running.tick()
        with pytest.raises(ConfigError, match="skill:hold drives at tick 1 and cannot be copied"):
            running.snapshot()


def test_a_part_without_a_state_is_named() -> None:
    env, scene = toy()
    running = Episode(env, scene, PolicyOnly(), ScriptedPolicy())
    running.begin()
    with pytest.raises(ConfigError, match="the policy ScriptedPolicy keeps no state"):
        running.snapshot()


def test_snapshots_of_another_scene_policy_or_format_are_refused() -> None:
    snapshot = begun(2).snapshot()
    env, scene = toy(max_steps=40)
    other = Episode(env, Scene(scene.task, Init(1)), PolicyOnly(), policy("toy/reach"))
    with pytest.raises(SpecMismatch, match="this episode has"):
        other.restore(snapshot)
    with pytest.raises(SpecMismatch, match="toy/reach-clumsy"):
        episode("toy/reach-clumsy").restore(snapshot)
    old = replace(snapshot, format=0).to_bytes()
    with pytest.raises(SpecMismatch, match="take it anew"):
        EpisodeSnapshot.from_bytes(old)
    with pytest.raises(SpecMismatch, match="no message"):
        EpisodeSnapshot.from_bytes(b"\xc1")
    with pytest.raises(ConfigError, match="has begun"):
        begun(0).restore(snapshot)


def test_the_ring_keeps_the_latest_within_its_bounds() -> None:
    ring = SnapshotRing(every=5, most=3)
    run_with_snapshots(episode(), ring)
    assert [ring.before(t).tick for t in (25, 29, 30, 39)] == [25, 25, 30, 35]
    assert len(ring) == 3
    with pytest.raises(ConfigError, match="the earliest one kept is of tick 25"):
        ring.before(24)
    with pytest.raises(ConfigError, match="none was taken"):
        SnapshotRing().before(3)
    with pytest.raises(ConfigError, match="each is at least 1"):
        SnapshotRing(every=0)


def test_the_ring_keeps_to_its_bytes() -> None:
    size = begun(5).snapshot().size
    ring = SnapshotRing(every=1, most_bytes=4 * size)
    run_with_snapshots(episode(), ring)
    assert 2 <= len(ring) <= 5
    assert ring.size <= 4 * size


def test_a_generator_comes_back_with_its_next_draws() -> None:
    rng = np.random.default_rng(3)
    rng.normal(size=5)
    rng.integers(7, dtype=np.int32)  # leaves half a word for the next draw
    again = generator_from(generator_text(rng))
    assert again.integers(9, size=9, dtype=np.int32).tolist() == (
        rng.integers(9, size=9, dtype=np.int32).tolist()
    )
    with pytest.raises(SpecMismatch, match="expected the state of a PCG64"):
        generator_from("{}")
