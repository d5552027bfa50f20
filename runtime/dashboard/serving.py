"""Serves the application on a socket until it is told to end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.types import ASGIApp

LOOK_S: Final = 0.1
LAST_ANSWERS_S: Final = 2.0
CONNECTIONS_MOST: Final = 128
"""Open connections; one more is answered with 503."""


def serve(
    app: ASGIApp,
    listening: socket.socket,
    stop: threading.Event,
    on_ready: Callable[[], None],
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Answer until `stop` is set.

    `on_ready` is called once it answers, `on_end` before it ends: it lets go of answers without an
    end, such as news. The server has a thread of its own, so signals are heard by whoever called.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=CONNECTIONS_MOST,
        timeout_graceful_shutdown=int(LAST_ANSWERS_S),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="dashboard", daemon=True
    )
    thread.start()
    told = False
    while thread.is_alive() and not stop.wait(LOOK_S):
        if server.started and not told:
            told = True
            on_ready()
    on_end()
    server.should_exit = True
    thread.join(LAST_ANSWERS_S + 10.0)
