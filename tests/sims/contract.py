"""What every simulator owes its users, checked on the simulated robot itself.

A simulator's own test module gives the facts of one task and gets the suite:

    class TestToyPick(EnvContract):
        facts = Facts("toy", "toy_pick", 0)

The environments live in processes of their own (`RemoteEnv`), whichever simulator it is. What the
facts cannot say is said by overriding a method: `axes` for another frame, `pushed` and `turned` for
another kind of action.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from contract_world import Facts, World
from env_contract import CHECKS, arrays
from scipy.spatial.transform import Rotation

from zetta.runtime.core import (
    Action,
    Camera,
    Observation,
    Step,
)
from zetta.runtime.errors import ConnectionLost, SpecMismatch

OUTSIDE: Mapping[str, str] = {
    "only_observe_draws": "it watches this process, and the drawing is done in another",
    "expert_acts_within_the_spec": "an expert drives the environment itself, in its own process",
    "close_may_be_called_twice": "the last test of the suite closes twice",
}
"""Checks of `env_contract.py` that are not asked here, and why."""
_AXES = {"x": 0, "y": 1, "z": 2}
_NEAR_M = 0.25
"""Nothing but the gripper is as near to a camera on the hand while the hand is up."""

_HAND_M = 0.15
"""How far from the grip site the parts of a hand are."""
_CACHES = ("zetta-matplotlib-", "zetta-meshes-", "zetta-robotwin-")
"""What a simulator keeps on purpose, for its next process."""

__all__ = ["EnvContract", "Facts", "World"]


class EnvContract:
    """The suite; a subclass whose name begins with `Test` runs it for its `facts`."""

    facts: ClassVar[Facts]

    @pytest.fixture(scope="class")
    @classmethod
    def world(cls) -> Iterator[World]:
        """The task in two processes."""
        made = World(cls.facts)
        yield made
        made.close()

    # ------------------------------------------------------------------ may be overridden

    def axes(self, world: World, arm: int) -> np.ndarray:
        """Return the axes of the action frame as columns in the world. Shape (3, 3)."""
        if world.spec.action.frame == "world":
            return np.eye(3)
        told = world.env.arm_model(arm)
        assert told is not None, "the action frame is the arm's; its pose must be told"
        return np.asarray(told.T_world_base[:3, :3])

    def pushed(self, world: World, start: Step, arm: int, axis: int, sign: float) -> Action:
        """Return the row that moves one hand along an axis of the action frame."""
        row = world.rest(start)
        row[world.columns(arm, "move")[axis]] += sign * self.facts.push
        return row

    def turned(self, world: World, start: Step, arm: int, axis: int) -> Action:
        """Return the row that turns one hand about an axis of the action frame."""
        row = world.rest(start)
        columns = world.columns(arm, "turn")
        if world.spec.action.kind == "target_pose":
            by = Rotation.from_rotvec(self.facts.turn * np.eye(3)[axis])
            row[columns] = (by * Rotation.from_rotvec(row[columns])).as_rotvec()
        else:
            row[columns[axis]] = self.facts.turn
        return row

    def gripped(self, world: World, start: Step, arm: int, closing: bool) -> Action:
        """Return the row that holds still and opens or closes one gripper."""
        row, action = world.rest(start), world.spec.action
        command = action.gripper_close if closing else action.gripper_open
        row[world.columns(arm, "gripper")] = command
        return row

    # ------------------------------------------------------------------ words and scenes

    @pytest.mark.parametrize("name", [name for name in CHECKS if name not in OUTSIDE])
    def test_it_keeps_the_contract_of_every_environment(self, world: World, name: str) -> None:
        if name in self.facts.leaves_out:
            pytest.skip(self.facts.leaves_out[name])
        CHECKS[name](world.subject)

    def test_checks_that_are_left_out_exist_and_say_why(self) -> None:
        assert set(self.facts.leaves_out) <= set(CHECKS)
        assert all(self.facts.leaves_out.values())

    def test_hands_begin_inside_their_workspace(self, world: World) -> None:
        for index, arm in enumerate(world.begun().proprio.arms):
            box = world.env.workspace(index)
            assert box is None or box.holds(arm.ee_pos)

    def test_the_kinematics_that_are_told_are_those_of_the_arm(self, world: World) -> None:
        start = world.begun()
        for index, state in enumerate(start.proprio.arms):
            told = world.env.arm_model(index)
            if told is None:
                continue
            mujoco = pytest.importorskip("mujoco", reason="needs zetta[drive]")
            model = mujoco.MjModel.from_xml_string(told.mjcf)
            posed = mujoco.MjData(model)
            for name, angle in zip(told.joints, state.joint_pos, strict=True):
                posed.qpos[model.joint(name).qposadr[0]] = angle
            mujoco.mj_kinematics(model, posed)
            grip = told.T_world_base @ np.append(posed.site(told.site).xpos, 1.0)
            np.testing.assert_allclose(grip[:3], state.ee_pos, atol=1e-4)

    # ------------------------------------------------------------------ the robot

    @pytest.mark.parametrize("axis", list(_AXES))
    @pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
    def test_a_push_moves_the_commanded_hand_along_that_axis(
        self, world: World, axis: str, sign: float
    ) -> None:
        for arm in range(len(world.spec.arms)):
            start = world.begun()
            end = world.held(
                self.pushed(world, start, arm, _AXES[axis], sign), self.facts.ticks
            ).proprio.arms
            before = start.proprio.arms
            way = self.axes(world, arm).T @ (end[arm].ee_pos - before[arm].ee_pos)
            assert sign * way[_AXES[axis]] > self.facts.moves_m
            aside = np.abs(np.delete(way, _AXES[axis])).max()
            assert aside < self.facts.slant * abs(way[_AXES[axis]])
            for other in set(range(len(world.spec.arms))) - {arm}:
                drift = np.linalg.norm(end[other].ee_pos - before[other].ee_pos)
                assert drift < self.facts.still_m

    @pytest.mark.parametrize("axis", list(_AXES))
    def test_a_turn_turns_the_commanded_hand_about_that_axis(self, world: World, axis: str) -> None:
        for arm in range(len(world.spec.arms)):
            start = world.begun()
            row = self.turned(world, start, arm, _AXES[axis])
            end = world.held(row, self.facts.ticks).proprio.arms[arm].ee_quat
            before = start.proprio.arms[arm].ee_quat
            turn = (Rotation.from_quat(end) * Rotation.from_quat(before).inv()).as_rotvec()
            turn = self.axes(world, arm).T @ turn
            assert turn[_AXES[axis]] > self.facts.turns_rad
            aside = np.abs(np.delete(turn, _AXES[axis])).max()
            assert aside < self.facts.slant * turn[_AXES[axis]]

    def test_close_closes_and_open_opens(self, world: World) -> None:
        if not self.facts.fingers:
            pytest.skip("the arms carry tools")
        for arm in range(len(world.spec.arms)):
            start = world.begun()
            ticks = self.facts.grip_ticks
            closing = world.held(self.gripped(world, start, arm, True), 2).proprio.arms[arm]
            closed = world.held(self.gripped(world, start, arm, True), ticks).proprio.arms[arm]
            opened = world.held(self.gripped(world, start, arm, False), ticks).proprio.arms[arm]
            assert closing.gripper_velocity < 0.0
            assert closed.gripper_opening < self.facts.closed_m
            assert opened.gripper_opening > self.facts.opened_m

    def test_what_exceeds_the_limits_is_treated_as_declared(self, world: World) -> None:
        ends = []
        for factor in (1.0, 1000.0):
            start = world.begun()
            row = world.rest(start)
            column = world.columns(0, "move")[0]
            row[column] = factor * max(world.spec.action.high[column], 1e-3)
            if factor > 1.0 and self.facts.beyond == "refused":
                with pytest.raises(SpecMismatch):
                    world.env.step(row)
                return
            ends.append(world.held(row, 3).proprio.arms[0].ee_pos)
        np.testing.assert_array_equal(*ends)

    # ------------------------------------------------------------------ pictures

    def test_a_wrist_picture_shows_the_gripper_at_the_bottom(self, world: World) -> None:
        """Closing the fingers changes near pixels, and those are in the lower half."""
        wrists = [camera.name for camera in world.spec.cameras if camera.mount == "wrist"]
        if not wrists or not self.facts.fingers:
            pytest.skip("no camera sees a gripper from its wrist")
        for camera in wrists:
            arm = next((k for k, a in enumerate(world.spec.arms) if camera.startswith(a)), 0)
            start = world.begun()
            world.held(self.gripped(world, start, arm, False), self.facts.grip_ticks)
            opened = world.env.observe([camera], depth=True)
            world.held(self.gripped(world, start, arm, True), self.facts.grip_ticks)
            closed = world.env.observe([camera], depth=True)
            rows, columns = np.nonzero(_changed(opened, closed, camera))
            height, width = opened.images[camera].shape[:2]
            assert len(rows) > height * width / 1000
            assert rows.mean() > 0.55 * height, camera
            assert 0.25 * width < columns.mean() < 0.75 * width, camera

    def test_a_moving_hand_moves_in_the_picture_as_calibration_says(self, world: World) -> None:
        """A picture that is turned, mirrored or of another camera shows another way."""
        cameras = [camera.name for camera in world.spec.cameras if camera.mount == "world"]
        ways: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in cameras}
        for arm, axis in np.ndindex(len(world.spec.arms), 3):
            start = world.begun()
            before = world.env.observe(cameras, depth=True)
            row = self.pushed(world, start, arm, axis, -1.0)
            hand = world.held(row, 2 * self.facts.ticks).proprio.arms[arm].ee_pos
            after = world.env.observe(cameras, depth=True)
            for camera in cameras:
                found = _way_seen(before, after, camera, (start.proprio.arms[arm].ee_pos, hand))
                ways[camera] += [] if found is None else [found]
        for camera, found in ways.items():
            seen, told = (np.array(part) for part in zip(*found, strict=True))
            agreement = (seen * told).sum(axis=0) / np.abs(seen * told).sum(axis=0)
            assert (agreement > 0.5).all(), (camera, found)

    def test_world_cameras_have_the_sky_above(self, world: World) -> None:
        world.begun()
        for camera in world.spec.cameras:
            if camera.mount == "world":
                told = world.env.observe([camera.name]).cameras[camera.name]
                assert told.T_world_cam[2, 1] < 0.0 or abs(told.T_world_cam[2, 2]) > 0.95

    def test_pictures_of_a_scene_are_those_of_any_process(self, world: World) -> None:
        cameras = [camera.name for camera in world.spec.cameras]
        for env in (world.env, world.spare):
            env.reset(world.scene)
        one, other = (env.observe(cameras) for env in (world.env, world.spare))
        for camera in cameras:
            gap = np.abs(one.images[camera].astype(float) - other.images[camera])
            assert gap.mean() <= self.facts.picture_tolerance, camera

    def test_observations_share_no_memory(self, world: World) -> None:
        world.begun()
        cameras = [world.spec.cameras[0].name]
        first = world.env.observe(cameras, depth=True)
        kept = [array.copy() for array in arrays(first)]
        second = world.env.observe(cameras, depth=True)
        for one, other in zip(arrays(first), arrays(second), strict=True):
            assert not one.flags.writeable
            assert not np.shares_memory(one, other)
        world.held(self.pushed(world, world.begun(), 0, 0, 1.0), self.facts.ticks)
        world.env.observe(cameras, depth=True)
        for array, copy in zip(arrays(first), kept, strict=True):
            np.testing.assert_array_equal(array, copy)

    # ------------------------------------------------------------------ the end

    def test_close_leaves_nothing(self, world: World) -> None:
        """The last one: nothing is open afterwards."""
        shared = [path for env in (world.env, world.spare) for path in _shared_memory(env.pid)]
        pids = [env.pid for env in (world.env, world.spare)]
        for env in (world.env, world.spare, world.env, world.spare):
            env.close()
        assert [pid for pid in pids if not _ended(pid)] == []
        assert [path for path in shared if path.exists()] == []
        left = sorted(path.name for path in world.folder.iterdir())
        assert [name for name in left if not name.startswith(_CACHES)] == []
        with pytest.raises(ConnectionLost, match="closed"):
            world.env.observe()


def project(camera: Camera, point: np.ndarray) -> np.ndarray:
    """Return column and row of a world point in pixels, and its depth in metres. Shape (3,)."""
    u, v, w = camera.intrinsics @ (np.linalg.inv(camera.T_world_cam) @ np.append(point, 1.0))[:3]
    return np.array([u / w, v / w, w])


def _changed(one: Observation, other: Observation, camera: str) -> np.ndarray:
    """Return where something near is in one picture and not in the other. Shape (H, W)."""
    near = np.minimum(one.depth[camera], other.depth[camera]) < _NEAR_M
    moved = np.abs(one.depth[camera] - other.depth[camera]) > 0.01
    colour = np.abs(one.images[camera].astype(int) - other.images[camera]).max(axis=2) > 15
    return np.asarray(near & moved & colour)


def _way_seen(
    before: Observation, after: Observation, camera: str, hand: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how a hand moves in the picture and by calibration, in columns and rows.

    What is as far away as the hand and is only there before, or only after, is taken for the hand.
    None where too little of it is seen.
    """
    gap = after.depth[camera] - before.depth[camera]
    middles, places = [], []
    for seen, point, there in ((before, hand[0], gap > 0.02), (after, hand[1], gap < -0.02)):
        column, row, away = project(seen.cameras[camera], point)
        is_hand = there & (np.abs(seen.depth[camera] - away) < _HAND_M)
        rows, columns = np.nonzero(is_hand)
        if len(rows) < is_hand.size / 1500:
            return None
        middles.append(np.array([columns.mean(), rows.mean()]))
        places.append(np.array([column, row]))
    return middles[1] - middles[0], places[1] - places[0]


def _shared_memory(pid: int) -> list[Path]:
    """Return the named shared memory that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return []
    return [Path(line.split()[-1]) for line in maps.splitlines() if " /dev/shm/" in line]


def _ended(pid: int) -> bool:
    """Say whether a process and its group are gone, within some seconds."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
