"""Skill packages: a folder that holds one critic, one recovery, and what speaks for them.

    regrasp/
        SKILL.md       front matter (name, version, roles, ...) and a page for people
        critic.py      when it fires, in the critic language
        recovery.py    what it does, in the recovery language
        params.toml    the numbers of both, with bounds and units
        evidence.json  what is known of its worth
        replay/        logged windows on which the critic must, or must not, fire
        signature.json who vouches for it; optional

A package is data. Its files are read once; what is hashed, checked, compiled and run is the same
bytes, and nothing in it is ever imported. The hash covers every file but the signature.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.parameters import Parameter, parse_parameters
from zetta.primitives.roles import Roles
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.errors import ScreenError
from zetta.runtime.signals import ROLES, SIGNALS, SignalSpec
from zetta.skills.package_files import (
    CRITIC,
    EVIDENCE,
    PAGE,
    PARAMETERS,
    RECOVERY,
    REPLAY,
    PackageFiles,
    read_files,
)
from zetta.skills.package_page import SkillPage, read_page
from zetta.skills.program import CheckedProgram, analyse_program
from zetta.skills.replay import ReplayWindow, read_window
from zetta.skills.signatures import SIGNATURE_NAME, Signed, signature_text, verify

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class SkillPackage:
    """A skill package that passed every check."""

    folder: Path
    page: SkillPage
    critic_source: str
    recovery_source: str
    parameters: Mapping[str, Parameter]
    windows: tuple[ReplayWindow, ...]
    level: Sensing
    """Highest sensing level of what the critic reads and the recovery reads and calls."""
    signals: tuple[str, ...]
    """What critic and recovery read."""
    digest: str
    """SHA-256 of every file but the signature."""
    signed: Signed
    evidence_text: str = field(repr=False)
    notices: tuple[str, ...] = ()
    """What was left out when the folder was read, and what is odd about it."""

    @property
    def name(self) -> str:
        """Name of the skill."""
        return self.page.name

    def fits(self, roles: Roles | None) -> bool:
        """Say whether the skill belongs into an episode.

        Args:
            roles: what the instruction says; None where it is not understood.
        """
        page = self.page
        if roles is None:
            return not page.roles and not page.verbs
        bound = {*roles.phrases, *(["steps"] if len(roles.steps) > 1 else [])}
        if not bound.issuperset(page.roles) or not bound.isdisjoint(page.excludes):
            return False
        return not page.verbs or not roles.verbs_about(page.roles).isdisjoint(page.verbs)

    def evidence_records(self) -> list[dict[str, Any]]:
        """Return what is known of its worth, as written by whoever measured it."""
        records: list[dict[str, Any]] = json.loads(self.evidence_text)["records"]
        return records


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in a folder."""

    package: SkillPackage | None
    """None when there is a problem."""
    problems: tuple[str, ...]
    """One sentence each, beginning with file and line."""
    notices: tuple[str, ...]


def load_skill(folder: Path, signals: Mapping[str, SignalSpec] = SIGNALS) -> SkillPackage:
    """Return the skill package in a folder.

    Args:
        folder: of the package.
        signals: what critic and recovery may read.

    Raises:
        ScreenError: something is wrong with it; a line for each problem.
    """
    seen = inspect(folder, signals)
    if seen.package is None:
        raise ScreenError("\n".join(seen.problems))
    return seen.package


def inspect(folder: Path, signals: Mapping[str, SignalSpec] = SIGNALS) -> Inspection:
    """Return the skill package in a folder, or everything that is wrong with it."""
    try:
        files = read_files(folder.resolve())
    except ScreenError as error:
        return Inspection(None, (str(error),), ())
    return _Inspector(files, signals).inspect()


def sign(folder: Path, key: Ed25519PrivateKey) -> str:
    """Check a package, sign it, and return its hash.

    Raises:
        ScreenError: something is wrong with it, a signature that is broken apart.
    """
    files = read_files(folder.resolve())
    unsigned = PackageFiles(files.folder, files.contents, None, files.notices)
    seen = _Inspector(unsigned, SIGNALS).inspect()
    if seen.package is None:
        raise ScreenError("\n".join(seen.problems))
    text = signature_text(files.digest, key)
    try:
        (files.folder / SIGNATURE_NAME).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScreenError(f"{files.folder} cannot be signed: {error.strerror}") from None
    return files.digest


class _Inspector:
    """Looks through the files of one package and collects what is wrong."""

    def __init__(self, files: PackageFiles, signals: Mapping[str, SignalSpec]) -> None:
        self._files, self._signals = files, signals
        self._problems: list[str] = []
        self._notices = list(files.notices)

    def inspect(self) -> Inspection:
        """Return the package, or its problems."""
        page = self._page()
        parameters = self._parameters()
        critic, recovery = self._programs(parameters) if parameters is not None else (None, None)
        evidence = self._evidence()
        windows = self._windows()
        signed = verify(self._files.digest, self._files.signature)
        if signed.state == "broken":
            self._tell(SIGNATURE_NAME, 1, f"{signed.reason}; the package is refused until it is "
                       "signed anew or the file is deleted")  # fmt: skip
        if page and critic and recovery:
            self._compare(page, critic, recovery)
            self._look_at_parameters(parameters or {}, critic, recovery)
        package = None
        if page and critic and recovery and parameters is not None and not self._problems:
            package = SkillPackage(
                folder=self._files.folder,
                page=page,
                critic_source=critic.source,
                recovery_source=recovery.source,
                parameters=parameters,
                windows=windows,
                level=_higher(critic.level, recovery.level),
                signals=tuple(dict.fromkeys((*critic.signals, *recovery.signals))),
                digest=self._files.digest,
                signed=signed,
                evidence_text=evidence,
                notices=tuple(self._notices),
            )
        return Inspection(package, tuple(self._problems), tuple(self._notices))

    def _tell(self, file: str, line: int, reason: str) -> None:
        self._problems.append(f"{self._files.folder / file}:{line}: {reason}")

    def _page(self) -> SkillPage | None:
        try:
            return read_page(self._files.text(PAGE), self._files.folder / PAGE)
        except ScreenError as error:
            self._problems.append(str(error))
            return None

    def _parameters(self) -> Mapping[str, Parameter] | None:
        path = str(self._files.folder / PARAMETERS)
        parameters, problems = parse_parameters(self._files.contents[PARAMETERS], path)
        self._problems += map(str, problems)
        return None if problems else parameters

    def _programs(
        self, parameters: Mapping[str, Parameter]
    ) -> tuple[CheckedCritic | None, CheckedProgram | None]:
        folder, contents = self._files.folder, self._files.contents
        critic = analyse_critic(contents[CRITIC], str(folder / CRITIC), self._signals, parameters)
        recovery = analyse_program(
            contents[RECOVERY], str(folder / RECOVERY), self._signals, parameters
        )
        for checked in (critic, recovery):
            if isinstance(checked, tuple):
                self._problems += map(str, checked)
        return (
            None if isinstance(critic, tuple) else critic,
            None if isinstance(recovery, tuple) else recovery,
        )

    def _evidence(self) -> str:
        try:
            text = self._files.text(EVIDENCE)
            evidence = json.loads(text)
        except ScreenError as error:
            self._problems.append(str(error))
            return ""
        except json.JSONDecodeError as error:
            self._tell(EVIDENCE, error.lineno, f"this is no JSON: {error.msg}")
            return ""
        except (ValueError, RecursionError) as error:
            self._tell(EVIDENCE, 1, f"this is no JSON: {error}")
            return ""
        records = evidence.get("records") if isinstance(evidence, dict) else None
        if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
            self._tell(EVIDENCE, 1, 'expected {"records": [...]}, a JSON object for each record')
        return text

    def _windows(self) -> tuple[ReplayWindow, ...]:
        windows = []
        for path in sorted(self._files.contents):
            if path.startswith(f"{REPLAY}/"):
                try:
                    text = self._files.text(path)
                    windows.append(read_window(text, self._files.folder / path))
                except ScreenError as error:
                    self._problems.append(str(error))
        return tuple(windows)

    def _compare(self, page: SkillPage, critic: CheckedCritic, recovery: CheckedProgram) -> None:
        """Hold the page against the programs."""
        if critic.skill is not None and critic.skill != page.name:
            self._tell(CRITIC, _line(critic.source, "SKILL"),
                       f"SKILL is {critic.skill!r} and the skill is {page.name!r}")  # fmt: skip
        if critic.skill is None:
            self._tell(CRITIC, 1, f'it never recovers; set SKILL = "{page.name}"')
        level = _higher(critic.level, recovery.level)
        if page.level and page.level != level:
            self._tell(PAGE, page.lines["level"], f"level is {page.level!r}; the programs read and "
                       f"call what needs {level!r}")  # fmt: skip
        for role in ROLES:
            used = [s for s in (*critic.signals, *recovery.signals) if role in _roles_of(s)]
            if role in (*page.roles, *page.uses):
                continue
            if role in _roles_called(recovery.source):
                self._tell(PAGE, page.lines["roles"], f"roles lacks {role!r}, which recovery.py "
                           "hands to a primitive; name it there, or in `uses` if it may be "
                           "missing")  # fmt: skip
            elif used:
                self._tell(PAGE, page.lines["roles"], f"roles lacks {role!r}, which {used[0]} is "
                           "about; name it there, or in `uses` if it may be missing")  # fmt: skip

    def _look_at_parameters(
        self, parameters: Mapping[str, Parameter], critic: CheckedCritic, recovery: CheckedProgram
    ) -> None:
        named = _parameters_named(critic.source) | _parameters_named(recovery.source)
        for name in parameters:
            if name not in named:
                self._notices.append(f"{self._files.folder / PARAMETERS}: nothing reads {name!r}")


def _higher(one: Sensing, other: Sensing) -> Sensing:
    return max(one, other, key=SENSING_LEVELS.index)


def _line(source: str, word: str) -> int:
    """Return the first line that begins with a word, or 1."""
    lines = source.splitlines()
    return next((i for i, line in enumerate(lines, 1) if line.startswith(word)), 1)


def _roles_of(signal: str) -> tuple[str, ...]:
    """Return the roles that a signal is about.

    >>> _roles_of("object_to_receptacle"), _roles_of("ee_z")
    (('object', 'receptacle'), ())
    """
    return tuple(role for role in ROLES if role in signal.split("_"))


def _roles_called(source: str) -> set[str]:
    """Return the roles that a checked recovery hands to primitives."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    constants = (a.value for call in calls for a in call.args if isinstance(a, ast.Constant))
    return {value for value in constants if isinstance(value, str)} & set(ROLES)


def _parameters_named(source: str) -> set[str]:
    """Return the parameters that a checked program reads."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return {n.attr for n in nodes if isinstance(n.value, ast.Name) and n.value.id == "p"}
