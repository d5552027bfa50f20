from __future__ import annotations

from dataclasses import replace

import pytest

from zetta.runtime.core import Init, RunSpec, Sampled
from zetta.runtime.errors import ConfigError
from zetta.runtime.evaluation_plan import Evaluation, arms_of, content_key, make_plan
from zetta.runtime.rollouts.factory import Identity
from zetta.runtime.rollouts.messages import (
    identity_from_json,
    identity_to_json,
    spec_from_json,
    spec_to_json,
)

SPEC = RunSpec("toy", "toy_pick", 1, Init(3), policy="p", bundle="b", options={"temperature": "0"})
IDENTITY = Identity(
    {"p": "weights"}, {"b": "content"}, {"fast": "toy-fast"}, "vision", {"toy": "1"}
)
EVALUATION = Evaluation(
    sim="toy",
    tasks=(("toy_pick", 0), ("toy_slip", 2)),
    starts=((Init(0), 0), (Init(1), 0)),
    arms=arms_of(["p"], ["none", "b"]),
    policy_seeds=(0, 1),
)


@pytest.mark.parametrize(
    "spec",
    [
        replace(SPEC, suite="toy_slip"),
        replace(SPEC, task=2),
        replace(SPEC, layout=Sampled()),
        replace(SPEC, layout=Init(4)),
        replace(SPEC, seed=1),
        replace(SPEC, policy="q"),
        replace(SPEC, policy_seed=1),
        replace(SPEC, bundle="none"),
        replace(SPEC, sensing="oracle"),
        replace(SPEC, render="full"),
        replace(SPEC, options={"temperature": "1"}),
    ],
)
def test_key_changes_with_everything_that_is_asked(spec: RunSpec) -> None:
    assert content_key(spec, IDENTITY) != content_key(SPEC, IDENTITY)


@pytest.mark.parametrize(
    "identity",
    [
        replace(IDENTITY, policies={"p": "other weights"}),
        replace(IDENTITY, bundles={"b": "other content"}),
        replace(IDENTITY, render_profiles={"fast": "toy-full"}),
        replace(IDENTITY, versions={"toy": "2"}),
    ],
)
def test_key_changes_with_everything_that_is_found(identity: Identity) -> None:
    assert content_key(SPEC, identity) != content_key(SPEC, IDENTITY)


def test_key_does_not_depend_on_what_another_arm_runs() -> None:
    profiles = {"fast": "toy-fast", "full": "toy-full"}
    wider = replace(IDENTITY, policies={"p": "weights", "q": "x"}, render_profiles=profiles)
    assert content_key(SPEC, wider) == content_key(SPEC, IDENTITY)


def test_plan_holds_every_episode_once_with_the_arms_of_a_scene_side_by_side() -> None:
    plan = make_plan(EVALUATION, IDENTITY)
    assert len(plan.episodes) == EVALUATION.episodes == 16
    assert len({episode.key for episode in plan.episodes}) == 16
    assert [episode.arm for episode in plan.episodes[:2]] == ["none", "b"]
    assert plan.episodes[0].scene == plan.episodes[1].scene == "toy_pick/0 init 0"
    groups = [episode.group for episode in plan.episodes]
    assert groups == sorted(groups)


def test_plan_hash_changes_with_the_scenes() -> None:
    longer = replace(EVALUATION, starts=(*EVALUATION.starts, (Init(2), 0)))
    assert make_plan(longer, IDENTITY).digest != make_plan(EVALUATION, IDENTITY).digest


def test_scene_named_twice_is_refused() -> None:
    doubled = replace(EVALUATION, starts=EVALUATION.starts * 2)
    with pytest.raises(ConfigError, match="named twice"):
        make_plan(doubled, IDENTITY)


@pytest.mark.parametrize(
    ("policies", "bundles"), [(["p", "p"], ["none"]), (["p"], []), ([], ["b"])]
)
def test_arm_without_name_or_named_twice_is_refused(
    policies: list[str], bundles: list[str]
) -> None:
    with pytest.raises(ConfigError, match="named once"):
        arms_of(policies, bundles)


def test_records_survive_the_pipe() -> None:
    assert spec_from_json(spec_to_json(SPEC)) == SPEC
    sampled = replace(SPEC, layout=Sampled(), seed=5)
    assert spec_from_json(spec_to_json(sampled)) == sampled
    assert identity_from_json(identity_to_json(IDENTITY)) == IDENTITY
