"""A real arm as an environment: what a policy, a critic or a skill drives without knowing it.

Conversions happen here and only here: actions of the world frame become targets in the arm's base
frame, readings become proprioception in the world. It paces nothing: the loop's clock does. It
knows no success: a person, or a verifier that looks, says whether the task is done. Where the
set-up names limits, everything passes the safety kernel before it is sent; the robot's side has
one as well and believes nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from zetta.hw_drivers.arm import (
    Arm,
    ArmFacts,
    ArmReading,
    ArmTarget,
    JointTarget,
    PoseTarget,
    driver_of,
)
from zetta.hw_drivers.arm_guarded import Counting, GuardedArm
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_reach import model_of, workspace_of
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.cameras import CameraSource
from zetta.hw_drivers.frames import Pose, product, rotation
from zetta.hw_drivers.homing import arrived, between, duration
from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import (
    Action,
    ArmState,
    Camera,
    EnvSpec,
    Image,
    Observation,
    Proprio,
    Scene,
    Step,
    read_only,
)
from zetta.runtime.embodiment import ARM, HAND_MM, LIMITS
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SafetyStop,
    SpecMismatch,
    Timeout,
    suggest,
)
from zetta.runtime.workspace import Box

FIRST_STATE_S: Final = 2.0
"""How long a reset waits for a fresh state."""
BLIND_S: Final = 1.0
"""How long an arm is held for a camera that fell silent before the episode ends."""
HOME_WITHIN_S: Final = 60.0
HOMING: Final = "skill:homing"
"""Who drives home."""


class ArmEnv:
    """An `Env` of one arm. Not to be shared by threads."""

    def __init__(
        self,
        arm: Arm,
        setup: ArmSetup,
        sources: Mapping[str, CameraSource] | None = None,
        connect_s: float = 5.0,
        home_at_reset: bool = False,
    ) -> None:
        """Connect to the arm; nothing moves.

        Args:
            arm: the link; it is closed with the environment.
            setup: what a person declared.
            sources: where the pictures of the declared cameras come from; closed as well.
            connect_s: how long the arm is waited for.
            home_at_reset: go to the declared home at every reset.

        Raises:
            ConfigError: a declared camera has no source, home is not declared, the declared
                limits are none or do not fit the arm, or the declared chain is none.
            SpecMismatch: the arm takes no poses.
            InfraError: the arm cannot be reached, or is held by somebody.
        """
        if setup.limits:
            arm = GuardedArm(arm, load_limits(setup.limits), 1.0 / setup.control_hz)
        self._workspace, self._model = workspace_of(setup), model_of(setup)
        self._arm, self._setup, self._sources = arm, setup, dict(sources or {})
        self._connect_s, self._home_at_reset = connect_s, home_at_reset
        if set(self._sources) != set(setup.cameras):
            raise ConfigError(
                f"the set-up declares the cameras {sorted(setup.cameras)}, sources are given for "
                f"{sorted(self._sources)}"
            )
        if home_at_reset and not (setup.home_pos or setup.home_joints):
            raise ConfigError(f"{setup.name} has no home; declare home_pos and home_quat")
        try:
            self._facts = arm.connect(connect_s)
        except BaseException:
            self.close()
            raise
        if "pose" not in self._facts.accepts:
            self.close()
            raise SpecMismatch(
                f"{self._facts.robot} takes {' and '.join(self._facts.accepts)} targets only; "
                "actions are poses, so its driver must take poses"
            )
        opening = f"{1000.0 * self._facts.gripper_max:g}"
        body = {ARM: self._facts.model, HAND_MM: opening}
        if setup.limits:
            body[LIMITS] = Path(setup.limits).stem
        self._spec = setup.spec({**self._facts.versions, **body})
        self._T_base_world = setup.T_world_base.inverse()
        self._scene: Scene | None = None
        self._started, self._ticks = 0.0, 0
        self._ended = "not begun"
        self._driver = "policy"
        self._seen: ArmReading | None = None
        self._refused = 0
        self._looked_at: set[str] = set()
        self._blind_since: float | None = None

    @property
    def spec(self) -> EnvSpec:
        """Conventions of this environment."""
        return self._spec

    @property
    def facts(self) -> ArmFacts:
        """What the arm said of itself."""
        return self._facts

    def reset(self, scene: Scene) -> Step:
        """Begin an episode where the arm stands; a person has set the scene.

        Nothing moves, unless a homing was asked for. A lost connection is taken up again.

        Raises:
            SafetyStop: a stop is latched.
            InfraError: the arm cannot be reached, is at fault, or gives no fresh state.
        """
        try:
            reading = self._usable(FIRST_STATE_S)
        except ConnectionLost:
            self._arm.connect(self._connect_s)
            reading = self._usable(FIRST_STATE_S)
        if self._home_at_reset:
            self.go_home()
            reading = self._usable(FIRST_STATE_S)
        self._scene, self._started, self._ticks, self._ended = scene, reading.t, 0, ""
        self._looked_at, self._blind_since = set(), None
        return self._step(reading)

    def driven_by(self, source: str) -> None:
        """Take note of who drives from the next step on: each kind of driver has a speed limit."""
        self._driver = driver_of(source)

    def step(self, action: Action) -> Step:
        """Send one action and return the latest state, which is from before it acts.

        Raises:
            SpecMismatch: no action of the spec, or the episode has ended.
            SafetyStop: a stop is latched.
            InfraError: the arm is lost, at fault, or gives no fresh state.
        """
        self._begun()
        row = np.asarray(action, dtype=np.float64)
        if row.shape != (self._spec.action.size,) or not np.isfinite(row).all():
            raise SpecMismatch(
                f"an action is {self._spec.action.size} finite numbers "
                f"({', '.join(self._spec.action.names)}), got {row.tolist()!r:.80}; "
                "nothing is padded"
            )
        self._usable(self._setup.max_state_age_s)
        # From the state that whoever acts has seen: the arm has gone on since, and a hold that is
        # taken from elsewhere than it was decided on swings to and fro.
        assert self._seen is not None
        self._arm.command(self.target(row, self._seen), self._setup.command_ttl_s, self._driver)
        guard = self._arm.last if isinstance(self._arm, GuardedArm) else ""
        return self._ticked(guard)

    def hold(self, why: str) -> Step:
        """Let the arm keep its place for a tick, by itself; it stops as when nobody commands it.

        Raises:
            SpecMismatch: the episode has ended.
            SafetyStop: a stop is latched.
            InfraError: the arm is lost, at fault, or gives no fresh state.
        """
        self._begun()
        self._usable(self._setup.max_state_age_s)
        self._arm.hold(why)
        return self._ticked("")

    def watch(self) -> str:
        """Return which camera that somebody looked at has fallen silent; empty if none has.

        What is done between two looks was decided on pictures, and nobody would see it go wrong.

        Raises:
            InfraError: it has been silent for longer than `BLIND_S`.
        """
        for name in sorted(self._looked_at):
            try:
                self._sources[name].latest(self._setup.max_frame_age_s)
            except InfraError as error:
                now = time.monotonic()
                self._blind_since = now if self._blind_since is None else self._blind_since
                if now - self._blind_since > BLIND_S:
                    raise
                return str(error)
        self._blind_since = None
        return ""

    def target(self, row: Action, reading: ArmReading) -> PoseTarget:
        """Return what an action means for an arm that is at `reading`, in its base frame."""
        spec, setup = self._spec.action, self._setup
        if spec.kind == "delta_pose":
            hand = setup.T_world_base @ Pose(reading.ee_pos, reading.ee_quat)
            moves = row[:6] * np.array(spec.scale[:6])
            wanted = Pose(hand.pos + moves[:3], product(rotation(moves[3:]), hand.quat))
        else:
            wanted = Pose(row[:3], rotation(row[3:6]))
        based = self._T_base_world @ wanted
        closed = (row[6] - spec.gripper_open) / (spec.gripper_close - spec.gripper_open)
        opening = self._facts.gripper_max * (1.0 - float(np.clip(closed, 0.0, 1.0)))
        return PoseTarget(based.pos, based.quat, opening)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand may be by the declared limits; None where that is no box."""
        return self._workspace if index == 0 else None

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the declared kinematics; None where none are."""
        return self._model if index == 0 else None

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now: a fresh state, and of each named camera its newest picture.

        Depth is given for the cameras that have it.

        Raises:
            ConfigError: no such camera.
            InfraError: a picture is too old, or the arm gives no fresh state; the message says of
                which camera.
        """
        images: dict[str, Image] = {}
        depths: dict[str, npt.NDArray[np.float32]] = {}
        calibrations: dict[str, Camera] = {}
        reading = self._usable(self._setup.max_state_age_s)
        T_world_ee = (self._setup.T_world_base @ Pose(reading.ee_pos, reading.ee_quat)).transform()
        for name in cameras:
            camera = self._setup.cameras.get(name)
            if camera is None:
                raise ConfigError(f"no camera {name!r}; {suggest(name, self._setup.cameras)}")
            frame = self._sources[name].latest(self._setup.max_frame_age_s)
            if frame.image.shape != (camera.height, camera.width, 3):
                raise InfraError(
                    f"the camera {name!r} gives pictures of shape {frame.image.shape}, declared "
                    f"are {(camera.height, camera.width, 3)}"
                )
            self._looked_at.add(name)
            images[name] = read_only(frame.image, np.uint8)
            calibrations[name] = camera.camera(name, T_world_ee)
            if depth and camera.depth:
                if frame.depth is None:
                    raise InfraError(f"the camera {name!r} is declared with depth and gives none")
                depths[name] = read_only(frame.depth, np.float32)
        instruction = "" if self._scene is None else self._scene.task.instruction
        return Observation(self._proprio(reading), instruction, images, depths, calibrations)

    def go_home(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Go to the declared home in a straight line, slowly; the loop does not run meanwhile.

        Raises:
            ConfigError: none is declared.
            SafetyStop: a stop is latched.
            Timeout: it does not get there.
            InfraError: the arm is lost or at fault.
        """
        deadline = time.monotonic() + HOME_WITHIN_S
        period = 1.0 / self._spec.control_hz
        start = self._usable(FIRST_STATE_S)
        begun = time.monotonic()
        goal = self._home(start)
        while not arrived(self._usable(self._setup.max_state_age_s), goal):
            if time.monotonic() > deadline:
                raise Timeout(f"{self._facts.robot} did not get home within {HOME_WITHIN_S:g} s")
            share = (time.monotonic() - begun) / max(duration(start, goal), period)
            target = between(start, goal, min(1.0, share))
            self._arm.command(target, self._setup.command_ttl_s, HOMING)
            sleep(period)

    def close(self) -> None:
        """Let go of the arm, which holds, and of the cameras; again does nothing."""
        self._arm.close()
        for source in self._sources.values():
            source.close()

    def _home(self, start: ArmReading) -> ArmTarget:
        setup, opening = self._setup, start.gripper_opening
        opening = min(max(opening, 0.0), self._facts.gripper_max)
        # A kernel leads by one kind of target, and actions are poses.
        by_joints = setup.home_joints and "joints" in self._facts.accepts
        if by_joints and not setup.limits:
            return JointTarget(np.array(setup.home_joints), opening)
        if not setup.home_pos or not setup.home_quat:
            raise ConfigError(f"{setup.name} has no home; declare home_pos and home_quat")
        home = self._T_base_world @ Pose(np.array(setup.home_pos), np.array(setup.home_quat))
        return PoseTarget(home.pos, home.quat, opening)

    def _begun(self) -> None:
        if self._ended or self._scene is None:
            raise SpecMismatch(f"the episode ended ({self._ended}); call reset before step")

    def _ticked(self, guard: str) -> Step:
        """Return what a tick came to."""
        self._ticks += 1
        if self._scene is not None and self._ticks >= self._scene.task.max_steps:
            self._ended = "budget"
        return self._step(self._usable(self._setup.max_state_age_s), guard)

    def _usable(self, max_age_s: float) -> ArmReading:
        """Return a fresh reading of an arm that can move."""
        reading = self._arm.state(max_age_s)
        if reading.mode == "stopped":
            raise SafetyStop(
                f"{self._facts.robot} is stopped ({reading.reason}); look at the arm, then clear it"
            )
        if reading.mode == "fault":
            raise InfraError(f"{self._facts.robot} is at fault: {reading.reason}")
        return reading

    def _step(self, reading: ArmReading, guard: str = "") -> Step:
        return Step(
            self._proprio(reading),
            success=False,
            terminated=False,
            truncated=self._ended == "budget",
            guard=guard or self._declined(reading),
        )

    def _declined(self, reading: ArmReading) -> str:
        """Return why the robot's side did not follow what was sent to it since the last look."""
        counts = self._arm.counts() if isinstance(self._arm, Counting) else {}
        before, self._refused = self._refused, counts.get("declined", 0) + counts.get("refused", 0)
        if self._refused <= before:
            return ""
        return f"refused at the robot: {reading.reason or 'it did not say why'}"

    def _proprio(self, reading: ArmReading) -> Proprio:
        self._seen = reading
        hand = self._setup.T_world_base @ Pose(reading.ee_pos, reading.ee_quat)
        state = ArmState(
            ee_pos=read_only(hand.pos),
            ee_quat=read_only(hand.quat),
            joint_pos=read_only(reading.joint_pos),
            gripper_opening=reading.gripper_opening,
            gripper_velocity=reading.gripper_velocity,
        )
        return Proprio(reading.t - self._started, (state,))
