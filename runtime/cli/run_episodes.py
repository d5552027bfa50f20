"""Carries out the episodes of `zetta run`: one process for each task, a log for each episode."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from zetta.primitives.agent.drive_log import summary_of
from zetta.primitives.agent.records import Agent
from zetta.runtime.cli import output
from zetta.runtime.cli.agents import agent_name
from zetta.runtime.cli.assemble import Assembled, Assembler
from zetta.runtime.cli.live import LiveLine
from zetta.runtime.cli.live_signals import LiveSignals
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.episode_log import read_episode
from zetta.runtime.errors import ZettaError
from zetta.runtime.pacing import MonotonicClock
from zetta.runtime.pictures import (
    choose_cameras,
    moments,
    strip_moments,
    write_strip,
    write_video,
)
from zetta.runtime.records import to_json
from zetta.runtime.reporting.wording import counted

EPISODES: Final = "episodes"
RESULT: Final = "run.json"
"""The answer so far, saved after every episode."""
STRIP, VIDEO = "strip.png", "video.mp4"
VIDEO_EVERY: Final = 2
"""Ticks between two frames of a film: half the frames are half the wait."""


@dataclass(frozen=True, slots=True)
class EpisodeReport:
    """One entry of `episodes` in the answer of `zetta run`."""

    suite: str
    task: int
    init: int | str
    """The init's number, or `sampled`."""
    seed: int
    policy_seed: int
    instruction: str = ""
    success: bool = False
    success_at_reset: bool = False
    reason: str = "error"
    ticks: int = 0
    sources: Mapping[str, int] = field(default_factory=dict)
    interventions: int = 0
    recoveries: Sequence[Mapping[str, Any]] = ()
    """What skills did, in order."""
    inferences: int = 0
    late_ticks: int = 0
    held_ticks: int = 0
    """Ticks at which the robot was held because whoever drives was late."""
    wall_s: float = 0.0
    scene_digest: str = ""
    log: str | None = None
    strip: str | None = None
    video: str | None = None
    detail: str = ""
    error: str | None = None
    """Why the episode could not be carried out; such an episode is no score."""
    first_success: int | None = None
    """Ticks after which the goal held for the first time; None where it never did."""
    success_at_end: bool = False
    agent: str = ""
    """Who drove by commands; empty where nobody did. What follows is about such a drive."""
    turns: int = 0
    commands: int = 0
    """Commands that were carried out."""
    verified: bool | None = None
    """What the evidence says in the end, without simulator truth; None where it cannot tell."""
    ended: str = ""
    """Why the drive was over."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Requests, tokens, dollars and seconds of thinking."""

    @property
    def name(self) -> str:
        """Name such as `libero_object task 0 init 3`."""
        scene = f"init {self.init}" if self.init != "sampled" else f"sampled seed {self.seed}"
        return f"{self.suite} task {self.task} {scene}"

    @property
    def verdict(self) -> str:
        """What a person wants to know of it, in a few words."""
        if self.error is not None:
            return f"error, no score: {self.error}"
        spent = f"{self.ticks} ticks, {self.wall_s:.1f} s"
        if self.recoveries:
            spent += f"; {_helped(self.recoveries)}"
        if self.success:
            return f"solved ({spent})"
        why = self.detail or {"truncated": "out of ticks"}.get(self.reason, self.reason)
        return f"not solved: {why} ({spent})"


def _helped(recoveries: Sequence[Mapping[str, Any]]) -> str:
    """Say which skills had the robot and for how long, or in shadow mode would have had it."""
    if any(each["ending"] == "shadow" for each in recoveries):
        return "would have called " + ", ".join(str(each["skill"]) for each in recoveries)
    drove = Counter[str]()
    for each in recoveries:
        drove[str(each["skill"])] += int(each["ticks"])
    each_one = ", ".join(f"{skill} {ticks}" for skill, ticks in drove.items())
    return f"skills drove {drove.total()}: {each_one}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the answer says once for all its episodes."""

    versions: Mapping[str, str] = field(default_factory=dict)
    render_profile: str = ""
    bundle: str = ""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Name, digest and seed."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How episodes are run and what is kept of them."""

    video: bool = False
    strip: bool = True
    realtime: bool = False
    signals: bool = False
    """Show the signals while an episode runs."""


Keep = Callable[[EpisodeReport, Facts], None]
"""Called after every episode, so that nothing is lost with what comes later; again, with the same
log, when its pictures are drawn."""


def run_here(
    specs: Sequence[RunSpec],
    folder: Path,
    manner: Manner,
    command: str,
    keep: Keep,
    agent: Agent | None = None,
) -> None:
    """Run episodes of one task in this process.

    An error while an episode runs is recorded with it and the next one is tried. `agent` is the one
    that the specs name, where somebody has made it already.

    Raises:
        ConfigError, SpecMismatch, InfraError: an episode could not even be put together.
    """
    assembler = Assembler(command)
    try:
        for i, spec in enumerate(specs):
            log = folder / EPISODES / f"{i:03d}"
            label = f"episode {i + 1}/{len(specs)}"
            with LiveSignals(label) if manner.signals else LiveLine(label) as line:
                clock = MonotonicClock() if manner.realtime else None
                assembled = assembler.assemble(spec, log, [line], clock, agent=agent)
                report = _run_one(spec, assembled, log)
            facts = facts_of(spec, assembled)
            keep(report, facts)
            pictured = _with_pictures(report, assembled, log, manner, f"{i + 1}/{len(specs)}")
            output.note(f"{label}: {report.name}: {report.verdict}")
            if pictured != report:
                keep(pictured, facts)
    finally:
        assembler.close()


def facts_of(spec: RunSpec, assembled: Assembled) -> Facts:
    """Return what the answer says of an episode's parts."""
    policy = assembled.facts.policy
    return Facts(
        versions=assembled.facts.versions,
        render_profile=assembled.env.spec.render_profile,
        bundle=assembled.facts.bundle,
        policy={"name": spec.policy, "digest": "" if policy is None else policy.digest},
    )


def blank_report(spec: RunSpec, error: str | None = None) -> EpisodeReport:
    """Return the report of an episode of which nothing is known yet."""
    init = spec.layout.k if isinstance(spec.layout, Init) else "sampled"
    return EpisodeReport(spec.suite, spec.task, init, spec.seed, spec.policy_seed, error=error)


def _run_one(spec: RunSpec, assembled: Assembled, log: Path) -> EpisodeReport:
    start = time.perf_counter()
    error = None
    try:
        assembled.episode.run()
    except ZettaError as failure:
        error = f"{type(failure).__name__}: {failure}"
    result = assembled.episode.result
    known = asdict(blank_report(spec, error))
    known |= {
        "instruction": assembled.scene.task.instruction,
        "wall_s": time.perf_counter() - start,
        "log": str(log) if log.exists() else None,
    }
    if result is not None:
        same = ("success", "success_at_reset", "reason", "ticks", "interventions", "inferences")
        told = ("scene_digest", "detail", "wall_s", "first_success", "success_at_end")
        for name in (*same, *told, "late_ticks", "held_ticks"):
            known[name] = getattr(result, name)
        known["sources"] = dict(result.sources)
        known["recoveries"] = to_json(result.recoveries)
    if assembled.drive is not None:
        summary = summary_of(assembled.drive, agent_name(spec), "")
        for name in ("agent", "turns", "commands", "verified", "ended"):
            known[name] = getattr(summary, name)
        known["spent"] = asdict(summary.spent)
    return EpisodeReport(**known)


def _with_pictures(
    report: EpisodeReport, assembled: Assembled, log: Path, manner: Manner, which: str
) -> EpisodeReport:
    """Draw what was asked for; a picture that fails is said and costs the episode nothing.

    `which` is the episode's number among all, such as 2/5.
    """
    drawn: dict[str, str] = {}
    if report.log is None or report.ticks == 0:
        return report
    try:
        record = read_episode(log)
        if record.poses is None:
            return report
        env, cameras = assembled.env, choose_cameras(assembled.env.spec)
        if manner.strip:
            columns = len(strip_moments(record))
            with output.progress(f"drawing strip {which}", columns) as advance:
                write_strip(log / STRIP, env, record, cameras, advance=lambda n: advance(n, ""))
            drawn["strip"] = str(log / STRIP)
        if manner.video:
            frames = len(moments(record, VIDEO_EVERY))
            with output.progress("video", frames) as advance:
                write_video(
                    log / VIDEO, env, record, cameras, VIDEO_EVERY, lambda n: advance(n, "")
                )
            drawn["video"] = str(log / VIDEO)
    except ZettaError as error:
        output.note(f"no picture of this episode: {error}")
    return EpisodeReport(**{**asdict(report), **drawn})


# ------------------------------------------------------------------ several tasks


def run_in_children(
    specs: Sequence[RunSpec], folder: Path, arguments: Callable[[RunSpec], list[str]], keep: Keep
) -> None:
    """Run each task in a process of its own, because a process draws one environment only.

    Args:
        specs: the episodes, tasks in order.
        folder: the run folder; each task gets a folder of its own in it.
        arguments: the options of `zetta run` for the task of a spec, without `--out` and `--json`.
        keep: see `Keep`.
    """
    for (suite, task), group in groupby(specs, key=lambda spec: (spec.suite, spec.task)):
        episodes = list(group)
        output.note(
            f"{suite} task {task}: {counted(len(episodes), 'episode')} in a process of its own"
        )
        out = folder / f"{suite}-{task}"
        error = _ask_child([*arguments(episodes[0]), "--out", str(out), "--json"])
        answer = _read_answer(out)
        finished = answer.get("episodes", [])
        if finished:
            facts = Facts(**{name: answer[name] for name in Facts.__dataclass_fields__})
            for plain in finished:
                keep(EpisodeReport(**plain), facts)
        for spec in episodes[len(finished) :]:
            keep(blank_report(spec, error or "the process left it out"), Facts())


def _read_answer(folder: Path) -> Mapping[str, Any]:
    """Return what a child saved after its last finished episode, also when it died later."""
    try:
        answer: Any = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(answer)


def _ask_child(arguments: Sequence[str]) -> str | None:
    """Run `zetta run` in a child, whose progress stays on our stderr; return what went wrong."""
    command = [sys.executable, "-m", "zetta.runtime.cli.main", "run", *arguments]
    child = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        failure = json.loads(child.stdout).get("error", {})
    except ValueError:
        return f"the process ended with code {child.returncode} and no answer"
    return str(failure["message"]) if failure else None


def tasks_of(specs: Sequence[RunSpec]) -> Iterator[tuple[str, int]]:
    """Yield each task of the plan once, in order."""
    seen: dict[tuple[str, int], None] = {(spec.suite, spec.task): None for spec in specs}
    yield from seen
