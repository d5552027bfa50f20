"""A door for openpi clients: they believe that they speak to an openpi server.

Metadata first, then strictly one question and one answer. An error is a short text frame and the
end of the connection, as upstream; the traceback stays here. Inference runs elsewhere, so the loop
goes on answering pings and `/healthz`.
"""

from __future__ import annotations

import http
import logging
import time
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from zetta.runtime.errors import ConfigError, cannot_listen
from zetta.runtime.foreign import openpi_codec
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.limits import MAX_MESSAGE_BYTES
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

HANDSHAKE_S: Final = 10.0
PING_S, PONG_S = 60.0, 600.0
"""A client that computes for minutes is still there; one that vanished is found out."""
_LOG: Final = logging.getLogger(__name__)
# A port scanner is no error of ours, and websockets logs a traceback for each.
_TRANSPORT: Final = logging.getLogger(f"{__name__}.transport")
_TRANSPORT.setLevel(logging.CRITICAL)


class OpenpiDoor:
    """A websocket server in a thread of its own.

    Raises:
        ConfigError: the policy does not suit the convention.
        InfraError: the port is taken.
        SpecMismatch: its actions cannot become those of the convention.
    """

    def __init__(self, engine: Engine, convention: Convention, binding: Binding) -> None:
        if convention.protocol != "openpi":
            raise ConfigError(f"{convention.name!r} is a convention of {convention.protocol}")
        check_convention(engine.spec, convention)
        self._engine, self._convention, self._binding = engine, convention, binding
        self._visitors = 0
        self.answers = Answers()
        self._thread = LoopThread("openpi-door")
        try:
            self._server: Server = self._thread.call(self._serve)
        except OSError as error:
            self._thread.stop()
            where = f"{binding.host}:{binding.port}"
            raise cannot_listen(where, error, "choose another port") from error
        self.port: int = next(iter(self._server.sockets)).getsockname()[1]

    @property
    def url(self) -> str:
        """The name under which our own client reaches it."""
        return self._binding.url("openpi", self.port, self._convention.name)

    @property
    def visitors(self) -> int:
        """How many clients are connected."""
        return self._visitors

    def finish(self, within_s: float) -> None:
        """Wait until what was asked is answered, for at most so many seconds."""
        self._thread.call(lambda: self.answers.finished(within_s), within_s + START_S)

    def close(self) -> None:
        """Hang up on everybody; calling it again does nothing."""
        if self._server.is_serving():
            self._thread.call(self._end)
        self._thread.stop()

    def metadata(self) -> dict[str, Any]:
        """Return what is said to every client first; upstream clients pass over it."""
        spec, convention = self._engine.spec, self._convention
        return {
            "zetta": {
                "policy": spec.name,
                "digest": spec.digest,
                "convention": convention.name,
                "pictures": {"/".join(p.path): p.turn for p in convention.pictures},
                "state": {"/".join(s.path): convention.state_size(s) for s in convention.states},
                "action": list(convention.action.names),
                "gripper": [convention.action.gripper_open, convention.action.gripper_close],
                "horizon": spec.horizon,
                "replan_steps": spec.replan_steps,
                "control_hz": spec.control_hz,
                "seed": True,
            }
        }

    # ------------------------------------------------------------------ in the loop

    async def _serve(self) -> Server:
        return await serve(
            self._visit,
            self._binding.host,
            self._binding.port,
            process_request=self._admit,
            # A browser names its page as the origin; no page has anything to do here.
            origins=[None],
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=1,
            open_timeout=HANDSHAKE_S,
            ping_interval=PING_S,
            ping_timeout=PONG_S,
            close_timeout=1.0,
            server_header=None,
            logger=_TRANSPORT,
        )

    async def _end(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/healthz":
            return connection.respond(http.HTTPStatus.OK, "OK\n")
        given = request.headers.get_all("Authorization")
        scheme, _, key = (given[0] if len(given) == 1 else "").partition(" ")
        if not self._binding.admits(key if scheme == "Api-Key" else None):
            return connection.respond(
                http.HTTPStatus.UNAUTHORIZED, "send the header Authorization: Api-Key KEY\n"
            )
        if self._visitors >= self._binding.max_visitors:
            return connection.respond(
                http.HTTPStatus.SERVICE_UNAVAILABLE, "all places are taken; try again later\n"
            )
        return None

    async def _visit(self, connection: ServerConnection) -> None:
        self._visitors += 1
        visitor: Visitor | None = None
        try:
            visitor = Visitor(self._engine, self._convention, f"openpi:{connection.id}")
            await connection.send(openpi_codec.encode(self.metadata()))
            await self._answer_all(connection, visitor)
        except ConnectionClosed:
            pass
        except Exception as error:  # the server loop's boundary: one client never ends the server
            self.answers.count(error)
            _LOG.info("openpi client %s: %s", connection.id, error, exc_info=True)
            await _refuse(connection, short(error))
        finally:
            self._visitors -= 1
            if visitor is not None:
                visitor.close()

    async def _answer_all(self, connection: ServerConnection, visitor: Visitor) -> None:
        before_ms: float | None = None
        async for message in connection:
            began = time.monotonic()
            with self.answers:
                answer = await self._answer(visitor, message)
                infer_ms = (time.monotonic() - began) * 1000.0
                told = {} if before_ms is None else {"prev_total_ms": before_ms}
                answer["policy_timing"] = {"infer_ms": infer_ms}
                answer["server_timing"] = {"infer_ms": infer_ms, **told}
                await connection.send(openpi_codec.encode(answer))
            before_ms = (time.monotonic() - began) * 1000.0

    async def _answer(self, visitor: Visitor, message: str | bytes) -> dict[str, Any]:
        asked = openpi_codec.decode(message if isinstance(message, bytes) else message.encode())
        if isinstance(asked, dict) and "seed" in asked:
            visitor.take_seed(asked.pop("seed"))
        answer: dict[str, Any] = await visitor.ask(asked, "openpi", self._binding.deadline_s)
        return answer


async def _refuse(connection: ServerConnection, said: str) -> None:
    try:
        await connection.send(said)
        await connection.close(1011, "error; see the text before")
    except ConnectionClosed:
        pass
