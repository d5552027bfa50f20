"""What is deployed beside the policy, put together for one episode: critics, skills, sensing.

A bundle is named as in `--bundle` and `--arms`: `none`; `starter`, the library that ships;
`library`, the user's own; a folder of skills; and the controls `sham`, `random` and `takeover`,
which stand for the starter bundle unless another follows after a colon (`sham:DIR`).
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from zetta.critics.isolation import IsolatedMonitor, check_isolation
from zetta.critics.isolation_messages import CriticProgram
from zetta.critics.monitor import CriticMonitor
from zetta.primitives.agent.records import Agent
from zetta.primitives.roles import roles_or_none
from zetta.runtime import registry
from zetta.runtime.arbiter import PolicyOnly
from zetta.runtime.cli import at_home, output
from zetta.runtime.cli.eyes import eyes, looks_at
from zetta.runtime.cli.home import home_library
from zetta.runtime.cli.recovery_budgets import budgets, skill_time, with_time
from zetta.runtime.cli.sight import Sight, check_finder, localizer_of
from zetta.runtime.cli.waypoints import check_ticks
from zetta.runtime.core import (
    Arbiter,
    Env,
    Localizer,
    Monitor,
    PolicySpec,
    RunSpec,
    Scene,
)
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.looking import LooksAside
from zetta.runtime.signals import names_up_to
from zetta.runtime.signals_source import ExtraSignal, Look, Signals, signals_with
from zetta.runtime.skill_arbiter import SkillArbiter
from zetta.skills.bundles import (
    NO_BUNDLE,
    STARTER,
    LoadedBundle,
    library_state,
    load_bundle,
)
from zetta.skills.compiled import CompiledSkill, compile_skill
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import CRITIC
from zetta.skills.random_triggers import RandomMonitor, read_triggers
from zetta.skills.shelf import library_folder

CONTROLS: Final = ("sham", "random", "takeover")
"""Arms that use a bundle otherwise than it is meant, to see what is due to what."""
ISOLATIONS: Final = ("none", "process")
"""Where critics run: in the process of the loop, or in one of their own that can only judge."""
TRIGGERS: Final = "starter-triggers.json"
"""When and how the starter bundle intervened on development scenes, for the control `random`."""
OWN_TRIGGERS: Final = "triggers.json"
"""The same for the bundle in a folder, lying in it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill that no critic calls for: it is ordered, in a branch of an episode."""

    bundle: str
    """Where it is: a bundle as in `--bundle`."""
    skill: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The parts of an episode that belong to its bundle."""

    arbiter: Arbiter
    signals: Signals | None = None
    localizer: Localizer | None = None
    alone: bool = False
    """Skills drive from the first tick to the last; the policy is not asked."""
    isolated: IsolatedMonitor | None = None
    """The monitor of the arbiter where it has a process of its own."""
    agent: Agent | None = None
    """Who drives by commands, where it was made for this episode."""

    def close(self) -> None:
        """End what runs beside the loop; calling it again does nothing."""
        if self.isolated is not None:
            self.isolated.close()
        if self.agent is not None:
            self.agent.close()
        if isinstance(self.localizer, LooksAside):
            self.localizer.close()


def split_bundle(name: str) -> tuple[str, str]:
    """Return the control, or nothing, and the bundle that `name` stands for.

    >>> split_bundle("starter"), split_bundle("sham"), split_bundle("sham:my/skills")
    (('', 'starter'), ('sham', 'starter'), ('sham', 'my/skills'))
    """
    first, colon, rest = name.partition(":")
    if first in CONTROLS:
        return first, rest if colon else STARTER
    return "", name


def bundle_of(name: str) -> LoadedBundle:
    """Return the bundle behind `name`, loaded once in a process until the user's library changes.

    Raises:
        ConfigError: no such bundle.
        ScreenError: something in it is refused.
    """
    bundle = split_bundle(name)[1]
    library = home_library()
    return _bundle_of(bundle, library, library_state(bundle, library))


@cache
def _bundle_of(name: str, library: Path, state: str) -> LoadedBundle:
    """Load a bundle; `state` is that of the library, so that a quarantine is seen at once."""
    bundle = load_bundle(name, signals_with(_installed()), library)
    for notice in bundle.notices:
        output.note(notice)
    return bundle


def bundle_digest(spec: RunSpec) -> str:
    """Return the hash of what `spec` deploys, marked with the control; empty for nothing."""
    name, control = spec.bundle, split_bundle(spec.bundle)[0]
    digest = bundle_of(name).digest
    if digest and "calibration" in spec.options:
        text = Path(spec.options["calibration"]).read_bytes()
        digest = hashlib.sha256(digest.encode() + text).hexdigest()
    if control == "random" and _triggers_of(name).exists():
        text = _triggers_of(name).read_bytes()
        digest = hashlib.sha256(digest.encode() + text).hexdigest()
    return f"{control}:{digest}" if control else digest


def check_deployment(spec: RunSpec) -> None:
    """Refuse a bundle or an option of one that cannot be deployed; nothing is built for it.

    Raises:
        ConfigError: unknown bundle, level, finder or number.
        ScreenError: something in the bundle is refused.
    """
    bundle = bundle_of(spec.bundle)
    bundle.check_level(spec.sensing)
    budgets(spec)
    skill_time(spec)
    record = at_home.record_of(spec, bundle)
    if record is not None:
        at_home.check_policy(record, spec.policy, None)
    at_home.check_before(spec, bundle, split_bundle(spec.bundle)[0])
    _check_control(spec)
    check_finder(spec)
    if _isolates(spec):
        check_isolation()


def _check_control(spec: RunSpec) -> None:
    control, name = split_bundle(spec.bundle)
    if control and name == NO_BUNDLE:
        raise ConfigError(f"{spec.bundle!r} is a control of nothing; name a bundle after the colon")
    if control == "takeover":
        for option in ("shadow", "signals"):
            if option in spec.options:
                raise ConfigError(f"takeover runs without critics; leave --{option} out")
    if control == "random":
        known = {package.name for package in bundle_of(spec.bundle).packages}
        past = read_triggers(_triggers_of(spec.bundle))
        strange = {trigger.skill for episode in past for trigger in episode} - known
        if strange:
            raise ConfigError(
                f"the recorded interventions are of {', '.join(sorted(strange))}, which the bundle "
                f"{name!r} does not hold; record those of this bundle"
            )


def _triggers_of(bundle: str) -> Path:
    """Return the file with the interventions of the bundle behind the control `random`."""
    own = Path(split_bundle(bundle)[1]) / OWN_TRIGGERS
    return own if own.exists() else library_folder() / TRIGGERS


def deploy(
    spec: RunSpec,
    env: Env,
    scene: Scene,
    policy: PolicySpec | None,
    candidate: Candidate | None = None,
) -> Deployment:
    """Put together what `spec.bundle` asks for, and beside it a skill that will be ordered.

    Raises:
        ConfigError, ScreenError: see `check_deployment`; or the candidate cannot be ordered.
        InfraError: the finder's weights cannot be read.
    """
    control, name = split_bundle(spec.bundle)
    shown = spec.options.get("signals") == "yes"
    if candidate is not None and (control or not shown):
        raise ConfigError(
            "a candidate is ordered in episodes with every signal and without a control; "
            "set the option signals to 'yes' and name a plain bundle, for the snapshot too"
        )
    if name == NO_BUNDLE and not shown:
        return Deployment(PolicyOnly())
    _check_here(spec, env, policy)
    bundle, roles = _calibrated(spec), roles_or_none(scene.task.instruction)
    sight = Sight(spec, env, roles)
    if control == "takeover":
        return Deployment(sight.takeover(), localizer=eyes(spec, env, sight)[0], alone=True)
    wanted = None if shown else _wanted(bundle, env)
    localizer, look = eyes(spec, env, sight)
    signals = Signals(
        env.spec,
        max_level=spec.sensing,
        policy=policy,
        look=None if spec.sensing in ("proprio", "policy") else look,
        oracle=sight.truth if spec.sensing == "oracle" else None,
        look_every=looks_at(env.spec.control_hz),
        wanted=wanted,
        extra=_installed(),
    )
    if name == NO_BUNDLE and candidate is None:
        return Deployment(PolicyOnly(), signals, localizer)
    packages = [p for p in bundle.packages if p.fits(roles)]
    times = skill_time(spec)
    skills = [with_time(_compiled(package, bundle, env, sight), times) for package in packages]
    ordered = [] if candidate is None else [_ordered(candidate, spec, env, sight)]
    monitor: Monitor
    isolated = None
    if control == "random":
        monitor = _random_monitor(spec, scene)
    elif _isolates(spec):
        monitor = isolated = _isolated_monitor(bundle, packages, env.spec.control_hz)
    else:
        monitor = _monitor(bundle, skills, env.spec.control_hz)
    arbiter = SkillArbiter(
        monitor,
        {skill.name: skill for skill in (*skills, *ordered)},
        signals.history,
        budgets(spec),
        shadow=spec.options.get("shadow") == "yes",
        sham=control == "sham",
    )
    return Deployment(arbiter, signals, localizer, isolated=isolated)


def _check_here(spec: RunSpec, env: Env, policy: PolicySpec | None) -> None:
    """Refuse what cannot act in this very world.

    Raises:
        ConfigError: its ticks are too long, or thresholds were not made for it.
    """
    check_ticks(env.spec, spec.suite, "critics, skills and signals")
    finder, control = localizer_of(spec.options, spec.sim, spec.sensing), split_bundle(spec.bundle)
    bundle = bundle_of(spec.bundle)
    at_home.check_thresholds(spec, env.spec, bundle, control[0], finder, policy)


def skills_on_call(
    spec: RunSpec, env: Env, scene: Scene, sight: Sight, look: Look
) -> tuple[Signals | None, tuple[CompiledSkill, ...]]:
    """Return the skills of the bundle without their critics, and the signals that they read.

    `look` sees for the signals.

    Raises:
        ConfigError, ScreenError: see `check_deployment`.
    """
    control, name = split_bundle(spec.bundle)
    if control:
        raise ConfigError(f"the control {spec.bundle!r} is none for an agent; name a bundle")
    if name == NO_BUNDLE:
        return None, ()
    bundle, roles = _calibrated(spec), roles_or_none(scene.task.instruction)
    signals = Signals(
        env.spec,
        max_level=spec.sensing,
        policy=None,
        look=None if spec.sensing in ("proprio", "policy") else look,
        oracle=None,
        look_every=looks_at(env.spec.control_hz),
        wanted=_wanted(bundle, env),
        extra=_installed(),
    )
    packages = [package for package in bundle.packages if package.fits(roles)]
    return signals, tuple(_compiled(package, bundle, env, sight) for package in packages)


def _compiled(package: SkillPackage, bundle: LoadedBundle, env: Env, sight: Sight) -> CompiledSkill:
    return compile_skill(
        package,
        bundle.parameters.get(package.name),
        control_hz=env.spec.control_hz,
        robot=sight.robot,
        signals=signals_with(_installed()),
    )


def _ordered(candidate: Candidate, spec: RunSpec, env: Env, sight: Sight) -> CompiledSkill:
    """Return the skill that will be ordered; that of the candidate, even if the bundle has one."""
    bundle = bundle_of(candidate.bundle)
    bundle.check_level(spec.sensing)
    known = {package.name: package for package in bundle.packages}
    if candidate.skill not in known:
        raise ConfigError(
            f"the bundle {candidate.bundle!r} has no skill {candidate.skill!r}; "
            f"{suggest(candidate.skill, known)}"
        )
    return _compiled(known[candidate.skill], bundle, env, sight)


def _random_monitor(spec: RunSpec, scene: Scene) -> RandomMonitor:
    past = read_triggers(_triggers_of(spec.bundle))
    task = scene.task
    seed = [zlib.crc32(f"{task.suite}/{task.index}/{spec.layout}".encode()), spec.seed]
    return RandomMonitor(past, task.max_steps, [*seed, spec.policy_seed])


def _monitor(
    bundle: LoadedBundle, skills: Sequence[CompiledSkill], control_hz: float
) -> CriticMonitor:
    watchers = [watcher.compile(control_hz) for watcher in bundle.watchers]
    return CriticMonitor([*watchers, *(skill.critic for skill in skills)])


def _isolated_monitor(
    bundle: LoadedBundle, packages: Sequence[SkillPackage], control_hz: float
) -> IsolatedMonitor:
    """Return a monitor with the critics of `_monitor`, in the same order."""
    programs = [
        CriticProgram(w.name, str(w.path), w.checked.source, w.parameters, {})
        for w in bundle.watchers
    ]
    programs += [
        CriticProgram(
            package.name,
            str(package.folder / CRITIC),
            package.critic_source,
            package.parameters,
            bundle.parameters.get(package.name, {}),
        )
        for package in packages
    ]
    extra = [spec for source in _installed() for spec in source.specs]
    return IsolatedMonitor(programs, control_hz, extra)


def _isolates(spec: RunSpec) -> bool:
    """Say whether critics get a process of their own; without critics there is none to start.

    Raises:
        ConfigError: the option says something else.
    """
    wish = spec.options.get("critic_isolation", ISOLATIONS[0])
    if wish not in ISOLATIONS:
        raise ConfigError(f"unknown critic isolation {wish!r}; {suggest(wish, ISOLATIONS)}")
    return wish == "process"


def _wanted(bundle: LoadedBundle, env: Env) -> frozenset[str]:
    """Return every cheap signal, for the log, and what the bundle reads beside them."""
    return names_up_to("policy", len(env.spec.arms)) | bundle.signals


@cache
def _installed() -> tuple[ExtraSignal, ...]:
    return tuple(registry.installed_signals())


def _calibrated(spec: RunSpec) -> LoadedBundle:
    """Return the bundle, with the numbers of its calibration where one is given."""
    bundle = bundle_of(spec.bundle)
    record = at_home.record_of(spec, bundle)
    if record is None:
        return bundle
    off = {name for name, level in record.levels.items() if level is None}
    return replace(
        bundle,
        packages=tuple(p for p in bundle.packages if p.name not in off),
        watchers=tuple(w for w in bundle.watchers if w.name not in off),
        parameters=record.parameters,
    )
