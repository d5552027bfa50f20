"""The static screen of a draft: everything that can be said before any rollout.

A draft is refused for its form (files, language, level, budgets), for being no single change, for
having been there before, and for what ties it to the scenes it was made from. Nothing of a draft
is run except its critic, on the windows that it brings along and on logged episodes.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.parameters import parse_parameters
from zetta.critics.values import MAX_WORK
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.runtime.signals import SIGNALS
from zetta.skills.compiled import run_windows
from zetta.skills.evolve.authors import Draft, Rejection, WatchedEpisode, is_resubmission
from zetta.skills.evolve.candidates import (
    NO_EVIDENCE,
    drafted,
    path_problems,
    read_parents,
    write_candidate,
    write_package,
)
from zetta.skills.evolve.leaks import (
    LeakRules,
    clock_problems,
    constant_problems,
    line_of_table,
    room_problems,
    secret_problems,
    table_problems,
)
from zetta.skills.evolve.permutation import permuted_triggers
from zetta.skills.package import SkillPackage, inspect
from zetta.skills.package_files import (
    CRITIC,
    EVIDENCE,
    PAGE,
    PARAMETERS,
    PROGRAMS,
    RECOVERY,
    REQUIRED,
)

_PROBLEM: Final = re.compile(r"[^:]+:\d+: ")


@dataclass(frozen=True, slots=True)
class ScreenRules:
    """What a draft may at most be."""

    max_ticks: int = 300
    """Of the page: how long one recovery may drive."""
    critic_work: int = MAX_WORK
    """Of one call of the critic, along its most laborious way."""
    leaks: LeakRules = field(default_factory=LeakRules)


@dataclass(frozen=True, slots=True)
class ScreenResult:
    """What the screen says about a draft."""

    passed: bool
    problems: tuple[str, ...]
    """One text each: `file:line: reason`, with files as inside the package."""
    level: Sensing | None
    """Of the package; None when it is none."""
    statements: int
    """That the draft writes; 0 for new numbers."""
    digest: str
    """Of the package, as `SkillPackage.digest`; empty when it is none."""
    change: str = ""
    """`new skill` or `new numbers`."""


def screen(
    draft: Draft,
    folder: Path,
    parent: Sequence[SkillPackage],
    rejected: Sequence[Rejection],
    sensing: Sensing,
    edits: int,
    *,
    secrets: Sequence[str | float] = (),
    episodes: Sequence[WatchedEpisode] = (),
    rules: ScreenRules | None = None,
) -> ScreenResult:
    """Judge a draft and, when it passes, write the candidate bundle into `folder`.

    Args:
        draft: what an author wrote.
        folder: of the candidate bundle; written only when the draft passes.
        parent: the skills that are deployed.
        rejected: drafts that did not get through before.
        sensing: level of the campaign.
        edits: statements that the draft may write.
        secrets: names, digests, seeds and constants of scenes.
        episodes: logs on which triggers must not depend on names or on where the world's origin
            is.
        rules: limits.

    Raises:
        ConfigError: `folder` holds something else, or cannot be written.
        ScreenError: a package of the parent is damaged.
    """
    rules = rules or ScreenRules()
    screening = _Screening(draft, parent, rules)
    screening.look(sensing, edits, rejected, secrets)
    if screening.package is not None and not screening.problems:
        screening.replay(episodes)
    if not screening.problems:
        write_candidate(draft, [package.folder for package in parent], folder)
    package = screening.package
    return ScreenResult(
        passed=not screening.problems,
        problems=tuple(dict.fromkeys(screening.problems)),
        level=None if package is None else package.level,
        statements=screening.statements,
        digest="" if package is None else package.digest,
        change="new numbers" if screening.old is not None else "new skill",
    )


def statements_of(*sources: str) -> int:
    """Return how many statements programs hold: those inside functions, and `ARMED_WHEN`.

    >>> statements_of('def check(w, p):\\n    if now(w.slip) > p.a:\\n        return ok()\\n')
    2
    """
    count = 0
    for source in sources:
        for node in ast.parse(source).body:
            match node:
                case ast.FunctionDef():
                    count += sum(isinstance(part, ast.stmt) for part in ast.walk(node)) - 1
                case ast.Assign(targets=[ast.Name(id="ARMED_WHEN")]):
                    count += 1
    return count


class _Screening:
    """Collects what is wrong with one draft."""

    def __init__(self, draft: Draft, parent: Sequence[SkillPackage], rules: ScreenRules) -> None:
        self.draft, self.parent, self.rules = draft, parent, rules
        self.problems: list[str] = []
        self.package: SkillPackage | None = None
        self.statements = 0
        self.old = next((p for p in parent if p.name == draft.name), None)

    def tell(self, file: str, line: int, reason: str) -> None:
        """Note a problem."""
        self.problems.append(f"{file}:{line}: {reason}")

    def look(
        self,
        sensing: Sensing,
        edits: int,
        rejected: Sequence[Rejection],
        secrets: Sequence[str | float],
    ) -> None:
        """Look at everything that needs no episode."""
        self.problems += path_problems(self.draft)
        if self.problems:
            return
        self._told_again(rejected)
        self._one_change()
        self._tell_all(secret_problems(self.draft.files, secrets))
        self._inspect()
        if self.package is None:
            return
        self._levels(sensing)
        self._budgets(edits)
        self._leaks()
        self._windows(self.package)

    def replay(self, episodes: Sequence[WatchedEpisode]) -> None:
        """Refuse triggers that depend on names, order or the origin of the world."""
        if self.package is None:
            return
        for check in permuted_triggers(self.package, episodes):
            if check.differing:
                self.tell(CRITIC, 1, f"{check.what} changes when it fires, in "
                          f"{len(check.differing)} of {len(episodes)} logged episodes")  # fmt: skip

    # ----------------------------------------------------------------------- form

    def _told_again(self, rejected: Sequence[Rejection]) -> None:
        if any(is_resubmission(draft, rejected) for draft in self._spellings()):
            self.tell(CRITIC, 1, "the same programs and numbers were rejected before; change them")
        if self.old is not None:
            return
        mine = _form(self.draft.name, self.draft.files)
        for package in self.parent:
            if mine is not None and mine == _form(package.name, _texts(package)):
                self.tell(CRITIC, 1, f"this is the parent's skill {package.name!r} under another "
                          "name")  # fmt: skip

    def _spellings(self) -> list[Draft]:
        """Return the draft, and for new numbers the same with and without the parent's programs."""
        if self.old is None:
            return [self.draft]
        numbers = {PARAMETERS: self.draft.files.get(PARAMETERS, "")}
        whole = {**_texts(self.old), **numbers}
        return [self.draft, *(replace(self.draft, files=files) for files in (numbers, whole))]

    def _one_change(self) -> None:
        files = self.draft.files
        if self.old is None:
            for path in REQUIRED:
                if path not in files and path != EVIDENCE:
                    self.tell(path, 1, "the file is missing; a new skill brings "
                              f"{PAGE}, {CRITIC}, {RECOVERY} and {PARAMETERS}")  # fmt: skip
            if files.get(EVIDENCE, NO_EVIDENCE).split() != NO_EVIDENCE.split():
                self.tell(EVIDENCE, 1, "evidence is written by whoever measures it; leave the "
                          "file out")  # fmt: skip
            return
        before = read_parents([self.old.folder])[self.old.folder.name].contents
        for path, text in files.items():
            if path != PARAMETERS and before.get(path) != text.encode("utf-8"):
                self.tell(path, _first_difference(before.get(path, b""), text),
                          f"{self.draft.name!r} is a skill of the parent, of which only "
                          f"{PARAMETERS} may differ; give another name to a new one")  # fmt: skip
        self._new_numbers(self.old, files.get(PARAMETERS))

    def _new_numbers(self, old: SkillPackage, text: str | None) -> None:
        """Refuse new numbers that are none, or that move their own bounds."""
        if text is None:
            self.tell(PARAMETERS, 1, "the file is missing; new numbers are written there")
            return
        parameters, problems = parse_parameters(text, PARAMETERS)
        if problems:
            return  # told by the inspection
        if set(parameters) != set(old.parameters):
            odd = sorted(set(parameters) ^ set(old.parameters))
            self.tell(PARAMETERS, 1, f"{', '.join(odd)}: the parameters are those of the parent; "
                      "none is added or left out")  # fmt: skip
            return
        for name, mine in parameters.items():
            known = old.parameters[name]
            kept = (known.low, known.high, known.unit, known.stricter)
            if (mine.low, mine.high, mine.unit, mine.stricter) != kept:
                self.tell(PARAMETERS, line_of_table(text, name), f"{name!r}: only the default "
                          f"may differ, within {known.low:g} and {known.high:g}")  # fmt: skip
        if all(mine.default == old.parameters[name].default for name, mine in parameters.items()):
            self.tell(PARAMETERS, 1, "every number is the parent's; nothing is changed")

    def _inspect(self) -> None:
        """Read the package as every package is read, from a folder of its own."""
        parent = {} if self.old is None else {
            self.draft.name: read_parents([self.old.folder])[self.old.folder.name]
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve() / self.draft.name
            write_package(folder, drafted(self.draft, parent), None)
            seen = inspect(folder)
            self.package = seen.package
            for problem in seen.problems:
                plain = problem.replace(f"{folder}/", "").replace(str(folder), self.draft.name)
                known = _PROBLEM.match(plain)
                self.problems.append(plain if known else f"{PAGE}:1: {plain}")

    # ----------------------------------------------------------------------- limits

    def _levels(self, sensing: Sensing) -> None:
        package = self.package
        if package is not None and _above(package.level, sensing):
            read = [s for s in package.signals if _above(SIGNALS[s].level, sensing)]
            why = f"reads {read[0]!r}" if read else "runs a primitive that looks"
            file = CRITIC if read and f"w.{read[0]}" in package.critic_source else RECOVERY
            source = package.critic_source if file == CRITIC else package.recovery_source
            self.tell(file, _line_with(source, f"w.{read[0]}" if read else "yield from"),
                      f"it {why} and is of level {package.level!r}; this campaign stops at "
                      f"{sensing!r}")  # fmt: skip

    def _budgets(self, edits: int) -> None:
        package, rules = self.package, self.rules
        if package is None or self.old is not None:
            return
        self.statements = statements_of(package.critic_source, package.recovery_source)
        if self.statements > edits:
            self.tell(CRITIC, 1, f"critic and recovery have {self.statements} statements; this "
                      f"generation may write {edits}")  # fmt: skip
        if package.page.max_ticks > rules.max_ticks:
            self.tell(PAGE, package.page.lines["max_ticks"], f"max_ticks is "
                      f"{package.page.max_ticks}; at most {rules.max_ticks}")  # fmt: skip
        checked = analyse_critic(package.critic_source, CRITIC, SIGNALS, package.parameters)
        if not isinstance(checked, CheckedCritic):
            return
        if any(answer.decision == "abort" for answer in checked.answers):
            self.tell(CRITIC, _line_with(package.critic_source, "abort("), "a candidate hands over "
                      "to its recovery; only critics without a skill abort")  # fmt: skip
        if checked.work > rules.critic_work:
            self.tell(CRITIC, 1, f"one call takes {checked.work} units of work; at most "
                      f"{rules.critic_work}")  # fmt: skip

    def _leaks(self) -> None:
        """Look at what the draft itself wrote; the parent's programs were let in before."""
        package, rules = self.package, self.rules.leaks
        if package is None or self.old is not None:
            return
        trees = {
            CRITIC: ast.parse(package.critic_source),
            RECOVERY: ast.parse(package.recovery_source),
        }
        for path, tree in trees.items():
            self._tell_all(clock_problems(path, tree))
            self._tell_all(table_problems(path, tree, package.parameters, rules))
        self._tell_all(constant_problems(trees, rules))
        text = self.draft.files[PARAMETERS]
        self._tell_all(room_problems(PARAMETERS, text, package.parameters, rules))

    def _windows(self, package: SkillPackage) -> None:
        """Refuse a draft that does not do on its own windows what it says there."""
        try:
            outcomes = run_windows(package)
        except (ConfigError, ScreenError) as error:
            self.tell(PARAMETERS, 1, str(error))
            return
        named = {window.name for window in package.windows}
        for outcome in outcomes:
            if outcome.window in named and not outcome.passed:
                self.tell(f"replay/{outcome.window}.json", 1, f"{outcome.said}; the window "
                          f"expects {outcome.expect!r}")  # fmt: skip

    def _tell_all(self, found: Iterable[tuple[str, int, str]]) -> None:
        for file, line, reason in found:
            self.tell(file, line, reason)


def _above(level: Sensing, allowed: Sensing) -> bool:
    return SENSING_LEVELS.index(level) > SENSING_LEVELS.index(allowed)


def _texts(package: SkillPackage) -> dict[str, str]:
    contents = read_parents([package.folder])[package.folder.name].contents
    return {p: contents[p].decode("utf-8") for p in (*PROGRAMS, PARAMETERS)}


def _form(name: str, files: Mapping[str, str]) -> tuple[object, ...] | None:
    """Return what programs and numbers do, without comments, docstrings, layout and name."""
    parameters, problems = parse_parameters(files.get(PARAMETERS, ""))
    try:
        trees = [ast.parse(files.get(path, "")) for path in PROGRAMS]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if problems:
        return None
    dumps = [ast.dump(node).replace(name, "SKILL") for tree in trees for node in _bodies(tree)]
    numbers = sorted((p.name, p.default, p.low, p.high) for p in parameters.values())
    return (*dumps, *numbers)


def _bodies(tree: ast.Module) -> Iterator[ast.stmt]:
    return (n for n in tree.body if not (isinstance(n, ast.Expr) and _is_text(n.value)))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _first_difference(before: bytes, text: str) -> int:
    old, new = before.decode("utf-8", "replace").splitlines(), text.splitlines()
    return next((k for k, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b), 1)


def _line_with(source: str, words: str) -> int:
    lines = enumerate(source.splitlines(), 1)
    return next((k for k, line in lines if words in line), 1)
