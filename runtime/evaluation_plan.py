"""What an evaluation is: which scenes, which arms, and the hashes that fix them.

An evaluation is planned (scenes and arms), identified (weights and versions, found by a worker)
and hashed. Each episode has a content key: a result found under its key is never run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zetta.runtime.core import Layout, RunSpec, Sensing
from zetta.runtime.errors import ConfigError
from zetta.runtime.rollouts.factory import Identity
from zetta.runtime.rollouts.messages import identity_to_json, spec_to_json

FOLDER_DIGITS = 12
"""Digits of the plan's hash in the name of its folder."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the things compared: a policy under a bundle, shown pictures of one setting."""

    name: str
    policy: str
    bundle: str = "none"
    render: str = "fast"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is asked: every arm on every start of every task."""

    sim: str
    tasks: tuple[tuple[str, int], ...]
    """Suite and index."""
    starts: tuple[tuple[Layout, int], ...]
    """Layout and scene seed, the same for every task."""
    arms: tuple[Arm, ...]
    policy_seeds: tuple[int, ...] = (0,)
    sensing: Sensing = "vision"
    options: Mapping[str, str] = field(default_factory=dict)
    own_seeds: bool = False
    """Each start has the one policy seed of its place, in the stead of every start every seed."""

    @property
    def episodes(self) -> int:
        """How many episodes that is."""
        seeds = 1 if self.own_seeds else len(self.policy_seeds)
        return len(self.tasks) * len(self.starts) * len(self.arms) * seeds

    def specs(self) -> Iterable[tuple[Arm, RunSpec]]:
        """Yield every episode, task by task, the arms of one scene side by side."""
        for suite, index in self.tasks:
            for place, (layout, seed) in enumerate(self.starts):
                for policy_seed in self._seeds(place):
                    for arm in self.arms:
                        yield arm, self._spec(arm, suite, index, layout, seed, policy_seed)

    def _seeds(self, place: int) -> tuple[int, ...]:
        return (self.policy_seeds[place],) if self.own_seeds else self.policy_seeds

    def _spec(
        self, arm: Arm, suite: str, index: int, layout: Layout, seed: int, policy_seed: int
    ) -> RunSpec:
        return RunSpec(
            sim=self.sim,
            suite=suite,
            task=index,
            layout=layout,
            seed=seed,
            policy=arm.policy,
            policy_seed=policy_seed,
            bundle=arm.bundle,
            sensing=self.sensing,
            render=arm.render,
            options=self.options,
        )


def arms_of(
    policies: Sequence[str], bundles: Sequence[str], renders: Sequence[str] = ("fast",)
) -> tuple[Arm, ...]:
    """Return one arm for each combination; what all arms share is not named.

    >>> [arm.name for arm in arms_of(["a", "b"], ["none"])]
    ['a:none', 'b:none']
    >>> [arm.name for arm in arms_of(["a"], ["none"], ["fast", "full"])]
    ['none@fast', 'none@full']

    Raises:
        ConfigError: a name is given twice, or none at all.
    """
    for what, names in (("policy", policies), ("arm", bundles), ("render setting", renders)):
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"each {what} must be named once, got {', '.join(names) or 'none'}")

    def name(policy: str, bundle: str, render: str) -> str:
        before = f"{policy}:" if len(policies) > 1 else ""
        return f"{before}{bundle}" + (f"@{render}" if len(renders) > 1 else "")

    return tuple(Arm(name(p, b, r), p, b, r) for p in policies for b in bundles for r in renders)


@dataclass(frozen=True, slots=True)
class Planned:
    """One episode of the plan under its content key."""

    key: str
    arm: str
    spec: RunSpec

    @property
    def scene(self) -> str:
        """The scene's name: equal for all arms and policy seeds."""
        return scene_name(self.spec)

    @property
    def group(self) -> str:
        """Task and render setting: episodes of one group share an environment."""
        return f"{self.spec.suite}/{self.spec.task} {self.spec.render}"


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation together with what was found to be running it."""

    evaluation: Evaluation
    identity: Identity
    episodes: tuple[Planned, ...]
    digest: str

    def folder(self, out: Path) -> Path:
        """Return where the shards of this plan lie below `out`."""
        return out / self.digest[:FOLDER_DIGITS]


def scene_name(spec: RunSpec) -> str:
    """Return `suite/task init 3` or `suite/task sampled seed 7`."""
    start = f"sampled seed {spec.seed}" if str(spec.layout) == "sampled" else f"init {spec.layout}"
    return f"{spec.suite}/{spec.task} {start}"


def content_key(spec: RunSpec, identity: Identity) -> str:
    """Return the SHA-256 of everything that decides how an episode goes."""
    content = {
        "spec": spec_to_json(spec),
        "policy": identity.policies.get(spec.policy, ""),
        "bundle": identity.bundles.get(spec.bundle, ""),
        "render_profile": identity.render_profiles.get(spec.render, ""),
        "versions": dict(identity.versions),
    }
    return _sha256(content)


def make_plan(evaluation: Evaluation, identity: Identity) -> Plan:
    """Return the plan: every episode under its key, and one hash over all of it.

    Raises:
        ConfigError: two episodes of the plan are the same.
    """
    episodes = tuple(
        Planned(content_key(spec, identity), arm.name, spec) for arm, spec in evaluation.specs()
    )
    if len({episode.key for episode in episodes}) < len(episodes):
        raise ConfigError("a task, a scene or an arm is named twice; name each once")
    digest = _sha256([[episode.arm, episode.key] for episode in episodes])
    return Plan(evaluation, identity, episodes, digest)


def describe(plan: Plan) -> dict[str, Any]:
    """Return what a reader must know beside the numbers, as plain JSON."""
    evaluation = plan.evaluation
    return {
        "sim": evaluation.sim,
        "tasks": [f"{suite}/{index}" for suite, index in evaluation.tasks],
        "starts": [{"layout": str(layout), "seed": seed} for layout, seed in evaluation.starts],
        "arms_planned": {
            a.name: {"policy": a.policy, "bundle": a.bundle, "render": a.render}
            for a in evaluation.arms
        },
        "arm_order": [arm.name for arm in evaluation.arms],
        "policy_seeds": list(evaluation.policy_seeds),
        "options": dict(sorted(evaluation.options.items())),
        **identity_to_json(plan.identity),
        "render_profile": ", ".join(dict.fromkeys(plan.identity.render_profiles.values())),
        "sensing": evaluation.sensing,
    }


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
