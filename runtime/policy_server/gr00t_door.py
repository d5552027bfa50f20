"""A door for GR00T clients of both generations: they believe that they speak to a GR00T server.

Endpoints: `ping`, `get_action`, `get_modality_config`, `reset`. Which generation asks is seen by
its envelope; only the form of `get_modality_config` must be chosen beforehand, for that request
looks the same from both. `kill` is answered with an error and not obeyed. A ROUTER serves many
clients at once; each one's socket is a session, and the longest silent one makes room.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import zmq
import zmq.asyncio

from zetta.runtime.errors import ConfigError, SpecMismatch, cannot_listen, suggest
from zetta.runtime.foreign import gr00t_codec
from zetta.runtime.foreign.addresses import bracketed
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.gr00t_codec import Generation, Modality
from zetta.runtime.foreign.limits import MAX_MESSAGE_BYTES
from zetta.runtime.foreign.translate import Form
from zetta.runtime.policy_server.visitors import (
    START_S,
    Answers,
    Binding,
    Engine,
    LoopThread,
    Visitor,
    check_convention,
    short,
)

ENDPOINTS: Final = ("ping", "get_action", "get_modality_config", "reset")
QUEUE: Final = 8
"""Messages that ZMQ keeps for one client; an honest one has at most one."""
_LOG: Final = logging.getLogger(__name__)


class Gr00tDoor:
    """A ZMQ server in a thread of its own.

    Raises:
        ConfigError: the policy does not suit the convention.
        InfraError: the port is taken.
        SpecMismatch: its actions cannot become those of the convention.
    """

    def __init__(
        self,
        engine: Engine,
        convention: Convention,
        binding: Binding,
        generation: Generation = "n1.6",
    ) -> None:
        if convention.protocol != "gr00t":
            raise ConfigError(f"{convention.name!r} is a convention of {convention.protocol}")
        check_convention(engine.spec, convention)
        self._engine, self._convention, self._binding = engine, convention, binding
        self._generation = generation
        self._visitors: OrderedDict[bytes, Visitor] = OrderedDict()
        self._busy: dict[bytes, asyncio.Task[None]] = {}
        self._closed = False
        self.answers = Answers()
        self._thread = LoopThread("gr00t-door")
        try:
            self.port: int = self._thread.call(self._open)
        except zmq.ZMQError as error:
            self._thread.stop()
            where = f"{binding.host}:{binding.port}"
            raise cannot_listen(where, error, "choose another port") from error

    @property
    def url(self) -> str:
        """The name under which our own client reaches it."""
        return self._binding.url("gr00t", self.port, self._convention.name)

    @property
    def visitors(self) -> int:
        """How many clients have a session."""
        return len(self._visitors)

    def finish(self, within_s: float) -> None:
        """Wait until what was asked is answered, for at most so many seconds."""
        self._thread.call(lambda: self.answers.finished(within_s), within_s + START_S)

    def close(self) -> None:
        """Stop listening; calling it again does nothing."""
        if not self._closed:
            self._closed = True
            self._thread.call(self._end)
            self._thread.stop()

    # ------------------------------------------------------------------ in the loop

    async def _open(self) -> int:
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES),
            (zmq.RCVHWM, QUEUE),
            (zmq.SNDHWM, QUEUE),
            (zmq.HANDSHAKE_IVL, 10_000),
            (zmq.IPV6, int(":" in self._binding.host)),
        ):
            self._socket.setsockopt(option, value)
        host = self._binding.host
        try:
            self._socket.bind(f"tcp://{bracketed(host)}:{self._binding.port}")
        except zmq.ZMQError:
            self._socket.close(linger=0)
            self._context.term()
            raise
        endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._listening = asyncio.create_task(self._listen())
        return int(endpoint.rpartition(":")[2])

    async def _end(self) -> None:
        tasks = [self._listening, *self._busy.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for visitor in self._visitors.values():
            visitor.close()
        self._visitors.clear()
        self._socket.close(linger=0)
        self._context.term()

    async def _listen(self) -> None:
        while True:
            frames = await self._socket.recv_multipart()
            # A REQ socket sends an empty frame and its message; nothing else is a client.
            if len(frames) != 3 or frames[1]:
                self.answers.malformed += 1
                continue
            who, _, message = frames
            if who in self._busy or len(self._busy) >= self._binding.max_visitors:
                await self._send(who, {"error": "one request at a time; wait for its answer"})
                continue
            self._busy[who] = asyncio.create_task(self._serve(who, message))

    async def _serve(self, who: bytes, message: bytes) -> None:
        with self.answers:
            await self._serve_one(who, message)

    async def _serve_one(self, who: bytes, message: bytes) -> None:
        try:
            answer = await self._answer(who, message)
        except Exception as error:  # the server loop's boundary: one client never ends the server
            self.answers.count(error)
            _LOG.info("GR00T client %s: %s", who.hex(), error, exc_info=True)
            answer = {"error": short(error)}
        # Before the answer leaves, so that the next request finds the place free.
        del self._busy[who]
        await self._send(who, answer)

    async def _send(self, who: bytes, answer: object) -> None:
        await self._socket.send_multipart([who, b"", gr00t_codec.encode(answer, self._generation)])

    async def _answer(self, who: bytes, message: bytes) -> Any:
        request = gr00t_codec.decode(message)
        if not isinstance(request, dict):
            raise SpecMismatch(f"got {request!r:.60}, expected a map with an endpoint")
        if not self._binding.admits(request.get("api_token")):
            return {"error": "Unauthorized: Invalid API token"}
        endpoint = request.get("endpoint", "get_action")
        match endpoint:
            case "ping":
                return {"status": "ok", "message": "Server is running"}
            case "get_modality_config":
                return self._modalities()
            case "get_action":
                return await self._act(who, request.get("data"))
            case "reset":
                return self._reset(who, request.get("data"))
            case "kill":
                return {"error": "this server is not stopped over the wire; stop its process"}
            case _:
                known = suggest(str(endpoint), ENDPOINTS)
                return {"error": f"Unknown endpoint: {endpoint!s:.60}; {known}"}

    async def _act(self, who: bytes, given: object) -> Any:
        asked, form = _envelope(given)
        return await self._visitor(who).ask(asked, form, self._binding.deadline_s)

    def _reset(self, who: bytes, given: object) -> dict[str, Any]:
        options = given.get("options") if isinstance(given, Mapping) else None
        seed = options.get("seed") if isinstance(options, Mapping) else None
        self._visitor(who).begin_anew(seed)
        return {}

    def _modalities(self) -> dict[str, Modality]:
        convention = self._convention
        horizon = tuple(range(self._engine.spec.horizon))
        return {
            "video": Modality(tuple(p.path[-1] for p in convention.pictures)),
            "state": Modality(tuple(s.path[-1] for s in convention.states)),
            "action": Modality(tuple(r.key for r in convention.rows), horizon),
            "language": Modality((convention.prompt[-1],)),
        }

    def _visitor(self, who: bytes) -> Visitor:
        """Return the session of a client; the longest silent one makes room for a new one."""
        if who not in self._visitors:
            while len(self._visitors) >= self._binding.max_visitors:
                silent = next((w for w in self._visitors if w not in self._busy), None)
                if silent is None:
                    raise SpecMismatch("all places are taken; try again later")
                self._visitors.pop(silent).close()
            self._visitors[who] = Visitor(self._engine, self._convention, f"gr00t:{who.hex()}")
        self._visitors.move_to_end(who)
        return self._visitors[who]


def _envelope(given: object) -> tuple[object, Form]:
    """Return the observation in a request's data, and how its keys are written."""
    if not isinstance(given, Mapping):
        raise SpecMismatch("get_action came without data; send the observation")
    if "observation" not in given:
        return given, "n1.5"
    inner = given["observation"]
    nested = isinstance(inner, Mapping) and isinstance(inner.get("video"), Mapping)
    return inner, "n1.6" if nested else "n1.6-flat"
