"""A second process that shows what the first one must agree with.

`python libero_child.py FOLDER` reads `pose.npy`, and writes pictures to `pictures.npz` and what
happened to `report.json`. It prints nothing: whatever appears on stdout is not ours.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zetta.runtime.core import Action, Init, Sampled, Scene, SnapshotEnv, Step

SUITE, TASK = "libero_spatial", 4
"""A bowl in an open drawer, a second one on the cabinet: fixtures and things placed on them."""
SAMPLED_SEED = 11


def task_actions(count: int, seed: int = 0) -> list[Action]:
    """Return random actions that lead down to the table and into contact."""
    rng = np.random.default_rng(seed)
    drift = np.array([0.3, -0.1, -0.5, 0.0, 0.0, 0.0, 0.0])
    return list(np.clip(rng.normal(0.0, 0.6, (count, 7)) + drift, -1.0, 1.0))


def fingerprint(step: Step, pose: np.ndarray) -> str:
    """Return a hash of everything a step says and of the pose it led to."""
    assert step.truth is not None
    arm = step.proprio.arms[0]
    digest = hashlib.sha256(pose.tobytes())
    for array in (arm.ee_pos, arm.ee_quat, arm.joint_pos, *step.truth.objects.values()):
        digest.update(array.tobytes())
    flags = (step.success, step.terminated, step.truncated, step.proprio.t)
    digest.update(repr((flags, arm.gripper_opening, arm.gripper_velocity)).encode())
    return digest.hexdigest()


def trace(env: SnapshotEnv, actions: Sequence[Action]) -> list[str]:
    """Return the fingerprint of each step that `actions` lead to."""
    return [fingerprint(env.step(action), env.pose()) for action in actions]


def episode(env: SnapshotEnv, scene: Scene, ticks: int = 40) -> list[str]:
    """Return the fingerprints of a reset and of the random episode after it."""
    return [fingerprint(env.reset(scene), env.pose()), *trace(env, task_actions(ticks))]


def main(folder: Path) -> None:
    """Do what the module says."""
    from zetta.sims.libero.simulator import LiberoSimulator

    simulator = LiberoSimulator()
    np.random.seed(123)
    generator = np.random.get_state()[1].tobytes()
    env = simulator.make(SUITE, TASK, "full")
    cameras = [camera.name for camera in env.spec.cameras]

    env.show(np.load(folder / "pose.npy"))
    before = env.observe(cameras, depth=True)
    scene = Scene(simulator.task(SUITE, TASK), Init(0))
    sampled = episode(env, replace(scene, layout=Sampled(), seed=SAMPLED_SEED), ticks=5)
    other = episode(env, replace(scene, layout=Init(7), seed=5), ticks=15)
    first = episode(env, scene)
    env.show(np.load(folder / "pose.npy"))
    after = env.observe(cameras)
    untouched = np.random.get_state()[1].tobytes() == generator
    env.close()

    pictures = {f"before_{c}": before.images[c] for c in cameras}
    pictures |= {f"depth_{c}": before.depth[c] for c in cameras}
    pictures |= {f"after_{c}": after.images[c] for c in cameras}
    np.savez(folder / "pictures.npz", **pictures)
    report = {"sampled": sampled, "other": other, "first": first, "generator_untouched": untouched}
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
