"""Levels, looks, who drives, snapshots, and what is installed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scripted_parts import Notebook, ScriptedArbiter, ScriptedPolicy, toy
from signal_runs import CLOSE, column, command, estimate, expert_rows, felt, world

from zetta.runtime import registry
from zetta.runtime.core import (
    Action,
    ActionChunk,
    Estimate,
    Motion,
    Outcome,
    Proprio,
    SignalSource,
    Start,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.loop import Episode
from zetta.runtime.signals import SIGNALS, SignalSpec, names_up_to
from zetta.runtime.signals_source import SignalRow, Signals, signals_with

POLICY = ScriptedPolicy().spec
DOWN = command((0.0, 0.0, -0.1))


class Eye:
    """Finds what it is told to find, and remembers when it looked."""

    def __init__(self, found: Callable[[int], Mapping[str, Estimate]]) -> None:
        self.found = found
        self.count = 0

    def __call__(self) -> Mapping[str, Estimate]:
        self.count += 1
        return self.found(self.count - 1)


def cube(look: int) -> Mapping[str, Estimate]:
    return {"object": estimate("object", (0.1, 0.2, 0.44), look * 0.5)}


def as_source(signals: Signals) -> SignalSource:
    return signals


# --------------------------------------------------------------------------- levels


@pytest.mark.parametrize("level", ["proprio", "policy", "vision", "oracle"])
def test_a_level_computes_everything_up_to_it_and_nothing_above(level: str) -> None:
    env, _ = world()
    eye = Eye(cube)
    oracle = eye if level == "oracle" else None
    signals = Signals(env.spec, max_level=level, policy=POLICY, look=eye, oracle=oracle)  # type: ignore[arg-type]

    assert set(signals.names) == names_up_to(level)  # type: ignore[arg-type]
    assert list(signals.names) == [name for name in SIGNALS if name in signals.names]


def test_truth_is_refused_below_the_oracle_level() -> None:
    env, _ = world()
    with pytest.raises(ConfigError, match="--sensing oracle"):
        Signals(env.spec, max_level="vision", oracle=Eye(cube))


def test_a_wanted_signal_above_the_level_is_refused_by_name() -> None:
    env, _ = world()
    with pytest.raises(ConfigError, match=r"object_age is a signal of level 'vision'.*--sensing"):
        Signals(env.spec, max_level="policy", wanted=frozenset({"holding", "object_age"}))
    with pytest.raises(ConfigError, match="did you mean 'holding'"):
        Signals(env.spec, max_level="policy", wanted=frozenset({"holdng"}))


def test_an_estimate_above_the_level_is_refused() -> None:
    env, scene = world()
    cheat = Eye(lambda look: {"object": replace(cube(look)["object"], level="oracle")})
    signals = Signals(env.spec, max_level="vision", look=cheat)
    with pytest.raises(SpecMismatch, match="'oracle', this run is of level 'vision'"):
        felt(signals, env, scene, [])


def test_a_wrong_arm_or_schedule_is_refused() -> None:
    env, _ = world()
    with pytest.raises(ConfigError, match="has 1"):
        Signals(env.spec, max_level="proprio", arm=1)
    with pytest.raises(ConfigError, match="at least 1"):
        Signals(env.spec, max_level="proprio", look_every=0)


def test_only_what_is_wanted_is_returned_and_what_cannot_be_had_is_nan() -> None:
    env, scene = world()
    wanted = frozenset({"dispersion", "ee_z", "other_ee_z", "holding"})
    signals = Signals(env.spec, max_level="policy", wanted=wanted)
    row = felt(signals, env, scene, [DOWN])[-1]

    assert tuple(row) == signals.names == ("ee_z", "holding", "other_ee_z", "dispersion")
    assert row["ee_z"] > 0.5
    assert math.isnan(row["other_ee_z"])
    assert math.isnan(row["dispersion"])
    with pytest.raises(KeyError):
        signals.history.last("ee_x", 1)


def test_a_row_never_changes_and_is_the_latest_of_the_history() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="proprio")
    rows = felt(signals, env, scene, [DOWN] * 12)

    assert as_source(signals) is signals
    assert isinstance(rows[0], SignalRow)
    assert not hasattr(rows[0], "__setitem__")
    assert len({row["ee_z"] for row in rows}) == 13
    for name in signals.names:
        np.testing.assert_array_equal(signals.history.last(name, 13), column(rows, name))
    assert signals.history.valid_for("ee_x") == 13
    assert signals.history.valid_for("ee_speed") == 12


# --------------------------------------------------------------------------- looks


@pytest.mark.parametrize(("every", "expected"), [(10, [0, 10, 20]), (7, [0, 7, 14, 21])])
def test_looks_happen_at_the_start_and_then_on_schedule(every: int, expected: list[int]) -> None:
    env, scene = world()
    looked: list[int] = []
    signals = Signals(
        env.spec, max_level="vision", look_every=every,
        look=lambda: looked.append(round(env.observe().proprio.t * 20)) or cube(0),  # type: ignore[func-returns-value]
    )  # fmt: skip
    felt(signals, env, scene, [DOWN] * 25)

    assert looked == expected
    assert signals.looks == len(expected)


def test_nobody_looks_when_no_signal_of_a_camera_is_wanted() -> None:
    env, scene = world()
    eye = Eye(cube)
    felt(
        Signals(env.spec, max_level="vision", look=eye, wanted=names_up_to("policy")),
        env, scene, [DOWN] * 25,
    )  # fmt: skip
    assert eye.count == 0

    felt(Signals(env.spec, max_level="policy", look=eye), env, scene, [DOWN] * 25)
    assert eye.count == 0


def test_between_looks_only_ages_and_distances_change() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="vision", look=Eye(cube))
    rows = felt(signals, env, scene, [DOWN] * 19)

    ages = column(rows, "object_age")
    assert ages[:10] == pytest.approx(np.arange(10) * 0.05)
    assert ages[10:] == pytest.approx(np.arange(10) * 0.05)
    for row in rows:
        away = (row["ee_x"] - 0.1, row["ee_y"] - 0.2, row["ee_z"] - 0.44)
        assert (row["object_x"], row["object_z"], row["object_height"]) == (0.1, 0.44, 0.04)
        assert row["object_distance"] == pytest.approx(math.hypot(*away))
        assert row["object_offset"] == pytest.approx(math.hypot(*away[:2]))
        assert row["object_above"] == pytest.approx(row["ee_z"] - 0.46)
        assert row["object_confidence"] == 0.9
        assert row["object_moved"] == 0.0
    assert len(set(column(rows, "object_distance"))) == 20


def test_what_is_not_found_again_stays_where_it_was_and_grows_old() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="vision", look=Eye(lambda k: cube(k) if k == 0 else {}))
    rows = felt(signals, env, scene, [DOWN] * 24)

    assert column(rows, "object_age") == pytest.approx(np.arange(25) * 0.05)
    assert set(column(rows, "object_x")) == {0.1}
    assert np.isnan(column(rows, "receptacle_x")).all()
    assert np.isnan(column(rows, "object_to_receptacle")).all()


def test_a_thing_that_moved_is_told_by_its_distance_from_the_first_look() -> None:
    env, scene = world()
    places = [(0.1, 0.2, 0.44), (0.13, 0.24, 0.44), (0.13, 0.24, 0.44)]

    def found(look: int) -> Mapping[str, Estimate]:
        plate = estimate("receptacle", (0.1, -0.1, 0.42), look * 0.5)
        return {"object": estimate("object", places[look], look * 0.5), "receptacle": plate}

    rows = felt(Signals(env.spec, max_level="vision", look=Eye(found)), env, scene, [DOWN] * 20)
    assert column(rows, "object_moved") == pytest.approx([0.0] * 10 + [0.05] * 11)
    assert column(rows, "receptacle_moved") == pytest.approx(0.0)
    assert rows[0]["object_to_receptacle"] == pytest.approx(0.3)
    assert rows[10]["object_to_receptacle"] == pytest.approx(math.hypot(0.03, 0.34))


def test_truth_is_asked_at_every_tick_under_names_of_its_own() -> None:
    env, scene = world()
    truth = Eye(lambda k: {"object": estimate("object", (0.1, 0.2, 0.44 + 0.01 * k), k * 0.05)})
    signals = Signals(env.spec, max_level="oracle", oracle=truth)
    rows = felt(signals, env, scene, [DOWN] * 12)

    assert truth.count == 13
    assert column(rows, "oracle_object_moved") == pytest.approx(np.arange(13) * 0.01)
    assert "object_moved" not in rows[0]


# --------------------------------------------------------------------------- who drives


def lower(ticks: int) -> Motion:
    for _ in range(ticks):
        yield DOWN
    return Outcome(True)


def test_the_episode_knows_who_drove_and_since_when() -> None:
    env, scene = toy(max_steps=20)
    arbiter = ScriptedArbiter({3: Start(lower(4), "skill:a"), 12: Start(lower(2), "skill:b")})
    signals = Signals(env.spec, max_level="policy", policy=POLICY)
    notebook = Notebook()
    Episode(env, scene, arbiter, ScriptedPolicy(), signals=signals, sinks=[notebook]).run()
    rows = [tick.signals for tick in notebook.ticks]
    drivers = [None, *notebook.sources()[:-1]]

    assert drivers.count("skill:a") == 4
    policy_drives = [0.0 if str(driver).startswith("skill") else 1.0 for driver in drivers]
    assert [row["policy_drives"] for row in rows] == policy_drives
    assert rows[-1]["skill_share"] == pytest.approx(6 / 20)
    assert [rows[k]["interventions"] for k in (3, 4, 12, 13, 19)] == [0, 1, 1, 2, 2]
    assert [row["elapsed"] for row in rows] == pytest.approx([k * 0.05 for k in range(20)])
    assert [row["budget_used"] for row in rows] == pytest.approx([k / 20 for k in range(20)])
    since = [row["since_handback"] for row in rows]
    assert all(math.isnan(value) for value in since[:8])
    # The motion's fourth tick is 6, so the policy acts again at tick 7.
    assert since[8:11] == pytest.approx([0.05, 0.10, 0.15])
    assert since[15] == pytest.approx(0.05)


def test_policy_signals_follow_the_chunks_of_the_loop() -> None:
    env, scene = toy(max_steps=12)
    arbiter = ScriptedArbiter({6: Start(lower(2), "skill:a")})
    signals = Signals(env.spec, max_level="policy", policy=POLICY)
    notebook = Notebook()
    Episode(env, scene, arbiter, ScriptedPolicy(), signals=signals, sinks=[notebook]).run()
    rows = [tick.signals for tick in notebook.ticks]

    ages = [row["chunk_age"] for row in rows]
    assert ages == pytest.approx(
        [math.nan, 0.05, 0.1, 0.15, 0.2, 0.05, 0.1, math.nan, math.nan, 0.05, 0.1, 0.15],
        nan_ok=True,
    )
    # Row 4 and 5 of the first chunk against row 0 and 1 of the second, 5 cm for each 1.0.
    apart = np.cumsum([0.014 - 0.020, 0.015 - 0.021]) * 0.05
    assert rows[5]["chunk_disagreement"] == pytest.approx(float(np.sqrt((apart**2).mean())))
    assert [row["dispersion"] for row in rows][1:3] == [0.25, 0.25]


# --------------------------------------------------------------------------- snapshots


@pytest.mark.parametrize("cut", [1, 17, 31])
def test_restored_signals_continue_bit_exactly(cut: int) -> None:
    env, scene = world()
    commands, _ = expert_rows(env, scene)
    chunk = ActionChunk(np.zeros((6, 7)), 0.1)

    def fresh() -> Signals:
        return Signals(env.spec, max_level="vision", policy=POLICY, look=Eye(cube))

    def go(signals: Signals, first: int, last: int) -> list[SignalRow]:
        step = env.reset(scene)
        said = []
        for k, row in enumerate([None, *commands]):
            step = env.step(row) if row is not None else step
            source = "skill:a" if 12 <= k < 20 else "policy"
            if first <= k < last:
                said.append(signals.update(k, step.proprio, row, chunk if k < 12 else None, source))
        return said

    whole, half, rest = fresh(), fresh(), fresh()
    whole.begin(scene)
    expected = go(whole, 0, len(commands))
    half.begin(scene)
    go(half, 0, cut)
    rest.restore(half.state())
    eye = rest._look
    assert isinstance(eye, Eye)
    eye.count = half.looks

    for row, wanted in zip(go(rest, cut, len(commands)), expected[cut:], strict=True):
        np.testing.assert_array_equal(list(row.values()), list(wanted.values()))
    assert rest.looks == whole.looks
    for name in whole.names:
        np.testing.assert_array_equal(rest.history.last(name, 40), whole.history.last(name, 40))


def test_a_snapshot_of_other_signals_is_refused() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="proprio")
    felt(signals, env, scene, [DOWN])
    with pytest.raises(SpecMismatch, match="same robot, policy and level"):
        signals.restore(b"nothing")
    with pytest.raises(SpecMismatch, match="restore it with the same"):
        Signals(env.spec, max_level="policy", policy=POLICY).restore(signals.state())


def test_an_episode_begins_without_the_last_one() -> None:
    env, scene = world()
    signals = Signals(env.spec, max_level="vision", policy=POLICY, look=Eye(cube))
    first = felt(signals, env, scene, [command(grip=CLOSE)] * 30)
    again = felt(signals, env, scene, [command(grip=CLOSE)] * 30)

    assert first[-1]["closed_on_nothing"] == 1.0
    for name in set(signals.names) - {"object_age"}:
        np.testing.assert_array_equal(column(first, name), column(again, name))


# --------------------------------------------------------------------------- installed signals


class Reach:
    """How far the hand is from the world's axis: an installed signal."""

    specs: Sequence[SignalSpec] = (
        SignalSpec("reach", "m", 0.0, 2.0, "proprio", "Distance from the z axis."),
        SignalSpec("surprise", "", 0.0, 1.0, "policy", "Never known."),
    )

    def update(
        self, proprio: Proprio, action: Action | None, chunk: ActionChunk | None
    ) -> Mapping[str, float]:
        x, y, _ = proprio.arms[0].ee_pos
        return {"reach": float(np.hypot(x, y))}


class EntryPoint:
    name = "reach"
    value = f"{Reach.__module__}:Reach"


def test_an_installed_signal_is_computed_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint()])
    extra = registry.installed_signals()
    env, scene = world()
    wanted = frozenset({"reach", "surprise", "ee_z"})
    signals = Signals(env.spec, max_level="policy", wanted=wanted, extra=extra)
    row = felt(signals, env, scene, [DOWN])[-1]

    assert registry.names("signals") == ("reach",)
    assert row["reach"] == pytest.approx(0.10)
    assert math.isnan(row["surprise"])
    assert signals_with(extra)["reach"].unit == "m"
    assert "reach" not in SIGNALS


def test_an_installed_signal_above_the_level_is_left_out_and_refused_when_wanted() -> None:
    env, _ = world()
    extra = (Reach(),)
    assert "reach" not in Signals(env.spec, max_level="proprio", extra=extra).names
    with pytest.raises(ConfigError, match="surprise is a signal of level 'policy'"):
        Signals(env.spec, max_level="proprio", extra=extra, wanted=frozenset({"surprise"}))


def test_an_installed_signal_cannot_take_a_name_that_is_known() -> None:
    source = Reach()
    source.specs = (SIGNALS["holding"],)
    with pytest.raises(ConfigError, match="'holding' is installed, but"):
        signals_with([source])


def test_an_entry_point_that_makes_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint()
    entry.value = "builtins:dict"
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    with pytest.raises(ConfigError, match="made a dict; expected an ExtraSignal"):
        registry.installed_signals()
