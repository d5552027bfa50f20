"""Whatever becomes of a client, the robot's side makes the arm hold: real processes and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arm_parts import RawClient, Served, pose, serve, served, told, until

from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.errors import ConnectionLost

CHILD = Path(__file__).with_name("arm_client_child.py")
WATCHDOG_S, SLACK_S = 0.2, 0.05


@contextmanager
def child(running: Served) -> Iterator[subprocess.Popen[bytes]]:
    """Start a client in a process of its own and wait until it moves the arm."""
    side = running.side
    assert isinstance(side, SimpleSide)
    before = told(side).count("send")
    process = subprocess.Popen([sys.executable, str(CHILD), running.url], stderr=subprocess.PIPE)
    try:
        until(lambda: told(side).count("send") > before + 3, "the child moves the arm")
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def silence(side: SimpleSide) -> float:
    """Return the time between the last command and the hold behind it."""
    heard = list(side.heard)
    last = max(k for k, entry in enumerate(heard) if entry.told == "send")
    assert [entry.told for entry in heard[last + 1 :]] == ["hold"]
    return heard[last + 1].t - heard[last].t


def lapse(running: Served, how: signal.Signals) -> float:
    """Silence a moving client and return how long the arm went on."""
    side = running.side
    assert isinstance(side, SimpleSide)
    with child(running) as process:
        os.kill(process.pid, how)
        until(lambda: told(side)[-1] == "hold", "the arm holds")
        return silence(side)


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_arm_holds_when_its_client_is_stopped_or_killed(how: signal.Signals) -> None:
    with served(SimpleSide()) as running:
        went_on = lapse(running, how)
    # A machine that did not run us at all shows as a long turn; the rest is ours.
    assert went_on <= WATCHDOG_S + SLACK_S + running.server.longest_turn_s


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_arm_holds_within_250_ms_twenty_times(how: signal.Signals) -> None:
    went_on = []
    for _ in range(20):
        with served(SimpleSide()) as running:
            went_on.append(lapse(running, how))
    print(f"{how.name}: held after {min(went_on):.3f} to {max(went_on):.3f} s")
    assert max(went_on) <= WATCHDOG_S + SLACK_S


def test_heartbeats_do_not_feed_the_watchdog() -> None:
    side = SimpleSide()
    with served(side) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        arm.command(pose(y=0.1))
        until(lambda: told(side) == ["send", "hold"], "one command and then a hold")
        until(lambda: arm.state().mode == "holding", "the state says so")
        assert "no command" in arm.state().reason
        assert arm.counts()["watchdog"] == 1
        arm.command(pose(y=0.1))  # the lease was kept all the time
        until(lambda: told(side)[2:] == ["send", "hold"], "the next command counts again")


def test_program_that_slept_longer_than_its_lease_moves_nothing_when_it_wakes() -> None:
    side = SimpleSide()
    with served(side) as running, child(running) as process:
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: told(side)[-1] == "hold", "the arm holds")
        taken = ZmqArm(running.url, owner="next")
        taken.connect(10.0)  # waits for the lease to run out
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=20)
        sent = told(side).count("send")
        taken.close()
        assert "connect again" in said.decode()
        assert told(side)[-1] == "hold"
        assert told(side).count("send") == sent


def test_arm_holds_at_once_when_its_owner_lets_go() -> None:
    side = SimpleSide()
    with served(side) as running:
        arm = ZmqArm(running.url)
        arm.connect()
        arm.command(pose(y=0.1))
        until(lambda: told(side) == ["send"], "the command arrives")
        arm.close()
        until(lambda: told(side) == ["send", "hold"], "the arm holds")
        with pytest.raises(ConnectionLost, match="call connect"):
            arm.state()


def test_flood_of_garbage_does_not_starve_the_watchdog() -> None:
    side = SimpleSide()
    running = serve(side)
    raw = RawClient(running.url)
    try:
        raw.command(1, 1e12)  # too far ahead
        raw.command(2, running.server._clock() + 0.5)
        until(lambda: "send" in told(side), "the command arrives")
        while "hold" not in told(side):
            raw.socket.send(b"\x00" * 64)
        assert silence(side) <= WATCHDOG_S + SLACK_S + running.server.longest_turn_s
    finally:
        raw.close()
        running.end()
    assert running.server.counts["clock"] == 1
    assert running.server.counts["garbage"] > 0
