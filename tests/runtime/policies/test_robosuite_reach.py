"""What the stand-in does at robosuite's table and not at the twin's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_twin_reach import CUBE, HIT, TASK, seen

from zetta.runtime.core import Observation, read_only
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies import twin_reach
from zetta.runtime.policies.robosuite_reach import RISES_M, load
from zetta.runtime.policies.twin_reach import CAMERA

SITE = np.array([0.42, 0.0, 0.1])


def creeping(observation: Observation) -> Observation:
    """Let the fingers creep as they do on something soft."""
    arm = replace(observation.proprio.arms[0], gripper_velocity=-0.0011)
    return replace(observation, proprio=replace(observation.proprio, arms=(arm,)))


def spotted(observation: Observation) -> Observation:
    """Put a yellow spot of the arm, half a metre above the table, into the picture."""
    image = np.array(observation.images[CAMERA.name])
    depth = np.array(observation.depth[CAMERA.name])
    image[:6, :6], depth[:6, :6] = (230, 200, 20), 0.5
    return replace(
        observation,
        images={CAMERA.name: read_only(image, np.uint8)},
        depth={CAMERA.name: read_only(depth, np.float32)},
    )


def test_what_is_held_is_kept_and_raised_until_its_place_is_seen() -> None:
    policy = load("robosuite/reach-clumsy")
    policy.reset(TASK, HIT)
    rows = policy.infer(creeping(seen(0.0, SITE, opening=0.04, blind=True))).actions
    assert (rows[:, 6] > 0.0).all()
    assert (rows[:, 2] > 0.0).all()
    high = np.array([0.42, 0.0, RISES_M + 0.01])
    rows = policy.infer(creeping(seen(0.2, high, opening=0.04, blind=True))).actions
    assert (rows[:, 6] > 0.0).all()
    assert not rows[:, :3].any()
    rows = policy.infer(creeping(seen(0.4, SITE, opening=0.04))).actions
    assert (rows[:, 6] > 0.0).all()
    assert policy.state().aims is not None


def test_spots_of_the_arm_are_no_things_on_the_table() -> None:
    policies = [load("robosuite/reach"), twin_reach.load("twin/reach")]
    for policy in policies:
        policy.reset("put the red cube on the yellow cube", HIT)
        policy.infer(spotted(seen(0.0, SITE)))
    ours, theirs = (policy.state().aims for policy in policies)
    assert ours is None
    assert theirs is not None
    for policy in policies:
        policy.reset("pick up the red cube", HIT)
        policy.infer(spotted(seen(0.0, SITE)))
    aims = policies[0].state().aims
    assert aims is not None
    assert np.abs(aims.grasp[:2] - CUBE[:2]).max() < 0.01


def test_it_is_another_policy_than_the_twins_and_says_so() -> None:
    ours, theirs = load("robosuite/reach-clumsy"), twin_reach.load("twin/reach-clumsy")
    assert ours.spec.digest != theirs.spec.digest
    assert ours.spec.name == "robosuite/reach-clumsy"
    with pytest.raises(ConfigError, match="robosuite/reach"):
        load("robosuite/grab")
