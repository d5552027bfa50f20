"""The author `search`: readable critics and small recoveries, tuned on logs; no model, no network.

It combines what `critic_templates` and `recovery_programs` hold, sets the numbers so that they pay
on the logged episodes, and hands back the pair that pays most on episodes that did not set them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from zetta.critics.language import analyse_critic
from zetta.critics.parameters import Parameter
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, is_resubmission
from zetta.skills.evolve.critic_arrays import ArrayProgram, Flags, Ticks, corpus_of
from zetta.skills.evolve.critic_templates import TEMPLATES, CriticTemplate
from zetta.skills.evolve.critic_tuning import OpenCritic, Sample, Tuned, screen, tune
from zetta.skills.evolve.payoffs import (
    PayoffTable,
    Trials,
    driven_by_policy,
    payoff_table,
    split_flags,
)
from zetta.skills.evolve.recovery_programs import PROGRAMS, RecoveryProgram, statements_of
from zetta.skills.evolve.skill_texts import Page, package_files

FINALISTS: Final = 8
"""Pairs whose numbers are tuned."""
STATEMENT_COST: Final = 0.001
"""What a statement takes off the pay-off."""

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
        if not search.programs:
            return NoDraft("no recovery program was tried in branches of these failures", cost())
        for pair, tuned in search.ranked():
            draft = _draft(pair, tuned, brief)
            if not is_resubmission(draft, brief.rejected):
                return replace(draft, cost=cost())
        return NoDraft("no critic and recovery pay on episodes that did not set them", cost())


class _Search:
    """One look for the best pair."""

    def __init__(self, brief: Brief, advance: Advance) -> None:
        self._brief, self._advance = brief, advance
        self._episodes = (*brief.failures, *brief.other_failures, *brief.successes)
        self._corpus = corpus_of(self._episodes)
        self._trials = Trials(brief, self._episodes)
        self._rng = np.random.default_rng(brief.seed)
        tried = [PROGRAMS[name] for name in self._trials.programs if name in PROGRAMS]
        self.programs = tuple(program for program in tried if self._trials.rate(program.name) > 0)

    def ranked(self) -> list[tuple[_Pair, Tuned]]:
        """Return pairs that pay, the best one first."""
        pairs = sorted(self._pairs(), key=lambda pair: (-pair.screened, pair.named))
        finalists = [pair for pair in pairs if pair.screened > 0.0][:FINALISTS]
        halves = self._halves()
        found = []
        for k, pair in enumerate(finalists):
            tuned = tune(
                pair.critic, pair.table, pair.startable, halves, pair.samples, self._brief.seed
            )
            found.append((pair, tuned))
            self._advance(len(TEMPLATES) + k + 1, len(TEMPLATES) + len(finalists))
        found = [(p, t) for p, t in found if _net(p, t) > 0.0 and t.fitted > 0.0]
        return sorted(found, key=lambda each: (-_net(*each), each[0].named))

    def _pairs(self) -> list[_Pair]:
        drives = driven_by_policy(self._corpus)
        ready = []
        for program in self.programs:
            runs = ArrayProgram(program.text, "precondition", self._corpus)
            startable = drives & runs.fires({p.name: p.default for p in program.parameters})
            table = payoff_table(
                program.name, self._trials, self._episodes, len(self._brief.failures),
                split_flags(startable, self._corpus),
            )  # fmt: skip
            ready.append((program, startable, table))
        pairs = []
        templates = [t for t in TEMPLATES if readable(t, self._brief.sensing)]
        for k, template in enumerate(templates):
            pairs += self._of_template(template, ready)
            self._advance(k + 1, len(TEMPLATES) + FINALISTS)
        return pairs

    def _of_template(
        self,
        template: CriticTemplate,
        ready: Sequence[tuple[RecoveryProgram, Flags, PayoffTable]],
    ) -> list[_Pair]:
        program = ArrayProgram(template.text("new-skill"), "check", self._corpus)
        critic = OpenCritic(program, template.parameters, self._corpus)
        everybody = np.arange(len(self._episodes))
        pairs = []
        for recovery, startable, table in ready:
            if self._refused(template, recovery):
                continue
            samples = screen(critic, startable, np.random.default_rng(self._brief.seed))
            best = max(table.payoff(sample.alarms, everybody) for sample in samples)
            pairs.append(_Pair(template, recovery, critic, table, startable, samples, best))
        return pairs

    def _refused(self, template: CriticTemplate, program: RecoveryProgram) -> bool:
        key = hypothesis_key(template.name, program.name)
        known = any(each.hypothesis.startswith(key) for each in self._brief.rejected)
        written = statements_of(template.text("new-skill"), program.text)
        return known or written > self._brief.edits

    def _halves(self) -> tuple[Ticks, Ticks]:
        """Part the episodes of each kind into two halves, by lot."""
        sizes = (
            len(self._brief.failures), len(self._brief.other_failures), len(self._brief.successes),
        )  # fmt: skip
        halves: tuple[list[int], list[int]] = ([], [])
        first = 0
        for size in sizes:
            order = first + self._rng.permutation(size)
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


def _net(pair: _Pair, tuned: Tuned) -> float:
    written = statements_of(pair.template.text("new-skill"), pair.program.text)
    return tuned.held_out - STATEMENT_COST * written


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

