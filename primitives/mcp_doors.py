"""The ways into a server of the Model Context Protocol: two pipes, or HTTP behind a token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import queue
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import Any, Final, Protocol

import anyio
import mcp_types as types
import uvicorn
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from zetta.runtime.errors import InfraError

MESSAGE_MOST: Final = 256 * 1024
"""Bytes of one message from a client; commands and notes are far smaller."""
PATH: Final = "/mcp"
SESSIONS_MOST: Final = 8
SESSION_IDLE_S: Final = 1800.0
CONNECTIONS_MOST: Final = 32
UNREAD_MOST: Final = 64
"""Messages that a client may leave unread on stdout."""
LAST_ANSWERS_S: Final = 3
SETTLING_S: Final = 0.1

McpServer = Server[dict[str, Any]]


class Door(Protocol):
    """A way in, with a thread of its own."""

    @property
    def gone(self) -> threading.Event:
        """Set when the client is gone for good."""
        ...

    def open(self) -> None:
        """Let clients in; returns at once."""
        ...

    def close(self) -> None:
        """Send the last answers, then let nobody in any more."""
        ...


class _Loop:
    """An event loop in a thread; daemonic, so that a client that reads nothing delays no exit."""

    def __init__(self, main: Callable[[], Awaitable[None]], gone: threading.Event) -> None:
        self._main, self._gone = main, gone
        self.thread = threading.Thread(target=self._run, name="mcp", daemon=True)

    def _run(self) -> None:
        async def main() -> None:
            await self._main()

        try:
            asyncio.run(main())
        finally:
            self._gone.set()


# ------------------------------------------------------------------ stdin and stdout


class StdioDoor:
    """One client, at the other end of two pipes; its end of file is its good-bye."""

    def __init__(self, server: McpServer, read: int, write: int) -> None:
        """Serve over two file descriptors that nobody else uses."""
        self.gone = threading.Event()
        self._server, self._read, self._write = server, read, write
        self._unsent: queue.Queue[bytes | None] = queue.Queue(UNREAD_MOST)
        self._running: asyncio.AbstractEventLoop | None = None
        self._loop = _Loop(self._serve, self.gone)
        self._writer = threading.Thread(target=self._pump_out, name="mcp-out", daemon=True)

    def open(self) -> None:
        """Serve from now on."""
        self._writer.start()
        self._loop.thread.start()

    def close(self) -> None:
        """Send what is still to be sent."""
        if self._running is not None and self._loop.thread.is_alive():
            # What a call was answered with is on its way through the server's own streams.
            settled = asyncio.run_coroutine_threadsafe(asyncio.sleep(SETTLING_S), self._running)
            with contextlib.suppress(TimeoutError, CancelledError):
                settled.result(LAST_ANSWERS_S)
        try:
            self._unsent.put_nowait(None)
        except queue.Full:
            return  # nobody reads
        self._writer.join(LAST_ANSWERS_S)

    async def _serve(self) -> None:
        into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](8)
        answers, out = anyio.create_memory_object_stream[SessionMessage](8)
        self._running = asyncio.get_running_loop()
        reader = threading.Thread(
            target=self._pump_in,
            args=(self._running, into),
            name="mcp-in",
            daemon=True,
        )
        reader.start()
        sending = asyncio.create_task(self._send(out))
        try:
            await self._server.run(messages, answers, self._server.create_initialization_options())
        finally:
            answers.close()
            await sending

    async def _send(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with out:
            async for each in out:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._say(text)

    def _say(self, text: str) -> None:
        try:
            self._unsent.put_nowait(text.encode() + b"\n")
        except queue.Full:
            raise InfraError(f"the client leaves {UNREAD_MOST} answers unread") from None

    def _pump_out(self) -> None:
        while (line := self._unsent.get()) is not None:
            try:
                while line:
                    line = line[os.write(self._write, line) :]
            except OSError:  # the client closed its end
                self.gone.set()
                return

    def _pump_in(
        self,
        loop: asyncio.AbstractEventLoop,
        into: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Hand lines on as messages, one at a time, until the end of the file."""
        lines = _Lines(self._read)
        try:
            while (line := lines.next()) is not None:
                message = self._understood(line)
                if message is not None:
                    asyncio.run_coroutine_threadsafe(into.send(message), loop).result()
            asyncio.run_coroutine_threadsafe(into.aclose(), loop).result()
        except (RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.gone.set()  # the server is over already

    def _understood(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        reason = "this is no message of the protocol: one JSON object a line is expected"
        if len(line) > MESSAGE_MOST:
            reason = f"a message has at most {MESSAGE_MOST} bytes"
        else:
            try:
                return SessionMessage(
                    types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                )
            except ValidationError:
                pass
        error = types.ErrorData(code=types.PARSE_ERROR, message=reason)
        refusal = types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
        self._say(refusal.model_dump_json(by_alias=True))
        return None


class _Lines:
    """Lines of a file descriptor; one that is too long is cut, and the rest of it thrown away."""

    def __init__(self, fd: int) -> None:
        self._fd, self._rest = fd, b""

    def next(self) -> bytes | None:
        """Return the next line; None at the end of the file."""
        line, cut = b"", False
        while True:
            head, newline, tail = self._rest.partition(b"\n")
            if not cut:
                line += head
                cut = len(line) > MESSAGE_MOST
                line = line[: MESSAGE_MOST + 1]
            if newline:
                self._rest = tail
                return line
            self._rest = os.read(self._fd, 65536)
            if not self._rest:
                return line or None


# ------------------------------------------------------------------ HTTP


class HttpDoor:
    """Streamable HTTP on one socket; every request bears the token, a browser's none."""

    def __init__(
        self, server: McpServer, listening: socket.socket, token: str, names: tuple[str, ...]
    ) -> None:
        """Serve on a bound socket.

        Args:
            server: what is served.
            listening: the socket.
            token: what every request must bear.
            names: hosts by which clients may call it, each with its port.
        """
        self.gone = threading.Event()
        self._socket = listening
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MESSAGE_MOST,
            session_idle_timeout=SESSION_IDLE_S,
            max_sessions=SESSIONS_MOST,
            # No page of a browser is ours, so no origin is allowed.
            transport_security=TransportSecuritySettings(
                allowed_hosts=list(names), allowed_origins=[]
            ),
        )
        config = uvicorn.Config(
            Guarded(app, token),
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=CONNECTIONS_MOST,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
        self._uvicorn = uvicorn.Server(config)
        self._loop = _Loop(self._serve, self.gone)

    def open(self) -> None:
        """Serve from now on."""
        self._loop.thread.start()

    def close(self) -> None:
        """Finish what is being answered and close the socket."""
        self._uvicorn.should_exit = True
        self._loop.thread.join(2 * LAST_ANSWERS_S)

    async def _serve(self) -> None:
        await self._uvicorn.serve(sockets=[self._socket])


class Guarded:
    """An application that only answers those who bear the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        """Stand before `app`."""
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "http" and not self._knows(Headers(scope=scope)):
            refusal = JSONResponse(
                {
                    "error": "invalid_token",
                    "error_description": "the token of the server is needed",
                },
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, headers: Headers) -> bool:
        given = headers.getlist("authorization")
        # In constant time: how long it takes tells nothing about the token.
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self._expected)
