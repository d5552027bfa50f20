"""The arms of an environment as the dry run knows them."""

from __future__ import annotations

from zetta.primitives.dry_run_reach import DryArm
from zetta.primitives.grasps import hand_of
from zetta.primitives.kinematics import Kinematics
from zetta.runtime.arm_model import ArmModels
from zetta.runtime.core import Env, Proprio
from zetta.runtime.workspace import BoundedEnv


def dry_arms(env: Env, home: Proprio) -> tuple[DryArm, ...]:
    """Return what an environment tells of its arms, in the order of `Proprio.arms`.

    Args:
        env: it may tell kinematics and workspaces, or neither.
        home: what the robot felt when the episode began.

    Raises:
        ConfigError: it tells kinematics, and the extra `drive` is not installed.
    """
    hand = hand_of(env.spec)
    arms: list[DryArm] = []
    for index, (name, state) in enumerate(zip(env.spec.arms, home.arms, strict=True)):
        model = env.arm_model(index) if isinstance(env, ArmModels) else None
        solver = None if model is None else Kinematics(model, state.joint_pos)
        box = env.workspace(index) if isinstance(env, BoundedEnv) else None
        arms.append(DryArm(name, state, box, solver, hand))
    return tuple(arms)
