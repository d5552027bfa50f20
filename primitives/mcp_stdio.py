"""A server of the Model Context Protocol on two pipes: stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from concurrent.futures import CancelledError
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from zetta.primitives.mcp_doors import LAST_ANSWERS_S, MESSAGE_MOST, DoorLoop
from zetta.runtime.errors import InfraError

UNREAD_MOST: Final = 64
"""Messages that a client may leave unread."""
SETTLING_S: Final = 0.1


class StdioDoor:
    """One client, at the other end of two pipes; its end of file is its good-bye."""

    def __init__(self, server: Server[dict[str, Any]], read: int, write: int) -> None:
        """Serve over two file descriptors that nobody else uses."""
        self.gone = threading.Event()
        self._server, self._read, self._write = server, read, write
        self._unsent: queue.Queue[bytes | None] = queue.Queue(UNREAD_MOST)
        self._running: asyncio.AbstractEventLoop | None = None
        self._loop = DoorLoop(self._serve, self.gone)
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
