"""One RoboTwin task as an `Env`: exact resets, pictures on demand, snapshots by repetition.

Two ways to act. At a fixed rate (20 Hz, twelve or thirteen steps of RoboTwin's physics by turns)
each arm takes a small translation and rotation in the frame of the world, which our own inverse
kinematics turn into targets of RoboTwin's joint drives: critics, skills and semantic commands work
as anywhere. Or an action is RoboTwin's own, one planned and timed motion: `Proprio.t` then counts
actions, each as the 0.06 s that it stands for in a demonstration, whatever it took.
"""

from __future__ import annotations

from typing import Final

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, EnvSpec, Init, Proprio, Scene, Step
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import SAMPLING_TRIES, check_scene, checked_row
from zetta.sims.repetitions import dump, load
from zetta.sims.robotwin import tasks
from zetta.sims.robotwin.arms import Arms
from zetta.sims.robotwin.engine import Engine, Unusable
from zetta.sims.robotwin.pictures import Pictures, camera_specs
from zetta.sims.robotwin.world import RobotwinWorld
from zetta.sims.sapien_env import SapienEnv

PROFILES: Final = ("fast", "full")
"""Both draw as the device can; RoboTwin has one look."""


class RobotwinEnv(SapienEnv):
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile.
        InfraError: RoboTwin cannot be built, or its assets are missing.
    """

    _world: RobotwinWorld
    _pictures: Pictures

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

    def _moved(self) -> None:
        self._pictures.stale()

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
        return self._told(truth, all(truth.predicates.values()), len(self._done))

    def _proprio(self) -> Proprio:
        return Proprio(t=len(self._done) / self._hz, arms=self._arms.states())
