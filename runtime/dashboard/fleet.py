"""The fleet view: every run, what it has come to, and what runs now."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.queries import condition, episodes_page, facets, rate, tally
from zetta.runtime.dashboard.watching import process_memory_mb, state_of

LATEST: Final = 20
"""Endings from which the present rate is taken."""
RUNS_MOST: Final = 500
KNOWN: Final = ("sim", "policy", "bundle", "sensing")
COUNTS: Final = (
    "count(*) AS n, total(success = 1) AS solved, count(success) AS scored, "
    "total(error != '') AS errors, max(ended) AS ended, "
    + ", ".join(
        f"CASE WHEN min({n}) = max({n}) THEN max({n}) ELSE 'several' END AS {n}" for n in KNOWN
    )
)
NAMED: Final = "instr(lower(name || ' ' || policy || ' ' || sim), ?) > 0"


def routes(board: Board) -> Sequence[Route]:
    """Return the routes of runs and of the lists of their episodes."""

    def fleet(request: Request) -> Response:
        return JSONResponse(fleet_of(board, request.query_params.get("q", "")))

    def run(request: Request) -> Response:
        return JSONResponse(run_of(board, request.path_params["run"]))

    def listed(request: Request) -> Response:
        return JSONResponse(episodes_page(board.store, request.query_params))

    def named(request: Request) -> Response:
        return JSONResponse(facets(board.store, request.query_params))

    return (
        Route("/api/fleet", fleet),
        Route("/api/runs/{run}", run),
        Route("/api/episodes", listed),
        Route("/api/facets", named),
    )


def fleet_of(board: Board, text: str = "") -> dict[str, Any]:
    """Return every run, the latest first, and what all of them come to."""
    counted = board.store.cached("counted", lambda: _counted(board))
    runs = board.store.rows(
        f"SELECT * FROM runs WHERE {NAMED} ORDER BY begun DESC LIMIT ?",
        (text.lower(), RUNS_MOST),
    )
    found = board.store.rows(f"SELECT count(*) AS n FROM runs WHERE {NAMED}", (text.lower(),))
    return {
        "runs": [_summary(board, row, counted.get(row["id"])) for row in runs],
        "runs_found": found[0]["n"],
        "runs_total": board.store.rows("SELECT count(*) AS n FROM runs")[0]["n"],
        "all": board.store.cached("all", lambda: tally(board.store)),
        "memory_mb": round(process_memory_mb(), 1),
    }


def _counted(board: Board) -> dict[str, dict[str, Any]]:
    rows = board.store.rows(f"SELECT run, {COUNTS} FROM episodes GROUP BY run")
    return {row["run"]: row for row in rows}


def run_of(board: Board, run: str) -> dict[str, Any]:
    """Return one run.

    Raises:
        HTTPException: there is none of that id.
    """
    row = board.store.rows("SELECT * FROM runs WHERE id = ?", (run,))
    if not row:
        raise HTTPException(404, "there is no such run; it may have been moved or deleted")
    where, values = condition({"run": run})
    counted = board.store.rows(
        f"SELECT {COUNTS} FROM episodes WHERE {where}",
        values,
    )[0]
    groups = board.store.rows(
        "SELECT suite, task, arm, count(*) AS n, total(success = 1) AS solved, "
        "count(success) AS scored, total(error != '') AS errors FROM episodes "
        f"WHERE {where} GROUP BY suite, task, arm ORDER BY suite, task, arm LIMIT 400",
        values,
    )
    arms = board.store.rows(
        "SELECT arm, count(*) AS n, total(success = 1) AS solved, count(success) AS scored, "
        f"total(error != '') AS errors FROM episodes WHERE {where} GROUP BY arm ORDER BY arm",
        values,
    )
    return {
        **_summary(board, row[0], counted),
        "arms": [{**each, **rate(each)} for each in arms],
        "command": row[0]["command"],
        "versions": json.loads(row[0]["versions"]),
        "groups": [{**each, **rate(each)} for each in groups],
    }


def _summary(board: Board, row: dict[str, Any], counted: dict[str, Any] | None) -> dict[str, Any]:
    found = counted or {"n": 0, "solved": 0, "scored": 0, "errors": 0, "ended": None}
    running = [each for each in board.running if each.run == row["id"]]
    silent = min((each.silent_s for each in running), default=None)
    state = state_of(board.is_running(row["id"]), int(found["n"]), row["planned"], silent)
    if row["kind"] == "campaign" and state != "running":
        # It may end before its budget is spent; what it always leaves is a verdict.
        state = "finished" if _is_judged(board.root / row["path"]) else "stopped"
    # A run that has not said what it is yet is known by its episodes, or by the one that runs.
    now = running[0].known if running else {}
    said = {name: row[name] or found.get(name) or now.get(name, "") for name in KNOWN}
    return {
        "id": row["id"],
        "name": row["name"],
        "kind": row["kind"],
        **said,
        "planned": row["planned"],
        "begun": row["begun"],
        "ended": found["ended"],
        "n": int(found["n"]),
        "errors": int(found["errors"]),
        "state": state,
        "running": len(running),
        **rate(found),
        **(_pace(board, row, int(found["n"])) if state == "running" else {}),
    }


def _is_judged(campaign: Path) -> bool:
    """Say whether the last generation of a campaign came to a verdict."""
    generations = sorted(campaign.glob("[0-9][0-9][0-9]"))
    return bool(generations) and (generations[-1] / "verdict.json").exists()


def _pace(board: Board, row: dict[str, Any], count: int) -> dict[str, Any]:
    """Return episodes per minute and the seconds that are left, where they can be told."""
    latest = board.store.rows(
        "SELECT ended FROM episodes WHERE run = ? ORDER BY ended DESC LIMIT ?", (row["id"], LATEST)
    )
    now = time.time()
    since = float(latest[-1]["ended"]) if len(latest) >= LATEST else float(row["begun"])
    counted = len(latest) - 1 if len(latest) >= LATEST else len(latest)
    if counted < 1 or now <= since:
        return {}
    per_s = counted / (now - since)
    left = None if row["planned"] is None else max(0, row["planned"] - count) / per_s
    return {"per_minute": 60.0 * per_s, "eta_s": left}
