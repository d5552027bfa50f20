"""What the dashboard asks of bundles: the code of a critic, with the values that it saw."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from zetta.runtime.cli.deploy import bundle_of, split_bundle
from zetta.runtime.core import SENSING_LEVELS, Tick
from zetta.runtime.dashboard.board import Annotation, Explanation
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError, ScreenError, suggest
from zetta.runtime.registry import installed_signals
from zetta.runtime.signals import SignalSpec
from zetta.runtime.signals_source import signals_with
from zetta.skills.bundles import LoadedBundle


@dataclass(frozen=True, slots=True)
class _Program:
    """A critic as a bundle holds it."""

    source: str
    parameters: Mapping[str, float]
    units: Mapping[str, str]


class BundleExplainer:
    """Reads bundles as a run does."""

    def levels(self) -> Mapping[str, tuple[str, str, str]]:
        """Return level, unit and sentence of every signal by its name."""
        return {name: (spec.level, spec.unit, spec.doc) for name, spec in _signals().items()}

    def explain(self, episode: LoggedEpisode, critic: str, tick: Tick) -> Explanation:
        """Return the code of a critic with the values that it saw at a tick.

        Raises:
            ConfigError: the bundle, or the critic in it, is not there any more.
        """
        run = episode.header.run
        try:
            bundle = bundle_of(run.bundle)
        except ScreenError as error:
            raise ConfigError(f"the bundle {run.bundle!r} is refused now: {error}") from error
        program = _program(bundle, critic)
        control = split_bundle(run.bundle)[0]
        same = run.bundle_digest.removeprefix(f"{control}:") == bundle.digest
        tree = ast.parse(program.source)
        signals = tuple(dict.fromkeys(name for _, name in _attributes(tree, "w")))
        return Explanation(
            critic=critic,
            source=program.source,
            level=_level(signals),
            same=same,
            annotations=tuple(_annotations(tree, program, tick)),
            parameters=dict(program.parameters),
            signals=signals,
            window_s=_window_s(tree),
        )


def _program(bundle: LoadedBundle, critic: str) -> _Program:
    packages = {package.name: package for package in bundle.packages}
    if critic in packages:
        package = packages[critic]
        values = {name: p.default for name, p in package.parameters.items()}
        values |= bundle.parameters.get(critic, {})
        units = {name: p.unit for name, p in package.parameters.items()}
        return _Program(package.critic_source, values, units)
    watchers = {watcher.name: watcher for watcher in bundle.watchers}
    if critic in watchers:
        watcher = watchers[critic]
        values = {name: p.default for name, p in watcher.parameters.items()}
        units = {name: p.unit for name, p in watcher.parameters.items()}
        return _Program(watcher.checked.source, values, units)
    known = (*packages, *watchers)
    raise ConfigError(
        f"the bundle {bundle.name!r} has no critic {critic!r} now; {suggest(critic, known)}"
    )


def _attributes(tree: ast.AST, owner: str) -> Iterator[tuple[ast.Attribute, str]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == owner
        ):
            yield node, node.attr


def _annotations(tree: ast.AST, program: _Program, tick: Tick) -> Iterator[Annotation]:
    known = _signals()
    for node, name in _attributes(tree, "w"):
        value = tick.signals.get(name, math.nan)
        unit = known[name].unit if name in known else ""
        yield Annotation(node.lineno, f"w.{name}", None if value != value else value, unit)
    for node, name in _attributes(tree, "p"):
        value = program.parameters.get(name, math.nan)
        unit = program.units.get(name, "")
        yield Annotation(node.lineno, f"p.{name}", None if value != value else value, unit)


def _window_s(tree: ast.Module) -> float:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "WINDOW_S"
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, int | float)
        ):
            return float(node.value.value)
    return 0.0


def _level(signals: tuple[str, ...]) -> str:
    known = _signals()
    levels = [known[name].level for name in signals if name in known]
    return max(levels, key=SENSING_LEVELS.index, default="proprio")


def _signals() -> Mapping[str, SignalSpec]:
    return signals_with(tuple(installed_signals()))
