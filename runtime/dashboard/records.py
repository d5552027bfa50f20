"""Rows of the index: what is kept of a run and of an episode, and how it is read from their files.

Reading is tolerant: a file of another version, or a damaged one, gives a row that says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from zetta.runtime.episode_log import FORMAT, HEADER, JUDGEMENT, POSES
from zetta.runtime.registry import is_arm

RUN, PLAN, RESULTS, MANIFEST, LOCK = (
    "run.json", "plan.json", "results.json", "manifest.json", ".lock",
)  # fmt: skip
MARKERS: Final = (RUN, PLAN, RESULTS, MANIFEST, LOCK, "episodes")
"""A folder that holds one of them is a run; everything below it belongs to it."""
FILE_MOST: Final = 256 << 20
"""Bytes of a file that is read at once; the `run.json` of 100,000 episodes has half of it."""
TEXT_MOST: Final = 4000
"""Letters of a text that the index keeps."""
WIDEST: Final = 1 << 63
"""Whole numbers below it fit into the index."""


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One episode of the index."""

    id: str
    run: str
    path: str = ""
    """Folder of its log, relative to the root; empty where there is no log."""
    inode: int = 0
    """Of the log's folder: another one of the same name is another episode."""
    name: str = ""
    arm: str = ""
    """Arm of an evaluation."""
    sim: str = ""
    suite: str = ""
    task: int = 0
    init: str = ""
    seed: int = 0
    policy_seed: int = 0
    instruction: str = ""
    success: int | None = None
    """None where it is no score: an error, or an arm that nobody judged."""
    reason: str = ""
    error: str = ""
    ticks: int = 0
    wall_s: float = 0.0
    interventions: int = 0
    skills: str = ""
    """Names between bars, such as `|regrasp|reseat|`."""
    drivers: str = "{}"
    """Ticks by source, as JSON."""
    sensing: str = ""
    policy: str = ""
    bundle: str = ""
    digest: str = ""
    """Of the bundle."""
    scene: str = ""
    """Digest of the settled scene."""
    hz: float = 0.0
    drawable: int = 0
    """1 where the log holds poses."""
    judged_by: str = ""
    ended: float = 0.0
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the index."""

    id: str
    path: str
    """Relative to the root; `.` is the root itself."""
    name: str
    kind: str = "run"
    """`run`, `eval` or `campaign`."""
    sim: str = ""
    policy: str = ""
    bundle: str = ""
    sensing: str = ""
    command: str = ""
    versions: str = "{}"
    planned: int | None = None
    """Episodes that are to be run, where that is known."""
    begun: float = 0.0
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run's own files say of it."""

    row: RunRow
    reports: tuple[EpisodeRow, ...] = field(default=())
    """Episodes without a log: they could not be carried out."""


def identify(*parts: str) -> str:
    """Return a name for a URL; a path is never in one.

    >>> identify("a/b") == identify("a/b") != identify("a", "b")
    True
    """
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def read_object(path: Path) -> Any:
    """Read a file of JSON that may be anything: half a file, a pipe, an endless one.

    Raises:
        OSError: it is gone, or may not be read.
        ValueError: it is no file, is too large, or is not JSON.
    """
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):  # opening a pipe would wait for a writer
        raise ValueError(f"{path.name} is no file")
    if facts.st_size > FILE_MOST:
        raise ValueError(f"{path.name} has {facts.st_size >> 20} MB, at most {FILE_MOST >> 20} fit")
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deeply") from None


def sound(row: EpisodeRow) -> EpisodeRow:
    """Return a row as the index and a page can hold it: texts are text, and cut.

    Raises:
        ValueError: a number is none, or does not fit.
    """
    texts: dict[str, str] = {}
    for each in fields(row):
        value = getattr(row, each.name)
        if isinstance(value, str) and each.name != "drivers":
            texts[each.name] = _text(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{each.name} is {value}")
        elif isinstance(value, int) and not -WIDEST <= value < WIDEST:
            raise ValueError(f"{each.name} has {len(str(value))} digits")
    return replace(row, **texts)  # type: ignore[arg-type]


def _text(value: str) -> str:
    """Return a text without half letters, cut where it is too long.

    >>> _text("caf\\ud800e")
    'caf?e'
    """
    return value[:TEXT_MOST].encode("utf-8", "replace").decode("utf-8")


def _drivers(sources: object) -> str:
    """Return ticks by source as JSON.

    Raises:
        TypeError: they are no such numbers.
    """
    if not isinstance(sources, dict):
        raise TypeError(f"ticks by source are {type(sources).__name__}, not an object")
    return json.dumps({_text(str(name)): int(ticks) for name, ticks in sources.items()})


def read_log_row(root: Path, folder: Path, run: RunRow, inode: int) -> EpisodeRow | None:
    """Return the row of the log in `folder`; None where it holds none."""
    header = folder / HEADER
    try:
        ended = header.stat().st_mtime
    except OSError:
        return None
    path = folder.relative_to(root).as_posix()
    blank = EpisodeRow(identify(path), run.id, path, inode, _name(folder, root, run), ended=ended)
    try:
        plain = read_object(header)
        if plain["format"] != FORMAT:
            return _unreadable(blank, f"the log has the format {plain['format']!r}, not {FORMAT!r}")
        return sound(_log_row(blank, plain, folder))
    except OSError as error:
        return _unreadable(blank, f"the log cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        return _unreadable(blank, f"the log cannot be read: {type(error).__name__}: {error}")


def _name(folder: Path, root: Path, run: RunRow) -> str:
    inside = folder.relative_to(root / run.path).as_posix()
    return inside.removeprefix("episodes/").replace("/episodes/", "/")


def _unreadable(blank: EpisodeRow, why: str) -> EpisodeRow:
    return EpisodeRow(
        blank.id, blank.run, blank.path, blank.inode, blank.name, reason="error", error=_text(why),
        ended=blank.ended,
    )  # fmt: skip


def _log_row(blank: EpisodeRow, plain: Mapping[str, Any], folder: Path) -> EpisodeRow:
    scene, run, result = plain["scene"], plain["run"], plain["result"]
    complete = bool(plain["complete"])
    success: int | None = int(bool(result["success"])) if complete else None
    judged_by = ""
    if is_arm(str(plain.get("sim", ""))):
        success, judged_by = _judged(folder)
        success = success if complete else None
    return EpisodeRow(
        id=blank.id, run=blank.run, path=blank.path, inode=blank.inode, name=blank.name,
        sim=str(plain.get("sim", "")), suite=str(scene["task"]["suite"]),
        task=int(scene["task"]["index"]), init=str(scene["layout"]), seed=int(scene["seed"]),
        policy_seed=int(run.get("policy_seed", 0)), instruction=str(plain["instruction"]),
        success=success, reason=str(result["reason"]),
        error="" if complete else str(result.get("detail", "") or "cut short by an error"),
        ticks=int(result["ticks"]), wall_s=float(result["wall_s"]),
        interventions=int(result["interventions"]),
        skills=skill_names(result), drivers=_drivers(result.get("sources", {})),
        sensing=str(run["sensing"]), policy=str(run["policy_name"]), bundle=str(run["bundle"]),
        digest=str(run.get("bundle_digest", "")), scene=str(result.get("scene_digest", "")),
        hz=float(plain["spec"]["control_hz"]), drawable=int((folder / POSES).exists()),
        judged_by=judged_by, ended=blank.ended,
    )  # fmt: skip


def _judged(folder: Path) -> tuple[int | None, str]:
    """Return what somebody who saw an arm says; nobody else knows."""
    try:
        said = read_object(folder / JUDGEMENT)
        return int(bool(said["success"])), str(said["by"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def skill_names(result: Mapping[str, Any]) -> str:
    """Return the skills that had the robot, between bars.

    >>> skill_names({"sources": {"policy": 9, "skill:regrasp": 3}, "recoveries": []})
    '|regrasp|'
    """
    names = {str(each.get("skill", "")) for each in result.get("recoveries") or ()}
    sources = result.get("sources") or {}
    names |= {s.removeprefix("skill:") for s in sources if s.startswith("skill:")}
    return f"|{'|'.join(sorted(n for n in names if n))}|" if names - {""} else ""


def skills_in(text: str) -> tuple[str, ...]:
    """Return the names that `skill_names` put between bars.

    >>> skills_in("|regrasp|reseat|"), skills_in("")
    (('regrasp', 'reseat'), ())
    """
    return tuple(name for name in text.split("|") if name)


def read_shard_row(plain: Mapping[str, Any], run: RunRow, ended: float) -> EpisodeRow | None:
    """Return the row of one line of an evaluation; None where the line is none."""
    try:
        spec, record = plain["spec"], plain.get("record")
        key, arm = str(plain["key"]), str(plain["arm"])
        row: dict[str, Any] = {
            "id": identify(run.id, key), "run": run.id, "name": key[:8], "arm": arm,
            "sim": str(spec["sim"]), "suite": str(spec["suite"]), "task": int(spec["task"]),
            "init": str(spec["layout"]), "seed": int(spec["seed"]),
            "policy_seed": int(spec["policy_seed"]), "sensing": str(spec["sensing"]),
            "policy": str(spec["policy"]), "bundle": str(spec["bundle"]), "ended": ended,
        }  # fmt: skip
        if record is None:
            error = str(plain.get("error") or "no result")
            return sound(EpisodeRow(**row, reason="error", error=error))
        return sound(EpisodeRow(
            **row, success=int(bool(record["success"])), reason=str(record["reason"]),
            ticks=int(record["ticks"]), wall_s=float(record["wall_s"]),
            interventions=int(record["interventions"]), skills=skill_names(record),
            drivers=_drivers(record.get("sources", {})), scene=str(record["scene_digest"]),
        ))  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def read_run(folder: Path, row: RunRow) -> Told:
    """Return what `run.json` says; the row as it was where there is none that can be read."""
    try:
        plain = read_object(folder / RUN)
        planned = plain.get("planned")
        reports = tuple(
            sound(_report_row(row, number, each))
            for number, each in enumerate(plain.get("episodes", ()))
            if not each.get("log")
        )
        told = RunRow(
            row.id, row.path, row.name, row.kind, _text(str(plain.get("sim", ""))),
            _text(str((plain.get("policy") or {}).get("name", ""))),
            _text(str(plain.get("bundle", ""))), _text(str(plain.get("sensing", ""))),
            _text(str(plain.get("command", ""))), json.dumps(plain.get("versions") or {}),
            None if planned is None else min(int(planned), WIDEST - 1), row.begun,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Told(row)
    return Told(told, reports)


def _report_row(run: RunRow, number: int, plain: Mapping[str, Any]) -> EpisodeRow:
    return EpisodeRow(
        id=identify(run.id, "report", str(number)), run=run.id, name=f"{number:03d}",
        suite=str(plain["suite"]), task=int(plain["task"]), init=str(plain["init"]),
        seed=int(plain["seed"]), policy_seed=int(plain.get("policy_seed", 0)),
        instruction=str(plain.get("instruction", "")), reason="error",
        error=str(plain.get("error") or "no log was written"), ended=run.begun,
    )  # fmt: skip


def read_plan(path: Path, row: RunRow) -> RunRow:
    """Return an evaluation's row with what its plan says."""
    try:
        plain = read_object(path)
        counts = (len(plain[n]) for n in ("tasks", "starts", "arms_planned", "policy_seeds"))
        planned = 1
        for count in counts:
            planned *= count
        if (path.parent.parent / RESULTS).exists():  # it is complete, whatever was planned
            planned = 0
        arms = plain["arms_planned"]
        return RunRow(
            row.id, row.path, row.name, "eval", _text(str(plain["sim"])),
            _text(", ".join(dict.fromkeys(str(arm["policy"]) for arm in arms.values()))),
            _text(", ".join(dict.fromkeys(str(arm["bundle"]) for arm in arms.values()))),
            _text(str(plain["sensing"])), _text(str(plain.get("command", ""))),
            json.dumps(plain.get("versions") or {}), planned or None, path.stat().st_mtime,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return row
