"""Whole sessions with a LeKiwi host over real sockets, in both variants of its wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pytest
import zmq

from tests.hw_drivers.test_lekiwi_messages import jpeg
from zetta.hw_drivers.lekiwi.host import LekiwiHost, PointLekiwi
from zetta.hw_drivers.lekiwi.messages import LekiwiRow, Variant, read_picture
from zetta.hw_drivers.lekiwi.session import LekiwiSession, lekiwi_endpoints
from zetta.runtime.errors import ConfigError, ConnectionLost, SpecMismatch, Timeout

WITHIN_S = 10.0
DRIVING = LekiwiRow((0.1, 0.2, -0.1, 0.0, 0.3), 0.5, (0.1, 0.0, 0.2))
Rig: TypeAlias = tuple[LekiwiSession, LekiwiHost, PointLekiwi]


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, f"waited {WITHIN_S} s for {what}"
        time.sleep(0.002)


@pytest.fixture(params=["frames", "text"])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    variant: Variant = request.param
    body = PointLekiwi({"front": jpeg((5, 5, 250))})
    host = LekiwiHost(body, variant=variant, watchdog_s=0.1)
    session = LekiwiSession(host.command_endpoint, host.observation_endpoint, max_age_s=5.0)
    host.start()
    try:
        session.connect(WITHIN_S)
        yield session, host, body
    finally:
        session.close()
        host.close()


def test_a_whole_session_connects_sees_moves_grips_and_stops(rig: Rig) -> None:
    session, host, body = rig
    seen = session.state()
    assert seen.observation.row.gripper == 1.0
    assert seen.age_s >= 0.0
    assert read_picture(seen.observation.jpegs["front"])[4, 4, 0] > 200

    def there() -> bool:
        session.send(DRIVING)
        row = session.state().observation.row
        return row.gripper == pytest.approx(0.5) and row.joints == pytest.approx(DRIVING.joints)

    until(there, "the arm to arrive")
    assert session.state().observation.row.base == pytest.approx(DRIVING.base)
    assert session.state().rate_hz > 0.0
    session.stop()
    until(lambda: body.row().base == (0.0, 0.0, 0.0), "the base to stop")
    assert body.row().joints == pytest.approx(DRIVING.joints)
    assert body.driven_m > 0.0
    assert not host.refused
    assert session.refused == 0


def test_silence_stops_the_base_and_not_the_arm(rig: Rig) -> None:
    session, host, body = rig
    session.send(DRIVING)
    until(lambda: host.base_stopped == 1, "the watchdog")
    assert body.row().base == (0.0, 0.0, 0.0)
    until(lambda: body.row().joints == pytest.approx(DRIVING.joints), "the arm to arrive")


def test_a_host_that_comes_back_is_not_given_an_old_command(rig: Rig) -> None:
    session, host, body = rig
    session.send(DRIVING)
    until(lambda: bool(body.commands), "the command")
    host.close()
    until(lambda: not session._out.poll(0, zmq.POLLOUT), "the connection to end")
    with pytest.raises(ConnectionLost, match="takes no commands"):
        session.send(DRIVING)
    with pytest.raises(ConnectionLost):
        session.stop()
    again = PointLekiwi()
    second = LekiwiHost(again, command=host.command_endpoint, observation=host.observation_endpoint)
    second.start()
    try:
        count = session._inbox.newest.count  # type: ignore[union-attr]
        session._inbox.wait(lambda new: new.count > count + 2, WITHIN_S)
        session.connect(WITHIN_S)
        assert again.commands == []
        other = replace(DRIVING, gripper=0.75)
        until(lambda: session.send(other) is None and bool(again.commands), "the new command")
        assert again.commands[0].gripper == pytest.approx(0.75)
    finally:
        second.close()


def test_only_the_newest_of_several_commands_is_followed() -> None:
    body = PointLekiwi()
    host = LekiwiHost(body)
    session = LekiwiSession(host.command_endpoint, host.observation_endpoint, max_age_s=60.0)
    now = 1.0
    try:
        until(lambda: bool(session._out.poll(0, zmq.POLLOUT)), "the connection")
        while session._inbox.newest is None:
            now += 0.03
            host.turn(now)
        for step in range(5):
            session.send(replace(DRIVING, gripper=step / 4))

        def taken() -> bool:
            nonlocal now
            now += 0.03
            host.turn(now)
            return bool(body.commands) and body.commands[-1].gripper == 1.0

        until(taken, "the last command")
    finally:
        session.close()
        host.close()


def test_a_host_that_is_not_there_is_named_with_its_endpoint() -> None:
    session = LekiwiSession("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
    try:
        with pytest.raises(Timeout, match=r"host at tcp://127\.0\.0\.1:2 within"):
            session.connect(0.05)
        with pytest.raises(Timeout, match="nothing has come"):
            session.send(DRIVING)
    finally:
        session.close()


def test_hostile_messages_change_nothing_on_either_side(rig: Rig) -> None:
    session, host, body = rig
    session._out.send(b"\x80\x04pickle?")
    until(lambda: bool(host.refused), "the host's refusal")
    assert body.commands == []
    with pytest.raises(SpecMismatch):
        session.send(LekiwiRow((0.0,) * 4, 0.5))
    liar = zmq.Context.instance().socket(zmq.PUSH)
    endpoint = "ipc://@zetta-lekiwi-liar"
    liar.bind(endpoint)
    other = LekiwiSession(host.command_endpoint, endpoint)
    try:
        liar.send_multipart([b"{}", b"x"])
        liar.send(b"\x80\x04.")
        until(lambda: other.refused == 2, "both refusals")
        with pytest.raises(Timeout, match="2 messages were refused"):
            other.state()
    finally:
        other.close()
        liar.close(0)


def test_the_host_listens_on_loopback_unless_somebody_vouches_for_the_cable() -> None:
    with pytest.raises(ConfigError, match="every network"):
        LekiwiHost(PointLekiwi(), command="tcp://*:5555")
    with pytest.raises(ConfigError, match="private_network"):
        LekiwiHost(PointLekiwi(), observation="tcp://192.168.7.7:6001")


def test_the_published_ports_are_defaults_of_that_wire_only() -> None:
    assert lekiwi_endpoints("10.0.0.9") == ("tcp://10.0.0.9:5555", "tcp://10.0.0.9:5556")


def test_the_watchdog_counts_by_the_hosts_own_clock() -> None:
    body = PointLekiwi()
    host = LekiwiHost(body)
    try:
        host._heard_at = 1.0
        body.command(DRIVING)
        host.turn(1.4)
        assert host.base_stopped == 0
        host.turn(1.6)
        assert host.base_stopped == 1
        assert body.row().base == (0.0, 0.0, 0.0)
    finally:
        host.close()
