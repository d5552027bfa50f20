"""Where the hand is for given joints, and which joints bring it nearer to a pose, by MuJoCo.

The inverse is the damped least squares of Wampler (IEEE Trans. SMC 16(1), 1986): near a singular
posture the hand lags instead of the joints racing. Joints stop at their limits, and what they
cannot do is left to the others. Nothing is searched for: the way leads from where the arm is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np

from zetta.hw_drivers.frames import Pose, product, rotation_vector
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest

DAMPING: Final = 0.01
"""Metres for each radian; below it the joints are damped."""
ITERATIONS: Final = 25
TURN_AN_ITERATION: Final = 0.3
"""Most that a joint turns between two looks at the Jacobian, radians."""
CLOSE: Final = 1e-5
"""Metres, with a radian counted as `rotation_m`: nearer is near enough."""


@dataclass(frozen=True, slots=True)
class ChainSetup:
    """An arm's kinematics, as a person declares it."""

    mjcf: str
    """File of the model."""
    site: str
    """The grip site there."""
    joints: tuple[str, ...]
    """Names of the joints there, in the arm's own order."""
    base: str = ""
    """Body there whose frame is the arm's base; empty for the model's world."""
    signs: tuple[float, ...] = ()
    """1 or -1 for each joint: which way the arm counts. Empty for all 1."""
    offsets_rad: tuple[float, ...] = ()
    """Joint of the model = sign x joint of the arm + offset. Empty for all 0."""
    rotation_m: float = 0.1
    """Metres that a radian counts where position and rotation cannot both be had."""

    def __post_init__(self) -> None:
        count = len(self.joints)
        if not count or len(set(self.joints)) != count:
            raise ConfigError(f"a chain has joints, each once; got {self.joints}")
        if self.signs and (len(self.signs) != count or {abs(s) for s in self.signs} != {1.0}):
            raise ConfigError(f"signs are 1 or -1, one for each of {count} joints: {self.signs}")
        offsets = self.offsets_rad
        if offsets and (len(offsets) != count or not all(map(math.isfinite, offsets))):
            raise ConfigError(f"offsets are {count} finite numbers, got {offsets}")
        if not 0.0 < self.rotation_m <= 10.0:
            raise ConfigError(f"rotation_m lies above 0 and up to 10, got {self.rotation_m:g}")


@dataclass(frozen=True, slots=True)
class Nearest:
    """The joints that came nearest to a pose."""

    joints: Array
    """Radians, as the arm counts, within the limits. Shape (J,)."""
    position_error: float
    """Metres that are left."""
    turn_error: float
    """Radians that are left."""


class KinematicChain:
    """One arm without mass. Not to be shared by threads."""

    def __init__(self, setup: ChainSetup, folder: Path = Path()) -> None:
        """Compile the model.

        Args:
            setup: what is declared; its file is looked for in `folder`.
            folder: where a relative file lies.

        Raises:
            ConfigError: MuJoCo is not installed, the model does not compile, or has not got what
                is named.
        """
        self._mujoco = _mujoco()
        path = folder / Path(setup.mjcf).expanduser()
        if not path.is_file():
            raise ConfigError(f"there is no model {path}")
        try:
            self._model = self._mujoco.MjModel.from_xml_path(str(path))
        except ValueError as error:
            raise ConfigError(f"the model {path} does not compile: {error}") from None
        self._data = self._mujoco.MjData(self._model)
        objects = self._mujoco.mjtObj
        self._site = self._id(objects.mjOBJ_SITE, "site", setup.site)
        self._base = self._id(objects.mjOBJ_BODY, "body", setup.base) if setup.base else 0
        ids = [self._id(objects.mjOBJ_JOINT, "joint", name) for name in setup.joints]
        self._check_joints(ids, setup.joints)
        self._q = [int(self._model.jnt_qposadr[k]) for k in ids]
        self._v = [int(self._model.jnt_dofadr[k]) for k in ids]
        count = len(ids)
        self._signs = np.array(setup.signs or (1.0,) * count)
        self._offsets = np.array(setup.offsets_rad or (0.0,) * count)
        bounded = self._model.jnt_limited[ids].astype(bool)
        ranges = np.where(bounded[:, None], self._model.jnt_range[ids], (-np.inf, np.inf))
        ends = (ranges - self._offsets[:, None]) * self._signs[:, None]  # (J, 2)
        self.low, self.high = read_only(ends.min(1)), read_only(ends.max(1))
        self._rotation_m = setup.rotation_m

    def forward(self, joints: Array) -> Pose:
        """Return the grip site in the frame of the base.

        Raises:
            SpecMismatch: another number of joints, or one that is not finite.
        """
        self._place(joints)
        T_world_base = self._pose(self._data.xpos[self._base], self._data.xmat[self._base])
        T_world_ee = self._pose(self._data.site_xpos[self._site], self._data.site_xmat[self._site])
        return T_world_base.inverse() @ T_world_ee

    def nearest(self, joints: Array, goal: Pose) -> Nearest:
        """Return the joints that bring the hand from `joints` as near to `goal` as the way leads.

        Raises:
            SpecMismatch: another number of joints, or one that is not finite.
        """
        best = at = np.clip(joints, self.low, self.high)
        left = self._left(best, goal)
        for _ in range(ITERATIONS):
            if np.linalg.norm(left) < CLOSE:
                break
            at = self._step(at, self._left(at, goal))
            now = self._left(at, goal)
            if np.linalg.norm(now) < np.linalg.norm(left):
                best, left = at, now
        position, turn = left[:3], left[3:] / self._rotation_m
        return Nearest(
            read_only(best), float(np.linalg.norm(position)), float(np.linalg.norm(turn))
        )

    # ------------------------------------------------------------------------------ inside

    def _step(self, at: Array, left: Array) -> Array:
        """Return the joints after one step; those that would pass a limit stay at it."""
        jacobian = self._jacobian(at)
        turned, free = np.zeros(len(at)), np.ones(len(at), bool)
        while free.any():
            J = jacobian[:, free]
            rest = left - jacobian[:, ~free] @ turned[~free]
            square = J @ J.T + DAMPING**2 * np.eye(6)
            turned[free] = J.T @ np.linalg.solve(square, rest)
            turned[free] *= min(1.0, TURN_AN_ITERATION / max(1e-12, np.abs(turned[free]).max()))
            bounded = np.clip(at + turned, self.low, self.high) - at
            passed = free & (np.abs(bounded - turned) > 1e-12)
            if not passed.any():
                break
            turned[passed] = bounded[passed]
            free &= ~passed
        return at + turned

    def _left(self, at: Array, goal: Pose) -> Array:
        """Return the way that is left, rotation in metres. Shape (6,)."""
        now = self.forward(at)
        turn = rotation_vector(product(goal.quat, now.quat * np.array((-1.0, -1.0, -1.0, 1.0))))
        return np.concatenate((goal.pos - now.pos, turn * self._rotation_m))

    def _jacobian(self, at: Array) -> Array:
        """Return how the hand moves with the arm's joints, in the base frame. Shape (6, J)."""
        self._place(at)
        whole = np.zeros((6, self._model.nv))
        self._mujoco.mj_jacSite(self._model, self._data, whole[:3], whole[3:], self._site)
        R_base_world = self._data.xmat[self._base].reshape(3, 3).T
        columns = whole[:, self._v] * self._signs
        return np.concatenate(
            (R_base_world @ columns[:3], R_base_world @ columns[3:] * self._rotation_m)
        )

    def _place(self, joints: Array) -> None:
        if np.shape(joints) != self._signs.shape or not np.isfinite(joints).all():
            raise SpecMismatch(
                f"the chain has {len(self._q)} joints, got {np.asarray(joints).tolist()!r:.80}"
            )
        self._data.qpos[self._q] = self._signs * joints + self._offsets
        self._mujoco.mj_kinematics(self._model, self._data)
        self._mujoco.mj_comPos(self._model, self._data)  # Jacobians are taken from it

    def _pose(self, position: Array, matrix: Array) -> Pose:
        wxyz = np.zeros(4)
        self._mujoco.mju_mat2Quat(wxyz, matrix)
        return Pose(np.array(position), wxyz[[1, 2, 3, 0]])

    def _id(self, kind: int, what: str, name: str) -> int:
        found = int(self._mujoco.mj_name2id(self._model, kind, name))
        if found < 0:
            counts = {"site": self._model.nsite, "body": self._model.nbody}
            known = [
                self._mujoco.mj_id2name(self._model, kind, k) or ""
                for k in range(counts.get(what, self._model.njnt))
            ]
            raise ConfigError(f"the model has no {what} {name!r}; {suggest(name, known)}")
        return found

    def _check_joints(self, ids: list[int], names: tuple[str, ...]) -> None:
        hinge = int(self._mujoco.mjtJoint.mjJNT_HINGE)
        for k, name in zip(ids, names, strict=True):
            if int(self._model.jnt_type[k]) != hinge:
                raise ConfigError(f"the joint {name!r} of the model does not turn")


def _mujoco() -> ModuleType:
    """Return MuJoCo: imported late, because a base installation has none.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import mujoco
    except ImportError as error:
        raise ConfigError(
            f"the kinematics of an arm need MuJoCo ({error}); pip install mujoco"
        ) from error
    module: ModuleType = mujoco
    return module
