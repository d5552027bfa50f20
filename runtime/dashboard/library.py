"""The skill library: versions, what speaks for each skill, where it is used, and the way back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zetta.runtime.dashboard.board import Board
from zetta.runtime.dashboard.records import skills_in
from zetta.runtime.errors import ConfigError

BODY_MOST: Final = 4096
"""Bytes of a request to roll back."""
WHY_MOST: Final = 400
RUNS_MOST: Final = 8
"""Runs that are named where a skill is used; the others are counted."""


class LibrarySource(Protocol):
    """Knows the skills; what changes them is for the person at the browser to say."""

    def page(self) -> Mapping[str, Any]:
        """Return versions, history and shipped skills, as JSON.

        Raises:
            ConfigError: the library cannot be read.
        """
        ...

    def rollback(self, to: str, why: str) -> Mapping[str, Any]:
        """Use another version, as the command `zetta skills rollback` does.

        Raises:
            ConfigError: there is no such version, or it is in use already or damaged.
            InfraError: the library cannot be written.
        """
        ...


def routes(board: Board) -> Sequence[Route]:
    """Return the routes of the library; token and origin of what changes it are checked before."""

    def page(request: Request) -> Response:
        found = _source(board).page()
        return JSONResponse({**found, "used": _used(board)})

    async def rollback(request: Request) -> Response:
        to, why = _wish(await _body(request))
        change = await run_in_threadpool(_source(board).rollback, to, why)
        return JSONResponse({"change": dict(change)})

    return (
        Route("/api/library", page),
        Route("/api/library/rollback", rollback, methods=["POST"]),
    )


def _source(board: Board) -> LibrarySource:
    source: LibrarySource | None = board.handed.library
    if source is None:
        raise ConfigError("this server was started without anything that reads skills")
    return source


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_MOST:
            raise ConfigError(f"a request to roll back has at most {BODY_MOST} bytes")
    return body


def _wish(body: bytes) -> tuple[str, str]:
    """Return version and reason.

    >>> _wish(b'{"to": "4f2a90", "why": "it harms"}')
    ('4f2a90', 'it harms')

    Raises:
        ConfigError: the body is no such wish. The version must be named, so that nothing else is
            rolled back than what was shown.
    """
    try:
        plain = json.loads(body)
        to, why = plain["to"], plain.get("why", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        to = why = None
    if not isinstance(to, str) or not to or not isinstance(why, str) or len(why) > WHY_MOST:
        raise ConfigError(
            'say what to use and why, such as {"to": "4f2a90c1", "why": "it harms"}; the reason '
            f"has at most {WHY_MOST} characters"
        )
    return to, why


# ------------------------------------------------------------------------------ where used


def _used(board: Board) -> Mapping[str, Any]:
    """Return the episodes under each bundle, and those in which each skill had the robot."""
    names = {row["id"]: row["name"] for row in board.store.rows("SELECT id, name FROM runs")}
    bundles: dict[str, dict[str, int]] = defaultdict(dict)
    for row in board.store.rows(
        "SELECT digest, run, count(*) AS n FROM episodes WHERE digest != '' GROUP BY digest, run"
    ):
        bundles[row["digest"]][row["run"]] = row["n"]
    skills: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in board.store.rows(
        "SELECT skills, run, count(*) AS n FROM episodes WHERE skills != '' GROUP BY skills, run"
    ):
        for name in skills_in(row["skills"]):
            skills[name][row["run"]] += row["n"]
    return {
        "bundles": {digest: _uses(runs, names) for digest, runs in bundles.items()},
        "skills": {name: _uses(runs, names) for name, runs in skills.items()},
    }


def _uses(runs: Mapping[str, int], names: Mapping[str, str]) -> Mapping[str, Any]:
    most = sorted(runs.items(), key=lambda each: (-each[1], each[0]))
    return {
        "episodes": sum(runs.values()),
        "runs": len(runs),
        "named": [
            {"id": run, "name": names.get(run, run), "episodes": n} for run, n in most[:RUNS_MOST]
        ],
    }
