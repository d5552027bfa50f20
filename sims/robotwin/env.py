"""One RoboTwin task as an `Env`: exact resets, pictures on demand, snapshots by repetition.

Two ways to act. At a fixed rate (20 Hz, twelve or thirteen steps of RoboTwin's physics by turns)
each arm takes a small translation and rotation in the frame of the world, which our own inverse
kinematics turn into targets of RoboTwin's joint drives: critics, skills and semantic commands work
as anywhere. Or an action is RoboTwin's own, one planned and timed motion: `Proprio.t` then counts
actions, each as the 0.06 s that it stands for in a demonstration, whatever it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import (
    Action,
    Array,
    EnvSpec,
    Init,
    Landmark,
    Observation,
    Proprio,
    Scene,
    Step,
)
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import (
    check_cameras,
    check_scene,
    checked_pose,
    checked_row,
)
from zetta.sims.repetitions import dump, load
from zetta.sims.robotwin import tasks
from zetta.sims.robotwin.arms import Arms
from zetta.sims.robotwin.engine import Engine, Unusable
from zetta.sims.robotwin.pictures import CAMERAS, Pictures, camera_specs
from zetta.sims.robotwin.world import RobotwinWorld

SAMPLING_TRIES: Final = 20
PROFILES: Final = ("fast", "full")
"""Both draw as the device can; RoboTwin has one look."""


class RobotwinEnv:
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile.
        InfraError: RoboTwin cannot be built, or its assets are missing.
    """

    def __init__(self, suite: str, index: int, render: str = "fast") -> None:
        if render not in PROFILES:
            raise ConfigError(f"unknown render profile {render!r}; {suggest(render, PROFILES)}")
        self.task = tasks.task(suite, index)
        self._own, self._suite = tasks.find(suite, index), tasks.SUITES[suite]
        self.engine = Engine(self._own, self._suite)
        self._scene = Scene(self.task, Init(0))
        self._done: list[Action] = []
        self._begin(self._scene)
        rate = self._suite.acting == "rate"
        self._hz = tasks.CONTROL_HZ if rate else tasks.WAYPOINT_HZ
        self._spec = EnvSpec(
            name="robotwin",
            control_hz=self._hz,
            action=self._arms.spec(self._suite.acting),
            cameras=camera_specs(),
            arms=tasks.ARMS,
            render_profile=f"robotwin-{self.engine.shader}",
            versions=self.engine.versions(),
        )

    @property
    def spec(self) -> EnvSpec:
        """Conventions, cameras and versions."""
        return self._spec

    def reset(self, scene: Scene) -> Step:
        """Make the world of `scene`, everything in it at rest.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: no seed derived from the scene's gives a world at rest and unsolved.
        """
        check_scene(self.task, scene)
        if isinstance(scene.layout, Init) and not 0 <= scene.layout.k < tasks.INIT_COUNT:
            raise ConfigError(
                f"a RoboTwin task has the inits 0-{tasks.INIT_COUNT - 1}, got {scene.layout}"
            )
        self._begin(scene)
        return self._outcome()

    def step(self, action: Action) -> Step:
        """Advance one tick: 0.05 s, or one planned motion; what exceeds the limits is clipped.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
        """
        row = checked_row(action, self._spec.action.size)
        solved = self._act(row)
        return self._outcome(solved)

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are drawn.

        Raises:
            ConfigError: unknown camera.
            InfraError: this machine draws no pictures.
        """
        check_cameras(cameras, CAMERAS)
        images, depths, calibrations = {}, {}, {}
        for name in cameras:
            images[name], metres, calibrations[name] = self._pictures.draw(name, depth)
            if metres is not None:
                depths[name] = metres
        return Observation(self._proprio(), self.task.instruction, images, depths, calibrations)

    def snapshot(self) -> bytes:
        """Return how the world came to be; restoring it continues bit-exactly."""
        return dump(self._scene, self._done, dict(self._spec.versions))

    def restore(self, snapshot: bytes) -> Step:
        """Begin the world of `snapshot` again and repeat what was done; then continue from there.

        Raises:
            SpecMismatch: it was taken by another simulator version, of another robot or task.
        """
        scene, rows = load(snapshot, self.task, dict(self._spec.versions))
        self._begin(scene)
        solved = None
        for row in rows:
            solved = self._act(row)
        return self._outcome(solved)

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        return self._world.pose()

    def show(self, pose: Array) -> None:
        """Draw a logged `pose` from now on; physics is not continued.

        Raises:
            SpecMismatch: the pose has another length.
        """
        checked = checked_pose(pose, self.pose().size)
        self._world.show(checked)
        self._pictures.stale()

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for; simulator truth."""
        return self._world.landmarks()

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of an arm, read from the running simulation."""
        return self._arms.model(index)

    def workspace(self, index: int) -> Box | None:
        """Return where the hand of an arm may be."""
        return self._arms.workspace(index)

    def close(self) -> None:
        """Let the world go; calling it again does nothing."""
        self.engine.close()

    # ------------------------------------------------------------------ internals

    def _begin(self, scene: Scene) -> None:
        k = scene.layout.k if isinstance(scene.layout, Init) else None
        refused = ""
        for attempt in range(SAMPLING_TRIES):
            try:
                self.engine.begin(tasks.seed_of(k, scene.seed, attempt))
            except Unusable as error:
                refused = str(error)
                continue
            if not self.engine.task.check_success():
                break
            refused = "its goal is reached at the beginning"
        else:
            raise InfraError(
                f"none of {SAMPLING_TRIES} seeds for {scene.task.suite}#{scene.task.index} with "
                f"seed {scene.seed} gives a usable scene ({refused}); use another seed"
            )
        self.task, self._scene, self._done = scene.task, scene, []
        self._world = RobotwinWorld(self.engine.task, self._own)
        self._arms = Arms(self.engine.task)
        self._pictures = Pictures(self.engine.task, self.engine.shader)

    def _act(self, row: Action) -> bool | None:
        """Carry out a row; return whether the goal held, None where it is asked for afterwards."""
        self._pictures.stale()
        tick = len(self._done)
        self._done.append(row)
        acting = self._suite.acting
        if acting == "rate":
            self._arms.drive(row, tick)
            return None
        return self.engine.move(self._arms.engine_row(row, acting), acting)

    def _outcome(self, solved: bool | None = None) -> Step:
        truth = self._world.truth(solved)
        success = all(truth.predicates.values())
        return Step(
            proprio=self._proprio(),
            success=success,
            terminated=success,
            truncated=not success and len(self._done) >= self.task.max_steps,
            truth=truth,
        )

    def _proprio(self) -> Proprio:
        return Proprio(t=len(self._done) / self._hz, arms=self._arms.states())
