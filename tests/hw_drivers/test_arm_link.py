"""The link between a program and the robot's side, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq

from tests.hw_drivers.arm_parts import Gate, RawClient, Served, pose, serve, served, told, until
from zetta.hw_drivers.arm import Arm, ArmReading, ArmTarget, JointTarget
from zetta.hw_drivers.arm_messages import ARM_PROTOCOL, Endpoints, port_of
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm, clear_stop
from zetta.runtime.curve_keys import read_client_keys, read_server_keys, write_keys
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
    Timeout,
)
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import pack


@pytest.fixture
def running() -> Iterator[Served]:
    with served(SimpleSide()) as started:
        yield started


@pytest.fixture
def side(running: Served) -> SimpleSide:
    assert isinstance(running.side, SimpleSide)
    return running.side


@pytest.fixture
def arm(running: Served) -> Iterator[ZmqArm]:
    connected = ZmqArm(running.url, owner="tests")
    connected.connect()
    yield connected
    connected.close()


def test_arm_goes_where_it_is_told(arm: ZmqArm) -> None:
    assert isinstance(arm, Arm)
    target = pose(x=0.45, y=0.05, opening=0.02)
    deadline = time.monotonic() + 20.0
    while np.abs(arm.state(10.0).ee_pos - target.ee_pos).max() > 1e-3:
        assert time.monotonic() < deadline
        arm.command(target)
        time.sleep(0.02)
    reading = arm.state(10.0)
    assert reading.gripper_opening == pytest.approx(0.02, abs=5e-3)
    assert reading.mode == "moving"
    assert not reading.ee_pos.flags.writeable


def test_nothing_moves_before_the_first_command(arm: ZmqArm, side: SimpleSide) -> None:
    assert arm.state(10.0).mode == "idle"
    assert told(side) == []


def test_age_of_a_state_is_known_although_the_clocks_differ() -> None:
    def ahead() -> float:
        return time.monotonic() + 1234.5

    side = SimpleSide(clock=ahead)
    with served(side, clock=ahead) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        seconds, bound = arm.offset()
        assert abs(seconds - 1234.5) <= bound
        assert arm.state(10.0).t > 1234.5
        assert 0.0 <= arm.age_s() < 1.0
        arm.command(pose(y=0.1), ttl_s=0.5)  # its deadline is of the robot's clock
        until(lambda: "send" in told(side), "the command counts")


def test_old_state_is_refused_with_its_age_and_the_robots_reason() -> None:
    class Silent(SimpleSide):
        silent = False

        def read(self) -> ArmReading:
            if self.silent:
                raise InfraError("the controller's cable is loose")
            return super().read()

    side = Silent()
    with served(side) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        side.silent = True
        until(lambda: arm.age_s() > 0.2, "the state grows old")
        with pytest.raises(Timeout, match=r"is 0\.\d+ s old.*at most 0\.05 s"):
            arm.state(0.05)
        assert arm.state(60.0).mode == "fault"
        assert "cable is loose" in arm.state(60.0).reason
        side.silent = False
        until(lambda: arm.state(60.0).mode == "holding", "the arm reports again, and holds")


def test_robot_that_never_reports_is_named_at_once() -> None:
    class Mute(SimpleSide):
        def read(self) -> ArmReading:
            raise InfraError("no power at the arm")

    with served(Mute()) as running, contextlib.closing(ZmqArm(running.url)) as arm:
        with pytest.raises(Timeout, match=r"no state came from tcp://.*no power at the arm"):
            arm.connect(1.0)
        with pytest.raises(ConnectionLost):
            arm.state()


def test_connecting_to_nobody_names_the_endpoint() -> None:
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(Timeout, match=f"{url} did not answer hello"):
            ZmqArm(url).connect(0.3)


# ------------------------------------------------------------------------------- stop


def test_stop_passes_a_thousand_waiting_commands() -> None:
    busy, go_on = threading.Event(), threading.Event()

    def waits(target: ArmTarget) -> ArmTarget:
        busy.set()
        assert go_on.wait(20.0)
        return target

    side = SimpleSide()
    running = serve(side, guard=Gate(waits))
    raw, stopper = RawClient(running.url), Dealer(running.server.endpoints.stop)
    try:
        raw.command(1, time.monotonic() + 0.9)
        assert busy.wait(20.0)  # the server is in the guard; from now on everything waits
        for seq in range(2, 1002):
            raw.command(seq, time.monotonic() + 0.9)
        pressed = threading.Thread(
            target=stopper.call, args=("stop", {"by": "test", "reason": "now"}, 20.0)
        )
        pressed.start()
        waiting = zmq.Poller()
        waiting.register(running.server._stop.socket, zmq.POLLIN)
        assert waiting.poll(20_000)  # the stop waits behind the thousand
        released = time.monotonic()
        go_on.set()
        pressed.join()
        until(lambda: "stop" in told(side), "the stop")
        # Of the thousand not one; a slow machine may have seen silence in between.
        assert [what for what in told(side) if what != "hold"][:2] == ["send", "stop"]
        stopped = next(heard.t for heard in side.heard if heard.told == "stop")
        assert stopped - released < 0.05 + running.server.longest_turn_s
        until(lambda: refused(running) >= 900, "the rest is refused, or too late by now")
        assert told(side).count("send") == 1
    finally:
        go_on.set()
        stopper.close()
        raw.close()
        running.end()


def refused(running: Served) -> int:
    counts = running.server.counts
    return counts["latched"] + counts["expired"]


def test_stop_is_latched_until_a_person_clears_it(running: Served, side: SimpleSide) -> None:
    first = ZmqArm(running.url)
    first.connect()
    first.command(pose(y=0.1))
    until(lambda: "send" in told(side), "the arm moves")
    first.stop("a hand in the way")
    until(lambda: first.state(10.0).mode == "stopped", "the state says so")
    first.close()

    second = ZmqArm(running.url)
    second.connect()
    sent = told(side).count("send")
    assert "a hand in the way" in second.state(10.0).reason
    with pytest.raises(SafetyStop, match="a hand in the way"):
        until(lambda: second.command(pose(y=0.2)) is not None, "the refusal comes back")
    with pytest.raises(ConfigError, match="say who"):
        clear_stop(running.url, "  ")
    assert "a hand in the way" in clear_stop(running.url, "Ada")
    with pytest.raises(ConnectionLost, match="connect again"):  # also whoever holds it begins anew
        until(lambda: bool(second.state(10.0)) and False, "the lease is void")
    assert told(side).count("send") == sent

    second.connect()
    assert "cleared by Ada" in second.state(10.0).reason
    second.command(pose(y=0.2))
    until(lambda: told(side).count("send") > sent, "the arm moves again")
    second.close()


def test_latched_stop_outlives_the_server_where_it_has_a_file(tmp_path: Path) -> None:
    latch = tmp_path / "arm" / "latch.json"
    for _ in range(2):
        side = SimpleSide()
        with served(side, latch=latch) as running, contextlib.closing(ZmqArm(running.url)) as arm:
            arm.connect()
            arm.stop("lunch")
            assert told(side) == ["stop"]
        side = SimpleSide()
        with served(side, latch=latch) as running, contextlib.closing(ZmqArm(running.url)) as arm:
            arm.connect()
            assert arm.state(10.0).mode == "stopped"
            assert "lunch" in clear_stop(running.url, "Ada")
    with served(SimpleSide(), latch=latch) as running:
        assert clear_stop(running.url, "Ada") == ""
    latch.write_text("{")
    with served(SimpleSide(), latch=latch) as running:
        assert "cannot be read" in clear_stop(running.url, "Ada")


@pytest.mark.parametrize("error", [SafetyStop("too near the wall"), ValueError("a bug")])
def test_guard_that_refuses_or_breaks_stops_the_arm(error: Exception) -> None:
    def refuses(target: ArmTarget) -> ArmTarget:
        raise error

    side = SimpleSide()
    with (
        served(side, guard=Gate(refuses)) as running,
        contextlib.closing(ZmqArm(running.url)) as arm,
    ):
        arm.connect()
        arm.command(pose(y=0.1))
        until(lambda: arm.state(10.0).mode == "stopped", "the arm stops")
        assert str(error) in arm.state(10.0).reason
    assert "send" not in told(side)


# --------------------------------------------------------------------- who and what counts


def test_duplicate_reordered_and_expired_commands_are_dropped_and_counted(
    running: Served, side: SimpleSide
) -> None:
    raw = RawClient(running.url)

    def counted(name: str, number: int) -> None:
        until(lambda: running.server.counts[name] == number, f"{name} {number}")

    try:
        now = time.monotonic()
        raw.command(5, now + 0.9)
        counted("sent", 1)
        raw.command(5, now + 0.9)
        counted("duplicate", 1)
        raw.command(4, now + 0.9)
        counted("reordered", 1)
        raw.command(6, time.monotonic() - 0.001)
        counted("expired", 1)
        raw.command(7, float("nan"))
        counted("expired", 2)
        raw.command(8, time.monotonic() + 60.0)
        counted("clock", 1)
        raw.command(9, time.monotonic() + 0.9, pose(opening=0.5))
        counted("refused", 1)
        raw.lease = "0" * 32
        raw.command(10, time.monotonic() + 0.9)
        counted("owner", 1)
    finally:
        raw.close()
    assert told(side).count("send") == 1
    assert [target.ee_pos[2] for target in side.targets] == [pytest.approx(0.3 + 5e-5)]


def test_another_protocol_robot_or_owner_is_refused(running: Served, arm: ZmqArm) -> None:
    dealer = Dealer(running.url)
    with pytest.raises(SpecMismatch, match=f"arm protocol 99, this one {ARM_PROTOCOL}"):
        dealer.call("hello", {"arm_protocol": 99, "robot": ""}, 5.0)
    dealer.close()
    with pytest.raises(SpecMismatch, match="'simple', not 'left'"):
        ZmqArm(running.url, robot="left").connect()
    with pytest.raises(InfraError, match="held by 'tests'"):
        ZmqArm(running.url, owner="tests").connect(0.3)  # the same name proves nothing
    assert arm.state(10.0).mode == "idle"


def test_command_the_arm_cannot_follow_never_leaves_the_program(arm: ZmqArm) -> None:
    good = pose()
    for bad, said in (
        (JointTarget(np.zeros(6), 0.0), "takes pose targets"),
        (pose(x=float("nan")), "3 finite numbers"),
        (pose(opening=-0.1), "opens 0 to 0.08"),
        (type(good)(good.ee_pos, 2.0 * good.ee_quat, 0.0), "length 1"),
        (type(good)(good.ee_pos[:2], good.ee_quat, 0.0), "3 finite numbers"),
    ):
        with pytest.raises(SpecMismatch, match=said):
            arm.command(bad)


def test_restarted_server_executes_nothing_of_before() -> None:
    old = serve(SimpleSide())
    ends = old.server.endpoints
    arm = ZmqArm(old.url)
    arm.connect()
    arm.command(pose(y=0.1), ttl_s=1.0)
    old.end()

    side = SimpleSide()
    fresh = serve(side, endpoints=Endpoints(ends.command, ends.state, ends.stop))
    try:
        with contextlib.suppress(ConnectionLost, Timeout):
            for _ in range(20):
                arm.command(pose(y=0.1), ttl_s=1.0)
        until(lambda: _lost(arm), "the program learns of it")
        assert "send" not in told(side)
        arm.connect()
        arm.command(pose(y=0.1))
        until(lambda: "send" in told(side), "a new hold counts")
    finally:
        arm.close()
        fresh.end()


def _lost(arm: ZmqArm) -> bool:
    try:
        arm.state(10.0)
    except ConnectionLost as error:
        return "restarted" in str(error)
    except Timeout:
        return False
    return False


# --------------------------------------------------------------------------- strangers

HOSTILE = [
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xc1" * 100,
    pack({"protocol": 1, "id": 1, "do": "command", "given": {}}),
    pack({"protocol": 1, "id": 1, "do": "command", "given": {"seq": "x"}}),
    pack({"protocol": 1, "id": 1, "do": "lease", "given": {"owner": "x" * 1000, "session": "y"}}),
    pack({"protocol": 1, "id": 1, "do": "beat", "given": {"lease": 7}}),
    pack({"protocol": 1, "id": 1, "do": "beat", "given": {"lease": "ü"}}),
    pack({"protocol": 9, "id": 1, "do": "hello", "given": {}}),
    pack([1, 2, 3]),
    b"\x91" * 3000,
]


def test_hostile_bytes_break_nothing_on_any_socket(running: Served) -> None:
    ends = running.server.endpoints
    for endpoint in (ends.command, ends.state, ends.stop):
        for kind in (zmq.DEALER, zmq.REQ, zmq.SUB):
            stranger: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
            stranger.linger = 1000
            stranger.connect(endpoint)
            for message in HOSTILE[: 1 if kind == zmq.REQ else None]:
                if kind == zmq.SUB:
                    stranger.setsockopt(zmq.SUBSCRIBE, message)
                else:
                    stranger.send_multipart([message, message])
            stranger.close()
        with socket.create_connection(("127.0.0.1", port_of(endpoint)), 5.0) as raw:
            raw.sendall(b"\xff" * 2000)
        large: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        large.linger = 0
        large.connect(endpoint)
        large.send(b"\x00" * 2**20)
        large.close(100)
    with contextlib.closing(ZmqArm(running.url)) as arm:
        arm.connect()
        until(lambda: arm.counts()["garbage"] > 5, "the garbage is counted")
        assert arm.state(10.0).mode == "idle"
        arm.stop("still obeyed")
        until(lambda: arm.state(10.0).mode == "stopped", "the stop")
    assert running.thread.is_alive()


def test_nothing_but_loopback_is_bound_without_keys() -> None:
    for k in range(3):
        hosts = ["127.0.0.1"] * 3
        hosts[k] = "0.0.0.0"
        ends = Endpoints(*(f"tcp://{host}:*" for host in hosts))
        with pytest.raises(ConfigError, match="can be reached from other machines"):
            serve(SimpleSide(), endpoints=ends)


def test_port_5555_is_never_taken() -> None:
    with pytest.raises(ConfigError, match="5555"):
        Endpoints.on(port=5553)


def test_keys_let_the_known_in_and_nobody_else(tmp_path: Path) -> None:
    server_file, client_file = write_keys(tmp_path / "ours")
    _, strange_file = write_keys(tmp_path / "theirs")
    side, ends = SimpleSide(), Endpoints.on("0.0.0.0", 0)
    with served(side, endpoints=ends, keys=read_server_keys(server_file)) as running:
        url = running.url.replace("0.0.0.0", "127.0.0.1")
        with contextlib.closing(ZmqArm(url, keys=read_client_keys(client_file))) as arm:
            arm.connect()
            arm.command(pose(y=0.1))
            until(lambda: "send" in told(side), "the known one moves the arm")
            arm.stop("done")
        for keys in (None, read_client_keys(strange_file)):
            with pytest.raises((Timeout, ConnectionLost)):
                ZmqArm(url, keys=keys).connect(0.5)
