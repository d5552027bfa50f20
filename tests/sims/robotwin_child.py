"""What the RoboTwin adapter promises, asked in the interpreter that has RoboTwin: prints JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.core import Init, Sampled, Scene
from zetta.runtime.errors import InfraError
from zetta.sims.robotwin import tasks
from zetta.sims.robotwin.engine import Unusable
from zetta.sims.robotwin.env import RobotwinEnv
from zetta.sims.robotwin.simulator import RobotwinSimulator


def main() -> None:
    """Print what holds, by subject."""
    ours, sys.stdout = sys.stdout, sys.stderr  # RoboTwin prints
    found: dict[str, Any] = {name: solved(i) for i, name in enumerate(tasks.BLOCKS)}
    found["seeds"] = seeds()
    found["qpos"] = joints()
    found["ee"] = hands()
    found["pictures"] = pictures()
    ours.write(json.dumps(found) + "\n")
    ours.flush()


def made(suite: str, index: int) -> tuple[RobotwinEnv, Scene]:
    """Return an environment and its first scene."""
    simulator = RobotwinSimulator()
    env = simulator.make(suite, index)
    assert isinstance(env, RobotwinEnv)
    return env, Scene(simulator.task(suite, index), Init(0))


def solved(index: int) -> dict[str, bool]:
    """Return whether putting every block where it belongs is a success, and only that."""
    import sapien

    env, scene = made("robotwin_blocks", index)
    begun = env.reset(scene)
    task = env.engine.task
    if index < 2:
        bottom = np.array([0.0, -0.1, 0.765])
        blocks = [getattr(task, f"block{i + 1}") for i in range(2 + index)]
        places = [bottom + np.array([0.0, 0.0, 0.05 * i]) for i in range(len(blocks))]
    elif index < 4:
        blocks = [task.block1, task.block2, task.block3]
        heights = [float(np.asarray(block.get_pose().p)[2]) for block in blocks]
        places = [np.array([x, -0.1, z]) for x, z in zip((-0.1, 0.0, 0.1), heights, strict=True)]
    else:
        pad = np.asarray(task.target_box.get_pose().p, np.float64)
        blocks, places = [task.box], [pad + np.array([0.0, 0.0, 0.105])]
    for block, place in zip(blocks, places, strict=True):
        block.actor.set_pose(sapien.Pose(place))
    row = np.zeros(env.spec.action.size)
    row[6::7] = env.spec.action.gripper_open
    step = env.step(row)
    names = {mark.name for mark in env.landmarks()}
    env.close()
    return {
        "begins unsolved": not begun.success,
        "is solved when it is": step.success and step.terminated,
        "its things have names": len(names) == len(tasks.find("robotwin_blocks", index).things),
    }


def seeds() -> dict[str, bool]:
    """Return what happens with seeds that RoboTwin refuses."""
    env, scene = made("robotwin_blocks", 0)
    begin, asked = env.engine.begin, []

    def refusing(seed: int, first: int) -> None:
        asked.append(seed)
        if len(asked) <= first:
            raise Unusable("the box is not at rest")
        begin(seed)

    env.engine.begin = lambda seed: refusing(seed, 2)  # type: ignore[method-assign]
    env.reset(scene)
    after, again = env.pose().tobytes(), list(asked)
    asked.clear()
    env.reset(scene)
    repeated = env.pose().tobytes() == after and asked == again
    env.engine.begin = lambda seed: refusing(seed, 10**6)  # type: ignore[method-assign]
    try:
        env.reset(replace(scene, layout=Sampled(), seed=4))
        told = ""
    except InfraError as error:
        told = str(error)
    env.close()
    return {
        "the first seed is RoboTwin's own": again[0] == 100_000,
        "each refused seed is followed by another": len(set(again)) == 3,
        "equal scenes follow equal seeds": repeated,
        "the search is bounded and says why": "not at rest" in told and "another seed" in told,
    }


def joints() -> dict[str, bool]:
    """Return what holds for actions that name joints."""
    env, scene = made("robotwin_blocks_qpos", 0)
    begun = env.reset(scene).proprio
    row = np.concatenate([np.r_[arm.joint_pos, 1.0] for arm in begun.arms])
    row[1] += 0.2
    row[15] = 0.0
    step = env.step(row).proprio
    frozen = env.snapshot()
    onward = env.step(row + 0.01).proprio.arms[0].joint_pos.tobytes()
    env.restore(frozen)
    restored = env.step(row + 0.01).proprio.arms[0].joint_pos.tobytes()
    wild = env.step(np.full(16, 100.0)).proprio
    high = np.array(env.spec.action.high)
    env.close()
    return {
        "there are sixteen": env.spec.action.size == 16,
        "the joints go there": bool(np.abs(step.arms[0].joint_pos - row[:7]).max() < 0.01),
        "the other arm stays": bool(np.abs(step.arms[1].joint_pos - row[8:15]).max() < 0.01),
        "its gripper closes": step.arms[1].gripper_opening < 0.06,
        "a snapshot continues bit-exactly": onward == restored,
        "beyond the limits is clipped": bool((wild.arms[0].joint_pos < high[:7] + 0.02).all()),
    }


def hands() -> dict[str, bool]:
    """Return what holds for actions that name poses of the hands."""
    env, scene = made("robotwin_blocks_ee", 0)
    begun = env.reset(scene).proprio
    turns = [Rotation.from_quat(arm.ee_quat) for arm in begun.arms]
    row = np.concatenate(
        [np.r_[a.ee_pos, t.as_rotvec(), 1.0] for a, t in zip(begun.arms, turns, strict=True)]
    )
    held = env.step(row).proprio
    goal = row.copy()
    goal[:3] += [0.05, 0.02, -0.08]
    turn = Rotation.from_rotvec([0.0, 0.0, 0.4]) * turns[0]
    goal[3:6] = turn.as_rotvec()
    moved = env.step(goal).proprio
    far = goal.copy()
    far[7:10] = [1.9, 1.9, 1.9]
    stuck = env.step(far).proprio
    env.close()
    error = (Rotation.from_quat(moved.arms[0].ee_quat) * turn.inv()).magnitude()
    return {
        "there are fourteen": env.spec.action.size == 14,
        "a motion of no length holds both arms": all(
            bool(np.abs(a.ee_pos - b.ee_pos).max() < 0.002)
            for a, b in zip(held.arms, begun.arms, strict=True)
        ),
        "the hand goes there": bool(np.abs(moved.arms[0].ee_pos - goal[:3]).max() < 0.01),
        "and turns there": float(error) < 0.05,
        "the other hand stays": bool(np.abs(moved.arms[1].ee_pos - row[7:10]).max() < 0.005),
        "a pose out of reach holds the arm": bool(
            np.abs(stuck.arms[1].ee_pos - row[7:10]).max() < 0.01
        ),
    }


def pictures() -> dict[str, Any]:
    """Return how pictures are drawn here, and what is said where none are."""
    env, scene = made("robotwin_blocks", 0)
    env.reset(scene)
    profile, comparable = env.spec.render_profile, env.spec.versions["comparable"]
    told = ""
    if profile == "robotwin-none":
        try:
            env.observe(["head"])
        except InfraError as error:
            told = str(error)
    env.close()
    return {"profile": profile, "comparable": comparable, "told": told}


if __name__ == "__main__":
    main()
