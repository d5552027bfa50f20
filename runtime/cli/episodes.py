"""What worker processes run: episodes assembled by the composition root."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from zetta.primitives.agent.drive_log import settle, summary_of
from zetta.runtime.action_digest import ActionDigest
from zetta.runtime.cli.agents import agent_name
from zetta.runtime.cli.assemble import Assembled, Assembler
from zetta.runtime.cli.deploy import bundle_digest
from zetta.runtime.cli.shared_policy import served_policies
from zetta.runtime.core import (
    ActionSpec,
    Array,
    EnvSpec,
    EpisodeResult,
    PolicySpec,
    RunSpec,
    Scene,
    Step,
    Tick,
)
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity, Watch, record_of
from zetta.skills.bundles import NO_BUNDLE

FACTORY = "zetta.runtime.cli.episodes:assembled_episodes"
"""The dotted name that a pool gives its workers."""


def assembled_episodes() -> AssembledEpisodes:
    """Return the factory of this process."""
    return AssembledEpisodes(Assembler(served=served_policies()))


class AssembledEpisodes:
    """Runs `RunSpec`s through one `Assembler`, which keeps environment and policies."""

    def __init__(self, assembler: Assembler | None = None) -> None:
        self._assembler = assembler or Assembler()
        self._task = ""

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        """Assemble one episode of each spec, without running it, and say what it consists of.

        Raises:
            ConfigError: `specs` is empty, or one asks for what does not exist.
            SpecMismatch: a policy does not fit the environment.
            InfraError: the simulator is not usable here.
        """
        assembled = [self._assembler.assemble(spec) for spec in specs]
        env = assembled[0].env.spec
        return Identity(
            policies={
                spec.policy: _policy_digest(each)
                for spec, each in zip(specs, assembled, strict=True)
            },
            bundles={s.bundle: bundle_digest(s) for s in specs if s.bundle != NO_BUNDLE},
            render_profiles={spec.render: env.render_profile for spec in specs},
            sensing=specs[0].sensing,
            versions={**assembled[0].facts.versions, "onnxruntime": version("onnxruntime")},
            conventions=_conventions(env, [each.facts.policy for each in assembled]),
        )

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        """Run one episode.

        Raises:
            ZettaError: whatever a part could not do.
        """
        task = f"{spec.suite}/{spec.task}"
        if task != self._task:
            watch.phase(f"building {task}")
            self._task = task
        seen, done = Seen(watch), ActionDigest()
        assembled = self._assembler.assemble(spec, sinks=[seen, done])
        watch.phase(f"{task} init {spec.layout} seed {spec.seed}, {spec.policy}")
        result = assembled.episode.run()
        record = record_of(result, seen.dispersion(), seen.predicates(), done.text)
        if assembled.drive is None:
            return record
        settle(assembled.drive, result)
        came = summary_of(assembled.drive, agent_name(spec), "")
        return replace(record, verified=came.verified, commands=came.commands)

    def close(self) -> None:
        """Close the environment and the policies."""
        self._assembler.close()


class Seen:
    """A sink that keeps the few numbers which an episode's result does not hold."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._spreads: list[float] = []
        self._last: Step | None = None

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Remember the settled scene."""
        self._last = step

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Report life and remember the latest."""
        self._watch.tick(tick.index)
        self._last = step
        spread = tick.signals.get("dispersion", math.nan)
        if not math.isnan(spread):
            self._spreads.append(spread)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Need nothing more."""

    def dispersion(self) -> float | None:
        """Return the mean over ticks in metres, or None when there was none."""
        return math.fsum(self._spreads) / len(self._spreads) if self._spreads else None

    def predicates(self) -> dict[str, bool]:
        """Return the goal predicates at the last tick, where the simulator tells them."""
        truth = None if self._last is None else self._last.truth
        return {} if truth is None else dict(truth.predicates)


def _policy_digest(assembled: Assembled) -> str:
    policy = assembled.facts.policy
    return "" if policy is None else policy.digest


def _conventions(env: EnvSpec, policies: Sequence[PolicySpec | None]) -> dict[str, str]:
    said = {
        "environment": env.name,
        "control_hz": f"{env.control_hz:g}",
        "action": _action_text(env.action),
        "cameras": ", ".join(f"{c.name} {c.height}x{c.width}" for c in env.cameras),
        "quaternions": "xyzw",
        "images": "upright RGB",
    }
    replans = {p.name: f"{p.replan_steps} of {p.horizon}" for p in policies if p is not None}
    return said | {f"rows used of a chunk ({name})": text for name, text in replans.items()}


def _action_text(action: ActionSpec) -> str:
    scale = " ".join(f"{value:g}" for value in action.scale)
    return (
        f"{action.kind} ({' '.join(action.names)}) in the {action.frame} frame, scale {scale}, "
        f"gripper open {action.gripper_open:g} close {action.gripper_close:g}"
    )
