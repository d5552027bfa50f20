"""`zetta critics calibrate`: how strict the critics of a bundle must be, from logged episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from zetta.critics.calibration import calibrate
from zetta.critics.detection import (
    TIMELY,
    Detection,
    Watched,
    at_a_fixed_tick,
    detection,
    shuffled,
    upper_bound,
)
from zetta.runtime.cli import output
from zetta.runtime.cli.at_home import at_home
from zetta.runtime.cli.home import calibrations_folder, home_library
from zetta.runtime.cli.judge import judged
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.replay_critics import check_signals_logged
from zetta.runtime.cli.sight import localizer_of
from zetta.runtime.core import Sampled
from zetta.runtime.embodiment import embodiment_of
from zetta.runtime.episode_log import HEADER, EpisodeHeader, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json
from zetta.runtime.registry import is_arm
from zetta.skills.bundles import LoadedBundle, load_bundle
from zetta.skills.calibrated import (
    CalibrationRecord,
    Ladder,
    Replayed,
    scores_of,
    write_calibration,
)
from zetta.skills.calibrated_policy import policy_key
from zetta.skills.stored_calibrations import store_calibration

FILE: Final = "calibration.json"
T = TypeVar("T")


def command(
    logs: Annotated[list[Path], typer.Argument(help="Run folders of shadow runs.")],
    bundle: Annotated[str, typer.Option(help="Whose critics: starter, or a folder.")] = "starter",
    alpha: Annotated[
        float, typer.Option(help="Share of successes in which any critic may fire.")
    ] = 0.1,
    out: Annotated[Path | None, typer.Option(help="Folder of the calibration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Calibrate the critics of a bundle on logged episodes in which nobody intervened.

    The logs come from `zetta run --init sampled --bundle BUNDLE --shadow`.
    """
    loaded = load_bundle(bundle, library=home_library())
    cases = list(_episodes(logs, loaded))
    headers = [case.header for case in cases]
    rate = _one({header.spec.control_hz for header in headers}, "control rate")
    ladder = Ladder(loaded, rate)
    successes = [case for case in cases if case.header.result.success]
    fit, held_out = successes[0::2], successes[1::2]
    found = calibrate(
        ladder.names,
        scores_of(ladder, map(_replayed, fit)),
        scores_of(ladder, map(_replayed, held_out)),
        alpha,
    )
    first = headers[0].run
    record = CalibrationRecord(
        bundle=bundle,
        digest=loaded.digest,
        policy=_one({policy_key(h.run.policy_name, h.run.policy) for h in headers}, "policy"),
        policy_digest="" if first.policy is None else first.policy.digest,
        alpha=alpha,
        sure_alpha=found.sure_alpha,
        fitted=found.fitted,
        calibrated=found.calibrated,
        levels=found.levels,
        parameters=ladder.parameters(found),
        suites=tuple(sorted({h.scene.task.suite for h in headers})),
        command=output.command_line(),
        versions=first.versions,
        embodiment=_one({embodiment_of(h.spec) for h in headers}, "embodiment"),
        localizer=_one({_localizer(h) for h in headers}, "localizer"),
    )
    folder = output.run_folder("calibration", out)
    write_calibration(folder / FILE, record)
    kept = store_calibration(calibrations_folder(), record)
    # The fitting half has no part in the report: its ranks were made from it.
    fitted = {id(case) for case in fit}
    judged = [case for case in cases if id(case) not in fitted]
    watched = [_watched(ladder, case, found.levels) for case in judged]
    report = _report(watched)
    if as_json:
        rows: dict[str, Json] = {name: _plain(each) for name, each in report.items()}
        told: dict[str, Json] = {"calibration": to_json(record), "detection": rows}
        output.emit({**told, "folder": str(folder), "kept": str(kept)})
        return
    _tell(record, report, folder)


def _episodes(folders: Sequence[Path], bundle: LoadedBundle) -> Iterator[LoggedEpisode]:
    """Yield finished episodes that no skill touched, of sampled scenes, in a fixed order."""
    paths = sorted({path for folder in folders for path in folder.rglob(HEADER)})
    if not paths:
        raise ConfigError(
            f"no episode log lies below {', '.join(map(str, folders))}; make some with: "
            "zetta run --init sampled --episodes 40 --bundle starter --shadow --out DIR"
        )
    for path in paths:
        episode = judged(path.parent, read_episode(path.parent))
        header = episode.header
        if not header.complete or header.result.success_at_reset:
            continue
        if not isinstance(header.scene.layout, Sampled) and not is_arm(header.sim):
            raise ConfigError(
                f"{path.parent} is of the init state {header.scene.layout}, which evaluations "
                "use; calibrate on sampled scenes (--init sampled)"
            )
        watched_only = header.run.options.get("shadow") == "yes" or header.run.bundle == "none"
        if header.result.interventions or not watched_only:
            raise ConfigError(
                f"{path.parent} holds interventions; calibrate on shadow runs (--shadow)"
            )
        check_signals_logged(path.parent, episode, bundle)
        yield episode


def _replayed(case: LoggedEpisode) -> Replayed:
    return case.ticks, case.header.instruction, case.header.spec.control_hz


def _localizer(header: EpisodeHeader) -> str:
    return localizer_of(header.run.options, header.sim, header.run.sensing)


def _one(values: set[T], what: str) -> T:
    if len(values) != 1:
        said = ", ".join(sorted(map(str, values)))
        raise ConfigError(f"these logs are of more than one {what} ({said}); give logs of one")
    return values.pop()


def _watched(ladder: Ladder, case: LoggedEpisode, levels: Mapping[str, int | None]) -> Watched:
    result = case.header.result
    alarm = ladder.first_alarm(*_replayed(case), levels)
    return Watched(result.success, result.ticks, result.scene.task.max_steps, alarm)


def _report(watched: Sequence[Watched]) -> dict[str, Detection]:
    critics = detection(watched)
    return {
        "critics": critics,
        "fixed tick": at_a_fixed_tick(watched, critics.false_alarms),
        "shuffled": shuffled(watched),
    }


def _plain(found: Detection) -> dict[str, Json]:
    return {**asdict(found), "false_alarm_bound": found.false_alarm_bound}


def _tell(record: CalibrationRecord, report: Mapping[str, Detection], folder: Path) -> None:
    rows = [
        [name, "off" if level is None else str(level), _numbers(record.parameters.get(name, {}))]
        for name, level in record.levels.items()
    ]
    output.answer(output.table(["critic", "level", "numbers"], rows))
    if all(level is None for level in record.levels.values()):
        output.answer(
            f"{record.fitted} + {record.calibrated} successes are too few for alpha "
            f"{record.alpha:g}: every critic is off; give more logs or a larger --alpha"
        )
        return
    output.answer(
        f"a new success raises an alarm with at most {100 * record.alpha:.0f} % "
        f"(on average; {100 * record.sure_alpha:.0f} % with 90 % confidence), from "
        f"{record.fitted} + {record.calibrated} successes"
    )
    columns = ["alarms", "false", "95 % bound", "failures found", f"in time ({TIMELY:.0%} left)"]
    output.answer(output.table([*columns, "median lead"], [_row(n, d) for n, d in report.items()]))
    output.answer(f"it is for {record.embodiment} with {record.policy}")
    output.answer(f"use it: zetta run --bundle {record.bundle} --calibration {folder / FILE}")
    if record.embodiment is not None and not at_home(record.embodiment):
        output.answer("zetta run takes it there by itself")


def _numbers(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items()) or "defaults"


def _row(name: str, found: Detection) -> list[str]:
    bound = upper_bound(found.false_alarms, found.successes)
    return [
        name,
        f"{found.false_alarms}/{found.successes}",
        f"{100 * bound:.0f} %",
        f"{found.found}/{found.failures}",
        f"{found.timely}/{found.failures}",
        "-" if found.lead is None else f"{100 * found.lead:.0f} %",
    ]
