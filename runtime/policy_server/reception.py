"""Requests of the ZMQ door: who is who, what was asked before, what is answered.

Knows no sockets: messages come in as frames, replies go out through a function. Everything here is
called by the thread of the door; the futures of the engine come back through `finish`.

A session is named by a token, not by its connection, so that a client whose socket broke goes on
with it. Of each session the last reply is kept: a request that comes twice is answered twice and
carried out once.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

from zetta.runtime.core import ActionChunk, Observation
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    SpecMismatch,
    Timeout,
    ZettaError,
    suggest,
)
from zetta.runtime.policy_server.doors import DoorCounts
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.shared_frames import FrameReader, Offer, is_placed
from zetta.runtime.wire import (
    Frame,
    Reply,
    Request,
    claimed_id,
    explained,
    from_wire,
    read_request,
    reply_frames,
    to_wire,
)

TOKEN_LETTERS: Final = 32
"""Letters of a token; a note of frames in shared memory ends in one."""
MAX_BODY: Final = 256 * 1024
"""Bytes of a request without its pictures. Small maps cost far more to hold than to send."""
ROBOT_LETTERS: Final = 80

Send: TypeAlias = Callable[[bytes, list[Frame]], None]
Finish: TypeAlias = Callable[[Callable[[], None]], None]
T = TypeVar("T")


@dataclass(slots=True)
class _Guest:
    """One session as the door sees it."""

    number: int
    robot: str
    seen: float
    last: int = -1
    """Id of the last request that was carried out."""
    reply: list[Frame] | None = None
    """Its reply; None while it is being carried out."""
    busy: bool = False
    shared: FrameReader | None = None


class Reception:
    """Answers requests for one engine."""

    def __init__(
        self,
        engine: Engine,
        send: Send,
        finish: Finish,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open without sessions.

        Args:
            engine: carries out.
            send: takes replies.
            finish: takes what is to be called by the thread of the door; may be called by any.
            clock: seconds, monotonic.
        """
        self._engine, self._send, self._finish, self._clock = engine, send, finish, clock
        self._guests: dict[str, _Guest] = {}
        self.instance = secrets.token_hex(8)
        """Names this server among those that were at the same address before."""
        self.counts = DoorCounts()
        self.outstanding = 0
        """Requests that were taken and not yet answered."""
        self.closing = False
        """Answers what was taken, and nothing new."""
        self._calls: Mapping[str, Callable[[bytes, Request], None]] = {
            "hello": self._hello,
            "open": self._open,
            "reset": self._reset,
            "infer": self._infer,
            "close": self._close,
        }

    def take(self, peer: bytes, frames: Sequence[Frame]) -> None:
        """Carry out one message; whatever it holds, it is answered and nothing is raised."""
        self._count(requests=1)
        try:
            request = self._read(frames)
        except (SpecMismatch, ConnectionLost) as error:
            self._count(malformed=int(isinstance(error, SpecMismatch)))
            number = -1 if not frames or len(frames[0]) > MAX_BODY else claimed_id(frames[0])
            self._answer(peer, Reply(number, error=error))
            return
        try:
            call = self._calls.get(request.do)
            if call is None:
                raise ConfigError(
                    f"unknown call {request.do!r:.40}; {suggest(request.do[:40], self._calls)}"
                )
            if self.closing and request.do != "close":
                raise ConnectionLost("the policy server is ending; connect to another one")
            call(peer, request)
        except Exception as error:  # the server loop: every request is answered
            if isinstance(error, SpecMismatch):
                self._count(malformed=1)
            elif not isinstance(error, ZettaError):
                traceback.print_exception(error)  # the client gets one sentence
            self._answer(peer, Reply(request.id, error=explained(error)))

    def expire(self) -> None:
        """End the sessions that were silent for too long."""
        oldest = self._clock() - self._engine.limits.idle_s
        for token in [t for t, g in self._guests.items() if g.seen < oldest and not g.busy]:
            self._count(expired=1)
            self._forget(token)

    def close(self) -> None:
        """End all sessions."""
        for token in list(self._guests):
            self._forget(token)

    # ------------------------------------------------------------------ calls

    def _hello(self, peer: bytes, request: Request) -> None:
        told = {"spec": to_wire(self._engine.spec), "limits": to_wire(self._engine.limits)}
        self._answer(peer, Reply(request.id, {"instance": self.instance, **told}))

    def _open(self, peer: bytes, request: Request) -> None:
        robot = _given(request, "robot", str)[:ROBOT_LETTERS]
        priority = _given(request, "priority", int)
        offered = request.given.get("shared")
        offer = None if offered is None else from_wire(Offer, offered)
        # One robot has one session: who lost the reply to `open`, or was restarted, asks again.
        for token in [t for t, guest in self._guests.items() if guest.robot == robot]:
            self._forget(token)
        token = secrets.token_hex(TOKEN_LETTERS // 2)
        guest = _Guest(self._engine.open(robot, priority), robot, self._clock())
        self._guests[token] = guest
        if offer is not None:
            with contextlib.suppress(ConfigError):  # then pictures come as frames
                guest.shared = FrameReader(offer)
                self._count(shared=1)
        opened = {"session": token, "shared": guest.shared is not None}
        self._answer(peer, Reply(request.id, {"instance": self.instance, **opened}))

    def _reset(self, peer: bytes, request: Request) -> None:
        guest = self._guest(request)
        if self._was_before(peer, request, guest):
            return
        instruction, seed = _given(request, "instruction", str), _given(request, "seed", int)
        if seed < 0:
            raise SpecMismatch(f"got the seed {seed}; a seed is 0 or greater")
        future = self._engine.reset(guest.number, instruction, seed)
        self._await(peer, request, guest, future, lambda _: {}, math.inf)

    def _infer(self, peer: bytes, request: Request) -> None:
        guest = self._guest(request)
        if self._was_before(peer, request, guest):
            return
        left_s: Any = request.given.get("left_s")
        if type(left_s) not in (int, float) or not 0.0 < left_s < math.inf:
            raise SpecMismatch(f"got left_s = {left_s!r:.40}, expected seconds above 0")
        observation = from_wire(Observation, request.given.get("observation"))
        deadline = self._clock() + left_s
        future = self._engine.infer(guest.number, observation, left_s)
        self._await(peer, request, guest, future, _chunk_to_wire, deadline)

    def _close(self, peer: bytes, request: Request) -> None:
        token = request.given.get("session")
        if isinstance(token, str):
            self._forget(token)
        self._answer(peer, Reply(request.id, {"instance": self.instance}))

    # ------------------------------------------------------------------ sessions

    def _read(self, frames: Sequence[Frame]) -> Request:
        if not frames or len(frames[0]) > MAX_BODY:
            got = len(frames[0]) if frames else 0
            raise SpecMismatch(f"got a request of {got} bytes, expected 1 to {MAX_BODY}")
        if not is_placed(frames):
            return read_request(frames)
        # The note ends in the session's token: the body cannot be read before its arrays are there.
        token = bytes(frames[1][-TOKEN_LETTERS:]).decode("ascii", "replace")
        guest = self._guests.get(token)
        if guest is None:
            raise self._unknown()
        if guest.shared is None:
            raise SpecMismatch("got frames in shared memory that was not agreed upon; open again")
        note = frames[1][:-TOKEN_LETTERS]
        return read_request(guest.shared.read([frames[0], note]))

    def _guest(self, request: Request) -> _Guest:
        guest = self._guests.get(_given(request, "session", str))
        if guest is None:
            raise self._unknown()
        guest.seen = self._clock()
        return guest

    def _unknown(self) -> ConnectionLost:
        return ConnectionLost(
            "this server does not know the session: it was restarted, or the session was "
            f"silent for {self._engine.limits.idle_s:g} s (zetta serve --idle), or another client "
            "opened under the same robot's name; begin the episode again, with a reset"
        )

    def _was_before(self, peer: bytes, request: Request, guest: _Guest) -> bool:
        """Answer a request that is not to be carried out; False for a new one."""
        if request.id > guest.last:
            if guest.busy:
                raise ConfigError("your last request is still in progress; await it")
            return False
        self._count(repeated=1)
        if request.id < guest.last:
            raise SpecMismatch(
                f"got request {request.id} after {guest.last}; ids go up in a session"
            )
        if guest.reply is None:
            raise ConfigError(f"request {request.id} is in progress and is not begun again")
        self._send(peer, guest.reply)
        return True

    def _await(
        self,
        peer: bytes,
        request: Request,
        guest: _Guest,
        future: Future[T],
        to_value: Callable[[T], dict[str, Any]],
        deadline: float,
    ) -> None:
        guest.last, guest.reply, guest.busy = request.id, None, True
        self.outstanding += 1

        def answer() -> None:
            guest.busy, guest.seen = False, self._clock()
            self.outstanding -= 1
            guest.reply = self._frames(self._reply(request, future, to_value, deadline))
            self._send(peer, guest.reply)

        future.add_done_callback(lambda _: self._finish(answer))

    def _reply(
        self,
        request: Request,
        future: Future[T],
        to_value: Callable[[T], dict[str, Any]],
        deadline: float,
    ) -> Reply:
        error = future.exception()
        late = isinstance(error, Timeout) or self._clock() > deadline
        if late:
            self._count(late=1)
            return Reply(request.id, error=Timeout("the answer came after its deadline"))
        if error is not None:
            known = error if isinstance(error, Exception) else RuntimeError(str(error))
            return Reply(request.id, error=explained(known))
        return Reply(request.id, {"instance": self.instance, **to_value(future.result())})

    def _forget(self, token: str) -> None:
        guest = self._guests.pop(token, None)
        if guest is None:
            return
        self._engine.close(guest.number)
        if guest.shared is not None:
            guest.shared.close()

    def _answer(self, peer: bytes, reply: Reply) -> None:
        self._send(peer, self._frames(reply))

    def _frames(self, reply: Reply) -> list[Frame]:
        try:
            return reply_frames(reply)
        except SpecMismatch as error:  # the answer itself cannot be sent
            return reply_frames(Reply(reply.id, error=error))

    def _count(self, **more: int) -> None:
        known = self.counts
        self.counts = replace(known, **{n: getattr(known, n) + k for n, k in more.items()})


def _chunk_to_wire(chunk: ActionChunk) -> dict[str, Any]:
    return {"chunk": to_wire(chunk)}


def _given(request: Request, name: str, kind: type[T]) -> T:
    value = request.given.get(name)
    if type(value) is not kind:
        raise SpecMismatch(f"{request.do}: got {name} = {value!r:.40}, expected {kind.__name__}")
    return value
