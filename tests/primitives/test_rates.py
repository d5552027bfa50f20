"""What was tuned at 20 Hz means the same at another control rate, and exactly the same at 20."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zetta.primitives.grasps import PANDA, PIN_FINGERS, SOME_HAND, hand_of
from zetta.primitives.motions_progress import Pace, Progress
from zetta.primitives.rates import per_tick_at, ticks_at
from zetta.runtime.cli.eyes import looks_at
from zetta.runtime.core import EnvSpec
from zetta.runtime.embodiment import embodiment_of
from zetta.runtime.signals_gripper import GripSignals
from zetta.sims.toy import ToySimulator
from zetta.skills.compiled import compile_skill
from zetta.skills.package import load_skill
from zetta.skills.shelf import library_folder

RATES = (10.0, 20.0, 50.0, 100.0)


@pytest.fixture(scope="module")
def spec() -> EnvSpec:
    env = ToySimulator().make("toy_pick", 0)
    env.close()
    return env.spec


def slow_hand(hz: float, speed: float) -> int:
    """Return after how many seconds a hand of this speed counts as stalled; -1 for never."""
    progress = Progress(ticks_at(hz, 10), per_tick_at(hz, 5e-4))
    for tick in range(int(2.0 * hz)):
        if progress.stalled(0.5 - speed * tick / hz):
            return round(tick / hz)
    return -1


@pytest.mark.parametrize("hz", RATES)
def test_a_hand_that_gets_on_is_not_stalled_at_any_rate(hz: float) -> None:
    assert slow_hand(hz, 0.02) == -1
    assert slow_hand(hz, 0.005) >= 0


@pytest.mark.parametrize("hz", RATES)
def test_a_hand_is_stopped_by_its_speed_and_not_by_its_ticks(hz: float) -> None:
    moving, stopped = Pace(hz), Pace(hz)
    for _ in range(ticks_at(hz, 20)):
        assert not moving.stopped(0.1 / hz, 0.2)
        last = stopped.stopped(0.002 / hz, 0.2)
    assert last


@pytest.mark.parametrize("hz", RATES)
def test_fingers_come_to_rest_after_the_same_time(hz: float) -> None:
    grip, opening, came = GripSignals(control_hz=hz), 0.08, -1.0
    grip.begin()
    for tick in range(int(2.0 * hz)):
        grip.update(tick / hz, (tick - 1) / hz if tick else float("nan"), opening, 0.1, 1.0)
        opening = max(0.03, opening - 0.1 / hz)
        if grip.memory.holding and came < 0.0:
            came = tick / hz
    # Closed after 0.5 s, at rest for 0.15 s; a tick of 10 Hz is 0.1 s.
    assert 0.5 <= came <= 0.85


@pytest.mark.parametrize("hz", RATES)
def test_a_skill_has_as_many_seconds_at_every_rate(hz: float) -> None:
    package = load_skill(library_folder() / "regrasp")
    skill = compile_skill(package, control_hz=hz, robot=lambda: pytest.fail("starts no recovery"))
    assert skill.max_ticks / hz == package.page.max_ticks / 20.0
    assert looks_at(hz) / hz == 0.5


def test_an_arm_has_the_hand_that_it_says_it_has(spec: EnvSpec) -> None:
    assert hand_of(spec) is PIN_FINGERS
    bench = replace(spec, name="bench", versions={"arm": "Franka behind deoxys", "hand_mm": "80"})
    assert hand_of(bench) is PANDA
    assert hand_of(replace(bench, name="toy")) is PANDA
    assert hand_of(replace(bench, versions={})) is SOME_HAND
    wide = hand_of(replace(bench, versions={"arm": "ur5e", "hand_mm": "110"}))
    assert wide.reach is None
    assert wide.opening == pytest.approx(0.11)
    assert wide.widest == pytest.approx(0.101)
    assert str(embodiment_of(bench)) == "bench (Franka behind deoxys, 80 mm, 20 Hz)"
