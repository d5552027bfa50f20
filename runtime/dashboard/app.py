"""The application: pages that are files, and an API that reads the index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from zetta.runtime.dashboard import campaigns, compare, episodes, fleet, library
from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.events import events_route
from zetta.runtime.dashboard.security import Access, Guard, may_change
from zetta.runtime.errors import ZettaError

STATIC: Final = Path(__file__).parent / "static"


class View(Protocol):
    """A module with what one view asks for."""

    def routes(self, board: Board) -> Sequence[Route]:
        """Return its routes, all of which begin with `/api/`."""
        ...


VIEWS: Final[tuple[View, ...]] = (fleet, episodes, compare, campaigns, library)
"""Modules of this folder, one for each view."""

Handler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]


def make_app(board: Board, access: Access, views: Sequence[View] = VIEWS) -> Starlette:
    """Return the application.

    Args:
        board: what the views share; it is opened and closed with the application.
        access: who is answered.
        views: what is served beside the pages.
    """

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    async def about(request: Request) -> Response:
        return JSONResponse(
            {
                "version": board.version,
                "runs": str(board.root),
                "may_change": may_change(request, access),
            }
        )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        board.open()
        try:
            yield
        finally:
            await to_thread.run_sync(board.close)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/about", about),
            events_route(board.hub),
            *(route for view in views for route in view.routes(board)),
            Mount("/static", _Files(directory=STATIC)),
        ],
        middleware=[
            Middleware(Guard, access=access),
            Middleware(GZipMiddleware, minimum_size=2000),
        ],
        exception_handlers={ZettaError: _refused, 404: _nowhere, 500: _broken},
        lifespan=lifespan,
    )


class _Files(StaticFiles):
    """Files that a browser keeps and asks for again only whether they have changed."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """Return a file."""
        answer = super().file_response(*given, **named)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


async def _nowhere(request: Request, error: Exception) -> Response:
    said = getattr(error, "detail", "") or "there is nothing of that name"
    return JSONResponse({"error": said}, status_code=404)


async def _broken(request: Request, error: Exception) -> Response:
    """Say little: what went wrong is in the server's own output."""
    return JSONResponse({"error": "the server met an error; its terminal says which"}, 500)
