"""Two clocks, seen through their exchanges: alike, drifting, jumping, or no clocks at all."""

from __future__ import annotations

import math

import pytest

from zetta.hw_drivers.clock_offset import AGREE, ClockOffset


class Pair:
    """Our clock, theirs, and a network between them."""

    def __init__(self) -> None:
        self.offset = ClockOffset()
        self.now, self.ahead, self.rate = 100.0, 1000.0, 1.0

    def theirs(self) -> float:
        return self.now * self.rate + self.ahead

    def exchange(self, out_s: float = 1e-3, back_s: float = 1e-3) -> None:
        t0 = self.now
        self.now += out_s
        t1 = self.theirs()
        self.now += 1e-4
        t2 = self.theirs()
        self.now += back_s
        self.offset.add(t0, t1, t2, self.now)
        self.now += 0.2

    def error(self) -> float:
        return abs(self.offset.seconds - (self.theirs() - self.now))


@pytest.fixture
def pair() -> Pair:
    made = Pair()
    for _ in range(8):
        made.exchange()
    return made


def test_clocks_that_run_alike_are_known_within_the_bound_however_lopsided_the_network() -> None:
    pair = Pair()
    assert pair.offset.bound(0.0) == math.inf
    for out_s, back_s in ((1e-3, 1e-3), (0.2, 1e-3), (1e-3, 0.3), (0.05, 0.0), (0.0, 0.0)) * 3:
        pair.exchange(out_s, back_s)
        assert pair.offset.trusted
        assert pair.error() <= pair.offset.bound(pair.now) + 1e-9


@pytest.mark.parametrize("jump", [5.0, -5.0, 0.02, -0.02])
def test_a_jump_is_noticed_and_nothing_is_known_until_exchanges_agree_again(
    pair: Pair, jump: float
) -> None:
    pair.ahead += jump
    for _ in range(AGREE + 1):
        pair.exchange()
        if pair.offset.trusted:
            break
        assert pair.offset.bound(pair.now) == math.inf
    assert pair.offset.trusted
    assert pair.error() <= pair.offset.bound(pair.now) + 1e-9
    assert pair.offset.bound(pair.now) < 2e-3


@pytest.mark.parametrize("share", [0.02, -0.02])
def test_a_clock_that_drifts_is_never_trusted(pair: Pair, share: float) -> None:
    pair.ahead += pair.now - pair.now * (1.0 + share)
    pair.rate = 1.0 + share
    pair.exchange()
    for _ in range(20):
        pair.exchange()
        assert not pair.offset.trusted


def test_quartz_drift_is_borne(pair: Pair) -> None:
    pair.ahead += pair.now - pair.now * (1.0 + 5e-5)
    pair.rate = 1.0 + 5e-5
    for _ in range(100):
        pair.exchange()
        assert pair.offset.trusted
        assert pair.error() <= pair.offset.bound(pair.now) + 1e-9


def test_an_answer_before_its_question_is_no_exchange(pair: Pair) -> None:
    before = pair.offset.seconds
    pair.offset.add(pair.now, 1100.5, 1100.4, pair.now + 0.01)  # answered before it was received
    assert not pair.offset.trusted
    pair.offset.add(pair.now, 1100.0, 1105.0, pair.now + 0.01)  # five seconds in a hundredth
    assert pair.offset.seconds == before
    for _ in range(AGREE):
        assert pair.offset.bound(pair.now) == math.inf
        pair.exchange()
    assert pair.offset.trusted


def test_doubt_from_elsewhere_lasts_until_exchanges_agree(pair: Pair) -> None:
    pair.offset.doubt()
    assert pair.offset.bound(pair.now) == math.inf
    for _ in range(AGREE):
        pair.exchange()
    assert pair.offset.trusted
