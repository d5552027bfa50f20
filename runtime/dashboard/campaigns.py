"""The campaign view: which candidates came how far through the gate, on what evidence, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.records import RunRow
from zetta.runtime.errors import ConfigError

CAMPAIGNS_MOST: Final = 100
"""Of a list; the latest ones."""


class CampaignSource(Protocol):
    """Knows how campaigns are recorded."""

    def page(self, folder: Path) -> Mapping[str, Any]:
        """Return everything that is known of the campaign in a folder, as JSON.

        Raises:
            ConfigError: there is no campaign, or a record is damaged.
        """
        ...

    def summary(self, folder: Path) -> Mapping[str, Any]:
        """Return what a list says of it; `error` in its place where it cannot be read."""
        ...

    def picture(self, folder: Path, name: str) -> Path | None:
        """Return the file of a picture strip; None where there is none of that name."""
        ...


def routes(board: Board) -> Sequence[Route]:
    """Return the routes of campaigns."""

    def listed(request: Request) -> Response:
        rows = board.store.rows(
            "SELECT id, path, name, begun FROM runs WHERE kind = 'campaign' "
            "ORDER BY begun DESC, name LIMIT ?",
            (CAMPAIGNS_MOST,),
        )
        source = _source(board)
        return JSONResponse(
            {
                "campaigns": [
                    {
                        "id": row["id"],
                        "path": row["path"],
                        "begun": row["begun"],
                        "running": board.is_running(row["id"]),
                        **source.summary(board.root / row["path"]),
                    }
                    for row in rows
                ]
            }
        )

    def one(request: Request) -> Response:
        row = _row(board, request.path_params["run"])
        page = _source(board).page(board.folder(row))
        logs = _episodes(board, row, page)
        return JSONResponse(
            {"id": row.id, "running": board.is_running(row.id), "logs": logs, **page}
        )

    def picture(request: Request) -> Response:
        row = _row(board, request.path_params["run"])
        path = _source(board).picture(board.folder(row), request.path_params["name"])
        if path is None:
            raise HTTPException(404, "this campaign has no such picture")
        return FileResponse(path, media_type="image/png")

    return (
        Route("/api/campaigns", listed),
        Route("/api/campaigns/{run}", one),
        Route("/api/campaigns/{run}/pictures/{name}", picture),
    )


def _source(board: Board) -> CampaignSource:
    source: CampaignSource | None = board.handed.campaigns
    if source is None:
        raise ConfigError("this server was started without anything that reads campaigns")
    return source


def _row(board: Board, run: str) -> RunRow:
    row = board.run(run)
    if row is None or row.kind != "campaign":
        raise HTTPException(404, "there is no such campaign; it may have been moved or deleted")
    return row


def _episodes(board: Board, row: RunRow, page: Mapping[str, Any]) -> Mapping[str, str]:
    """Return ids of the episodes that the page names, by their folder below the campaign's."""
    below = "" if row.path == "." else f"{row.path}/"
    clusters = (each for own in page["generations"] for each in own["clusters"])
    logs = sorted({each["log"] for each in clusters} - {""})
    found = board.store.rows(
        f"SELECT id, path FROM episodes WHERE path IN ({', '.join('?' * len(logs))})",
        [below + log for log in logs],
    )
    return {str(each["path"]).removeprefix(below): str(each["id"]) for each in found}
