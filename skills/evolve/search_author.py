"""The author `search`: readable critics and small recoveries, tuned on logs; no model, no network.

It combines what `critic_templates` and `recovery_programs` hold, sets the numbers so that they pay
on the logged episodes, and hands back the pair that pays most on episodes that did not set them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from zetta.critics.language import analyse_critic
from zetta.critics.parameters import Parameter
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, is_resubmission
from zetta.skills.evolve.critic_arrays import ArrayProgram, corpus_of
from zetta.skills.evolve.critic_templates import TEMPLATES, CriticTemplate
from zetta.skills.evolve.critic_trees import tree_templates
from zetta.skills.evolve.critic_tuning import OpenCritic, Sample, Tuned, screen, tune
from zetta.skills.evolve.draft_check import load_draft, replayed_alarms, with_windows
from zetta.skills.evolve.payoffs import (
    PayoffTable,
    Trials,
    driven_by_policy,
    payoff_table,
    split_flags,
)
from zetta.skills.evolve.recovery_programs import PROGRAMS, RecoveryProgram, statements_of
from zetta.skills.evolve.retuning import retuned_draft, retuned_skills
from zetta.skills.evolve.skill_texts import Page, package_files
from zetta.skills.evolve.window_arrays import Flags, Ticks
from zetta.skills.program import analyse_program

FINALISTS: Final = 8
"""Pairs whose numbers are tuned."""
STATEMENT_COST: Final = 0.001
"""What a statement takes off the pay-off."""
TREE_COST: Final = 0.03
"""What a tree pays for being scored on one half only, and for saying less than a template."""

Advance = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One critic and one recovery."""

    template: CriticTemplate
    program: RecoveryProgram
    critic: OpenCritic
    table: PayoffTable
    startable: Flags
    samples: tuple[Sample, ...]
    screened: float
    halves: tuple[Ticks, Ticks]
    cross: bool
    """Whether either half may set the numbers; a tree has seen the first one."""

    @property
    def named(self) -> str:
        return hypothesis_key(self.template.name, self.program.name)


class SearchAuthor:
    """Proposes what paid on the logs; an `Author`."""

    name = "search"

    def __init__(self, advance: Advance | None = None) -> None:
        """`advance` is told how many critics are looked at, and of how many."""
        self._advance = advance or (lambda done, total: None)

    def propose(self, brief: Brief) -> Draft | NoDraft:
        """Return the pair that pays most on episodes that did not set its numbers.

        Raises:
            ConfigError: the package `cmaes` is missing, or control rates differ.
        """
        began = time.process_time()

        def cost() -> Mapping[str, float]:
            return {"cpu_s": round(time.process_time() - began, 2)}

        if not brief.failures or not brief.successes:
            return NoDraft("there are no failures, or no successes, to learn from", cost())
        search = _Search(brief, self._advance)
        if not search.tried:
            return NoDraft("no recovery helped in branches of these failures", cost())
        for draft, alarms in search.drafts():
            if is_resubmission(draft, brief.rejected):
                continue
            package = load_draft(draft)
            # What was tuned must be what the real critic says.
            if np.array_equal(replayed_alarms(package, search.episodes), alarms):
                draft = with_windows(draft, package, search.episodes, alarms)
                return replace(draft, cost=cost())
        return NoDraft("no critic and recovery pay on episodes that did not set them", cost())


class _Search:
    """One look for the best pair."""

    def __init__(self, brief: Brief, advance: Advance) -> None:
        self._brief, self._advance = brief, advance
        self.episodes = (*brief.failures, *brief.other_failures, *brief.successes)
        self._corpus = corpus_of(self.episodes)
        self._trials = Trials(brief, self.episodes)
        self._halves = self._two_halves(np.random.default_rng(brief.seed))
        self.tried = [name for name in self._trials.programs if self._trials.rate(name) > 0.0]
        known = [PROGRAMS[name] for name in self.tried if name in PROGRAMS]
        self.programs = tuple(p for p in known if runnable(p, brief.sensing))

    def drafts(self) -> Iterator[tuple[Draft, Ticks]]:
        """Yield drafts that pay, the best one first, and when each starts. Shape (E,)."""
        new = self.ranked()
        better = retuned_skills(
            self._brief, self._trials, self._corpus, self.episodes, self._halves
        )
        while new or better:
            if better and (not new or better[0].gain > _net(*new[0])):
                one = better.pop(0)
                draft = retuned_draft(one)
                if draft is not None and not _named(draft.hypothesis, self._brief):
                    yield draft, one.tuned.alarms
            else:
                pair, tuned = new.pop(0)
                yield _draft(pair, tuned, self._brief), tuned.alarms

    def ranked(self) -> list[tuple[_Pair, Tuned]]:
        """Return pairs that pay, the best one first."""
        pairs = sorted(self._pairs(), key=lambda pair: (-pair.screened, pair.named))
        finalists = [pair for pair in pairs if pair.screened > 0.0][:FINALISTS]
        found = []
        for k, pair in enumerate(finalists):
            tuned = tune(
                pair.critic, pair.table, pair.startable, pair.halves, pair.samples,
                self._brief.seed, pair.cross,
            )  # fmt: skip
            found.append((pair, tuned))
            self._advance(len(pairs) + k + 1, len(pairs) + len(finalists))
        found = [(p, t) for p, t in found if _net(p, t) > 0.0 and t.fitted > 0.0]
        return sorted(found, key=lambda each: (-_net(*each), each[0].named))

    def _pairs(self) -> list[_Pair]:
        drives = driven_by_policy(self._corpus)
        ready = []
        for program in self.programs:
            runs = ArrayProgram(program.text, "precondition", self._corpus)
            startable = drives & runs.fires({p.name: p.default for p in program.parameters})
            table = payoff_table(
                program.name, self._trials, self.episodes, len(self._brief.failures),
                split_flags(startable, self._corpus),
            )  # fmt: skip
            ready.append((program, startable, table))
        pairs = []
        for k, (template, halves, cross) in enumerate(templates := list(self._templates())):
            pairs += self._of_template(template, halves, cross, ready)
            self._advance(k * len(ready), len(templates) * len(ready) + FINALISTS)
        return pairs

    def _templates(self) -> Iterator[tuple[CriticTemplate, tuple[Ticks, Ticks], bool]]:
        """Yield critics, what sets and scores their numbers, and whether that may be turned."""
        one, other = self._halves
        sensing = self._brief.sensing
        for template in TEMPLATES:
            if readable(template, sensing):
                yield template, (one, other), True
        for halves in ((one, other), (other, one)):
            for tree in tree_templates(
                self._corpus, self.episodes, len(self._brief.failures), halves[0], sensing,
                self._brief.seed,
            ):  # fmt: skip
                yield tree, halves, False

    def _of_template(
        self,
        template: CriticTemplate,
        halves: tuple[Ticks, Ticks],
        cross: bool,
        ready: Sequence[tuple[RecoveryProgram, Flags, PayoffTable]],
    ) -> list[_Pair]:
        program = ArrayProgram(template.text("new-skill"), "check", self._corpus)
        critic = OpenCritic(program, template.parameters, self._corpus)
        everybody = np.arange(len(self.episodes))
        pairs = []
        for recovery, startable, table in ready:
            if self._refused(template, recovery):
                continue
            samples = screen(critic, startable, np.random.default_rng(self._brief.seed))
            best = max(table.payoff(sample.alarms, everybody) for sample in samples)
            pairs.append(
                _Pair(template, recovery, critic, table, startable, samples, best, halves, cross)
            )
        return pairs

    def _refused(self, template: CriticTemplate, program: RecoveryProgram) -> bool:
        key = hypothesis_key(template.name, program.name)
        known = _named(key, self._brief)
        written = statements_of(template.text("new-skill"), program.text)
        return known or written > self._brief.edits

    def _two_halves(self, rng: np.random.Generator) -> tuple[Ticks, Ticks]:
        """Part the episodes of each kind into two halves, by lot."""
        sizes = (
            len(self._brief.failures), len(self._brief.other_failures), len(self._brief.successes),
        )  # fmt: skip
        halves: tuple[list[int], list[int]] = ([], [])
        first = 0
        for size in sizes:
            order = first + rng.permutation(size)
            halves[0].extend(order[::2])
            halves[1].extend(order[1::2])
            first += size
        return np.array(halves[0], dtype=np.int64), np.array(halves[1], dtype=np.int64)


def hypothesis_key(template: str, program: str) -> str:
    """Return how a hypothesis of this critic and this recovery begins."""
    return f"{template}, then {program}: "


def readable(template: CriticTemplate, sensing: Sensing) -> bool:
    """Say whether a template reads nothing above a sensing level."""
    checked = analyse_critic(
        template.text("new-skill"), template.name, SIGNALS, {p.name: p for p in template.parameters}
    )
    if isinstance(checked, tuple):
        raise AssertionError(f"the template {template.name} is refused: {checked[0]}")
    return SENSING_LEVELS.index(checked.level) <= SENSING_LEVELS.index(sensing)


def runnable(program: RecoveryProgram, sensing: Sensing) -> bool:
    """Say whether a recovery reads and runs nothing above a sensing level."""
    parameters = {p.name: p for p in program.parameters}
    checked = analyse_program(program.text, program.name, SIGNALS, parameters)
    if isinstance(checked, tuple):
        raise AssertionError(f"the program {program.name} is refused: {checked[0]}")
    return SENSING_LEVELS.index(checked.level) <= SENSING_LEVELS.index(sensing)


def _named(hypothesis: str, brief: Brief) -> bool:
    """Say whether a rejected hypothesis begins as this one does, up to its colon."""
    key = hypothesis.partition(": ")[0] + ": "
    return any(each.hypothesis.startswith(key) for each in brief.rejected)


def _net(pair: _Pair, tuned: Tuned) -> float:
    written = statements_of(pair.template.text("new-skill"), pair.program.text)
    return tuned.held_out - STATEMENT_COST * written - (0.0 if pair.cross else TREE_COST)


def _draft(pair: _Pair, tuned: Tuned, brief: Brief) -> Draft:
    template, program = pair.template, pair.program
    name = _free_name(f"{template.name}-{program.name}", brief)
    roles = tuple(dict.fromkeys((*template.roles, *program.roles)))
    set_to: list[Parameter] = [
        replace(p, default=tuned.values[p.name]) for p in template.parameters
    ]
    page = Page(
        name=name,
        description=f"{template.doc} Then {program.doc}.",
        applies=f"{template.doc[0].lower()}{template.doc[1:-1]}",
        roles=roles,
        uses=tuple(role for role in program.uses if role not in roles),
        max_ticks=program.max_ticks,
        text=f"{template.doc} The recovery: {program.doc}. The numbers were set by a search on "
        f"logged episodes: {len(brief.failures)} failures of one kind and "
        f"{len(brief.successes)} successes.",
    )
    files = package_files(page, template.text(name), program.text, [*set_to, *program.parameters])
    hypothesis = (
        f"{hypothesis_key(template.name, program.name)}{template.doc} To {program.doc} at that "
        f"moment pays {tuned.held_out:.2f} for each failure on episodes that did not set the "
        "numbers."
    )
    return Draft(name, files, hypothesis)


def _free_name(stem: str, brief: Brief) -> str:
    taken = {package.name for package in brief.parent}
    name, k = stem, 1
    while name in taken:
        k += 1
        name = f"{stem}-{k}"
    return name
