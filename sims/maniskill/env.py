"""One ManiSkill task as an `Env`: exact resets, lazy pictures, snapshots by repetition.

Conventions of the simulator, converted in `arm.py`, `pictures.py` and here and nowhere else: see
`arm.py` for actions; quaternions of SAPIEN are wxyz, ours are xyzw; depth comes in millimetres.
Position and orientation of the hand are those of ManiSkill's `panda_hand_tcp` (z approach, y
finger axis), 20 Hz, 5 substeps of 10 ms.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Action, EnvSpec, Proprio, Scene, Step, read_only
from zetta.runtime.errors import InfraError, SpecMismatch
from zetta.runtime.workspace import Box
from zetta.sims.env_checks import check_scene, checked_row, first_unsolved, seeds_of
from zetta.sims.maniskill import engine, tasks
from zetta.sims.maniskill.arm import ACTION, ARMS, Arm, engine_row, rest_row
from zetta.sims.maniskill.pictures import Pictures
from zetta.sims.maniskill.world import ManiSkillWorld
from zetta.sims.repetitions import dump, load
from zetta.sims.sapien_env import SapienEnv

SETTLE_STEPS: Final = 5
"""Ticks of no motion with an open gripper; things begin where they lie."""
_LARGEST_SEED: Final = 2**31


class ManiSkillEnv(SapienEnv):
    """The environment of one task.

    Raises:
        ConfigError: unknown suite, task or render profile, or the task's robot is no Panda.
        InfraError: ManiSkill cannot be built here.
    """

    _world: ManiSkillWorld
    _pictures: Pictures

    def __init__(self, suite: str, index: int, render: str = "fast") -> None:
        self.task = tasks.task(suite, index)
        self._own, self._render = tasks.find(suite, index), render
        self.inner = engine.build(self._own)
        """ManiSkill's own environment object."""
        self._control_hz = float(self.inner.control_freq)
        self._scene: Scene | None = None
        self._actions: list[Action] = []
        self._take_hold()
        self._spec = EnvSpec(
            name="maniskill",
            control_hz=self._control_hz,
            action=ACTION,
            cameras=self._pictures.specs,
            arms=ARMS,
            # Named after the simulator: a model of another simulator's pictures is bound to those.
            render_profile=f"maniskill-{render}",
            versions=engine.versions(self.inner),
        )

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene` and let it settle.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
            InfraError: no layout of this seed settles short of its goal.
        """
        check_scene(self.task, scene)
        return first_unsolved(scene, lambda attempt: self._lay_out(scene, attempt))

    def step(self, action: Action) -> Step:
        """Advance one control tick; what exceeds the limits is clipped to them.

        Raises:
            SpecMismatch: the action has the wrong length or is not finite.
            InfraError: the simulation became unstable.
        """
        row = checked_row(action, ACTION.size)
        self._advance(row)
        return self._outcome()

    def snapshot(self) -> bytes:
        """Return the scene and all actions since; repeating them continues bit-exactly.

        Raises:
            SpecMismatch: there was no reset yet.
        """
        if self._scene is None:
            raise SpecMismatch("there is no scene yet; call reset before snapshot")
        return dump(self._scene, self._actions, self._identity())

    def restore(self, snapshot: bytes) -> Step:
        """Begin the scene of `snapshot` again and repeat what was done.

        Raises:
            SpecMismatch: it was taken by another simulator version or of another task.
        """
        scene, rows = load(snapshot, self.task, self._identity())
        step = self.reset(scene)
        for row in rows:
            self._advance(row)
        return self._outcome() if len(rows) else step

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the kinematics of the arm, read from the running simulation."""
        return self._arm.model() if index == 0 else None

    def workspace(self, index: int) -> Box | None:
        """Return where the hand may be."""
        return self._arm.workspace() if index == 0 else None

    def close(self) -> None:
        """Release the simulation; calling it again does nothing."""
        if self.inner is not None:
            del self._pictures, self._world, self._arm
            self.inner.close()
            self.inner = None

    # ------------------------------------------------------------------ internals

    def _lay_out(self, scene: Scene, attempt: int) -> Step:
        (seed,) = seeds_of(scene, tasks.INIT_COUNT, attempt)
        self.task, self._scene, self._actions = scene.task, scene, []
        engine.reset(self.inner, seed % _LARGEST_SEED)
        self._take_hold()
        for _ in range(SETTLE_STEPS):
            engine.step(self.inner, engine_row(rest_row()))
        return self._outcome()

    def _refresh(self) -> None:
        self._pictures.refresh()

    def _take_hold(self) -> None:
        """Find the arm, the things and the cameras, which every reset makes anew."""
        self._arm = Arm(self.inner)
        self._world = ManiSkillWorld(self.inner, self._own)
        self._pictures = Pictures(self.inner, self._own, self._render)

    def _advance(self, row: Action) -> None:
        engine.step(self.inner, engine_row(row))
        self._actions.append(read_only(row))
        if not np.isfinite(self._arm.state().joint_pos).all():
            raise InfraError("the simulation became unstable (joint positions are not finite)")

    def _outcome(self) -> Step:
        success, lost = engine.outcome(self.inner)
        return self._told(self._world.truth(success), success, len(self._actions), lost)

    def _proprio(self) -> Proprio:
        return Proprio(t=len(self._actions) / self._control_hz, arms=(self._arm.state(),))

    def _identity(self) -> dict[str, str]:
        """Return what decides how repeated actions go."""
        versions: dict[str, Any] = dict(self._spec.versions)
        return {name: str(v) for name, v in versions.items() if name != "device"}
