"""Messages that nobody honest would send: no crash, no growth, and the next client is served."""

from __future__ import annotations

import pickle
import signal
import socket
from collections.abc import Iterator

import msgpack
import numpy as np
import pytest
import zmq
from open_doors import RawClient
from served_observations import observed
from server_processes import ServerProcess, free_port

from zetta.runtime import shared_frames
from zetta.runtime.policies.echo import EchoPolicy
from zetta.runtime.policies.served import ServedPolicy, parse
from zetta.runtime.wire import Frame, Request, encode, request_frames, to_wire

GROWTH_KIB = 96 * 1024
SPEC = EchoPolicy().spec
SEEN = to_wire(observed(SPEC))


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    process = ServerProcess("echo", free_port(), "--max-sessions", "4")
    process.wait_ready()
    yield process
    process.end()


def forged(dtype: object, shape: object, where: object, code: int = 1) -> msgpack.ExtType:
    return msgpack.ExtType(code, msgpack.packb([dtype, shape, where]))


def valid(rng: np.random.Generator, session: str) -> list[Frame]:
    given = {"session": session, "observation": SEEN, "left_s": 5.0}
    return [bytes(f) for f in request_frames(Request(int(rng.integers(1, 2**40)), "infer", given))]


def envelope(rng: np.random.Generator, do: str, given: object) -> bytes:
    message = {"protocol": 1, "id": int(rng.integers(0, 2**40)), "do": do, "given": given}
    return bytes(msgpack.packb(message))


def truncated(rng: np.random.Generator, session: str) -> list[Frame]:
    frames = valid(rng, session)
    k = int(rng.integers(len(frames)))
    return [*frames[:k], frames[k][: int(rng.integers(len(frames[k])))], *frames[k + 1 :]]


def flipped(rng: np.random.Generator, session: str) -> list[Frame]:
    frames = valid(rng, session)
    body = bytearray(frames[0])
    for _ in range(int(rng.integers(1, 8))):
        body[int(rng.integers(len(body)))] = int(rng.integers(256))
    return [bytes(body), *frames[1:]]


def junk(rng: np.random.Generator, session: str) -> list[Frame]:
    return [rng.bytes(int(rng.integers(0, 3000))) for _ in range(int(rng.integers(1, 5)))]


def pickled(rng: np.random.Generator, session: str) -> list[Frame]:
    attack = pickle.dumps(np.array([print], dtype=object))
    return [attack] if rng.random() < 0.5 else [envelope(rng, "infer", {"observation": attack})]


def huge_claims(rng: np.random.Generator, session: str) -> list[Frame]:
    claims = (
        forged("<f8", [2**40, 2**20], b""),
        forged("|u1", [2**62], 1, code=2),
        forged("|u1", [10**9], 3, code=2),
        forged("|O", [4], bytes(32)),
        forged("<f8", [-1], bytes(8)),
    )
    claim = claims[int(rng.integers(len(claims)))]
    pieces = {"session": session, "left_s": 1.0, "observation": {"images": {"agentview": claim}}}
    raw = (b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 60_000, b"\x80" * 200_000)
    if rng.random() < 0.3:
        return [raw[int(rng.integers(len(raw)))]]
    return [envelope(rng, "infer", pieces), bytes(5000)]


def wrong_order(rng: np.random.Generator, session: str) -> list[Frame]:
    token = (session, "", "0" * 32, 5, None)[int(rng.integers(5))]
    do = ("infer", "reset", "jump", "hello", "infer")[int(rng.integers(5))]
    given = {"session": token, "observation": SEEN, "left_s": -1.0, "seed": -1}
    return [bytes(f) for f in request_frames(Request(int(rng.integers(3)), do, given))]


def wrong_arrays(rng: np.random.Generator, session: str) -> list[Frame]:
    picture = [np.zeros((256, 256), np.uint8), np.zeros((2, 2, 3)), 5, np.zeros(0, np.uint8)]
    seen = dict(SEEN) | {"images": {"agentview": picture[int(rng.integers(4))]}}
    given = {"session": session, "observation": seen, "left_s": 1.0}
    return [bytes(f) for f in request_frames(Request(int(rng.integers(2**30)), "infer", given))]


def false_notes(rng: np.random.Generator, session: str) -> list[Frame]:
    note = shared_frames.MAGIC + encode([[0, 2**40]])[0] + session.encode()
    return [envelope(rng, "infer", {}), note[: int(rng.integers(10, len(note) + 1))]]


def segments_of_others(rng: np.random.Generator, session: str) -> list[Frame]:
    names = ("../../etc/passwd", "zetta-frames-1-" + "0" * 32, "x" * 5000, 7)
    offer = {"name": names[int(rng.integers(4))], "size": int(rng.integers(2**40))}
    return [envelope(rng, "open", {"robot": "hostile", "priority": 0, "shared": offer})]


def many_frames(rng: np.random.Generator, session: str) -> list[Frame]:
    return [b"\x80"] * int(rng.integers(2, 400))


KINDS = (
    truncated, flipped, junk, pickled, huge_claims, wrong_order, wrong_arrays, false_notes,
    segments_of_others, many_frames,
)  # fmt: skip


def break_the_transport(place: str) -> None:
    """Speak no ZMTP, or claim frames that no memory holds."""
    host, port = place.split(":")
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16 + 32)
    for said in (b"GET / HTTP/1.1\r\n\r\n", bytes(100), greeting + b"\x06" + b"\xff" * 8):
        with socket.create_connection((host, int(port)), timeout=5) as plain:
            plain.sendall(said)


@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hostile_messages_harm_nobody(server: ServerProcess, count: int) -> None:
    rng = np.random.default_rng(0)
    with RawClient(f"tcp://{server.place}") as client:
        session = client.opened("victim")
        before = 0
        for k in range(count):
            if k == 500:  # what an interpreter takes once is no growth
                before = server.resident_kib()
            client.socket.send_multipart(KINDS[k % len(KINDS)](rng, session))
            while client.socket.poll(0):
                client.socket.recv_multipart(zmq.NOBLOCK)
        break_the_transport(server.place)
    policy = ServedPolicy(parse(f"zmq://{server.place}@within=60"))  # behind all that was sent
    policy.reset("lift it", 3)
    chunk = policy.infer(observed(SPEC, t=7.0))
    grown = server.resident_kib() - before
    policy.close()

    assert chunk.t_obs == 7.0
    assert grown < GROWTH_KIB
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in said
    assert "malformed" in said
