"""The episode view: its facts, its lines over time, its film, and why somebody intervened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.records import EpisodeRow, identify
from zetta.runtime.dashboard.series import Levels, events_of, lines_of, values_of
from zetta.runtime.episode_log import read_episode, read_header
from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.records import to_json
from zetta.runtime.registry import is_arm
from zetta.runtime.signals import SIGNALS


def routes(board: Board) -> Sequence[Route]:
    """Return the routes of one episode."""

    def episode(request: Request) -> Response:
        return in_ascii(episode_of(board, request.path_params["episode"]))

    def series(request: Request) -> Response:
        row = _logged(board, request.path_params["episode"])
        names = request.query_params.getlist("name")
        folder = board.folder(row)
        return JSONResponse(values_of(folder, read_header(folder), names))

    def why(request: Request) -> Response:
        return in_ascii(why_of(board, request.path_params["episode"], request.query_params))

    def film(request: Request) -> Response:
        row = _logged(board, request.path_params["episode"])
        why_not = _why_no_film(row)
        if why_not:
            return JSONResponse({"state": "failed", "why": why_not})
        wanted = request.query_params.get("draw") == "1"
        key = film_key(row)
        state = board.films.want(key, board.folder(row)) if wanted else board.films.state(key)
        return JSONResponse(asdict(state))

    def film_file(request: Request) -> Response:
        row = _logged(board, request.path_params["episode"])
        path = board.films.path(film_key(row))
        if not path.exists():
            raise HTTPException(404, "this film is not drawn yet")
        return FileResponse(path, media_type="video/mp4")

    base = "/api/episodes/{episode}"
    return (
        Route(base, episode),
        Route(f"{base}/series", series),
        Route(f"{base}/why", why),
        Route(f"{base}/film", film),
        Route(f"{base}/film.mp4", film_file),
    )


def in_ascii(plain: dict[str, Any]) -> Response:
    """Return JSON in ASCII: texts of a log may hold half letters, which UTF-8 cannot."""
    return Response(json.dumps(plain, allow_nan=False), media_type="application/json")


def _row(board: Board, episode: str) -> EpisodeRow:
    row = board.episode(episode)
    if row is None:
        raise HTTPException(404, "there is no such episode; it may have been moved or deleted")
    return row


def _logged(board: Board, episode: str) -> EpisodeRow:
    row = _row(board, episode)
    if not row.path:
        raise HTTPException(404, "this episode has no log, only its result was kept")
    if not row.suite:  # the index could not read its header; it may be endless
        raise ConfigError(row.error)
    return row


def film_key(row: EpisodeRow) -> str:
    """Return the name of an episode's film: a run that was made anew in its place has others."""
    return identify(row.path, str(row.inode), str(row.ended))


def _why_no_film(row: EpisodeRow) -> str:
    if row.drawable:
        return ""
    if is_arm(row.sim):
        return "an episode on an arm is not drawn again: its log holds no pictures of its cameras"
    return "the log holds no poses, so it cannot be drawn again"


def _levels(board: Board) -> Levels:
    if board.handed.explainer is not None:
        return board.handed.explainer.levels()
    return {name: (spec.level, spec.unit, spec.doc) for name, spec in SIGNALS.items()}


def episode_of(board: Board, episode: str) -> dict[str, Any]:
    """Return everything of an episode but the values of its lines.

    Raises:
        HTTPException: there is none of that id.
    """
    row = _row(board, episode)
    run = board.run(row.run)
    answer: dict[str, Any] = {
        "row": {**asdict(row), "logged": bool(row.path)},
        "run": None if run is None else {"id": run.id, "name": run.name, "kind": run.kind},
        **_neighbours(board, row),
        "same_scene": board.store.rows(
            "SELECT count(*) AS n FROM episodes WHERE scene = ? AND scene != '' AND id != ?",
            (row.scene, row.id),
        )[0]["n"],
    }
    if not row.path or not row.suite or row.reason == "":
        return answer
    folder = board.folder(row)
    try:
        header = read_header(folder)
        answer |= {
            "header": to_json(header),
            "lines": [asdict(line) for line in lines_of(folder, header, _levels(board))],
            "film": _why_no_film(row),
            **events_of(folder),
        }
    except ZettaError as error:  # a damaged log, or one of another version
        answer["problem"] = str(error)
    return answer


def _neighbours(board: Board, row: EpisodeRow) -> dict[str, str | None]:
    """Return the episodes before and after it in its run."""
    found = {}
    for word, sign, order in (("before", "<", "DESC"), ("after", ">", "ASC")):
        rows = board.store.rows(
            f"SELECT id FROM episodes WHERE run = ? AND (name, id) {sign} (?, ?) "
            f"ORDER BY name {order}, id {order} LIMIT 1",
            (row.run, row.name, row.id),
        )
        found[word] = rows[0]["id"] if rows else None
    return found


def why_of(board: Board, episode: str, asked: Any) -> dict[str, Any]:
    """Return the code of a critic with what it saw at a tick.

    Raises:
        HTTPException: there is no such episode.
        ConfigError: there is no such tick or critic, or the bundle is gone.
    """
    row = _logged(board, episode)
    if board.handed.explainer is None:
        raise ConfigError("this server knows no bundles, so it cannot show the code of a critic")
    text, critic = asked.get("tick", ""), asked.get("critic", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise ConfigError(f"tick is a whole number of 0 or more, got {text[:40]!r}")
    log = read_episode(board.folder(row))
    explanation = board.handed.explainer.explain(log, critic, int(text))
    return dict(to_json(explanation))
