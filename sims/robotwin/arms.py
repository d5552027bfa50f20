"""The two arms of RoboTwin: what they sense, what they are told, where they may be.

Orientations: RoboTwin's hands approach along x and close along y, quaternions are wxyz; ours
approach along z and close along y, quaternions are xyzw. Positions are those between the
fingertips, in the frame of the world, which both arms share.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, ActionSpec, ArmState, Array, read_only
from zetta.runtime.workspace import Box
from zetta.sims.robotwin.engine import PHYSICS_HZ
from zetta.sims.robotwin.tasks import ARMS, Acting
from zetta.sims.sapien_chain import Chain, matrix

COLUMNS: Final = 7
SUBSTEPS: Final = (12, 13)
"""Steps of RoboTwin's physics in a tick, by turns: 250 a second for 20 ticks."""
_AXES = ("dx", "dy", "dz", "rx", "ry", "rz", "gripper")
_SCALE = (0.025,) * 3 + (0.2,) * 3 + (1.0,)
"""Metres and radians per 1.0 at a fixed rate."""
SHARE: Final = 0.7
"""Of what a tick asks for, how much it carries out: operational-space controllers end short too,
and whoever tracks a goal counts on it (`runtime/tracking.py`)."""
_MOST_RAD = 0.125
"""By which a joint turns in a tick at most: 2.5 rad/s, about what the Panda's may."""
_LEAD_RAD = 0.06
"""By which a joint's command may be ahead of it: an arm that is stopped pushes no harder."""
_POSE = ("x", "y", "z", "rx", "ry", "rz", "gripper")
_FAR_M, _FAR_RAD = 2.0, 2.0 * np.pi
_TO_OURS: Final = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
"""RoboTwin's axes of a hand times this are ours. Shape (3, 3)."""
_BEHIND_M: Final = 0.12
"""RoboTwin's end-effector actions name a point so far behind the one between the fingertips."""
_REACH = ((-0.45, 0.45), (-0.30, 0.30))
"""The table under the hands, x and y in the world, metres."""
_TABLE_Z, _CLEAR, _HEIGHT = 0.74, 0.005, 0.60


class Arms:
    """The arms of one world of RoboTwin; a new world has new ones."""

    def __init__(self, task: Any) -> None:
        """Read the chains of the robot."""
        self._task, self._robot = task, task.robot
        self._arms = tuple(_Arm(task, side) for side in ARMS)

    def states(self) -> tuple[ArmState, ...]:
        """Return what each arm senses of itself."""
        return tuple(arm.state() for arm in self._arms)

    def model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm, its base where it stands."""
        return self._arms[index].model() if 0 <= index < len(self._arms) else None

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm may be: over the table."""
        if not 0 <= index < len(self._arms):
            return None
        (x0, x1), (y0, y1) = _REACH
        ground = _TABLE_Z + float(self._task.table_z_bias)
        return Box((x0, y0, ground + _CLEAR), (x1, y1, ground + _HEIGHT))

    def drive(self, row: Action, tick: int) -> None:
        """Advance one tick of the fixed rate; what exceeds the limits is clipped to them."""
        steps = SUBSTEPS[tick % len(SUBSTEPS)]
        clipped = np.clip(row, -1.0, 1.0).reshape(len(self._arms), COLUMNS)
        ways = [arm.way(part) for arm, part in zip(self._arms, clipped, strict=True)]
        for i in range(1, steps + 1):
            for arm, part, (start, goal) in zip(self._arms, clipped, ways, strict=True):
                way = goal - start
                target, speed = start + way * (i / steps), way * (PHYSICS_HZ / steps)
                self._robot.set_arm_joints(target, speed, arm.side)
                self._robot.set_gripper((1.0 - part[6]) / 2.0, arm.side)
            self._task.scene.step()

    def engine_row(self, row: Action, acting: Acting) -> Action:
        """Return RoboTwin's row for ours, clipped to the limits of joints and grippers."""
        if acting == "qpos":
            low, high = self.joint_limits()
            return np.clip(row, low, high)
        return np.concatenate([_engine_pose(part) for part in row.reshape(-1, COLUMNS)])

    def joint_limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest row of joint positions. Shape (A,) each."""
        low = [[*arm.chain.low, 0.0] for arm in self._arms]
        high = [[*arm.chain.high, 1.0] for arm in self._arms]
        return np.concatenate(low), np.concatenate(high)

    def spec(self, acting: Acting) -> ActionSpec:
        """Return the action convention of a way to act."""
        if acting == "qpos":
            return self._joints_spec()
        columns, both = len(ARMS), [f"{side}_" for side in ARMS]
        if acting == "rate":
            names = tuple(f"{side}{axis}" for side in both for axis in _AXES)
            limit = (1.0,) * len(names)
            return ActionSpec(
                "delta_pose", names, tuple(-x for x in limit), limit, _SCALE * columns
            )
        names = tuple(f"{side}{axis}" for side in both for axis in _POSE)
        high = ((_FAR_M,) * 3 + (_FAR_RAD,) * 3 + (1.0,)) * columns
        low = ((-_FAR_M,) * 3 + (-_FAR_RAD,) * 3 + (0.0,)) * columns
        return ActionSpec("waypoint", names, low, high, (1.0,) * len(names), "world", 1.0, 0.0)

    def _joints_spec(self) -> ActionSpec:
        names = tuple(
            f"{arm.side}_{name}"
            for arm in self._arms
            for name in (*(f"joint{i + 1}" for i in range(len(arm.chain.low))), "gripper")
        )
        low, high = (tuple(float(x) for x in bound) for bound in self.joint_limits())
        return ActionSpec("waypoint", names, low, high, (1.0,) * len(names), "world", 1.0, 0.0)


class _Arm:
    """One of them."""

    def __init__(self, task: Any, side: str) -> None:
        robot = task.robot
        self.side = side
        self._entity = getattr(robot, f"{side}_entity")
        self._tcp = getattr(robot, f"get_{side}_tcp_pose")
        joints = getattr(robot, f"{side}_arm_joints")
        hand = getattr(robot, f"{side}_ee")
        active = self._entity.get_active_joints()
        self._columns = [active.index(joint) for joint in joints]
        fingers = [finger[0] for finger in getattr(robot, f"{side}_gripper")]
        self._fingers = [active.index(joint) for joint in fingers]
        self._shut = float(getattr(robot, f"{side}_gripper_scale")[0])
        self._rest = np.array(getattr(robot, f"{side}_homestate"), np.float64)
        grip = np.linalg.inv(matrix(hand.child_link.entity_pose)) @ self.pose()
        self.chain = Chain(hand, joints, grip)
        self._drives = joints

    def pose(self) -> Array:
        """Return the place between the fingertips in the world, in our axes. Shape (4, 4)."""
        told = np.asarray(self._tcp(), np.float64)
        pose = np.eye(4)
        pose[:3, 3] = told[:3]
        turn = np.roll(told[3:], -1)  # wxyz -> xyzw
        pose[:3, :3] = Rotation.from_quat(turn).as_matrix() @ _TO_OURS
        return pose

    def state(self) -> ArmState:
        pose = self.pose()
        places, speeds = self._entity.get_qpos(), self._entity.get_qvel()
        opening = sum(abs(float(places[i]) - self._shut) for i in self._fingers)
        velocity = sum(float(speeds[i]) for i in self._fingers)
        return ArmState(
            ee_pos=read_only(pose[:3, 3]),
            ee_quat=read_only(Rotation.from_matrix(pose[:3, :3]).as_quat()),
            joint_pos=read_only(places[self._columns]),
            gripper_opening=opening,
            gripper_velocity=velocity,
        )

    def model(self) -> ArmModel:
        return self.chain.model(self._base())

    def way(self, part: Array) -> tuple[Array, Array]:
        """Return from where to where the drives of the joints go in a tick. Shape (J,) each."""
        start = np.array([float(joint.get_drive_target()[0]) for joint in self._drives])
        if not part[:6].any():
            return start, start
        now = self._entity.get_qpos()[self._columns].astype(np.float64)
        base = self._base()
        goal = base @ self.chain.forward(start)[0]
        move = SHARE * part[:6] * np.array(_SCALE[:6])
        goal[:3, 3] += move[:3]
        goal[:3, :3] = Rotation.from_rotvec(move[3:]).as_matrix() @ goal[:3, :3]
        found = self.chain.toward(start, np.linalg.inv(base) @ goal, self._rest)
        found = start + np.clip(found - start, -_MOST_RAD, _MOST_RAD)
        return start, now + np.clip(found - now, -_LEAD_RAD, _LEAD_RAD)

    def _base(self) -> Array:
        return matrix(self._entity.get_root_pose())


def _engine_pose(part: Array) -> Array:
    """Return RoboTwin's pose and gripper of an arm for ours: xyz, quaternion wxyz, 0 to 1."""
    turn = Rotation.from_rotvec(part[3:6]).as_matrix() @ _TO_OURS.T
    behind = part[:3] - _BEHIND_M * turn[:, 0]
    quat = np.roll(Rotation.from_matrix(turn).as_quat(), 1)  # xyzw -> wxyz
    return np.array([*behind, *quat, min(1.0, max(0.0, part[6]))])
