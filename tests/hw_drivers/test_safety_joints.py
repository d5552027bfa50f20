"""The kernel with joint commands: the hand is guarded through the forward kinematics."""

from __future__ import annotations

import numpy as np
import pytest
from safe_runs import HAND, PANDA, READY, FollowingArm, Measured, run, sent

from zetta.hw_drivers.decisions import Command
from zetta.hw_drivers.safety import SafetyKernel
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

TICK = 0.05


def hand_of(joints: Array) -> Array:
    """Make a hand that swings with the first joint and rises with the second."""
    return np.array(
        [0.5 * np.cos(joints[0]), 0.5 * np.sin(joints[0]), 0.3 + 0.2 * (joints[1] + 0.785)]
    )


def test_joint_commands_need_the_forward_kinematics() -> None:
    with pytest.raises(ConfigError, match="forward kinematics"):
        SafetyKernel(PANDA, "joint_position")


@pytest.mark.parametrize("every", [1, 4, 10, 25])
def test_joint_commands_keep_every_joint_and_the_hand_within_limits(every: int) -> None:
    rng = np.random.default_rng(0)
    way = np.zeros(7)

    def ask(tick: int, last: Array) -> tuple[Command, str]:
        if tick % every == 0:
            way[:] = rng.uniform(-0.29, 0.29, 7) * rng.choice([0.1, 1.0])
        if tick % 31 == 30:
            return Command("joint_position", np.full(7, rng.choice([np.nan, 1e308, 9.0]))), "policy"
        return Command("joint_position", last + way), "policy"

    kernel = SafetyKernel(PANDA, "joint_position", hand_of)
    decisions = run(kernel, FollowingArm(READY, "joint_position"), ask, 250)
    rows = np.array([sent(d) for d in decisions])
    rates = (PANDA.joint.velocity * PANDA.drivers["policy"], PANDA.joint.acceleration)
    for order, limit in enumerate((*rates, PANDA.joint.jerk), start=1):
        assert (np.abs(np.diff(rows, order, axis=0)) <= limit * TICK**order * (1 + 1e-6)).all()
    assert (rows >= PANDA.joint_low - 1e-8).all()
    assert (rows <= PANDA.joint_high + 1e-8).all()
    hands = np.array([hand_of(row) for row in rows])
    assert all(PANDA.workspace.holds(hand, 1e-8) for hand in hands)
    assert np.linalg.norm(rows - READY, axis=1).max() > 0.05
    assert not any("internal error" in reason for d in decisions for reason in d.reasons)


def test_a_joint_that_jumps_is_refused_and_one_that_does_not_follow_stops() -> None:
    kernel = SafetyKernel(PANDA, "joint_position", hand_of)
    arm = FollowingArm(READY, "joint_position", share=0.0)
    far, near = READY + np.eye(7)[3] * 0.31, READY + np.eye(7)[6] * 0.29
    (jump,) = run(kernel, arm, lambda tick, last: (Command("joint_position", far), "policy"), 1)
    assert jump.verdict == "refused"
    assert "jump: panda_joint4" in jump.reasons[0]
    kernel = SafetyKernel(PANDA, "joint_position", hand_of)
    decisions = run(kernel, arm, lambda tick, last: (Command("joint_position", near), "policy"), 40)
    assert decisions[-1].verdict == "stopped"
    assert "does not follow: panda_joint7" in kernel.stopped


def test_a_forward_kinematics_that_fails_moves_nothing() -> None:
    def broken(joints: Array) -> Array:
        return np.full(3, np.nan)

    kernel = SafetyKernel(PANDA, "joint_position", broken)
    reading = Measured(0.0, HAND, np.array([0.0, 0.0, 0.0, 1.0]), READY)
    decision = kernel.admit(Command("joint_position", READY), reading, 0.0, "policy")
    assert (decision.sent, decision.verdict) == (None, "held")
