"""News for open pages: server-sent events with a short queue for each, and none that waits.

Every message holds all that is news, so a page that misses one misses nothing. A page that does
not read is dropped, and comes back by itself when it can.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any, Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.records import to_json

QUEUE: Final = 8
"""Messages that wait for one page; one more and it is dropped."""
LISTENERS_MOST: Final = 32
PING_S: Final = 15
SEND_S: Final = 10.0
"""How long one message may take to go out."""


class Listener:
    """One open page."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """`loop` is the one that serves it."""
        self.loop = loop
        self.queue: asyncio.Queue[str | None] = asyncio.Queue(QUEUE + 1)
        self.dropped = False

    def put(self, text: str) -> None:
        """Take a message, in the loop; the one too many drops the page."""
        if self.dropped:
            return
        if self.queue.qsize() >= QUEUE:
            self.drop()
        else:
            self.queue.put_nowait(text)

    def drop(self) -> None:
        """Let the page go; what waits for it is forgotten."""
        self.dropped = True
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)


class Hub:
    """Tells every open page the news."""

    def __init__(self) -> None:
        """Nobody listens yet."""
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._last = ""
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many pages listen."""
        return len(self._listeners)

    def tell(self, news: dict[str, Any]) -> None:
        """Send the news unless they are the last ones again; any thread may call."""
        text = json.dumps(to_json(news), allow_nan=False, separators=(",", ":"))
        if text == self._last:
            return
        self._last = text
        with self._lock:
            for each in self._listeners:
                if not each.loop.is_closed():
                    each.loop.call_soon_threadsafe(each.put, text)

    def join(self) -> Listener | None:
        """Return a new listener, who is told the last news at once; None where there are enough."""
        with self._lock:
            if self._closed or len(self._listeners) >= LISTENERS_MOST:
                return None
            listener = Listener(asyncio.get_running_loop())
            self._listeners.append(listener)
        if self._last:
            listener.put(self._last)
        return listener

    def close(self) -> None:
        """Let every page go, and let none in any more."""
        with self._lock:
            self._closed = True
            for each in self._listeners:
                if not each.loop.is_closed():
                    each.loop.call_soon_threadsafe(each.drop)

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)


async def messages(hub: Hub, listener: Listener) -> AsyncIterator[ServerSentEvent]:
    """Yield what a page is told, until it is dropped."""
    try:
        while (text := await listener.queue.get()) is not None:
            yield ServerSentEvent(data=text, event="news", retry=2000)
    finally:
        hub.leave(listener)


def events_route(hub: Hub) -> Route:
    """Return the route of `/api/events`."""

    async def events(request: Request) -> Response:
        listener = hub.join()
        if listener is None:
            said = f"{LISTENERS_MOST} pages are open already; close some"
            return JSONResponse({"error": said}, status_code=503)
        return EventSourceResponse(
            messages(hub, listener), ping=PING_S, send_timeout=SEND_S, sep="\n"
        )

    return Route("/api/events", events)
