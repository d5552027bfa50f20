"""A server of the Model Context Protocol over HTTP, behind a token."""

from __future__ import annotations

import hmac
import socket
import threading
from typing import Any, Final

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from zetta.primitives.mcp_doors import LAST_ANSWERS_S, MESSAGE_MOST, DoorLoop

PATH: Final = "/mcp"
SESSIONS_MOST: Final = 8
SESSION_IDLE_S: Final = 1800.0
CONNECTIONS_MOST: Final = 32


class HttpDoor:
    """Streamable HTTP on one socket; every request bears the token, a browser's none."""

    def __init__(
        self,
        server: Server[dict[str, Any]],
        listening: socket.socket,
        token: str,
        names: tuple[str, ...],
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
        self._loop = DoorLoop(self._serve, self.gone)

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
