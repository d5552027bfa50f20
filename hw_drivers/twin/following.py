"""How the twin's arm follows targets: a smooth way in joint space that ends at the newest one.

The way is that of a critically damped second-order system, in the hand's pose for a pose target and
in the joints for joint targets, so targets may jump and come at any rate. What is kept is a
configuration and its velocity; the arm's motors then follow that.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmTarget, JointTarget, PoseTarget
from zetta.hw_drivers.frames import matrix
from zetta.hw_drivers.twin.scene import GRIP_SITE, HAND, arm_alone, engine
from zetta.runtime.core import Array

STIFFNESS_HZ: Final = 18.0
"""Natural frequency of the way, rad/s: 5 cm are gone, but for 2 mm, in 0.28 s."""
LINEAR: Final = (1.0, 14.0)
ANGULAR: Final = (2.5, 40.0)
"""Greatest speed and acceleration of the hand: m/s, m/s^2 and rad/s, rad/s^2."""
JOINT_SPEED: Final = np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61])
"""rad/s; the limits of the Panda."""
MARGIN_RAD: Final = 0.02
"""The way keeps so far from the ends of the joints."""
FAR_M: Final = 0.15
FAR_RAD: Final = 0.6
"""An error beyond this pulls no harder."""
POSTURE_GAIN: Final = 1.0
"""Rate at which the free joint returns to its posture, 1/s."""
STRAIGHT_RAD: Final = -0.75
"""The elbow (joint 4) is not opened further: at -0.47 it is straight and could not bend again."""
WEAK: Final = 0.06
"""Below this singular value of the Jacobian, motion that way fades out."""
DAMPING: Final = 0.05


class Follower:
    """The wanted configuration of seven joints, and where it is going."""

    def __init__(self, home: Array) -> None:
        """Rest at `home`, radians. Shape (7,)."""
        mj = engine()
        self._mj, self._model = mj, arm_alone()
        self._data = mj.MjData(self._model)
        self._site = self._model.site(GRIP_SITE).id
        self._hand = self._model.body(HAND).id
        self._jacobian = np.zeros((6, 7))
        low, high = self._model.jnt_range.T
        self._low, self._high = low + MARGIN_RAD, high - MARGIN_RAD
        self._high[3] = STRAIGHT_RAD
        self._home = np.array(home)
        self.rest(home)

    def rest(self, joints: Array) -> None:
        """Stand still at `joints` and want nothing else."""
        self.joint_pos, self.joint_vel = np.array(joints), np.zeros(7)
        self.joint_acc: Array = np.zeros(7)
        self._target: ArmTarget | None = None

    def aim(self, target: ArmTarget) -> None:
        """Go there from now on."""
        self._target = target

    def ease(self) -> None:
        """Come to rest as soon as the way allows, without turning back."""
        joints = self.joint_pos + self.joint_vel / STIFFNESS_HZ
        self._target = JointTarget(np.clip(joints, self._low, self._high), 0.0)

    def state(self) -> Array:
        """Return the way so far and where it leads. Shape (30,)."""
        match self._target:
            case PoseTarget(pos, quat, _):
                goal = np.concatenate([[1.0], pos, quat, [0.0]])
            case JointTarget(joints, _):
                goal = np.concatenate([[2.0], joints, [0.0]])
            case _:
                goal = np.zeros(9)
        return np.concatenate([self.joint_pos, self.joint_vel, self.joint_acc, goal])

    def restore(self, state: Array) -> None:
        """Go on from a `state`."""
        self.joint_pos, self.joint_vel, self.joint_acc = state[:21].reshape(3, 7).copy()
        goal = state[21:].copy()
        match int(goal[0]):
            case 1:
                self._target = PoseTarget(goal[1:4], goal[4:8], 0.0)
            case 2:
                self._target = JointTarget(goal[1:8], 0.0)
            case _:
                self._target = None

    def pose(self, joints: Array) -> tuple[Array, Array]:
        """Return the grip site's place (3,) and the hand's orientation (3, 3) at `joints`."""
        data = self._data
        data.qpos[:] = joints
        self._mj.mj_kinematics(self._model, data)
        return data.site_xpos[self._site].copy(), data.xmat[self._hand].reshape(3, 3).copy()

    def advance(self, dt: float) -> None:
        """Go on by `dt` seconds."""
        if self._target is None:
            return
        if isinstance(self._target, PoseTarget):
            wanted = self._toward_pose(self._target, dt)
        else:
            error = np.clip(self._target.joint_pos, self._low, self._high) - self.joint_pos
            wanted = self.joint_vel + dt * _pull(error, self.joint_vel)
        wanted = wanted / max(1.0, float(np.abs(wanted / JOINT_SPEED).max()))
        pos = np.clip(self.joint_pos + dt * wanted, self._low, self._high)
        vel = (pos - self.joint_pos) / dt
        self.joint_acc = (vel - self.joint_vel) / dt
        self.joint_pos, self.joint_vel = pos, vel

    def _toward_pose(self, target: PoseTarget, dt: float) -> Array:
        """Return the joint velocity that begins to go to a pose."""
        place, turn = self.pose(self.joint_pos)
        self._mj.mj_comPos(self._model, self._data)
        J = self._jacobian
        self._mj.mj_jacSite(self._model, self._data, J[:3], J[3:], self._site)
        twist = J @ self.joint_vel
        way = _at_most(target.ee_pos - place, FAR_M)
        left = _at_most(_turn_of(matrix(target.ee_quat) @ turn.T), FAR_RAD)
        linear = _limited(twist[:3], _pull(way, twist[:3]), dt, *LINEAR)
        angular = _limited(twist[3:], _pull(left, twist[3:]), dt, *ANGULAR)
        return self._solved(J, np.concatenate([linear, angular]), dt)

    def _solved(self, J: Array, twist: Array, dt: float) -> Array:
        """Return the joint velocity for a twist of the hand; joints at their ends do not share."""
        posture = POSTURE_GAIN * (self._home - self.joint_pos)
        free = np.ones(7)
        for _ in range(3):
            U, s, Vt = np.linalg.svd(J * free, full_matrices=False)
            # Where the arm is singular the weak direction fades out and asks for no fast joints.
            fade = np.where(s < WEAK, DAMPING * (1.0 - (s / WEAK) ** 2), 0.0)
            there = (Vt.T * (s / np.maximum(s**2 + fade**2, 1e-9))) @ (U.T @ twist)
            rest = posture * free
            wanted = there + rest - Vt.T @ (Vt @ rest)
            ahead = self.joint_pos + dt * wanted
            stuck = ((ahead < self._low) | (ahead > self._high)) & (free > 0.0)
            if not stuck.any():
                break
            free[stuck] = 0.0
        return np.asarray(wanted * free)


def _pull(error: Array, velocity: Array) -> Array:
    """Return the acceleration of a critically damped return."""
    return np.asarray(STIFFNESS_HZ**2 * error - 2.0 * STIFFNESS_HZ * velocity)


def _limited(
    velocity: Array, acceleration: Array, dt: float, fastest: float, hardest: float
) -> Array:
    return _at_most(velocity + dt * _at_most(acceleration, hardest), fastest)


def _at_most(vector: Array, length: float) -> Array:
    norm = float(np.linalg.norm(vector))
    return vector if norm <= length else vector * (length / norm)


def _turn_of(R: Array) -> Array:
    """Return the axis-angle vector of a rotation matrix, radians. Shape (3,)."""
    quat = np.zeros(4)
    engine().mju_mat2Quat(quat, np.ascontiguousarray(R).ravel())
    out = np.zeros(3)
    engine().mju_quat2Vel(out, quat, 1.0)
    return out
