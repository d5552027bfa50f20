"""Scans: pictures of shuffled layouts in which every object is labelled, without any grasping.

A scan costs two seconds and teaches where each named thing is; a demonstration costs as much and
teaches it for one. The labels of motion come from a kinematic copy of the expert.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.demonstrations import FRAME_EVERY
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.errands import Errand, errands
from zetta.sims.libero.expert_carrying import PickPlace
from zetta.sims.libero.expert_grasps import Grasp
from zetta.sims.libero.expert_motions import Arm, Intent, delta_action, upright
from zetta.sims.libero.expert_places import grip_style, placing
from zetta.sims.libero.layouts import Shuffle, reset_shuffled
from zetta.sims.libero.world import World

FRAMES = 12
NEAR_SHARE = 0.65
"""Share of waypoints that lie close to some object."""
DRIFT = 0.25


@dataclass(frozen=True, slots=True)
class Scan:
    """F poses of one layout with M labelled objects."""

    suite: str
    task: int
    shuffle: Shuffle
    instructions: tuple[str, ...]
    """One for each object."""
    proprio: npt.NDArray[np.float32]
    """Position 3, quaternion xyzw 4, opening, velocity. Shape (F, 9)."""
    grasp: npt.NDArray[np.float32]
    """Grasp points, world. Shape (F, M, 3)."""
    facing: npt.NDArray[np.float32]
    """Orientation of the grip site at the grasp. Shape (F, M, 3, 3)."""
    hand: npt.NDArray[np.float32]
    """Orientation of the grip site now. Shape (F, 3, 3)."""
    destination: npt.NDArray[np.float32]
    """Shape (F, M, 3)."""
    poses: npt.NDArray[np.float32]
    """Shape (F, N)."""


def scan(env: LiberoEnv, shuffle: Shuffle) -> Scan | None:
    """Shuffle the scene, let the hand wander and note where everything is.

    Returns:
        None when an object offers no free grasp.
    """
    rng = np.random.default_rng([shuffle.seed, shuffle.init, 11])
    step = reset_shuffled(env, shuffle)
    world, asked = World(env.control), errands(env)
    planned = [plan(world, e) for e in asked]
    if any(g is None for g in planned):
        return None
    grasps = [g for g in planned if g is not None]
    started = np.array([world.position(e.subject) for e in asked])
    rows: list[tuple[Array, ...]] = []
    wander = Wander(world, rng)
    rotation = upright(world.ee_rot)
    for tick in range(FRAMES * FRAME_EVERY):
        moved = np.array([world.position(e.subject) for e in asked]) - started
        points = np.array([g.point for g in grasps]) + moved
        if tick % FRAME_EVERY == 0:
            arm = step.proprio.arms[0]
            rows.append(
                (
                    np.concatenate(
                        [arm.ee_pos, arm.ee_quat, [arm.gripper_opening, arm.gripper_velocity]]
                    ),
                    points,
                    np.array([upright(world.ee_rot, g.yaw) for g in grasps]),
                    world.ee_rot,
                    np.array([placing(world, e.goal).point() for e in asked]),
                    env.pose(),
                )
            )
        step = env.step(wander.action(points, rotation))
    felt, grasp, facing, hand, goal, poses = (
        np.asarray(x, np.float32) for x in zip(*rows, strict=True)
    )
    return Scan(
        env.task.suite,
        env.task.index,
        shuffle,
        tuple(e.instruction for e in asked),
        felt,
        grasp,
        facing,
        hand,
        goal,
        poses,
    )


def plan(world: World, errand: Errand) -> Grasp | None:
    """Return the grasp that the expert would choose, or None when there is none."""
    style, place = grip_style(world, errand.goal), placing(world, errand.goal)
    try:
        return PickPlace(Arm(world, Intent()), errand.subject, style, place).plan()
    except RuntimeError:
        return None


class Wander:
    """Moves the hand from waypoint to waypoint, most of them just beside or above an object."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._world, self._rng = world, rng
        self._goal: Array | None = None
        self._ticks = 0
        self._drift = np.zeros(6)

    def action(self, points: Array, rotation: Array) -> Array:
        """Return the next action; `points` are the grasp points, shape (M, 3)."""
        hand = self._world.ee_pos
        self._ticks += 1
        if self._goal is None or np.linalg.norm(self._goal - hand) < 0.02 or self._ticks > 16:
            self._goal, self._ticks = self._waypoint(points), 0
        target = self._goal.copy()
        if np.linalg.norm((target - hand)[:2]) > 0.05:
            target[2] = max(target[2], float(points[:, 2].max()) + 0.08)
        action = delta_action(hand, self._world.ee_rot, target, rotation, -1.0)
        self._drift = 0.8 * self._drift + 0.6 * DRIFT * self._rng.normal(size=6)
        action[:6] = np.clip(action[:6] + self._drift * [1, 1, 1, 0.15, 0.15, 0.15], -1, 1)
        return action

    def _waypoint(self, points: Array) -> Array:
        rng = self._rng
        if rng.random() < NEAR_SHARE:
            radius, angle = rng.uniform(0, 0.045), rng.uniform(0, 2 * np.pi)
            offset = [radius * np.cos(angle), radius * np.sin(angle), rng.uniform(0.015, 0.13)]
            return np.asarray(points[rng.integers(len(points))] + offset)
        low, high = points.min(0) - 0.06, points.max(0) + 0.06
        spot = rng.uniform(low[:2], high[:2])
        return np.array([*spot, float(points[:, 2].max()) + rng.uniform(0.05, 0.25)])


# --------------------------------------------------------------------------- files

_ARRAYS = ("proprio", "grasp", "facing", "hand", "destination", "poses")


def save_scans(path: Path, scans: list[Scan]) -> None:
    """Write scans of one task to one compressed file, atomically."""
    head = [
        {
            "suite": s.suite,
            "task": s.task,
            "init": s.shuffle.init,
            "seed": s.shuffle.seed,
            "instructions": list(s.instructions),
        }
        for s in scans
    ]
    arrays = {f"{i}.{name}": getattr(s, name) for i, s in enumerate(scans) for name in _ARRAYS}
    temporary = path.with_suffix(".part.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        temporary,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        **arrays,
    )
    temporary.replace(path)


def read_scans(path: Path) -> Iterator[Scan]:
    """Yield the scans of a file.

    Raises:
        ConfigError: the file is damaged or of another kind.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for i, entry in enumerate(json.loads(arrays["head"].tobytes())):
            yield Scan(
                entry["suite"],
                int(entry["task"]),
                Shuffle(int(entry["init"]), int(entry["seed"])),
                tuple(entry["instructions"]),
                **{name: arrays[f"{i}.{name}"] for name in _ARRAYS},
            )
    except UNREADABLE as error:
        raise ConfigError(f"{path} holds no scans: {error}") from error
