"""From a policy's action convention to an environment's, one row at a time.

Conventions are declared in `ActionSpec`; what is not declared equal is converted here or refused.
Plain Python floats: for three numbers they are faster than arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from zetta.runtime.core import Action, ActionSpec, Array, Proprio
from zetta.runtime.errors import SpecMismatch

Converter: TypeAlias = Callable[[Array, Proprio], Action]
Quat: TypeAlias = tuple[float, float, float, float]
Vec: TypeAlias = tuple[float, float, float]

GAIN = 1.5
"""Share of the remaining way asked for in one tick, in units of the controller's own step.

The controller of a tick ends short of its goal, so a gain of 1 lags behind a moving target; 2 and
more oscillates.
"""

ARM_SIZE = 7
"""Numbers of one arm in `delta_pose` and `target_pose`: position 3, rotation 3, gripper."""


def converter(policy_action: ActionSpec, env_action: ActionSpec) -> Converter:
    """Return the function `(row, proprio) -> action` between two conventions.

    Equal conventions pass through. Two `delta_pose` conventions differ by scale and gripper sign.
    A `target_pose` is tracked by a proportional `delta_pose`. Columns behind those of the arms pass
    through; a policy without them leaves a base and what else there is at rest. Translations and
    rotations in the frame of a mobile base are turned into the world.

    Raises:
        SpecMismatch: the two cannot be converted into each other.
    """
    if policy_action.frame == "base" and env_action.frame == "world":
        level = converter(replace(policy_action, frame="world"), env_action)
        return lambda row, proprio: level(_turned(row, policy_action, proprio), proprio)
    if env_action.rest and policy_action.size == env_action.arms_size:
        arms_only = _without_rest(env_action)
        own, rest = converter(policy_action, arms_only), np.array(env_action.rest)
        return lambda row, proprio: np.concatenate([own(row, proprio), rest])
    _refuse_unlike(policy_action, env_action)
    if _same_meaning(policy_action, env_action):
        return _identity
    kinds = (policy_action.kind, env_action.kind)
    if env_action.arms_size % ARM_SIZE == 0:
        size = env_action.arms_size
        arms = tuple(_Arm(policy_action, env_action, first) for first in range(0, size, ARM_SIZE))
        if kinds == ("delta_pose", "delta_pose"):
            return lambda row, proprio: _row(
                [*(n for arm in arms for n in arm.rescale(row)), *row[size:]]
            )
        if kinds == ("target_pose", "delta_pose"):
            return lambda row, proprio: _track(arms, row, proprio)
    raise SpecMismatch(
        f"the policy emits {_describe(policy_action)} and the environment takes "
        f"{_describe(env_action)}; there is no conversion between them"
    )


def _without_rest(spec: ActionSpec) -> ActionSpec:
    """Return the convention of the arms alone."""
    size = spec.arms_size
    return replace(
        spec,
        names=spec.names[:size],
        low=spec.low[:size],
        high=spec.high[:size],
        scale=spec.scale[:size],
        rest=(),
    )


def _turned(row: Array, spec: ActionSpec, proprio: Proprio) -> Array:
    """Return a `delta_pose` row with its vectors turned from the frame of the base to the world."""
    if spec.kind != "delta_pose" or proprio.base is None:
        raise SpecMismatch(
            f"the policy emits {spec.kind} in the frame of a mobile base, and this robot has "
            f"{'none' if proprio.base is None else 'one'}; only delta_pose is converted"
        )
    cosine, sine = math.cos(proprio.base[2]), math.sin(proprio.base[2])
    turned = np.array(row, dtype=np.float64)
    for first in range(0, spec.arms_size - ARM_SIZE + 1, ARM_SIZE):
        for x in (first, first + 3):
            turned[x] = cosine * row[x] - sine * row[x + 1]
            turned[x + 1] = sine * row[x] + cosine * row[x + 1]
    return turned


def _refuse_unlike(policy_action: ActionSpec, env_action: ActionSpec) -> None:
    if policy_action.frame != env_action.frame:
        raise SpecMismatch(
            f"the policy acts in the frame {policy_action.frame!r} and the environment in "
            f"{env_action.frame!r}; there is no conversion between frames"
        )
    if policy_action.size != env_action.size:
        raise SpecMismatch(
            f"the policy emits {policy_action.size} numbers ({', '.join(policy_action.names)}) "
            f"and the environment takes {env_action.size} ({', '.join(env_action.names)})"
        )
    same_words = set(policy_action.names) == set(env_action.names)
    if same_words and policy_action.names != env_action.names:
        raise SpecMismatch(
            f"the policy emits {', '.join(policy_action.names)} and the environment takes "
            f"{', '.join(env_action.names)}: the same numbers in another order"
        )


def _same_meaning(one: ActionSpec, other: ActionSpec) -> bool:
    own = slice(None, one.arms_size)
    return (one.kind, one.scale[own], one.gripper_open, one.gripper_close) == (
        other.kind,
        other.scale[own],
        other.gripper_open,
        other.gripper_close,
    )


def _describe(spec: ActionSpec) -> str:
    return f"{spec.kind} ({spec.size} numbers)"


def _identity(row: Array, proprio: Proprio) -> Action:
    return row


def _row(numbers: Sequence[float]) -> Action:
    return np.array(numbers, dtype=np.float64)


def _track(arms: tuple[_Arm, ...], row: Array, proprio: Proprio) -> Action:
    if len(proprio.arms) != len(arms):
        raise SpecMismatch(
            f"the action drives {len(arms)} arms and the robot reports {len(proprio.arms)}"
        )
    numbers: list[float] = []
    for arm, state in zip(arms, proprio.arms, strict=True):
        numbers += arm.track(row, state.ee_pos.tolist(), tuple(state.ee_quat.tolist()))
    return _row([*numbers, *row[len(numbers) :]])


class _Arm:
    """The seven numbers of one arm, from one convention to the other."""

    def __init__(self, policy: ActionSpec, env: ActionSpec, first: int) -> None:
        end = first + ARM_SIZE
        self._slice = slice(first, end)
        self._policy_scale = policy.scale[first:end]
        self._env_scale = env.scale[first:end]
        self._limit = [min(-low, high) for low, high in zip(env.low, env.high, strict=True)]
        self._limit = self._limit[first:end]
        if min(self._limit[:6]) <= 0.0 or min(self._env_scale[:6]) <= 0.0:
            raise SpecMismatch("a delta_pose needs positive scales and a range around zero")
        self._open, self._close = policy.gripper_open, policy.gripper_close
        self._env_open, self._env_close = env.gripper_open, env.gripper_close
        if self._open == self._close:
            raise SpecMismatch("the policy's gripper commands for open and close are equal")

    def rescale(self, row: Array) -> list[float]:
        """Return the same displacement in the environment's units."""
        numbers = row[self._slice].tolist()
        move = [
            n * p / e
            for n, p, e in zip(numbers[:6], self._policy_scale, self._env_scale, strict=False)
        ]
        return [*self._bounded(move, 0), *self._bounded(move, 3), self._gripper(numbers[6])]

    def track(self, row: Array, ee_pos: Sequence[float], ee_quat: Quat) -> list[float]:
        """Return the displacement that leads from the present pose towards the target."""
        x, y, z, rx, ry, rz, gripper = row[self._slice].tolist()
        turn = rotation_between(ee_quat, quat_of_rotvec((rx, ry, rz)))
        way = (x - ee_pos[0], y - ee_pos[1], z - ee_pos[2], *turn)
        move = [GAIN * w / e for w, e in zip(way, self._env_scale, strict=False)]
        return [*self._bounded(move, 0), *self._bounded(move, 3), self._gripper(gripper)]

    def _bounded(self, move: Sequence[float], first: int) -> list[float]:
        """Shorten a 3-vector to fit its range, keeping its direction: the path stays straight."""
        vector = move[first : first + 3]
        limit = self._limit[first : first + 3]
        excess = max(abs(v) / m for v, m in zip(vector, limit, strict=True))
        return [v / excess for v in vector] if excess > 1.0 else list(vector)

    def _gripper(self, command: float) -> float:
        if (self._open, self._close) == (self._env_open, self._env_close):
            return command
        closed = (command - self._open) / (self._close - self._open)
        return self._env_open + closed * (self._env_close - self._env_open)


def quat_of_rotvec(rotvec: Vec) -> Quat:
    """Return the unit quaternion (xyzw) of an axis-angle vector in radians."""
    x, y, z = rotvec
    angle = math.sqrt(x * x + y * y + z * z)
    # sin(a/2)/a without dividing by zero; the series is exact to rounding below 1e-4.
    k = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(angle / 2.0) / angle
    return (x * k, y * k, z * k, math.cos(angle / 2.0))


def rotvec_of_quat(quat: Quat) -> Vec:
    """Return the axis-angle vector of a quaternion (xyzw); its angle lies in [0, pi] radians."""
    x, y, z, w = quat
    if w < 0.0:  # q and -q are one rotation; take the shorter way round
        x, y, z, w = -x, -y, -z, -w
    s = math.sqrt(x * x + y * y + z * z)
    k = 2.0 / w if s < 1e-9 * w else 2.0 * math.atan2(s, w) / s
    return (x * k, y * k, z * k)


def rotation_between(start: Quat, end: Quat) -> Vec:
    """Return the world-frame axis-angle vector that turns `start` into `end`.

    `start` need not be normalised: sensors round.

    >>> turn = rotation_between((0, 0, 0, 1), quat_of_rotvec((0.0, 0.0, 0.5)))
    >>> [round(angle, 6) for angle in turn]
    [0.0, 0.0, 0.5]
    """
    ax, ay, az, aw = start
    bx, by, bz, bw = end
    # end * conjugate(start)
    return rotvec_of_quat(
        (
            -bw * ax + bx * aw - by * az + bz * ay,
            -bw * ay + by * aw - bz * ax + bx * az,
            -bw * az + bz * aw - bx * ay + by * ax,
            bw * aw + bx * ax + by * ay + bz * az,
        )
    )
