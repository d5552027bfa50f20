"""The physics of the twin: a Panda, its hand and the things, advanced as far as it is asked.

It knows no clock and no thread. Equal calls give equal states, bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zetta.hw_drivers.arm import ArmReading, ArmTarget, PoseTarget
from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.following import Follower
from zetta.hw_drivers.twin.scene import (
    FINGERS,
    GRIP_SITE,
    HAND,
    JOINTS,
    TIMESTEP_S,
    body_of,
    engine,
    model,
)
from zetta.hw_drivers.twin.things import THINGS, places
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import InfraError, SpecMismatch

HOME_POS: Final = (0.42, 0.0, 0.32)
HOME_QUAT: Final = (1.0, 0.0, 0.0, 0.0)
"""Grip site and hand when a scene begins: above the table, pointing down, fingers along y."""
HOME_JOINTS: Final = (0.0, -0.168, 0.0, -2.41, 0.0, 2.242, 0.7854)
"""Near which the configuration of that pose is looked for, radians."""
GRIPPER_MAX: Final = 0.08
FINGER_SPEED: Final = 0.1
"""Each finger's, m/s."""
WAY_STEPS: Final = 2
"""Steps of physics for each step of the way."""
TRACKING_HZ: Final = 45.0
"""Natural frequency with which the motors hold the arm on its way, rad/s."""
LEASH_RAD: Final = 0.05
"""The way waits when a joint is held back by so much: what blocks the arm is not crushed."""
RESTS_RAD: Final = 0.02
"""A joint that turns no faster, rad/s, has come to rest."""
SETTLE_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class _Addresses:
    """Where the state of what is in a model's arrays."""

    arm: Array
    arm_vel: Array
    fingers: Array
    fingers_vel: Array
    motors: Array
    grips: Array
    site: int
    hand: int
    bodies: Mapping[str, int]
    limbs: frozenset[int]


class TwinWorld:
    """One arm at one table."""

    def __init__(self, seed: int = 0) -> None:
        """Set the scene of `seed`.

        Raises:
            ConfigError: MuJoCo or robosuite is not installed, or the seed is negative.
        """
        self._mj, self._model = engine(), model()
        self._data = self._mj.MjData(self._model)
        self._at = _addresses(self._model)
        self._home = home_joints()
        self._way = Follower(self._home)
        self._force, self._wish = np.zeros(self._model.nv), np.zeros(self._model.nv)
        self._most = self._model.actuator_ctrlrange[self._at.motors, 1].copy()
        self._braking = False
        self.stuck_gripper = False
        """The fingers stay where they are, whatever is wanted."""
        self.set_scene(seed)

    @property
    def seed(self) -> int:
        """Of the present scene."""
        return self._seed

    @property
    def home(self) -> Array:
        """The joints at which a scene begins, radians. Shape (7,)."""
        return self._home

    @property
    def time(self) -> float:
        """Seconds of physics since the scene was set."""
        return float(self._data.time)

    @property
    def qpos(self) -> Array:
        """Everything's place, which is all that a picture needs. Shape (nq,)."""
        return read_only(self._data.qpos)

    def set_scene(self, seed: int) -> None:
        """Put the things where `seed` wants them, the arm home and the gripper open.

        Raises:
            ConfigError: the seed is negative.
        """
        drawn = places(seed)
        data = self._data
        self._mj.mj_resetData(self._model, data)
        data.qpos[self._at.arm] = self._home
        data.qpos[self._at.fingers] = (GRIPPER_MAX / 2.0, -GRIPPER_MAX / 2.0)
        for name, place in drawn.items():
            joint = self._model.joint(body_of(name))
            height = THINGS[name].size[2] / 2.0
            turn = np.cos(place.yaw / 2.0), 0.0, 0.0, np.sin(place.yaw / 2.0)
            data.joint(joint.id).qpos[:] = (place.x, place.y, height, *turn)
        self._seed, self._count = seed, 0
        self._way.rest(self._home)
        self._braking = False
        self._wanted = self._commanded = GRIPPER_MAX
        self._mj.mj_forward(self._model, data)
        self.advance(SETTLE_S)
        data.time = 0.0

    def target(self, target: ArmTarget) -> None:
        """Begin to go to a target; it replaces the one before."""
        self._braking = False
        self._way.aim(target)
        self._wanted = float(np.clip(target.gripper_opening, 0.0, GRIPPER_MAX))

    def hold(self) -> None:
        """Come to rest and stay; what the fingers hold they keep."""
        if self._braking:
            return
        self._way.ease()

    def halt(self) -> None:
        """Want no speed from now on: the motors brake as hard as they can."""
        self._way.rest(self._data.qpos[self._at.arm])
        self._braking = True

    def advance(self, seconds: float) -> None:
        """Let so much time pass, in steps of 2 ms.

        Raises:
            InfraError: the physics became unstable.
        """
        for _ in range(round(seconds / TIMESTEP_S)):
            self._step()
        if not np.isfinite(self._data.qpos).all():
            raise InfraError(f"the physics of scene {self._seed} became unstable; set it anew")

    def reading(self, t: float) -> ArmReading:
        """Return what the arm measures now, stamped `t`."""
        data, at = self._data, self._at
        self._mj.mj_kinematics(self._model, data)
        left, right = data.qpos[at.fingers]
        left_speed, right_speed = data.qvel[at.fingers_vel]
        return ArmReading(
            t=t,
            joint_pos=read_only(data.qpos[at.arm]),
            ee_pos=read_only(data.site_xpos[at.site]),
            ee_quat=read_only(np.roll(data.xquat[at.hand], -1)),
            gripper_opening=float(left - right),
            gripper_velocity=float(left_speed - right_speed),
        )

    def truth(self) -> Mapping[str, Pose]:
        """Return the middle of every thing in the world; no driver may know it."""
        data = self._data
        self._mj.mj_kinematics(self._model, data)
        return {
            name: Pose(read_only(data.xpos[body]), read_only(np.roll(data.xquat[body], -1)))
            for name, body in self._at.bodies.items()
        }

    def state(self) -> Array:
        """Return all that decides how it goes on, but for the seed. Shape (N,)."""
        mj, kind = self._mj, self._mj.mjtState.mjSTATE_INTEGRATION
        physics = np.zeros(mj.mj_stateSize(self._model, kind))
        mj.mj_getState(self._model, self._data, physics, kind)
        flags = float(self.stuck_gripper), float(self._braking)
        own = (self._count, self._wanted, self._commanded, *flags)
        return read_only(np.concatenate([physics, self._way.state(), own]))

    def restore(self, seed: int, state: Array) -> None:
        """Go on from a state of a world of the same model.

        Raises:
            SpecMismatch: it is none.
        """
        mj, kind = self._mj, self._mj.mjtState.mjSTATE_INTEGRATION
        size, own = mj.mj_stateSize(self._model, kind), 5
        if state.shape != self.state().shape or not np.isfinite(state).all():
            raise SpecMismatch(f"got a state of shape {state.shape}, not one of this twin")
        mj.mj_setState(self._model, self._data, state[:size], kind)
        self._way.restore(state[size:-own])
        count, self._wanted, self._commanded, stuck, braking = (float(x) for x in state[-own:])
        self._seed, self._count = seed, int(count)
        self.stuck_gripper, self._braking = bool(stuck), bool(braking)

    def show(self, qpos: Array) -> None:
        """Put everything where it was; physics is not continued.

        Raises:
            SpecMismatch: it is no place of this model.
        """
        if np.shape(qpos) != (self._model.nq,):
            raise SpecMismatch(
                f"got a pose of shape {np.shape(qpos)}, expected ({self._model.nq},); was it "
                "logged on another simulator?"
            )
        self._data.qpos[:] = qpos
        self._way.rest(qpos[self._at.arm])

    def touches_hand(self, thing: str) -> bool:
        """Say whether a thing is in contact with the hand or the arm: simulator truth."""
        data, body = self._data, self._at.bodies[thing]
        self._mj.mj_fwdPosition(self._model, data)
        for contact in data.contact[: data.ncon]:
            ends = [int(self._model.geom_bodyid[geom]) for geom in contact.geom]
            if body in ends and any(other in self._at.limbs for other in ends):
                return True
        return False

    def speed_of(self, thing: str) -> float:
        """Return how fast a thing moves, m/s: simulator truth."""
        first = int(self._model.joint(body_of(thing)).dofadr[0])
        return float(np.linalg.norm(self._data.qvel[first : first + 3]))

    def _step(self) -> None:
        if self._count % WAY_STEPS == 0:
            self._way.advance(WAY_STEPS * TIMESTEP_S)
            self._grip(WAY_STEPS * TIMESTEP_S)
        self._count += 1
        mj, data, at, way = self._mj, self._data, self._at, self._way
        mj.mj_step1(self._model, data)
        pos, vel = data.qpos[at.arm], data.qvel[at.arm_vel]
        if self._braking:
            way.rest(pos)  # where it comes to rest it stays: nothing draws it back
            self._braking = bool(np.abs(vel).max() > RESTS_RAD)
        lag = way.joint_pos - pos
        if np.abs(lag).max() > LEASH_RAD:
            way.joint_pos = pos + np.clip(lag, -LEASH_RAD, LEASH_RAD)
            lag = way.joint_pos - pos
        pull = TRACKING_HZ**2 * lag + 2.0 * TRACKING_HZ * (way.joint_vel - vel) + way.joint_acc
        self._wish[at.arm_vel] = pull
        mj.mj_mulM(self._model, data, self._force, self._wish)
        force = self._force[at.arm_vel]
        rest = data.qfrc_bias[at.arm_vel] - data.qfrc_passive[at.arm_vel]
        # All joints together ask for less, so that the arm keeps its direction at its limits.
        room = np.where(force > 0.0, self._most - rest, self._most + rest)
        share = min(1.0, float((np.maximum(room, 0.0) / np.maximum(np.abs(force), 1e-9)).min()))
        data.ctrl[at.motors] = rest + share * force
        mj.mj_step2(self._model, data)

    def _grip(self, dt: float) -> None:
        """Move the wanted place of the fingers at their speed."""
        if self.stuck_gripper:
            left, right = self._data.qpos[self._at.fingers]
            self._commanded = self._wanted = float(left - right)
        most = 2.0 * FINGER_SPEED * dt
        self._commanded += float(np.clip(self._wanted - self._commanded, -most, most))
        self._data.ctrl[self._at.grips] = (self._commanded / 2.0, -self._commanded / 2.0)


def home_joints() -> Array:
    """Return the configuration of the home pose, radians. Shape (7,)."""
    way = Follower(np.array(HOME_JOINTS))
    way.aim(PoseTarget(np.array(HOME_POS), np.array(HOME_QUAT), GRIPPER_MAX))
    for _ in range(500):
        way.advance(0.01)
    return read_only(np.round(way.joint_pos, 6))


def _addresses(compiled: Any) -> _Addresses:
    def of(names: tuple[str, ...], attribute: str) -> Array:
        return np.array([int(getattr(compiled.joint(n), attribute)[0]) for n in names])

    arm = compiled.body_rootid[compiled.body(HAND).id]
    return _Addresses(
        arm=of(JOINTS, "qposadr"),
        arm_vel=of(JOINTS, "dofadr"),
        fingers=of(FINGERS, "qposadr"),
        fingers_vel=of(FINGERS, "dofadr"),
        motors=np.array([compiled.actuator(n).id for n in JOINTS]),
        grips=np.array([compiled.actuator(n).id for n in FINGERS]),
        site=compiled.site(GRIP_SITE).id,
        hand=compiled.body(HAND).id,
        bodies={name: compiled.body(body_of(name)).id for name in THINGS},
        limbs=frozenset(b for b in range(compiled.nbody) if compiled.body_rootid[b] == arm),
    )
