"""What lists are asked for: filters, sorting and pages, as SQL over the index.

Only names of this module enter a query; whatever a browser sends is a bound value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zetta.runtime.dashboard.records import skills_in
from zetta.runtime.dashboard.store import Store
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.success_rates import clopper_pearson, wilson

PAGE: Final = 50
"""Rows of one answer, unless more are asked for."""
PAGE_MOST: Final = 500
SORTS: Final[Mapping[str, str]] = {
    "ended": "ended",
    "name": "name",
    "suite": "suite, task, init, seed",
    "success": "success",
    "ticks": "ticks",
    "interventions": "interventions",
    "wall": "wall_s",
    "skills": "skills",
    "run": "run",
}
"""Columns by the name under which a list is sorted."""
OUTCOMES: Final[Mapping[str, str]] = {
    "solved": "success = 1",
    "failed": "success = 0",
    "error": "error != ''",
    "unjudged": "success IS NULL AND error = ''",
}
EXACT: Final[Mapping[str, str]] = {
    "run": "run", "suite": "suite", "arm": "arm", "sensing": "sensing", "sim": "sim",
    "policy": "policy", "bundle": "bundle", "scene": "scene", "reason": "reason", "task": "task",
}  # fmt: skip
"""Columns that are compared as they are."""
COUNTS: Final = (
    "count(*) AS n, total(success = 1) AS solved, count(success) AS scored, "
    "total(error != '') AS errors"
)
"""What episodes come to; errors are apart and no score."""
FACETS: Final = ("suite", "task", "arm", "sensing", "sim", "policy", "bundle", "reason")
SHOWN: Final = (
    "id, run, name, arm, sim, suite, task, init, seed, policy_seed, instruction, success, reason, "
    "error, ticks, wall_s, interventions, skills, sensing, bundle, judged_by, ended, path != '' "
    "AS logged, drawable"
)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted."""

    limit: int = PAGE
    offset: int = 0
    sort: str = "ended"
    descending: bool = True


def page_of(asked: Mapping[str, str]) -> Page:
    """Return the page that a query string asks for.

    Raises:
        ConfigError: a number is none, or there is no such column.
    """
    sort = asked.get("sort", "ended")
    if sort not in SORTS:
        raise ConfigError(f"lists are not sorted by {sort!r}; {suggest(sort, SORTS)}")
    return Page(
        min(whole_number(asked, "limit", PAGE), PAGE_MOST),
        whole_number(asked, "offset", 0),
        sort,
        asked.get("order", "desc") != "asc",
    )


def whole_number(asked: Mapping[str, str], name: str, otherwise: int) -> int:
    """Return a number that a query string asks for.

    Raises:
        ConfigError: it is none.
    """
    text = asked.get(name, str(otherwise))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ConfigError(f"{name} is a whole number of 0 or more, got {text[:40]!r}")
    return int(text)


def condition(asked: Mapping[str, str]) -> tuple[str, list[object]]:
    """Return what rows must fulfil, as SQL and its values.

    >>> condition({"suite": "libero_goal", "outcome": "failed"})
    ('suite = ? AND success = 0', ['libero_goal'])

    Raises:
        ConfigError: there is no such outcome, or a number is none.
    """
    parts: list[str] = []
    values: list[object] = []
    for name, column in EXACT.items():
        if text := asked.get(name, ""):
            parts.append(f"{column} = ?")
            values.append(whole_number(asked, name, 0) if name == "task" else text)
    if outcome := asked.get("outcome", ""):
        if outcome not in OUTCOMES:
            raise ConfigError(f"unknown outcome {outcome!r}; {suggest(outcome, OUTCOMES)}")
        parts.append(OUTCOMES[outcome])
    if skill := asked.get("skill", ""):
        if skill == "none":
            parts.append("skills = '' AND interventions = 0")
        elif skill == "any":
            parts.append("interventions > 0")
        else:
            parts.append("instr(skills, ?) > 0")
            values.append(f"|{skill}|")
    if source := asked.get("source", ""):
        parts.append("instr(drivers, ?) > 0")
        values.append(f'"{source}"')
    if text := asked.get("q", "").strip():
        parts.append("instr(lower(instruction || ' ' || name || ' ' || error), ?) > 0")
        values.append(text.lower())
    return " AND ".join(parts) or "1", values


def episodes_page(store: Store, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of episodes that fulfil what is asked, and what all of them come to.

    Raises:
        ConfigError: something asked for does not exist.
    """
    page, (where, values) = page_of(asked), condition(asked)
    order = "DESC" if page.descending else "ASC"
    columns = ", ".join(f"{part.strip()} {order}" for part in SORTS[page.sort].split(","))
    rows = store.rows(
        f"SELECT {SHOWN} FROM episodes WHERE {where} ORDER BY {columns}, id LIMIT ? OFFSET ?",
        (*values, page.limit, page.offset),
    )
    return {
        "rows": rows,
        "limit": page.limit,
        "offset": page.offset,
        **tally(store, where, values),
    }


def tally(store: Store, where: str = "1", values: Sequence[object] = ()) -> dict[str, Any]:
    """Return counts and the success rate with its intervals; errors are apart and no score."""
    found = store.rows(f"SELECT {COUNTS} FROM episodes WHERE {where}", values)[0]
    return {
        "total": found["n"],
        "errors": int(found["errors"]),
        **rate(int(found["solved"]), found["scored"]),
    }


def rate(solved: int, scored: int) -> dict[str, Any]:
    """Return a success rate with Wilson's and the exact interval of 95 %."""
    return {
        "solved": solved,
        "scored": scored,
        "wilson": list(wilson(solved, scored)),
        "exact": list(clopper_pearson(solved, scored)),
    }


def facets(store: Store, asked: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the values that a list can be filtered by, within one run where one is named."""
    run = asked.get("run", "")
    return dict(store.cached(f"facets {run}", lambda: _facets(store, run)))


def _facets(store: Store, run: str) -> dict[str, list[Any]]:
    where, values = ("run = ?", (run,)) if run else ("1", ())
    found: dict[str, list[Any]] = {}
    for name in FACETS:
        rows = store.rows(
            f"SELECT DISTINCT {name} AS value FROM episodes WHERE {where} ORDER BY 1 LIMIT 200",
            values,
        )
        found[name] = [row["value"] for row in rows if row["value"] not in ("", None)]
    for name, column, names in (("skill", "skills", skills_in), ("source", "drivers", json.loads)):
        rows = store.rows(
            f"SELECT DISTINCT {column} AS value FROM episodes WHERE {where} LIMIT 5000", values
        )
        found[name] = sorted({each for row in rows for each in names(row["value"])})
    return found
