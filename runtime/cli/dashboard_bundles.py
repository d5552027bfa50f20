"""What the dashboard asks of bundles: the code of a critic, with the values that it saw."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.critics.parameters import Parameter
from zetta.critics.tracing import Trace, trace
from zetta.runtime.cli import at_home
from zetta.runtime.cli.critics import known_signals
from zetta.runtime.cli.deploy import bundle_digest, bundle_of, split_bundle
from zetta.runtime.cli.home import home_library
from zetta.runtime.core import RunSpec
from zetta.runtime.dashboard.explaining import Annotation, Explanation
from zetta.runtime.episode_log import EpisodeHeader, LoggedEpisode
from zetta.runtime.errors import ConfigError, ScreenError, ZettaError, suggest
from zetta.runtime.signals import SignalHistory
from zetta.skills.bundles import LIBRARY, LoadedBundle
from zetta.skills.user_library import UserLibrary

VERSIONS_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class _Program:
    """A critic as a bundle holds it."""

    checked: CheckedCritic
    declared: Mapping[str, Parameter]
    values: Mapping[str, float]
    """Other than the defaults."""

    @property
    def parameters(self) -> dict[str, float]:
        """Return every parameter with its value."""
        return {name: each.default for name, each in self.declared.items()} | dict(self.values)


class BundleExplainer:
    """Reads bundles as a run does."""

    def levels(self) -> Mapping[str, tuple[str, str, str]]:
        """Return level, unit and sentence of every signal by its name."""
        return {name: (spec.level, spec.unit, spec.doc) for name, spec in known_signals().items()}

    def explain(self, episode: LoggedEpisode, critic: str, tick: int) -> Explanation:
        """Return the code of a critic with the values that it saw at a tick.

        Raises:
            ConfigError: the bundle, or the critic in it, is not there any more.
        """
        spec = _spec(episode.header)
        if split_bundle(spec.bundle)[0] == "random":
            raise ConfigError(
                "this episode ran under the control 'random': its interventions were drawn by lot, "
                "and no code decided them"
            )
        try:
            spec, same = _as_it_was(spec, episode.header.run.bundle_digest)
            bundle = _bundle(spec)
        except (ScreenError, OSError) as error:
            raise ConfigError(f"the bundle {spec.bundle!r} cannot be read now: {error}") from error
        program = _program(bundle, critic)
        checked = program.checked
        found, note = _traced(program, episode, tick)
        return Explanation(
            critic=critic,
            source=checked.source,
            level=checked.level,
            same=same,
            annotations=tuple(_annotations(program, found)),
            decided=None if found is None else found.decided,
            parameters=program.parameters,
            signals=checked.signals,
            window_s=checked.window_s,
            note=note,
        )


def _spec(header: EpisodeHeader) -> RunSpec:
    scene, run = header.scene, header.run
    return RunSpec(
        header.sim, scene.task.suite, scene.task.index, scene.layout, seed=scene.seed,
        policy=run.policy_name, policy_seed=run.policy_seed, bundle=run.bundle,
        sensing=run.sensing, render=run.render, options=run.options,
    )  # fmt: skip


def _as_it_was(spec: RunSpec, digest: str) -> tuple[RunSpec, bool]:
    """Return `spec` with the bundle that has `digest`, and whether it was found.

    A library of the user keeps every version; other bundles are what their name stands for now.
    """
    if bundle_digest(spec) == digest:
        return spec, True
    control, colon, rest = spec.bundle.rpartition(":")
    parts = rest.split("+")
    if LIBRARY in parts:
        for version in UserLibrary(home_library()).versions()[:VERSIONS_MOST]:
            fixed = [f"{LIBRARY}@{version}" if part == LIBRARY else part for part in parts]
            older = replace(spec, bundle=control + colon + "+".join(fixed))
            if bundle_digest(older) == digest:
                return older, True
    return spec, False


def _bundle(spec: RunSpec) -> LoadedBundle:
    bundle = bundle_of(spec.bundle)
    record = at_home.record_of(spec, bundle)
    return bundle if record is None else replace(bundle, parameters=record.parameters)


def _program(bundle: LoadedBundle, critic: str) -> _Program:
    packages = {package.name: package for package in bundle.packages}
    if critic in packages:
        package = packages[critic]
        values = bundle.parameters.get(critic, {})
        checked = analyse_critic(package.critic_source, critic, known_signals(), package.parameters)
        assert isinstance(checked, CheckedCritic), "a bundle is checked when it is loaded"
        return _Program(checked, package.parameters, values)
    watchers = {watcher.name: watcher for watcher in bundle.watchers}
    if critic in watchers:
        watcher = watchers[critic]
        return _Program(watcher.checked, watcher.parameters, {})
    raise ConfigError(
        f"the bundle {bundle.name!r} has no critic {critic!r} now; "
        f"{suggest(critic, (*packages, *watchers))}"
    )


def _traced(program: _Program, episode: LoggedEpisode, tick: int) -> tuple[Trace | None, str]:
    """Let the critic judge once more what it saw; what prevents that is said."""
    try:
        window = _window(episode, tick)
        found = trace(
            program.checked.source, window, program.declared, program.values, known_signals()
        )
    except ZettaError as error:
        return None, f"its values cannot be shown: {error}"
    if found.unknown:
        return found, f"it said nothing, for {found.unknown} is unknown at this tick"
    return found, ""


def _window(episode: LoggedEpisode, index: int) -> SignalHistory:
    """Return the history that critics had at a tick, which may be the one that they aborted."""
    stop = episode.header.result.stop
    rows = [tick.signals for tick in episode.ticks if tick.index <= index]
    if stop is not None and stop.index == index:
        rows.append(stop.signals)
    if not rows or not rows[0]:
        raise ConfigError("the log holds no signals before this tick")
    names = tuple(rows[0])
    history = SignalHistory(names, episode.header.spec.control_hz)
    for row in rows:
        history.push(np.array([row.get(name, math.nan) for name in names]))
    return history


def _annotations(program: _Program, found: Trace | None) -> Iterator[Annotation]:
    """Yield what was seen and, on the same lines, the parameters."""
    lines: set[int] = set()
    for seen in found.seen if found is not None else ():
        lines.add(seen.line)
        value = seen.value if seen.value == seen.value else None
        yield Annotation(seen.line, seen.text, value)
    values = program.parameters
    for node in ast.walk(ast.parse(program.checked.source)):
        match node:
            case ast.Attribute(value=ast.Name(id="p"), attr=name) if (
                node.lineno in lines and name in values
            ):
                unit = program.declared[name].unit if name in program.declared else ""
                yield Annotation(node.lineno, f"p.{name}", values[name], unit)
