"""Bundles: which critics and skills are deployed together, in which order, under one hash."""

from __future__ import annotations

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
from zetta.skills.bundle_folders import Part, is_bundle_folder, parts_digest, read_bundle
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.shelf import library_folder, package_folders, shelve
from zetta.skills.user_library import CURRENT, SHOWN_DIGITS, UserLibrary, is_library

NO_BUNDLE: Final = "none"
STARTER: Final = "starter"
LIBRARY: Final = "library"
"""The version in use of the user's library; `library@DIGITS` is another one."""
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
    notices: tuple[str, ...] = ()
    """What was left out, one sentence each."""

    @property
    def signals(self) -> frozenset[str]:
        """Every signal that something in it reads."""
        read = {signal for package in self.packages for signal in package.signals}
        return frozenset(read | {s for watcher in self.watchers for s in watcher.checked.signals})

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Names of the skills that nobody has signed."""
        return tuple(p.name for p in self.packages if p.signed.state != "signed")

    @property
    def levels(self) -> Mapping[str, Sensing]:
        """At which level each of its parts senses, by what it is."""
        return {
            **{f"skill {p.name!r}": p.level for p in self.packages},
            **{f"critic {w.name!r}": w.checked.level for w in self.watchers},
        }

    def check_level(self, allowed: Sensing) -> None:
        """Refuse a bundle that reads more than a run may sense.

        Raises:
            ConfigError: something in it is above `allowed`.
        """
        for what, level in self.levels.items():
            if SENSING_LEVELS.index(level) > SENSING_LEVELS.index(allowed):
                raise ConfigError(
                    f"the {what} senses at level {level!r} and this run stops at {allowed!r}; "
                    f"run with --sensing {level}, or leave it out of the bundle"
                )


def load_bundle(
    name: str, signals: Mapping[str, SignalSpec] = SIGNALS, library: Path | None = None
) -> LoadedBundle:
    """Return the bundle of a name.

    `none`, or parts joined by `+`, whose critics are heard in that order: `starter` is what the
    list of the shipped skills says, `library` the version in use of the user's library (and
    `library@DIGITS` another version of it), a word is one of the shipped skills, and a folder is a
    skill package, a library, a bundle with a manifest, or holds packages, in the order of their
    names.

    Args:
        name: of the bundle.
        signals: what may be read.
        library: folder of the user's library.

    Raises:
        ConfigError: no such bundle, or two skills of one name.
        ScreenError: something in it is refused.
    """
    if name == NO_BUNDLE:
        return LoadedBundle(name)
    packages: list[SkillPackage] = []
    watchers: tuple[Watcher, ...] = ()
    notices: tuple[str, ...] = ()
    for part in name.split("+"):
        if part in ("", NO_BUNDLE):
            raise ConfigError(
                f"the bundle {name!r} has {part!r} among its parts; join skills and folders, "
                "such as starter+skills/my-skill"
            )
        loaded = _part(part, signals, library)
        packages += loaded.packages
        watchers += loaded.watchers
        notices += loaded.notices
    return _bundle(name, tuple(packages), watchers, notices)


def pinned(name: str, library: Path) -> str:
    """Return the name of a bundle with the version in place of `library`.

    Whoever starts several processes hands them this name: the pointer may move meanwhile.

    Raises:
        ConfigError: the library is empty, or its pointer leads nowhere.
    """
    control, colon, rest = name.rpartition(":")
    parts = rest.split("+")
    if LIBRARY not in parts:
        return name
    version = UserLibrary(library).resolve(CURRENT)[:SHOWN_DIGITS]
    fixed = [f"{LIBRARY}@{version}" if part == LIBRARY else part for part in parts]
    return control + colon + "+".join(fixed)


def library_state(name: str, library: Path) -> str:
    """Return what changes whenever the libraries behind a bundle do; empty when it has none."""
    states = []
    for part in name.split("+"):
        folder = library if part.partition("@")[0] == LIBRARY else Path(part)
        if is_library(folder):
            states.append(UserLibrary(folder).state())
    return " ".join(states)


def _part(name: str, signals: Mapping[str, SignalSpec], library: Path | None) -> LoadedBundle:
    if name == STARTER:
        return _starter(signals)
    word, _, version = name.partition("@")
    if word == LIBRARY:
        if library is None:
            raise ConfigError(
                f"the bundle {name!r} is of the user's library, and no library is known here; "
                "give its folder instead"
            )
        return _of_library(UserLibrary(library), version, signals)
    shelf = shelve(())
    folder = Path(name)
    if name in shelf:
        return _bundle(name, (load_skill(shelf[name], signals),), ())
    if not folder.is_dir():
        known = (NO_BUNDLE, STARTER, LIBRARY, *shelf)
        raise ConfigError(
            f"unknown bundle {name!r}; {suggest(name, known)}, or give a folder of skills"
        )
    if is_library(folder):
        return _of_library(UserLibrary(folder.resolve()), "", signals)
    if is_bundle_folder(folder):
        manifest, _ = read_bundle(folder.resolve())
        return _bundle(name, _loaded(folder.resolve(), manifest.skills, signals), ())
    packages = tuple(load_skill(path, signals) for path in package_folders(folder))
    if not packages:
        raise ConfigError(f"{folder} holds no skill; `zetta skills new NAME` makes one")
    return _bundle(name, packages, ())


def _of_library(library: UserLibrary, name: str, signals: Mapping[str, SignalSpec]) -> LoadedBundle:
    version = library.resolve(name)
    manifest, _ = library.bundle(version)
    left_out = library.quarantined()
    kept = [part for part in manifest.skills if part.package not in left_out]
    notices = tuple(
        f"the skill {part.name!r} is in quarantine and left out: {left_out[part.package]}"
        for part in manifest.skills
        if part.package in left_out
    )
    return _bundle(LIBRARY, _loaded(library.path(version), kept, signals), (), notices)


def _loaded(
    folder: Path, parts: Sequence[Part], signals: Mapping[str, SignalSpec]
) -> tuple[SkillPackage, ...]:
    packages = tuple(load_skill(folder / part.name, signals) for part in parts)
    for part, package in zip(parts, packages, strict=True):
        if package.digest != part.package:
            raise ConfigError(f"{package.folder} changed while it was read; try again")
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
    name: str,
    packages: tuple[SkillPackage, ...],
    watchers: tuple[Watcher, ...],
    notices: tuple[str, ...] = (),
) -> LoadedBundle:
    names = [package.name for package in packages]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise ConfigError(f"the bundle {name!r} holds two skills named {twice!r}; rename one")
    parts = [(p.name, p.digest) for p in packages]
    parts += [(w.name, program_digest(w.checked.source, _defaults(w))) for w in watchers]
    return LoadedBundle(name, packages, watchers, parts_digest(parts), notices=notices)
