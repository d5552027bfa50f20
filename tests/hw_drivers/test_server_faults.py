"""Whatever the network does, nothing stale or spoiled is carried out, and ages stay true."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import pose, until
from zetta.hw_drivers.arm import OPEN, ArmReading, ArmTarget, PoseTarget
from zetta.hw_drivers.arm_messages import (
    Command,
    Endpoints,
    StateMessage,
    command_to_wire,
    opened,
    read_command,
    sealed,
)
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.twin.faults import Faults
from zetta.hw_drivers.twin.link_faults import (
    FaultyLink,
    Line,
    Trouble,
    WrongClock,
    _spoiled,
    _spoiled_bytes,
    link_faults,
)
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
    Timeout,
)
from zetta.runtime.wire import (
    Request,
    from_wire,
    pack,
    read_request,
    request_frames,
    to_wire,
    unpack,
)

TTL_S = 0.15


class Traced(SimpleSide):
    """Remembers, by the true clock, when each reading was taken and each target carried out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self.taken: dict[float, float] = {}
        self.done: list[tuple[float, float]] = []

    def read(self) -> ArmReading:
        reading = super().read()
        self.taken[reading.t] = time.monotonic()  # not before this
        return reading

    def send(self, target: ArmTarget) -> None:
        assert isinstance(target, PoseTarget)
        self.done.append((time.monotonic(), float(target.ee_pos[2])))
        super().send(target)


class Rig:
    """A server behind a faulty link, perhaps with a wrong clock, and a program that drives it."""

    def __init__(self, clock: WrongClock | None = None, lease_s: float = 5.0) -> None:
        self.clock = clock or WrongClock()
        self.link = FaultyLink(7)
        self.side = Traced(self.clock)
        self.server = ArmServer(
            self.side,
            OPEN,
            ServerSettings(Endpoints.on(port=0), lease_s=lease_s),
            clock=self.clock,
            sockets=self.link.sockets,
        )
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.server.serve, args=(self.over.is_set,))
        self.thread.start()
        self.arm = ZmqArm(self.server.endpoints.command)
        self.arm.connect(10.0)
        self.sent: dict[float, float] = {}
        self.bound = self.arm.offset()[1]
        self.ages = self.lost = 0
        self.tolerance_s = 1e-6
        self.marks = itertools.count()

    def tick(self) -> None:
        """Command one new place and look at the state, as a loop does."""
        mark = 0.3 + 1e-5 * next(self.marks)
        self.sent[mark] = time.monotonic()
        try:
            self.arm.command(pose(z=mark), ttl_s=TTL_S)
            self.look()
        except ConnectionLost:
            self.lost += 1
            self.again()
        except Timeout:
            pass

    def look(self) -> ArmReading:
        """See that the age that is told of a state is not below its true one."""
        reading = self.arm.state(0.5)
        least = time.monotonic() - self.side.taken[reading.t]
        assert self.arm.age_s() >= least - self.tolerance_s
        self.ages += 1
        return reading

    def again(self) -> None:
        with contextlib.suppress(InfraError, SpecMismatch):
            self.arm.connect(2.0)

    def drive(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()
            time.sleep(0.01)

    def check(self) -> None:
        """Of what was carried out each was sent, none twice or out of order, none too late."""
        heights = [height for _, height in self.side.done]
        assert set(heights) <= set(self.sent)
        assert all(one < other for one, other in itertools.pairwise(heights))
        slack = self.bound + self.server.longest_turn_s + 0.02
        late = [t - self.sent[height] for t, height in self.side.done]
        assert max(late, default=0.0) <= TTL_S + slack

    def recovers(self) -> None:
        """See that commands reach the arm again, if need be after it is taken hold of again."""
        count = len(self.side.done)

        def moves() -> bool:
            self.tick()
            return len(self.side.done) > count + 3

        until(moves, "the arm follows again")

    def close(self) -> None:
        self.link.heal()
        self.arm.close()
        self.over.set()
        self.thread.join()
        self.server.close()


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()


@pytest.mark.parametrize(
    "fault",
    [
        {"loss": 0.3},
        {"delay_s": 0.04},
        {"jitter_s": 0.08},
        {"reorder": 0.3},
        {"duplicate": 0.5},
        {"corrupt": 0.3},
        {"loss": 0.1, "jitter_s": 0.03, "reorder": 0.2, "duplicate": 0.3, "corrupt": 0.2},
    ],
    ids=lambda fault: "+".join(fault),
)
def test_a_bad_link_carries_out_nothing_stale_or_spoiled_and_ages_stay_true(
    rig: Rig, fault: dict[str, float]
) -> None:
    rig.drive(10)
    rig.link.suffer(**fault)
    rig.drive(60)
    rig.link.heal()
    rig.recovers()
    rig.check()
    assert rig.ages > 10
    counts = rig.server.counts
    if "duplicate" in fault:
        assert counts["duplicate"] + counts["reordered"] > 0
    if "corrupt" in fault:
        assert counts["garbage"] > 0
        assert rig.arm.spoiled > 0


def test_a_dead_link_is_a_hold_by_the_watchdog_and_an_old_state_until_it_is_back(
    rig: Rig,
) -> None:
    rig.drive(5)
    rig.link.suffer(loss=1.0)
    until(lambda: rig.side.heard[-1].told == "hold", "the watchdog")
    with pytest.raises(Timeout, match="s old"):
        until(lambda: rig.arm.state(0.05) is None, "the state grows old")
    held = len(rig.side.done)
    rig.drive(10)
    assert len(rig.side.done) == held
    rig.link.heal()
    rig.recovers()
    rig.check()


def test_commands_that_were_stuck_for_longer_than_they_are_worth_are_dropped(rig: Rig) -> None:
    rig.drive(5)
    done = len(rig.side.done)
    rig.link.suffer(("in",), delay_s=2.0 * TTL_S)
    for _ in range(10):
        with contextlib.suppress(InfraError):
            rig.arm.command(pose(z=0.35), ttl_s=TTL_S)
    until(lambda: rig.server.counts["expired"] >= 10, "they arrive")
    assert len(rig.side.done) == done


def test_a_stop_that_was_confirmed_is_a_stop_however_bad_the_link(rig: Rig) -> None:
    rig.link.suffer(loss=0.4, corrupt=0.2, duplicate=0.3, jitter_s=0.05)

    def confirmed() -> bool:
        try:
            rig.arm.stop("a hand in the way")
        except (Timeout, SpecMismatch):  # "use the emergency stop"
            return False
        return True

    until(confirmed, "the confirmation")
    assert rig.side.read().mode == "stopped"
    done = len(rig.side.done)
    rig.link.heal()
    with contextlib.suppress(InfraError, SafetyStop):
        rig.arm.command(pose(z=0.31))
    assert len(rig.side.done) == done


# ------------------------------------------------------------------------------- clocks


def test_a_clock_that_is_years_ahead_or_behind_changes_nothing() -> None:
    for offset_s in (3e8, -1e3):
        rig = Rig(WrongClock(offset_s))
        try:
            rig.drive(10)
            rig.recovers()
            rig.check()
            assert abs(rig.arm.offset()[0] - offset_s) < 1.0
        finally:
            rig.close()


@pytest.mark.parametrize("share", [0.05, -0.05])
def test_a_clock_that_drifts_is_refused_and_said_and_never_told_as_a_young_state(
    share: float,
) -> None:
    rig = Rig(lease_s=1.0)
    try:
        rig.drive(5)
        # Before the next heartbeat nobody can know.
        rig.tolerance_s = abs(share) * 1.0
        rig.clock.drift(share)
        until(lambda: _said(rig, "do not run alike"), "the clocks are doubted")
        with pytest.raises((Timeout, ConnectionLost)):
            rig.arm.command(pose())
        rig.clock.drift(0.0)
        rig.recovers()
        rig.tolerance_s = 1e-6
        rig.look()
        rig.check()
    finally:
        rig.close()


def test_a_clock_that_jumps_is_noticed_before_a_state_is_believed() -> None:
    rig = Rig(lease_s=2.0)
    try:
        rig.drive(5)
        rig.clock.jump(0.5)
        until(lambda: _said(rig, "do not run alike"), "the jump is noticed")
        rig.recovers()
        rig.look()
        rig.check()
    finally:
        rig.close()


def test_a_jump_of_the_robots_clock_past_the_lease_ends_it_and_the_arm_holds() -> None:
    rig = Rig(lease_s=1.0)
    try:
        rig.drive(5)
        rig.clock.jump(30.0)
        until(lambda: rig.side.heard[-1].told == "hold", "the arm holds")
        rig.recovers()
        rig.check()
    finally:
        rig.close()


def _said(rig: Rig, words: str) -> bool:
    try:
        rig.look()
    except Timeout as error:
        return words in str(error)
    except ConnectionLost:
        rig.again()
    return False


def test_a_wrong_clock_goes_on_and_never_back() -> None:
    now = [100.0]
    clock = WrongClock(5.0, lambda: now[0])
    assert clock() == 105.0
    now[0] += 1.0
    clock.drift(0.5)
    assert clock() == 106.0
    now[0] += 2.0
    assert clock() == 109.0
    clock.jump(10.0)
    clock.drift(0.0)
    now[0] += 1.0
    assert clock() == 120.0
    for wrong in (lambda: clock.jump(-1.0), lambda: clock.drift(-1.0)):
        with pytest.raises(ConfigError):
            wrong()


# ---------------------------------------------------------------------------- checksums


def command(seed: int) -> Command:
    draw = np.random.default_rng(seed)
    target = PoseTarget(draw.uniform(0.0, 1.0, 3), np.array((1.0, 0.0, 0.0, 0.0)), 0.05)
    return Command("session", "lease", seed, 5.0, target, "policy")


@given(st.integers(0, 2**32), st.integers(1, 10_000))
def test_a_spoiled_command_is_refused_or_says_what_was_sent(seed: int, number: int) -> None:
    sent = command(number)
    frames = request_frames(Request(number, "command", command_to_wire(sent)))
    _, *spoiled = _spoiled([b"peer", *frames], random.Random(seed))
    try:
        request = read_request(spoiled)
        got = read_command(opened(request.given))
    except (SpecMismatch, InfraError):
        return
    assert pack(command_to_wire(got)) == pack(command_to_wire(sent))


@given(st.integers(0, 2**32))
def test_a_spoiled_state_is_refused(seed: int) -> None:
    message = StateMessage(2, "session", 5, SimpleSide(clock=lambda: 5.0).read())
    raw = pack(sealed(to_wire(message)))
    spoiled = _spoiled_bytes(raw, random.Random(seed))
    if spoiled == raw:  # two bits were turned back
        return
    with pytest.raises((SpecMismatch, InfraError)):
        from_wire(StateMessage, opened(unpack(spoiled)))
    assert from_wire(StateMessage, opened(unpack(raw))).session == "session"


@pytest.mark.parametrize("plain", [{}, {"a": 1}, {"check": 0}, {"check": "x", "a": 1}])
def test_what_was_never_sealed_is_not_opened(plain: dict[str, object]) -> None:
    with pytest.raises(InfraError, match="checksum"):
        opened(plain)
    with pytest.raises(SpecMismatch, match="map"):
        opened([1])


# --------------------------------------------------------------------------------- lines


def pass_through(trouble: Trouble, count: int = 400, seed: str = "1") -> list[tuple[int, float]]:
    """Put in one message each 10 ms; return each that came out, and how late it was."""
    line: Line[int] = Line(seed, lambda message, draw: -message - 1)
    came, now = [], 0.0
    for number in range(count + 200):
        now = 0.01 * number
        if number < count:
            line.put(number, now, trouble)
        while (message := line.take(now)) is not None:
            came.append((message, now))
    return came


def test_a_sound_line_changes_nothing() -> None:
    assert [number for number, _ in pass_through(Trouble())] == list(range(400))


def test_each_fault_does_what_it_says_and_equal_seeds_do_the_same() -> None:
    lossy = [n for n, _ in pass_through(Trouble(loss=0.25))]
    assert 250 < len(lossy) < 350
    assert lossy == sorted(lossy)
    late = pass_through(Trouble(delay_s=0.2))
    assert all(0.2 <= at - 0.01 * n + 1e-9 <= 0.22 for n, at in late)
    jittered = pass_through(Trouble(jitter_s=0.2))
    assert [n for n, _ in jittered] == list(range(400))  # the order is kept
    assert len({round(at - 0.01 * n, 3) for n, at in jittered}) > 5
    shuffled = [n for n, _ in pass_through(Trouble(reorder=0.3))]
    assert sorted(shuffled) == list(range(400))
    assert shuffled != sorted(shuffled)
    doubled = [n for n, _ in pass_through(Trouble(duplicate=0.5))]
    assert 550 < len(doubled) < 650
    spoiled = [n for n, _ in pass_through(Trouble(corrupt=0.25))]
    assert 70 < sum(n < 0 for n in spoiled) < 130
    everything = Trouble(0.2, 0.01, 0.05, 0.2, 0.2, 0.2)
    assert pass_through(everything) == pass_through(everything)
    assert pass_through(everything) != pass_through(everything, seed="2")


@given(st.binary(min_size=1, max_size=200), st.integers(0, 2**32))
def test_spoiling_turns_few_bits_or_cuts(raw: bytes, seed: int) -> None:
    spoiled = _spoiled_bytes(raw, random.Random(seed))
    if len(spoiled) == len(raw):
        turned = sum((a ^ b).bit_count() for a, b in zip(raw, spoiled, strict=True))
        assert turned <= 8
    else:
        assert raw.startswith(spoiled)


# --------------------------------------------------------------------------------- table


def test_the_table_of_faults_sets_and_ends_them_by_name() -> None:
    link, clock = FaultyLink(), WrongClock(base=lambda: 1.0)
    faults = Faults(link_faults(link, clock))
    faults.set("link_loss", True, "0.25")
    faults.set("link_delay", True, "0.1 in")
    assert link.trouble["in"] == Trouble(loss=0.25, delay_s=0.1)
    assert link.trouble["out"] == Trouble(loss=0.25)
    assert set(faults.on) == {"link_loss", "link_delay"}
    faults.set("link_loss", False)
    faults.set("link_delay", False)
    assert link.trouble["in"] == link.trouble["out"] == Trouble()
    faults.set("clock_jump", True, "3")
    assert clock() == 4.0
    faults.set("clock_drift", True, "0.01")
    faults.set("clock_drift", False)
    for name, value, said in (
        ("link_loss", "2", "share from 0 to 1"),
        ("link_loss", "", "needs a number"),
        ("link_delay", "0.1 sideways", "in and out"),
        ("link_jitter", "nan", "0 to 10 s"),
        ("clock_jump", "-1", "ahead only"),
        ("link_los", "1", "did you mean 'link_loss'"),
    ):
        with pytest.raises(ConfigError, match=said):
            faults.set(name, True, value)
    with pytest.raises(ConfigError, match="did you mean 'loss'"):
        link.suffer(los=1.0)
