"""Paired evaluation: the same scenes under every arm, resumable, never scoring an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zetta.runtime.errors import InfraError
from zetta.runtime.evaluation_plan import Plan
from zetta.runtime.evaluation_results import Row, SceneBook, complete_rows, read_rows, row_to_json
from zetta.runtime.rollouts.launchers import Job, Launcher
from zetta.runtime.rollouts.shards import ShardFolder


def run_plan(
    plan: Plan,
    shards: ShardFolder,
    launcher: Launcher,
    advance: Callable[[int, Row | None], None] = lambda finished, row: None,
) -> tuple[Row, ...]:
    """Run what is missing (earlier errors count as missing) and return all rows in plan order.

    Raises:
        InfraError: not one episode could be run.
        SpecMismatch: arms did not start from the same scenes.
    """
    rows = read_rows(plan, shards)
    scenes = SceneBook()
    for row in rows.values():
        scenes.check(row)
    scored = {key for key, row in rows.items() if row.record is not None}
    missing = {e.key: e for e in plan.episodes if e.key not in scored}
    jobs = [Job(e.key, e.group, e.spec) for e in missing.values()]
    finished = len(scored)
    advance(finished, None)
    for outcome in launcher.run(jobs):
        episode = missing[outcome.job.key]
        row = Row(episode, outcome.record, outcome.attempts, outcome.error)
        shards.append(row_to_json(row))
        scenes.check(row)
        finished += 1
        advance(finished, row)
    ordered = complete_rows(plan, shards)
    _refuse_all_errors(ordered)
    return ordered


def _refuse_all_errors(rows: Sequence[Row]) -> None:
    if rows and all(row.record is None for row in rows):
        raise InfraError(
            f"not one of the {len(rows)} episodes could be run; the first error: {rows[0].error}"
        )
