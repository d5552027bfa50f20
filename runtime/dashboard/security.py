"""Who is answered: only those who call it by its own name, and, where it matters, bear the token.

A page of somebody else's in the same browser can send requests to this server. It cannot choose the
`Host` that is sent (a name of its own that leads here is refused), and what it sends carries its
`Origin`, which is not ours; it knows no token.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE: Final = frozenset({"GET", "HEAD"})
FOREIGN: Final = frozenset({"cross-site", "same-site"})
"""What a browser says of requests that a page of somebody else's makes it send, also without
`Origin`; a link from elsewhere may lead to the first page only."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing comes from elsewhere, and no script or style stands in a page."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TOKEN: Final = "token"
"""Name in the query of the first call; a cookie takes its place."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call."""

    hosts: tuple[str, ...]
    """Values of `Host` that are answered, each with its port."""
    token: str = field(repr=False)
    needs_token: bool = False
    """Also for looking: others than this machine can call."""
    cookie: str = "zetta_dashboard"
    """Its name; servers on two ports of one machine share their cookies."""

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the origins of our own pages; a proxy may add encryption."""
        return tuple(f"{scheme}://{host}" for scheme in ("http", "https") for host in self.hosts)

    def knows(self, given: str) -> bool:
        """Say whether that is the token, in a time that tells nothing about it."""
        return hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """An application behind the rules."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Stand before `app`."""
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on; every answer carries the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._judge(scope, receive)
        await (answer or self._app)(scope, receive, sent)

    def _judge(self, scope: Scope, receive: Receive) -> Response | None:
        """Return a refusal, a redirection, or None for what may pass."""
        headers, access = Headers(scope=scope), self._access
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in access.hosts:
            return _refusal(421, "this server is not called by that name; use the URL it printed")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in access.origins:
            return _refusal(403, "pages of other origins are not answered")
        if headers.get("sec-fetch-site", "none") in FOREIGN and scope["path"] != "/":
            return _refusal(403, "pages of other origins are not answered")
        request = Request(scope, receive)
        if scope["method"] in SAFE and TOKEN in request.query_params:
            return self._welcome(request)
        trusted = self._bears_token(request)
        if access.needs_token and not trusted:
            return _refusal(401, "open the URL with the token that was printed at the start")
        if scope["method"] not in SAFE:
            if origin is None:
                return _refusal(403, "what changes something comes from the page itself")
            if not trusted:
                return _refusal(401, "open the URL with the token that was printed at the start")
        return None

    def _bears_token(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        cookie = request.cookies.get(self._access.cookie, "")
        return any(each and self._access.knows(each) for each in (given, cookie))

    def _welcome(self, request: Request) -> Response:
        """Put a right token into a cookie and take it out of the address."""
        if not self._access.knows(request.query_params[TOKEN]):
            return _refusal(401, "that is not the token of this server; it makes one at each start")
        rest = [(k, v) for k, v in parse_qsl(request.url.query) if k != TOKEN]
        # Only our own path: a redirection must never lead elsewhere.
        path = "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, status_code=303)
        answer.set_cookie(
            self._access.cookie, self._access.token, httponly=True, samesite="strict", path="/"
        )
        return answer


def may_change(request: Request, access: Access) -> bool:
    """Say whether the page that asks may change something; for buttons, not for judgement."""
    cookie = request.cookies.get(access.cookie, "")
    return bool(cookie) and access.knows(cookie)


def _refusal(status: int, said: str) -> Response:
    return JSONResponse({"error": said}, status_code=status)
