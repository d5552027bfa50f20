"""Thousands of malformed and hostile messages leave both doors as they were."""

from __future__ import annotations

import contextlib
import gc
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgpack
import pytest
import zmq
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.runtime.policy_server.door_parts import SmallEngine, sensed
from tests.runtime.policy_server.hostile_messages import messages, resident_mib
from zetta.runtime.foreign import gr00t_codec, openpi_codec, translate
from zetta.runtime.foreign.robots import GR00T_LIBERO, OPENPI_LIBERO
from zetta.runtime.policy_server.gr00t_door import Gr00tDoor
from zetta.runtime.policy_server.openpi_door import OpenpiDoor
from zetta.runtime.policy_server.visitors import Binding

MANY = 5500
GROWTH_MIB = 24.0
"""What the allocators may keep; a leak of one request in a hundred would be ten times that."""
SIZES = [pytest.param(250, id="some"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]


@pytest.fixture
def engine() -> Iterator[SmallEngine]:
    made = SmallEngine()
    yield made
    made.stop()


SMALL = {
    convention: replace(
        convention,
        pictures=tuple(replace(picture, size=(16, 16)) for picture in convention.pictures),
    )
    for convention in (OPENPI_LIBERO, GR00T_LIBERO)
}
"""Small pictures: what is tried here is what stands around them."""


def openpi_request(draw: random.Random) -> dict[str, Any]:
    return translate.request(sensed(), "pick it up", SMALL[OPENPI_LIBERO], "openpi")


def gr00t_request(draw: random.Random) -> dict[str, Any]:
    form = draw.choice(("n1.5", "n1.6", "n1.6-flat"))
    asked = translate.request(sensed(), "pick it up", SMALL[GR00T_LIBERO], form)
    endpoint = draw.choice(("get_action", "get_action", "reset", "kill", "ping", "dance"))
    if endpoint == "reset":
        return {"endpoint": endpoint, "data": {"options": {"seed": 3}}}
    data = asked if form == "n1.5" else {"observation": asked, "options": None}
    return {"endpoint": endpoint, "data": data}


# --------------------------------------------------------------------------- openpi


def thrown_at_openpi(door: OpenpiDoor, thrown: Iterator[bytes]) -> int:
    """Send every message, on a new connection after each refusal; return how many were refused."""
    refused = 0
    message = next(thrown, None)
    while message is not None:
        with connect(f"ws://127.0.0.1:{door.port}", compression=None, proxy=None) as line:
            line.recv(timeout=10)
            said: str | bytes = b""
            while message is not None and isinstance(said, bytes):
                line.send(message)
                said = line.recv(timeout=10)
                message = next(thrown, None)
            if isinstance(said, str):
                assert len(said) <= 300
                assert "Traceback" not in said
                assert "\n" not in said
                refused += 1
    return refused


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", SIZES)
def test_the_openpi_door_survives_hostile_messages(engine: SmallEngine, count: int) -> None:
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    try:
        thrown_at_openpi(door, messages(openpi_request, openpi_codec.encode, 110, seed=1))
        gc.collect()
        before, threads = resident_mib(), threading.active_count()
        refused = thrown_at_openpi(door, messages(openpi_request, openpi_codec.encode, count))
        gc.collect()
        assert refused > 0.9 * count
        assert engine.left_alone()
        assert threading.active_count() == threads
        assert resident_mib() - before < GROWTH_MIB
        with connect(f"ws://127.0.0.1:{door.port}", compression=None, proxy=None) as line:
            line.recv(timeout=10)
            line.send(openpi_codec.encode(openpi_request(random.Random())))
            answer = openpi_codec.decode(line.recv(timeout=10, decode=False))
            assert answer["actions"].shape == (10, 7)
    finally:
        door.close()


JUNK = (
    b"",
    b"\x00" * 2000,
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x7f" * 300,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    + b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f" + b"\x03\x00NULL" + b"\x00" * 48,
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f" + b"\x03\x01" + b"\xff" * 500,
)


def throw_bytes(port: int, count: int) -> None:
    """Connect, send something that is no client's, and go away in the middle."""
    draw = random.Random(5)
    for k in range(count):
        junk = JUNK[k % len(JUNK)] if k % 3 else draw.randbytes(draw.randrange(300))
        line = socket.create_connection(("127.0.0.1", port), timeout=10)
        with line, contextlib.suppress(OSError):
            line.sendall(junk)


def test_neither_door_minds_bytes_that_are_no_handshake(engine: SmallEngine) -> None:
    openpi = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    gr00t = Gr00tDoor(engine, GR00T_LIBERO, Binding())
    try:
        for door in (openpi, gr00t):
            throw_bytes(door.port, 300)
        with connect(f"ws://127.0.0.1:{openpi.port}", compression=None, proxy=None) as line:
            assert line.recv(timeout=10)
        with lines(gr00t.port, 1) as (line,):
            line.send_multipart([b"", gr00t_codec.encode({"endpoint": "ping"})])
            assert msgpack.unpackb(line.recv_multipart()[1])["status"] == "ok"
    finally:
        openpi.close()
        gr00t.close()


# --------------------------------------------------------------------------- GR00T


@contextlib.contextmanager
def lines(port: int, count: int) -> Iterator[list[Any]]:
    context = zmq.Context()
    opened = [context.socket(zmq.DEALER) for _ in range(count)]
    for line in opened:
        line.setsockopt(zmq.RCVTIMEO, 10_000)
        line.connect(f"tcp://127.0.0.1:{port}")
    try:
        yield opened
    finally:
        for line in opened:
            line.close(linger=0)
        context.term()


def thrown_at_gr00t(door: Gr00tDoor, thrown: Iterator[bytes]) -> int:
    refused = 0
    with lines(door.port, 4) as opened:
        for k, message in enumerate(thrown):
            line = opened[k % len(opened)]
            if k % 7 == 0:
                line.send_multipart([message, message, message])  # no frames of a client
                line.send_multipart([message or b"x"])
            line.send_multipart([b"", message])
            answer = line.recv_multipart()[-1]
            said = msgpack.unpackb(answer)
            if isinstance(said, dict) and "error" in said:
                assert len(said["error"]) <= 400
                assert "Traceback" not in said["error"]
                refused += 1
    return refused


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", SIZES)
def test_the_gr00t_door_survives_hostile_messages(engine: SmallEngine, count: int) -> None:
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding())
    try:
        thrown_at_gr00t(door, messages(gr00t_request, gr00t_codec.encode, 110, seed=1))
        gc.collect()
        before, threads = resident_mib(), threading.active_count()
        refused = thrown_at_gr00t(door, messages(gr00t_request, gr00t_codec.encode, count))
        gc.collect()
        assert refused > 0.8 * count
        assert door.visitors <= 16
        assert threading.active_count() == threads
        assert resident_mib() - before < GROWTH_MIB
        with lines(door.port, 1) as (line,):
            good = translate.request(sensed(), "pick it up", GR00T_LIBERO, "n1.5")
            line.send_multipart([b"", gr00t_codec.encode({"data": good})])
            answer = gr00t_codec.decode(line.recv_multipart()[1])
            assert answer["action.x"].shape == (10, 1)
    finally:
        door.close()
    assert not engine.opened


def test_a_message_above_the_limit_is_not_read(engine: SmallEngine) -> None:
    huge = bytes(65 * 2**20)
    openpi = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    gr00t = Gr00tDoor(engine, GR00T_LIBERO, Binding())
    try:
        with connect(f"ws://127.0.0.1:{openpi.port}", compression=None, proxy=None) as line:
            line.recv(timeout=10)
            with pytest.raises(ConnectionClosed):  # noqa: PT012 - either may notice it
                line.send(huge)
                line.recv(timeout=10)
        with lines(gr00t.port, 1) as (dealer,):
            dealer.send_multipart([b"", huge])
            dealer.setsockopt(zmq.RCVTIMEO, 300)
            with pytest.raises(zmq.Again):
                dealer.recv_multipart()
        with lines(gr00t.port, 1) as (dealer,):
            dealer.send_multipart([b"", gr00t_codec.encode({"endpoint": "ping"})])
            assert msgpack.unpackb(dealer.recv_multipart()[1])["status"] == "ok"
    finally:
        openpi.close()
        gr00t.close()
