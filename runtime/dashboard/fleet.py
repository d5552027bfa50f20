"""The fleet view: every run, what it has come to, and what runs now."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.queries import (
    COUNTS,
    condition,
    episodes_page,
    facets,
    rate,
    tally,
)
from zetta.runtime.dashboard.records import RunRow
from zetta.runtime.dashboard.watching import process_memory_mb, state_of

LATEST: Final = 20
"""Endings from which the present rate is taken."""
RUNS_MOST: Final = 500
GROUPS_MOST: Final = 400
"""Rows of each table of a run, by arm and by task."""
KNOWN: Final = ("sim", "policy", "bundle", "sensing")
COUNTED: Final = f"{COUNTS}, max(ended) AS ended, " + ", ".join(
    f"CASE WHEN min({n}) = max({n}) THEN max({n}) ELSE 'several' END AS {n}" for n in KNOWN
)
NAMED: Final = "instr(lower(name || ' ' || policy || ' ' || sim), ?) > 0"


@dataclass(frozen=True, slots=True)
class Counted:
    """What the episodes of a run come to."""

    n: int = 0
    solved: float = 0.0
    scored: int = 0
    errors: float = 0.0
    ended: float | None = None
    """When the last one ended, seconds since 1970."""
    sim: str = ""
    """This and what follows: of all of them, or `several`."""
    policy: str = ""
    bundle: str = ""
    sensing: str = ""


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
    rows = board.store.rows(
        f"SELECT * FROM runs WHERE {NAMED} ORDER BY begun DESC LIMIT ?",
        (text.lower(), RUNS_MOST),
    )
    runs = [RunRow(**row) for row in rows]
    found = board.store.rows(f"SELECT count(*) AS n FROM runs WHERE {NAMED}", (text.lower(),))
    return {
        "runs": [_summary(board, run, counted.get(run.id, Counted())) for run in runs],
        "runs_found": found[0]["n"],
        "runs_total": board.store.rows("SELECT count(*) AS n FROM runs")[0]["n"],
        "all": board.store.cached("all", lambda: tally(board.store)),
        "memory_mb": round(process_memory_mb(), 1),
    }


def _counted(
    board: Board, where: str = "1", values: Sequence[object] = ()
) -> Mapping[str, Counted]:
    """Return what the episodes of each run come to that fulfil `where`."""
    rows = board.store.rows(
        f"SELECT run, {COUNTED} FROM episodes WHERE {where} GROUP BY run", values
    )
    return {row.pop("run"): Counted(**row) for row in rows}


def run_of(board: Board, run: str) -> dict[str, Any]:
    """Return one run.

    Raises:
        HTTPException: there is none of that id.
    """
    row = board.run(run)
    if row is None:
        raise HTTPException(404, "there is no such run; it may have been moved or deleted")
    where, values = condition({"run": run})
    counted = _counted(board, where, values).get(run, Counted())
    return {
        **_summary(board, row, counted),
        "arms": _rates(board, "arm", where, values),
        "command": row.command,
        "versions": json.loads(row.versions),
        "groups": _rates(board, "suite, task, arm", where, values),
    }


def _rates(
    board: Board, columns: str, where: str, values: Sequence[object]
) -> list[dict[str, Any]]:
    """Return counts and success rate of each group of episodes, in the order of `columns`."""
    rows = board.store.rows(
        f"SELECT {columns}, {COUNTS} FROM episodes WHERE {where} "
        f"GROUP BY {columns} ORDER BY {columns} LIMIT ?",
        (*values, GROUPS_MOST),
    )
    return [{**row, **rate(int(row["solved"]), row["scored"])} for row in rows]


def _summary(board: Board, row: RunRow, counted: Counted) -> dict[str, Any]:
    running = [each for each in board.running if each.run == row.id]
    silent = min((each.silent_s for each in running), default=None)
    state = state_of(board.is_running(row.id), counted.n, row.planned, silent)
    if row.kind == "campaign" and state != "running":
        # It may end before its budget is spent; what it always leaves is a verdict.
        state = "finished" if _is_judged(board.folder(row)) else "stopped"
    # A run that has not said what it is yet is known by its episodes, or by the one that runs.
    now = running[0].known if running else {}
    said = {
        name: getattr(row, name) or getattr(counted, name) or now.get(name, "") for name in KNOWN
    }
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        **said,
        "planned": row.planned,
        "begun": row.begun,
        "ended": counted.ended,
        "n": counted.n,
        "errors": int(counted.errors),
        "state": state,
        "running": len(running),
        **rate(int(counted.solved), counted.scored),
        **(_pace(board, row, counted.n) if state == "running" else {}),
    }


def _is_judged(campaign: Path) -> bool:
    """Say whether the last generation of a campaign came to a verdict."""
    generations = sorted(campaign.glob("[0-9][0-9][0-9]"))
    return bool(generations) and (generations[-1] / "verdict.json").exists()


def _pace(board: Board, row: RunRow, count: int) -> dict[str, float | None]:
    """Return episodes per minute and the seconds that are left, where they can be told."""
    latest = board.store.rows(
        "SELECT ended FROM episodes WHERE run = ? ORDER BY ended DESC LIMIT ?", (row.id, LATEST)
    )
    now = time.time()
    since = float(latest[-1]["ended"]) if len(latest) >= LATEST else row.begun
    counted = len(latest) - 1 if len(latest) >= LATEST else len(latest)
    if counted < 1 or now <= since:
        return {}
    per_s = counted / (now - since)
    left = None if row.planned is None else max(0, row.planned - count) / per_s
    return {"per_minute": 60.0 * per_s, "eta_s": left}
