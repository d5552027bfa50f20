"""From specs to an answer: runs episodes, keeps what they came to, and tells it.

`zetta run` and `zetta drive` differ in what they are told, not in how episodes are carried out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from zetta.primitives.agent.records import Agent
from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_scene
from zetta.runtime.cli.deploy import bundle_of
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.replay_text import kernel_line
from zetta.runtime.cli.run_episodes import (
    RESULT,
    EpisodeReport,
    Facts,
    Manner,
    run_here,
    run_in_children,
    tasks_of,
)
from zetta.runtime.cli.run_plan import DEFAULTS, Wishes
from zetta.runtime.cli.vouched import warn_unsigned
from zetta.runtime.core import RunSpec, Simulator
from zetta.runtime.registry import is_arm
from zetta.runtime.reporting.wording import counted
from zetta.runtime.success_rates import wilson


@dataclass(slots=True)
class Answer:
    """The answer as it grows; written to the run folder after every episode."""

    folder: Path
    spec: RunSpec
    command: str
    reports: list[EpisodeReport] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    planned: int = 0
    """Episodes that are to be run."""

    def keep(self, report: EpisodeReport, facts: Facts) -> None:
        """Add one episode, or replace the last by what is now known of it, and save."""
        if self.reports and report.log is not None and self.reports[-1].log == report.log:
            self.reports.pop()
        self.reports.append(report)
        if facts.versions:
            self.facts = facts
        temporary = self.folder / f".{RESULT}.part"
        temporary.write_text(json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        temporary.replace(self.folder / RESULT)

    @property
    def scored(self) -> list[EpisodeReport]:
        """Episodes that were carried out; errors are no score."""
        return [report for report in self.reports if report.error is None]

    def to_json(self) -> Mapping[str, Json]:
        """Return the contract object."""
        scored = self.scored
        successes = sum(report.success for report in scored)
        episodes: list[Json] = [asdict(report) for report in self.reports]
        return {
            "episodes": episodes,
            "successes": successes,
            "n": len(scored),
            "errors": len(self.reports) - len(scored),
            "planned": max(self.planned, len(self.reports)),
            "interval": list(wilson(successes, len(scored))),
            "sim": self.spec.sim,
            "policy": dict(self.facts.policy),
            "bundle": self.facts.bundle or self.spec.bundle,
            "render_profile": self.facts.render_profile,
            "sensing": self.spec.sensing,
            "oracle": self.spec.sensing == "oracle",
            "options": dict(self.spec.options),
            "versions": dict(self.facts.versions),
            "command": self.command,
            "folder": str(self.folder),
        }


def carry_out(
    specs: Sequence[RunSpec],
    manner: Manner,
    simulator: Simulator,
    out: Path | None,
    verb: str = "run",
    agent: Agent | None = None,
    as_json: bool = False,
) -> Answer:
    """Run every episode of a plan and return the answer, which is on disk as well.

    `agent` is the one that the specs of one task name, where somebody has made it already. With
    `as_json` what is finished is printed as JSON when the user interrupts; whoever calls prints
    the whole answer.

    Raises:
        ConfigError, SpecMismatch, InfraError: an episode could not even be put together.
    """
    first = specs[0]
    typed = output.command_line()
    answer = Answer(output.run_folder(verb, out), first, typed, planned=len(specs))
    output.note(_announcement(specs, simulator))
    warn_unsigned(first, bundle_of(first.bundle))
    output.note(choose_graphics(first.sim))
    try:
        if len(list(tasks_of(specs))) == 1:
            run_here(specs, answer.folder, manner, typed, answer.keep, agent)
        else:
            run_in_children(
                specs, answer.folder, lambda spec: _arguments(spec, specs, manner), answer.keep
            )
    except KeyboardInterrupt:
        finished = counted(len(answer.reports), "finished episode")
        output.note(f"stopped; {finished} can be found in {answer.folder}")
        if as_json:
            output.emit({**answer.to_json(), "interrupted": True})
        raise
    return answer


def _announcement(specs: Sequence[RunSpec], simulator: Simulator) -> str:
    first = specs[0]
    tasks = list(tasks_of(specs))
    what = f"{first.suite} task {first.task}" if len(tasks) == 1 else f"{len(tasks)} tasks"
    instruction = f": {find_scene(simulator, first).task.instruction}" if len(tasks) == 1 else ""
    oracle = " - ORACLE, it may read simulator truth" if first.sensing == "oracle" else ""
    wait = DEFAULTS[first.sim].building if first.sim in DEFAULTS else "a while"
    return (
        f"{first.sim}: {what}{instruction}\n"
        f"{counted(len(specs), 'episode')} with {first.policy}, "
        f"bundle {first.bundle}, sensing {first.sensing}{oracle}, render {first.render}\n"
        f"building the world takes {wait}"
    )


def _arguments(spec: RunSpec, specs: Sequence[RunSpec], manner: Manner) -> list[str]:
    """Return the options with which a child runs the task of `spec`."""
    count = sum((s.suite, s.task) == (spec.suite, spec.task) for s in specs)
    options = {
        "--sim": spec.sim,
        "--suite": spec.suite,
        "--task": str(spec.task),
        "--init": str(spec.layout),
        "--seed": str(spec.seed),
        "--episodes": str(count),
        "--policy": spec.policy,
        "--policy-seed": str(spec.policy_seed),
        "--render": spec.render,
        "--sensing": spec.sensing,
        "--bundle": spec.bundle,
    }
    arguments = [part for pair in options.items() for part in pair]
    for name, value in spec.options.items():
        if name != "signals" or not manner.signals:
            arguments += ["--option", f"{name}={value}"]
    flags = {
        "--video": manner.video,
        "--no-video": not manner.video,
        "--no-strip": not manner.strip,
        "--realtime": manner.realtime,
        "--signals": manner.signals,
    }
    return [*arguments, *(flag for flag, wanted in flags.items() if wanted)]


def verification_lines(reports: Sequence[EpisodeReport], arm: bool = False) -> list[str]:
    """Return what the evidence says of drives beside what the simulator says; an arm is silent."""
    verified = [report for report in reports if report.verified]
    unsure = sum(report.verified is None for report in reports)
    right = sum(report.success for report in verified)
    missed = sum(report.success and report.verified is False for report in reports)
    lines = [
        f"by the evidence of cameras and gripper: {len(verified)}/{len(reports)} done"
        + (f", {unsure} that it cannot tell" if unsure else "")
    ]
    if arm:
        return lines
    if verified:
        lines.append(f"the simulator agrees with {right} of these {len(verified)}")
    if missed:
        lines.append(f"the simulator counts {missed} as solved that the evidence denies")
    return lines


def tell(answer: Answer, wishes: Wishes) -> None:
    """Print the summary; the last line is where to look."""
    scored, reports = answer.scored, answer.reports
    successes = sum(report.success for report in scored)
    low, high = wilson(successes, len(scored))
    if len(reports) > 1:
        rows = [[report.name, report.verdict] for report in reports]
        output.answer(output.table(["episode", "outcome"], rows))
    errors = len(reports) - len(scored)
    output.answer(
        f"solved {successes}/{len(scored)} (95 % interval {100 * low:.0f}-{100 * high:.0f} %)"
        + (f", {errors} with errors and no score" if errors else "")
        + (" [oracle]" if answer.spec.sensing == "oracle" else "")
    )
    if wishes.only_sim and wishes.sim in DEFAULTS:
        output.answer("next:")
        for line in DEFAULTS[wishes.sim].next:
            output.answer(f"  {line}")
    judged, arm = [report for report in scored if report.agent], is_arm(wishes.sim)
    if judged:
        for line in verification_lines(judged, arm):
            output.answer(line)
    last = reports[-1]
    if arm and last.log is not None and (line := kernel_line(Path(last.log))):
        output.answer(line)
    if arm and scored:
        output.answer(
            "an arm does not know whether its task is done; who saw it says: zetta critics judge "
            f"{answer.folder}/episodes/* --success --by YOUR-NAME (or --failure)"
        )
    shown = last.video or last.strip if len(reports) == 1 else None
    output.answer(f"look at {shown or answer.folder}")
