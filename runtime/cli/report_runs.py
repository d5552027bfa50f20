"""A run as it lies on disk, finished or not, read for a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from zetta.runtime.cli.run_episodes import EPISODES, RESULT, STRIP
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.episode_log import HEADER, EpisodeHeader, read_header
from zetta.runtime.errors import ConfigError
from zetta.runtime.evaluation_plan import Arm, Planned
from zetta.runtime.evaluation_results import Row
from zetta.runtime.registry import is_arm
from zetta.runtime.reporting.evaluation_folder import UNREADABLE
from zetta.runtime.reporting.outcomes import Episode, Outcomes
from zetta.runtime.reporting.wording import counted
from zetta.runtime.rollouts.factory import record_of
from zetta.runtime.rollouts.messages import layout_from_text, record_from_json

RECORDED: Final = (
    "success", "success_at_reset", "reason", "ticks", "inferences", "interventions", "sources",
    "scene_digest", "wall_s", "late_ticks", "detail", "recoveries", "first_success", "verified",
    "commands",
)  # fmt: skip
"""Fields that an episode of `run.json` and a record have in common."""


@dataclass(slots=True)
class _Found:
    """What goes along while a run is read."""

    folder: Path
    name: str
    episodes: list[Episode]
    facts: dict[str, str]
    missing: list[str]
    alarms: list[str]
    command: str = ""


def is_run(folder: Path) -> bool:
    """Say whether a folder looks like a run, or like one episode."""
    return any((folder / name).exists() for name in (RESULT, EPISODES, HEADER))


def read_run(folder: Path) -> Outcomes:
    """Read whatever a run has written so far.

    Raises:
        ConfigError: nothing of it can be read.
    """
    found = _Found(folder, folder.resolve().name, [], {}, [], [])
    answer = _answer(folder / RESULT, found)
    if answer is not None:
        _read_answer(answer, found)
    else:
        _read_headers(found)
    for partial in sorted(folder.glob(f"**/{EPISODES}/.*.partial-*")):
        found.missing.append(
            f"the episode {partial.name[1:].partition('.partial-')[0]} was not finished: it runs "
            "now, or the run was killed in it"
        )
    if not found.episodes and found.missing:
        raise ConfigError(
            f"nothing of the run {folder} can be read: {found.missing[0]}; give a folder that "
            "zetta run, eval or evolve has written"
        )
    if is_arm(found.facts.get("sim", "")):
        found.missing.append(
            "an arm does not know whether its task is done, so nobody has judged these episodes; "
            "zetta critics judge keeps what a person saw"
        )
    policy, bundle = found.facts.get("policy", ""), found.facts.get("bundle", "none")
    return Outcomes(
        kind="run", title=f"Run {found.name}", arms=(Arm(found.name, policy, bundle),),
        episodes=tuple(found.episodes), facts={"": found.facts},
        commands={"": found.command} if found.command else {},
        sensing=(found.facts.get("sensing", "not known"),),
        alarms=tuple(found.alarms), missing=tuple(found.missing),
    )  # fmt: skip


def side_by_side(runs: Sequence[Outcomes]) -> Outcomes:
    """Return several runs as the arms of one report; all are compared with the first."""
    names = _distinct([run.arms[0].name for run in runs])
    return Outcomes(
        kind="runs",
        title="Runs " + ", ".join(names),
        arms=tuple(replace(run.arms[0], name=name) for run, name in _zip(runs, names)),
        episodes=tuple(
            replace(e, row=replace(e.row, planned=replace(e.row.planned, arm=name)))
            for run, name in _zip(runs, names)
            for e in run.episodes
        ),
        facts={name: run.facts[""] for run, name in _zip(runs, names)},
        commands={name: run.commands[""] for run, name in _zip(runs, names) if run.commands},
        sensing=tuple(level for run in runs for level in run.sensing),
        alarms=(*(f"{n}: {a}" for run, n in _zip(runs, names) for a in run.alarms),
                *_different_worlds(runs, names)),
        missing=(*(f"{n}: {m}" for run, n in _zip(runs, names) for m in run.missing),
                 *_unpaired(runs, names)),
    )  # fmt: skip


def _zip(runs: Sequence[Outcomes], names: Sequence[str]) -> Iterator[tuple[Outcomes, str]]:
    return zip(runs, names, strict=True)


def _distinct(names: Sequence[str]) -> list[str]:
    return [n if names.count(n) == 1 else f"{n} ({i + 1})" for i, n in enumerate(names)]


def _different_worlds(runs: Sequence[Outcomes], names: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong where one scene began differently in two runs."""
    first = {e.pair: e.record.scene_digest for e in runs[0].episodes if e.record is not None}
    for run, name in list(_zip(runs, names))[1:]:
        apart = [
            e.row.planned.scene
            for e in run.episodes
            if e.record is not None
            and first.get(e.pair, e.record.scene_digest) != e.record.scene_digest
        ]
        if apart:
            yield (
                f"{counted(len(apart), 'scene')} of {name} did not begin as in {names[0]} (such as "
                f"{apart[0]}); these pairs compare different worlds"
            )


def _unpaired(runs: Sequence[Outcomes], names: Sequence[str]) -> Iterator[str]:
    first = {e.pair for e in runs[0].episodes}
    for run, name in list(_zip(runs, names))[1:]:
        own = {e.pair for e in run.episodes}
        if own ^ first:
            yield (
                f"{len(own & first)} scenes are in both {names[0]} and {name}; {len(own - first)} "
                f"of {name} and {len(first - own)} of {names[0]} have no partner, so they are not "
                "compared"
            )


# ------------------------------------------------------------------------------ run.json


def _answer(path: Path, found: _Found) -> Mapping[str, Any] | None:
    try:
        plain: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        found.missing.append(f"{path.name} cannot be read ({error.strerror})")
        return None
    except ValueError as error:
        found.missing.append(f"{path.name} is no JSON ({error})")
        return None
    if not isinstance(plain, dict) or not isinstance(plain.get("episodes"), list):
        found.missing.append(f"{path.name} is no answer of zetta run")
        return None
    return plain


def _read_answer(answer: Mapping[str, Any], found: _Found) -> None:
    found.command = str(answer.get("command", ""))
    policy = answer.get("policy")
    named = policy if isinstance(policy, dict) else {}
    found.facts = {
        "policy": str(named.get("name", "")), "policy digest": str(named.get("digest", "")),
        **{
            name.replace("_", " "): _text(answer[name])
            for name in ("bundle", "sim", "sensing", "render_profile", "options", "versions")
            if answer.get(name)
        },
    }  # fmt: skip
    unreadable = 0
    for place, plain in enumerate(answer["episodes"]):
        try:
            found.episodes.append(_episode(plain, place, answer, found))
        except UNREADABLE:
            unreadable += 1
    if unreadable:
        found.missing.append(f"{counted(unreadable, 'episode')} of {RESULT} cannot be read")
    _check_counts(answer, found)


def _episode(
    plain: Mapping[str, Any], place: int, answer: Mapping[str, Any], found: _Found
) -> Episode:
    layout = Sampled() if plain["init"] == "sampled" else layout_from_text(str(plain["init"]))
    spec = RunSpec(
        str(answer.get("sim", "")), str(plain["suite"]), int(plain["task"]), layout,
        int(plain["seed"]), found.facts["policy"], int(plain["policy_seed"]),
    )  # fmt: skip
    error = plain.get("error")
    record = None
    if error is None:
        record = record_from_json({name: plain[name] for name in RECORDED if name in plain})
    log = _inside(found.folder, answer.get("folder"), plain.get("log"))
    strip = None if log is None or not (log / STRIP).is_file() else log / STRIP
    row = Row(Planned(f"{found.name}/{place}", found.name, spec), record, 1, str(error or ""))
    name = f"{place:03d}" if log is None else log.relative_to(found.folder).as_posix()
    return Episode(row, name, str(plain.get("instruction", "")), log, strip, _note(plain))


def _inside(folder: Path, recorded: object, log: object) -> Path | None:
    """Return where a log lies now: the run may have been moved, and nothing outside is read."""
    if not isinstance(recorded, str) or not isinstance(log, str):
        return None
    try:
        path = folder / Path(log).relative_to(recorded)
        return path if path.resolve().is_relative_to(folder.resolve()) and path.is_dir() else None
    except (ValueError, OSError):
        return None


def _note(plain: Mapping[str, Any]) -> str:
    if not plain.get("agent"):
        return ""
    told: object = plain.get("verified")
    verified = "the evidence cannot tell"
    if told is not None:
        verified = "verified by the evidence" if told is True else "denied by the evidence"
    said = f"{plain['agent']}: {plain.get('commands', 0)} commands, {verified}"
    return f"{said}; {plain['ended']}" if plain.get("ended") else said


def _check_counts(answer: Mapping[str, Any], found: _Found) -> None:
    scored = [e.record for e in found.episodes if e.record is not None]
    counts = (sum(record.success for record in scored), len(scored))
    said = (answer.get("successes"), answer.get("n"))
    if None not in said and said != counts:
        found.alarms.append(
            f"{RESULT} says {said[0]}/{said[1]}, its episodes say {counts[0]}/{counts[1]}"
        )


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in sorted(value.items()))
    return str(value)


# ------------------------------------------------------------------------------ logs alone


def _read_headers(found: _Found) -> None:
    """Read the logs themselves where `run.json` does not help."""
    for path in sorted(found.folder.glob(f"**/{HEADER}")):
        if ".partial-" in path.parent.name:
            continue
        try:
            header = read_header(path.parent)
        except (ConfigError, *UNREADABLE) as error:
            found.missing.append(f"an episode cannot be read: {error}")
            continue
        found.episodes.append(_of_header(header, path.parent, found))
        if not found.facts:
            found.facts, found.command = _facts_of(header), header.run.command


def _of_header(header: EpisodeHeader, log: Path, found: _Found) -> Episode:
    scene, run = header.scene, header.run
    spec = RunSpec(
        header.sim, scene.task.suite, scene.task.index, scene.layout, scene.seed, run.policy_name,
        run.policy_seed, run.bundle, run.sensing, run.render, dict(run.options),
    )  # fmt: skip
    name = log.relative_to(found.folder).as_posix()
    record = record_of(header.result) if header.complete else None
    row = Row(
        Planned(f"{found.name}/{name}", found.name, spec),
        record,
        1,
        header.result.detail or "error",
    )
    strip = log / STRIP
    return Episode(row, name, header.instruction, log, strip if strip.is_file() else None)


def _facts_of(header: EpisodeHeader) -> dict[str, str]:
    run = header.run
    return {
        name: text
        for name, text in (
            ("policy", run.policy_name),
            ("policy digest", "" if run.policy is None else run.policy.digest),
            ("bundle", run.bundle_digest or run.bundle),
            ("sim", header.sim),
            ("sensing", run.sensing),
            ("render profile", header.spec.render_profile),
            ("options", _text(dict(run.options))),
            ("versions", _text(dict(run.versions))),
        )
        if text
    }
