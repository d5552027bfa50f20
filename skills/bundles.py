"""Bundles: which critics and skills are deployed together, in which order, under one hash."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import zetta.critics as critics_package
from zetta.critics.critic import (
    Critic,
    compile_critic,
    name_of,
    parameters_beside,
    program_digest,
)
from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.parameters import Parameter, read_parameters
from zetta.critics.problems import raise_problems, read_program
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.signals import SIGNALS, SignalSpec
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.shelf import library_folder, package_folders, shelve

NO_BUNDLE: Final = "none"
STARTER: Final = "starter"
LIST: Final = "starter.toml"
"""The file of the library that says what the starter bundle is."""
_KEYS: Final = frozenset({"skills", "critics"})


@dataclass(frozen=True, slots=True)
class Watcher:
    """A critic without a skill: it can only end an episode."""

    name: str
    path: Path
    checked: CheckedCritic = field(repr=False)
    signals: Mapping[str, SignalSpec] = field(repr=False)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def compile(self, control_hz: float) -> Critic:
        """Return the critic, ready to judge at a control rate."""
        return compile_critic(
            self.checked.source,
            str(self.path),
            self.name,
            control_hz,
            self.signals,
            self.parameters,
        )


@dataclass(frozen=True, slots=True)
class LoadedBundle:
    """Everything of a bundle, checked."""

    name: str
    packages: tuple[SkillPackage, ...] = ()
    watchers: tuple[Watcher, ...] = ()
    digest: str = ""
    """SHA-256 over the hashes of its parts, in order; empty for no bundle."""
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Numbers other than the defaults, by skill."""

    @property
    def signals(self) -> frozenset[str]:
        """Every signal that something in it reads."""
        read = {signal for package in self.packages for signal in package.signals}
        return frozenset(read | {s for watcher in self.watchers for s in watcher.checked.signals})

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Names of the skills that nobody has signed."""
        return tuple(p.name for p in self.packages if p.signed.state != "signed")

    def check_level(self, allowed: Sensing) -> None:
        """Refuse a bundle that reads more than a run may sense.

        Raises:
            ConfigError: something in it is above `allowed`.
        """
        levels: Mapping[str, Sensing] = {
            **{f"skill {p.name!r}": p.level for p in self.packages},
            **{f"critic {w.name!r}": w.checked.level for w in self.watchers},
        }
        for what, level in levels.items():
            if SENSING_LEVELS.index(level) > SENSING_LEVELS.index(allowed):
                raise ConfigError(
                    f"the {what} senses at level {level!r} and this run stops at {allowed!r}; "
                    f"run with --sensing {level}, or leave it out of the bundle"
                )


def load_bundle(name: str, signals: Mapping[str, SignalSpec] = SIGNALS) -> LoadedBundle:
    """Return the bundle of a name.

    `none`, or parts joined by `+`, whose critics are heard in that order: `starter` is what the
    library's list says, a word is one skill of the library, and a folder holds skill packages, in
    the order of their names, or is one.

    Raises:
        ConfigError: no such bundle, or two skills of one name.
        ScreenError: something in it is refused.
    """
    if name == NO_BUNDLE:
        return LoadedBundle(name)
    packages: list[SkillPackage] = []
    watchers: tuple[Watcher, ...] = ()
    for part in name.split("+"):
        if part in ("", NO_BUNDLE):
            raise ConfigError(
                f"the bundle {name!r} has {part!r} among its parts; join skills and folders, "
                "such as starter+skills/my-skill"
            )
        if part == STARTER:
            starter = _starter(signals)
            packages += starter.packages
            watchers = starter.watchers
        else:
            packages += _part(part, signals)
    return _bundle(name, tuple(packages), watchers)


def _part(name: str, signals: Mapping[str, SignalSpec]) -> tuple[SkillPackage, ...]:
    shelf = shelve(())
    folder = Path(name)
    if name in shelf:
        return (load_skill(shelf[name], signals),)
    if not folder.is_dir():
        known = (NO_BUNDLE, STARTER, *shelf)
        raise ConfigError(
            f"unknown bundle {name!r}; {suggest(name, known)}, or give a folder of skills"
        )
    packages = tuple(load_skill(path, signals) for path in package_folders(folder))
    if not packages:
        raise ConfigError(f"{folder} holds no skill; `zetta skills new NAME` makes one")
    return packages


def _starter(signals: Mapping[str, SignalSpec]) -> LoadedBundle:
    library = library_folder()
    listed = _read_list(library / LIST)
    packages = tuple(load_skill(library / each, signals) for each in listed["skills"])
    critics = Path(critics_package.__file__).parent / "library"
    watchers = tuple(_watcher(critics / f"{each}.py", signals) for each in listed["critics"])
    return _bundle(STARTER, packages, watchers)


def _read_list(path: Path) -> Mapping[str, Sequence[str]]:
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as a list of skills: {error}") from error
    if set(plain) != _KEYS or not all(isinstance(value, list) for value in plain.values()):
        raise ConfigError(f"{path} holds {', '.join(plain)}; expected the lists skills, critics")
    return plain


def _watcher(path: Path, signals: Mapping[str, SignalSpec]) -> Watcher:
    beside = parameters_beside(path)
    parameters = {} if beside is None else read_parameters(beside)
    checked = analyse_critic(read_program(path), str(path), signals, parameters)
    if isinstance(checked, tuple):
        raise_problems(checked)
        raise AssertionError("unreachable: problems were raised")
    return Watcher(name_of(path), path, checked, signals, parameters)


def _defaults(watcher: Watcher) -> dict[str, float]:
    return {name: parameter.default for name, parameter in watcher.parameters.items()}


def _bundle(
    name: str, packages: tuple[SkillPackage, ...], watchers: tuple[Watcher, ...]
) -> LoadedBundle:
    names = [package.name for package in packages]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise ConfigError(f"the bundle {name!r} holds two skills named {twice!r}; rename one")
    parts = [[p.name, p.digest] for p in packages]
    parts += [[w.name, program_digest(w.checked.source, _defaults(w))] for w in watchers]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return LoadedBundle(name, packages, watchers, digest)
