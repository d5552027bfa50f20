"""The compare view: two runs, or two arms of an evaluation, scene by scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.comparison import (
    OUTCOMES,
    Comparison,
    Side,
    compare_runs,
    comparison_json,
)
from zetta.runtime.dashboard.queries import PAGE, PAGE_MOST, whole_number
from zetta.runtime.errors import ConfigError, suggest

SIDES_MOST: Final = 400
KEPT: Final = 4
"""Comparisons that are remembered: turning a page pairs nothing again."""


def routes(board: Board) -> Sequence[Route]:
    """Return the routes of comparisons."""
    known: dict[tuple[int, Side, Side], Comparison] = {}

    def sides(request: Request) -> Response:
        return JSONResponse({"sides": sides_of(board)})

    def compare(request: Request) -> Response:
        asked = request.query_params
        first, second = _side(board, asked, "first"), _side(board, asked, "second")
        key = (board.store.revision, first, second)
        compared = known.get(key)  # others may push it out meanwhile
        if compared is None:
            while len(known) >= KEPT:
                known.pop(next(iter(known)), None)
            known[key] = compared = compare_runs(board.store, first, second)
        most = min(whole_number(asked, "limit", PAGE), PAGE_MOST)
        offset = whole_number(asked, "offset", 0)
        answer = comparison_json(compared, _outcomes(asked), offset, most)
        named = {name: _named(board, side) for name, side in (("a", first), ("b", second))}
        return JSONResponse({**answer, **named})

    return Route("/api/compare/sides", sides), Route("/api/compare", compare)


def sides_of(board: Board) -> list[dict[str, Any]]:
    """Return what can be compared, the latest runs first."""
    return board.store.rows(
        "SELECT r.id AS run, r.name AS name, r.kind AS kind, r.policy AS policy, "
        "r.bundle AS bundle, e.arm AS arm, count(*) AS episodes FROM runs r "
        "JOIN episodes e ON e.run = r.id WHERE r.kind != 'campaign' GROUP BY r.id, e.arm "
        "ORDER BY r.begun DESC, r.name, e.arm LIMIT ?",
        (SIDES_MOST,),
    )


def _side(board: Board, asked: Mapping[str, str], name: str) -> Side:
    run = asked.get(name, "")
    if not run:
        raise ConfigError("choose two runs to compare")
    if board.run(run) is None:
        raise HTTPException(404, "there is no such run; it may have been moved or deleted")
    return Side(run, asked.get(f"{name}_arm", ""))


def _named(board: Board, side: Side) -> dict[str, str]:
    row = board.run(side.run)
    assert row is not None
    return {"run": side.run, "arm": side.arm, "name": row.name, "bundle": row.bundle}


def _outcomes(asked: Mapping[str, str]) -> Sequence[str]:
    wanted = [each for each in asked.get("outcome", "").split(",") if each]
    for each in wanted:
        if each not in OUTCOMES:
            raise ConfigError(f"unknown outcome {each!r}; {suggest(each, OUTCOMES)}")
    return wanted
