"""The ZMQ door: at most once, never late, never a crash, and an end that answers what it took."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from open_doors import LONG_S, RawClient, Served, served
from served_observations import observed

from zetta.runtime import shared_frames
from zetta.runtime.core import ActionChunk, Observation
from zetta.runtime.curve_keys import read_server_keys, write_keys
from zetta.runtime.errors import ConfigError, ConnectionLost, SpecMismatch, Timeout
from zetta.runtime.policies.echo import EchoEpisode, EchoPolicy
from zetta.runtime.policies.served import ServedPolicy, ServedSettings
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.reception import Reception
from zetta.runtime.transport import Router
from zetta.runtime.wire import (
    Frame,
    Reply,
    Request,
    encode,
    read_reply,
    request_frames,
    to_wire,
)


class SlowEcho(EchoPolicy):
    """Stands still until it is let through; counts what it computed."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.computed = 0

    def infer_batch(
        self, episodes: Sequence[EchoEpisode], observations: Sequence[Observation], rows: int
    ) -> list[ActionChunk]:
        self.begun.set()
        assert self.go.wait(LONG_S)
        self.computed += len(episodes)
        return super().infer_batch(episodes, observations, rows)


@pytest.fixture
def place() -> Iterator[Served]:
    with served(EchoPolicy) as running:
        yield running


SEEN = to_wire(observed(EchoPolicy().spec))


def infer(session: str, number: int, left_s: float = LONG_S) -> list[Frame]:
    given = {"session": session, "observation": SEEN, "left_s": left_s}
    return request_frames(Request(number, "infer", given))


def begun(client: RawClient) -> str:
    session = client.opened()
    assert client.ask("reset", session=session, instruction="lift it", seed=1).error is None
    return session


def test_hello_tells_the_policy_the_limits_and_which_server_it_is(place: Served) -> None:
    with RawClient(place.endpoint) as client:
        told = client.ask("hello").value

    assert told["spec"]["name"] == "echo"
    assert told["limits"]["max_sessions"] == 16
    assert len(told["instance"]) == 16


def test_a_request_that_comes_twice_is_inferred_once_and_answered_twice() -> None:
    policy = SlowEcho()
    policy.go.set()
    with served(policy) as place, RawClient(place.endpoint) as client:
        session = begun(client)
        replies = []
        for _ in range(2):
            client.send(infer(session, 10))
            replies.append(client.receive())
        with RawClient(place.endpoint) as other:  # the same client after its socket broke
            other.send(infer(session, 10))
            replies.append(other.receive())

        assert [reply.error for reply in replies] == [None] * 3
        assert len({reply.value["chunk"]["actions"].tobytes() for reply in replies}) == 1
        assert policy.computed == 1
        assert place.door.counts.repeated == 2


def test_a_request_in_progress_is_not_begun_again() -> None:
    policy = SlowEcho()
    with served(policy) as place, RawClient(place.endpoint) as client:
        session = begun(client)
        client.send(infer(session, 10))
        assert policy.begun.wait(LONG_S)
        client.send(infer(session, 10))
        again = client.receive()
        client.send(infer(session, 11))
        next_one = client.receive()
        policy.go.set()

        assert "in progress" in str(again.error)
        assert "in progress" in str(next_one.error)
        assert client.receive().error is None
        assert policy.computed == 1


def test_an_older_request_is_refused(place: Served) -> None:
    with RawClient(place.endpoint) as client:
        session = begun(client)
        client.send(infer(session, 10))
        assert client.receive().error is None
        client.send(infer(session, 9))

        assert isinstance(client.receive().error, SpecMismatch)


def test_an_answer_that_is_late_is_a_timeout_and_counted() -> None:
    policy = SlowEcho()
    with served(policy) as place, RawClient(place.endpoint) as client:
        session = begun(client)
        client.send(infer(session, 10, left_s=0.01))
        assert policy.begun.wait(LONG_S)
        threading.Event().wait(0.02)  # its deadline passes while it is being computed
        policy.go.set()

        assert isinstance(client.receive().error, Timeout)
        assert place.door.counts.late == 1


def test_an_unknown_session_is_a_lost_connection(place: Served) -> None:
    with RawClient(place.endpoint) as client:
        client.send(infer("0" * 32, 1))

        error = client.receive().error

    assert isinstance(error, ConnectionLost)
    assert "restarted" in str(error)


def test_a_segment_that_cannot_be_opened_means_frames(place: Served) -> None:
    with RawClient(place.endpoint) as client:
        offer = {"name": f"{shared_frames.PREFIX}1-{'0' * 32}", "size": 10}
        opened = client.ask("open", robot="a", priority=0, shared=offer)

    assert opened.error is None
    assert opened.value["shared"] is False
    assert place.door.counts.shared == 0


def test_an_offer_that_is_none_opens_no_session(place: Served) -> None:
    before = place.engine.stats.sessions
    with RawClient(place.endpoint) as client:
        refused = client.ask("open", robot="a", priority=0, shared={"name": 5})

    assert isinstance(refused.error, SpecMismatch)
    assert place.engine.stats.sessions == before


def test_a_robot_that_opens_again_takes_its_session_over(place: Served) -> None:
    with RawClient(place.endpoint) as client:
        first, second = client.opened("arm"), client.opened("arm")
        lost, alive = (
            client.ask("reset", session=session, instruction="go", seed=0)
            for session in (first, second)
        )

    assert isinstance(lost.error, ConnectionLost)
    assert alive.error is None
    assert place.engine.stats.sessions == 1


def test_more_robots_than_allowed_are_refused_in_one_sentence() -> None:
    with served(EchoPolicy, max_sessions=1) as place, RawClient(place.endpoint) as client:
        client.opened("first")
        error = client.ask("open", robot="second", priority=0).error

    assert isinstance(error, ConfigError)
    assert "all 1 sessions are taken (first)" in str(error)


def test_what_was_taken_is_answered_before_the_end_and_nothing_new_is_begun() -> None:
    policy = SlowEcho()
    with served(policy) as place, RawClient(place.endpoint) as client:
        session = begun(client)
        client.send(infer(session, 10))
        assert policy.begun.wait(LONG_S)
        place.stop.set()
        while (refused := client.ask("hello")).error is None:
            pass  # until the door has heard it
        policy.go.set()

        assert isinstance(refused.error, ConnectionLost)
        assert client.receive().error is None
        place.end()


# --------------------------------------------------------------------------- without sockets


class Ledger:
    """A reception whose replies are kept and whose clock is moved by hand."""

    def __init__(self, engine: Engine) -> None:
        self.now, self.replies = 0.0, list[Reply]()
        self.reception = Reception(engine, self.keep, lambda call: None, lambda: self.now)

    def keep(self, peer: bytes, frames: list[Frame]) -> None:
        self.replies.append(read_reply([bytes(frame) for frame in frames]))

    def say(self, do: str, number: int, **given: object) -> Reply | None:
        before = len(self.replies)
        frames = request_frames(Request(number, do, given))
        self.reception.take(b"peer", [bytes(frame) for frame in frames])
        return self.replies[-1] if len(self.replies) > before else None


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    engine = Engine(EchoPolicy)
    yield Ledger(engine)
    engine.stop()


def test_silent_sessions_expire_and_those_that_ask_are_kept(ledger: Ledger) -> None:
    tokens = []
    for number, robot in enumerate(("silent", "alive")):
        reply = ledger.say("open", number, robot=robot, priority=0)
        assert reply is not None
        tokens.append(reply.value["session"])
    ledger.now = 200.0
    ledger.say("reset", 3, session=tokens[1], instruction="go", seed=-1)
    ledger.now = 301.0
    ledger.reception.expire()

    wrong = {"instruction": "go", "seed": -1}
    lost, alive = (ledger.say("reset", 4, session=token, **wrong) for token in tokens)
    assert lost is not None
    assert isinstance(lost.error, ConnectionLost)
    assert alive is not None
    assert isinstance(alive.error, SpecMismatch)
    assert ledger.reception.counts.expired == 1


@pytest.mark.parametrize(
    ("do", "given", "why"),
    [
        ("open", {"robot": 5, "priority": 0}, "robot = 5, expected str"),
        ("open", {"robot": "a", "priority": True}, "priority = True, expected int"),
        ("reset", {"session": None}, "session = None, expected str"),
        ("jump", {}, "unknown call 'jump'"),
    ],
)
def test_wrong_arguments_are_answered_with_what_was_expected(
    ledger: Ledger, do: str, given: dict[str, object], why: str
) -> None:
    reply = ledger.say(do, 1, **given)

    assert reply is not None
    assert reply.id == 1
    assert why in str(reply.error)


@pytest.mark.parametrize("left_s", [0, -1.0, float("nan"), float("inf"), "5", None, True])
def test_a_deadline_that_is_none_is_refused(ledger: Ledger, left_s: object) -> None:
    opened = ledger.say("open", 1, robot="a", priority=0)
    assert opened is not None
    token = opened.value["session"]

    reply = ledger.say("infer", 2, session=token, observation=SEEN, left_s=left_s)

    assert reply is not None
    assert "left_s" in str(reply.error)


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\x00" * 300_000],
        [b"\x80" * 200_000],
        [b"\xc1"],
        *[[bytes(f) for f in encode(m)] for m in ({"id": 7}, [1], {"protocol": 99, "id": 7})],
    ],
    ids=range(8),
)
def test_what_is_no_request_is_answered_and_counted(ledger: Ledger, frames: list[bytes]) -> None:
    ledger.reception.take(b"peer", frames)

    assert ledger.replies[-1].id in (7, -1)
    assert isinstance(ledger.replies[-1].error, SpecMismatch)
    assert ledger.reception.counts.malformed == 1


def test_frames_in_a_segment_of_an_unknown_session_are_a_lost_connection(ledger: Ledger) -> None:
    body = bytes(request_frames(Request(7, "infer", {"array": SEEN["proprio"]}))[0])
    ledger.reception.take(b"peer", [body, shared_frames.MAGIC + b"\x90" + b"0" * 32])

    assert ledger.replies[-1].id == 7
    assert isinstance(ledger.replies[-1].error, ConnectionLost)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Ledger]:
    engine = Engine(EchoPolicy)
    yield Ledger(engine)
    engine.stop()


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=8)
    | st.just(SEEN)
    | hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=3))
)
GIVEN = st.dictionaries(
    st.sampled_from(
        ["session", "robot", "priority", "shared", "instruction", "seed", "observation", "left_s"]
    ),
    VALUES | st.dictionaries(st.text(max_size=8), VALUES, max_size=3) | st.lists(VALUES),
)
CALLS = st.sampled_from(["hello", "open", "reset", "infer", "close", "", "jump"])


@given(CALLS, st.integers(-(2**63), 2**64 - 1), GIVEN, st.booleans())
def test_whatever_is_asked_is_answered_or_taken_and_nothing_is_raised(
    lasting: Ledger, do: str, number: int, given: dict[str, object], known: bool
) -> None:
    opened = lasting.say("open", 1, robot="a", priority=0)
    assert opened is not None
    if known:
        given = {**given, "session": opened.value["session"]}

    reply = lasting.say(do, number, **given)

    assert reply is None or reply.id == number
    assert reply is not None or do in ("reset", "infer")


def test_another_protocol_is_answered_under_the_id_of_the_request(ledger: Ledger) -> None:
    ledger.reception.take(b"peer", [bytes(f) for f in encode({"protocol": 99, "id": 12})])

    assert ledger.replies[-1].id == 12
    assert "same version" in str(ledger.replies[-1].error)


def test_keys_are_needed_off_loopback_and_work_with_them(tmp_path: Path) -> None:
    server, client = write_keys(tmp_path)
    with pytest.raises(ConfigError, match="zetta serve keygen"):
        Router("tcp://0.0.0.0:*")
    with served(EchoPolicy, read_server_keys(server), "tcp://0.0.0.0:*") as place:
        port = place.endpoint.rpartition(":")[2]
        policy = ServedPolicy(ServedSettings(f"tcp://127.0.0.1:{port}", keys=client))
        policy.reset("lift it", 0)
        assert policy.infer(observed(policy.spec)).t_obs == 0.0
        policy.close()
