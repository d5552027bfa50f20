"""`zetta skills diagnose`: what failures have in common, since when, and the evidence for it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import MANY_WORLDS, find_simulator
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.replay_critics import logged_episodes
from zetta.runtime.core import Env
from zetta.runtime.episode_log import HEADER, EpisodeHeader, LoggedEpisode, read_episode
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json

if TYPE_CHECKING:
    from zetta.skills.evolve.diagnosis import ClusterDiagnosis, Diagnosis, FailureDiagnosis
    from zetta.skills.evolve.observed import ObservedEpisode

STRIP = "strip.png"
"""The strip that a log may hold."""
COLUMNS = ("cluster", "failures", "first missing", "diverges at", "away in", "stable", "medoid")


def command(
    logs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of episodes.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the diagnosis, and evidence of each failure.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option(help="With --out: draw each failure around its divergence.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the draws that test the groups.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Group the failures of logged episodes by what went wrong first; reads simulator truth.

    Logs of shadow runs will do. Successes of the same tasks must be among them.
    """
    from zetta.skills.evolve.diagnosis import diagnose
    from zetta.skills.evolve.failure_evidence import check_picture_folder

    if seed < 0:
        raise ConfigError(f"got --seed {seed}; a seed is 0 or greater")
    if out is not None and pictures:
        check_picture_folder(out)
    episodes, errors = _read(logs)
    with output.progress("diagnosis", len(episodes)) as advance:
        diagnosis = diagnose(episodes, errors, seed, lambda count: advance(count, ""))
    folder = None if out is None else output.run_folder("diagnosis", out)
    if folder is not None:
        _write(folder, diagnosis, pictures)
    if as_json:
        where = None if folder is None else str(folder)
        output.emit({**to_json(diagnosis), "pooled": diagnosis.pooled, "out": where})
        return
    output.answer(_page(diagnosis))
    if folder is not None:
        output.answer(f"look at {folder}")


def _read(logs: Sequence[Path]) -> tuple[list[ObservedEpisode], list[str]]:
    """Return the episodes that were carried out, and the names of those that were not."""
    from zetta.skills.evolve.observed import observe_log

    count = sum(1 for folder in logs for _ in folder.rglob(HEADER))
    episodes, errors, policies = [], [], set()
    with output.progress("reading logs", count) as advance:
        for number, (path, logged) in enumerate(logged_episodes(logs), start=1):
            if not logged.header.complete:
                errors.append(str(path))
            elif not logged.header.result.success_at_reset:
                episodes.append(observe_log(path, logged))
                policies.add(logged.header.run.policy_name)
            advance(number, "")
    if len(policies) > 1:
        output.note(
            f"note: these logs are of {len(policies)} policies ({', '.join(sorted(policies))}); "
            "failures are compared with successes of any of them"
        )
    if not episodes:
        raise ConfigError(
            f"all {count} episodes ended in errors of the machinery, which say nothing about the "
            "policy; run them again"
        )
    return episodes, errors


# ---------------------------------------------------------------------------- files


def _write(folder: Path, diagnosis: Diagnosis, pictures: bool) -> None:
    """Write the diagnosis, and for each failure its signals and its strip."""
    from zetta.skills.evolve.failure_evidence import evidence_of

    _write_json(folder / "diagnosis.json", diagnosis)
    failures = folder / "failures"
    failures.mkdir()
    undrawn = 0
    with _Worlds.opened() as worlds, output.progress("evidence", len(diagnosis.failures)) as told:
        for number, failure in enumerate(diagnosis.failures):
            logged = read_episode(Path(failure.episode))
            _write_json(failures / f"{number:03d}.json", evidence_of(failure, logged))
            if pictures:
                undrawn += not _draw(failures / f"{number:03d}.png", failure, logged, worlds)
            told(number + 1, "")
    if undrawn:
        output.note(
            f"note: {undrawn} failures have no picture: this process draws one task only; "
            "diagnose the logs of one task to see them"
        )


def _draw(picture: Path, failure: FailureDiagnosis, logged: LoggedEpisode, worlds: _Worlds) -> bool:
    """Draw a failure again, or take the strip of its log; say whether there is a picture."""
    from zetta.skills.evolve.failure_evidence import write_failure_strip

    kept = Path(failure.episode) / STRIP
    env = None if logged.poses is None else worlds.showing(logged.header)
    if env is not None:
        write_failure_strip(picture, env, failure, logged)
    elif kept.exists():
        shutil.copyfile(kept, picture)
    return picture.exists()


def _write_json(path: Path, record: object) -> None:
    text = json.dumps(to_json(record), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


class _Worlds:
    """The environment that logged moments are drawn in; one task for most simulators."""

    def __init__(self) -> None:
        self._env: Env | None = None
        self._key: tuple[str, str, int, str] | None = None

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[_Worlds]:
        """Close the environment in the end."""
        worlds = cls()
        try:
            yield worlds
        finally:
            worlds._close()

    def showing(self, header: EpisodeHeader) -> Env | None:
        """Return an environment that holds an episode's scene; None where another task is held."""
        task = header.scene.task
        key = (header.sim, task.suite, task.index, header.run.render)
        if self._key is not None and key != self._key:
            if not {header.sim, self._key[0]} <= MANY_WORLDS:
                return None
            self._close()
        if self._env is None:
            if self._key is None:
                output.note(choose_graphics(header.sim))
            simulator = find_simulator(header.sim)
            self._env = simulator.make(task.suite, task.index, header.run.render)
            self._key = key
        self._env.reset(header.scene)
        return self._env

    def _close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None


# ---------------------------------------------------------------------------- for people


def _page(diagnosis: Diagnosis) -> str:
    lines = [
        f"{len(diagnosis.failures)} failures against {diagnosis.successes} successes; "
        f"{len(diagnosis.errors)} errors of the machinery apart"
    ]
    for band in diagnosis.bands:
        lines.append(
            f"  {', '.join(band.milestones)}: a success diverges with a chance of at most "
            f"{100.0 * band.rate:.0f} % ({band.left} of these {band.successes} do); groups of "
            f"failures drawn again agree by {band.agreement:.2f} (adjusted Rand index)"
        )
    if diagnosis.left_out:
        lines.append(f"  {len(diagnosis.left_out)} failures have too few successes to compare with")
    if diagnosis.clusters:
        lines += ["", output.table(COLUMNS, [_cells(each) for each in diagnosis.clusters]), ""]
        lines += [_unlike(each) for each in diagnosis.clusters]
    lines.append(
        f"{diagnosis.pooled} failures are pooled: fewer than five are alike, or the group does not "
        "come back when failures are drawn again"
    )
    return "\n".join(lines)


def _cells(cluster: ClusterDiagnosis) -> list[str]:
    return [
        str(cluster.index),
        str(cluster.size),
        cluster.missing,
        "-" if math.isnan(cluster.divergence) else f"{cluster.divergence:.0f}",
        cluster.away_in or "-",
        f"{cluster.recovered:.2f}",
        cluster.medoid,
    ]


def _unlike(cluster: ClusterDiagnosis) -> str:
    """Return what a group differs in, in signals where the log holds them."""
    shown = (cluster.signals or cluster.truth)[:4]
    said = ", ".join(f"{d.name} {d.cluster:+.1f}" for d in shown)
    return f"cluster {cluster.index} against successes (in their spreads): {said}"
