"""Results of an evaluation on disk: begun, continued, and read back only when they fit the plan.

What a shard holds is checked before it is believed: the plan's hash, the key and the scene of each
row, and that all arms started from equal scenes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.evaluation_plan import FOLDER_DIGITS, Plan, Planned, describe
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.rollouts.messages import (
    record_from_json,
    record_to_json,
    spec_from_json,
    spec_to_json,
)
from zetta.runtime.rollouts.shards import ShardFolder

PLAN_FILE = "plan.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One episode of the plan and what became of it."""

    planned: Planned
    record: EpisodeRecord | None
    attempts: int
    error: str = ""


def open_results(plan: Plan, out: Path, resume: bool, command: str) -> ShardFolder:
    """Return the plan's shards below `out`, begun or continued.

    Raises:
        ConfigError: `out` holds another evaluation, or this one and `resume` is not set.
    """
    for other in sorted(out.glob(f"*/{PLAN_FILE}")):
        if other.parent != plan.folder(out):
            raise ConfigError(
                f"{out} holds another evaluation (plan {other.parent.name}{_change(other, plan)}, "
                f"this is {plan.digest[:FOLDER_DIGITS]}); choose another --out"
            )
    shards = ShardFolder(plan.folder(out), plan.digest)
    if shards.files() and not resume:
        raise ConfigError(
            f"{out} already holds {len(shards.rows())} of {len(plan.episodes)} episodes; "
            "add --resume to continue, or choose another --out"
        )
    shards.folder.mkdir(parents=True, exist_ok=True)
    described = {"plan": plan.digest, "command": command, **describe(plan)}
    text = json.dumps(described, indent=1, sort_keys=True) + "\n"
    (shards.folder / PLAN_FILE).write_text(text, encoding="utf-8")
    return shards


def read_rows(plan: Plan, shards: ShardFolder) -> dict[str, Row]:
    """Return what is on disk by key; a record replaces an error of an earlier try.

    Raises:
        ConfigError: a row is of no episode of this plan, or cannot be read.
        SpecMismatch: two records of one episode differ.
    """
    planned = {episode.key: episode for episode in plan.episodes}
    rows: dict[str, Row] = {}
    for plain in shards.rows():
        row = _row_from_json(plain, planned, shards.folder)
        known = rows.get(row.planned.key)
        if known is not None and known.record is not None:
            _check_equal(known, row)
            continue
        rows[row.planned.key] = row
    return rows


def complete_rows(plan: Plan, shards: ShardFolder) -> tuple[Row, ...]:
    """Return one row for each episode of the plan, in the plan's order.

    Raises:
        ConfigError: some are missing, or some are foreign.
        SpecMismatch: arms did not start from the same scenes.
    """
    rows = read_rows(plan, shards)
    missing = [episode for episode in plan.episodes if episode.key not in rows]
    if missing:
        raise ConfigError(
            f"{shards.folder} is incomplete: {len(rows)} of {len(plan.episodes)} episodes, the "
            f"first missing is {missing[0].scene} ({missing[0].arm}); continue with --resume"
        )
    ordered = tuple(rows[episode.key] for episode in plan.episodes)
    scenes = SceneBook()
    for row in ordered:
        scenes.check(row)
    return ordered


class SceneBook:
    """Remembers how each scene started, so that no pair compares different worlds."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, str]] = {}

    def check(self, row: Row) -> None:
        """Compare the scene of `row` with what other arms saw.

        Raises:
            SpecMismatch: the scene has no digest, or another one than before.
        """
        if row.record is None:
            return
        scene, arm = row.planned.scene, row.planned.arm
        digest = row.record.scene_digest
        if not digest:
            raise SpecMismatch(f"{scene} ({arm}) came without a scene digest; arms need equal ones")
        first, by = self._seen.setdefault(scene, (digest, arm))
        if first != digest:
            raise SpecMismatch(
                f"{scene} started differently: digest {first[:12]} in arm {by}, {digest[:12]} in "
                f"arm {arm}; paired arms need identical scenes, so nothing is compared"
            )


# --------------------------------------------------------------------------- rows


def row_to_json(row: Row) -> dict[str, object]:
    """Return the line that is kept of `row`."""
    head = {"key": row.planned.key, "arm": row.planned.arm, "attempts": row.attempts}
    spec = spec_to_json(row.planned.spec)
    if row.record is None:
        return {**head, "spec": spec, "error": row.error}
    return {**head, "spec": spec, "record": record_to_json(row.record)}


def _row_from_json(plain: Mapping[str, Any], planned: Mapping[str, Planned], where: Path) -> Row:
    episode = planned.get(str(plain.get("key")))
    try:
        matches = episode is not None and spec_from_json(plain["spec"]) == episode.spec
        if episode is None or not matches or plain["arm"] != episode.arm:
            raise ConfigError(
                f"{where} holds an episode that is not of this plan "
                f"(key {str(plain.get('key'))[:12]}); move the foreign shard away"
            )
        record = record_from_json(plain["record"]) if "record" in plain else None
        return Row(episode, record, int(plain["attempts"]), str(plain.get("error", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where} holds a row that cannot be read ({error!r})") from error


def _check_equal(known: Row, row: Row) -> None:
    if row.record is None or known.record is None:
        return
    first, second = record_to_json(known.record), record_to_json(row.record)
    for timing in ("wall_s", "late_ticks"):
        first.pop(timing), second.pop(timing)
    if first != second:
        raise SpecMismatch(
            f"two results of {row.planned.scene} ({row.planned.arm}) differ; the same episode must "
            "come out the same, so one of the shards was made by another build"
        )


def _change(plan_file: Path, plan: Plan) -> str:
    """Name the first thing in which the plan on disk differs, when it can be read."""
    try:
        there = json.loads(plan_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    for name, value in describe(plan).items():
        if isinstance(there, dict) and there.get(name) != value:
            return f", differing in {name.replace('_', ' ')}"
    return ""
