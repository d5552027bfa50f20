"""What is said of a counterfactual, to people and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.counterfactual_records import Continuation, Exactness
from zetta.runtime.cli.counterfactual_request import BRANCHES, Branch, Question
from zetta.runtime.pictures import Film
from zetta.runtime.records import to_json
from zetta.runtime.skill_arbiter import SKILL_PREFIX

NOT_EVIDENCE: Final = (
    "a diagnosis of one scene, not evidence: zetta evolve and zetta eval measure a skill on scenes "
    "that nobody has looked at"
)
_EACH: Final = ["branch", "seed", "came to", "ticks", "who drove from there", "the log"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that came of it: `counterfactual.json`."""

    question: Question
    exactness: Exactness
    continuations: tuple[Continuation, ...]
    folder: Path
    film: Film | None = None
    pictures: tuple[str, ...] = ()
    command: str = ""

    def of(self, branch: Branch) -> list[Continuation]:
        """Return the continuations of a branch."""
        return [each for each in self.continuations if each.branch == branch]

    def name_of(self, branch: Branch) -> str:
        """Return what people read for a branch."""
        return branch if branch == "as it was" else f"with {self.question.skill}"

    @property
    def errors(self) -> int:
        """How many could not be run."""
        return sum(each.success is None for each in self.continuations)

    @property
    def as_logged(self) -> bool:
        """The branch without a change, with the episode's own seed, is the log to its end."""
        return self.of("as it was")[0].differs_at is None

    def to_json(self) -> dict[str, output.Json]:
        """Return all of it."""
        return {
            "question": to_json(self.question),
            "exactness": {**to_json(self.exactness), "equal": self.exactness.equal},
            "as_logged": self.as_logged,
            "branches": [_summary(self, branch) for branch in BRANCHES],
            "continuations": [to_json(each) for each in self.continuations],
            "pictures": list(self.pictures),
            "film": None if self.film is None else to_json(self.film),
            "evidence": False,
            "note": NOT_EVIDENCE,
            "out": str(self.folder),
            "command": self.command,
        }


def tell(answer: Answer) -> None:
    """Say what came of it, for people."""
    asked = answer.question
    columns = ["branch", "solved", "distinct runs", "ticks", f"the skill drove from {asked.tick}"]
    rows = []
    for branch in BRANCHES:
        summary = _summary(answer, branch)
        median, drove = summary["median_ticks"], summary["median_skill_ticks"]
        rows.append(
            [
                answer.name_of(branch),
                f"{summary['successes']}/{summary['n']}",
                str(summary["distinct"]),
                "-" if median is None else f"{median:g}",
                "-" if drove is None else f"{drove:g} ticks",
            ]
        )
    output.answer(output.table(columns, rows))
    output.answer("")
    output.answer(output.table(_EACH, [_cells(answer, each) for each in answer.continuations]))
    output.answer("")
    output.answer(f"sensing level {asked.sensing}; {answer.exactness}")
    if not answer.as_logged:
        output.answer(
            "the branch without a change is not the rest of the log: it shows what the policy does "
            f"now (it differs from tick {answer.of('as it was')[0].differs_at} on)"
        )
    for branch in BRANCHES:
        summary = _summary(answer, branch)
        if summary["distinct"] == 1 and summary["n"] != 1:
            output.answer(
                f"{branch}: all {summary['n']} runs are one and the same, because other seeds of "
                "the policy change nothing from there on; count them as one"
            )
    if answer.errors:
        output.answer(f"{answer.errors} could not be run and are no scores; the same again tries")
    output.answer(NOT_EVIDENCE)
    for path in (*answer.pictures, str(answer.folder)):
        output.answer(f"look at {path}")


def _summary(answer: Answer, branch: Branch) -> dict[str, output.Json]:
    every = answer.of(branch)
    scored = [each for each in every if each.success is not None]
    source = SKILL_PREFIX + answer.question.skill
    return {
        "branch": branch,
        "successes": sum(bool(each.success) for each in scored),
        "n": len(scored),
        "errors": len(every) - len(scored),
        "distinct": len({each.trace for each in scored}),
        "median_ticks": _median([each.ticks for each in scored]),
        "median_skill_ticks": _median([each.sources.get(source, 0) for each in scored]),
    }


def _median(numbers: Sequence[int]) -> float | None:
    return statistics.median(numbers) if numbers else None


def _cells(answer: Answer, each: Continuation) -> list[str]:
    came = {True: "solved", False: f"not solved ({each.reason})", None: f"error: {each.error}"}
    who = ", ".join(f"{source} {count}" for source, count in each.sources.items())
    same = "the same" if each.differs_at is None else f"differs from tick {each.differs_at}"
    return [
        answer.name_of(each.branch),
        str(each.seed),
        came[each.success],
        str(each.ticks),
        f"{who}; {each.ending}" if each.ending else who,
        "" if each.success is None else same,
    ]
