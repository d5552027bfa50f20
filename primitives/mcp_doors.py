"""What the ways into a server of the Model Context Protocol have in common."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

MESSAGE_MOST: Final = 256 * 1024
"""Bytes of one message from a client; commands and notes are far smaller."""
LAST_ANSWERS_S: Final = 3


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


class DoorLoop:
    """An event loop in a thread; daemonic, so that a client that reads nothing delays no exit."""

    def __init__(self, main: Callable[[], Awaitable[None]], gone: threading.Event) -> None:
        """Run `main` once the thread is started, and set `gone` after it."""
        self._main, self._gone = main, gone
        self.thread = threading.Thread(target=self._run, name="mcp", daemon=True)

    def _run(self) -> None:
        async def main() -> None:
            await self._main()

        try:
            asyncio.run(main())
        finally:
            self._gone.set()
