"""One task of a simulator in two processes, and what its robot can be held to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from apart_sims import installed
from env_contract import Subject, resting

from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.cli.sims_venv import lives_apart
from zetta.runtime.core import Action, EnvSpec, Init, Proprio, Scene, Simulator, Step
from zetta.runtime.errors import ConfigError
from zetta.sims.remote import RemoteEnv


@dataclass(frozen=True, slots=True)
class Facts:
    """One task of a simulator, and what its robot can be held to."""

    sim: str
    suite: str
    index: int
    init: int = 0
    """The layout whose start leaves the hands free to move."""
    render: str = "fast"
    ticks: int = 8
    """How long a push or a turn is commanded."""
    push: float = 0.4
    """Of the limit of a `delta_pose`; metres of a `target_pose`."""
    turn: float = 0.2
    """Of the limit of a `delta_pose`; radians of a `target_pose`."""
    moves_m: float = 0.03
    """What a push moves the hand at least."""
    turns_rad: float = 0.1
    """What a turn turns the hand at least."""
    slant: float = 0.4
    """Of a push or turn along its axis, the share that may go along another one."""
    still_m: float = 0.01
    """How far the hand of the other arm may drift meanwhile."""
    fingers: bool = True
    """Whether there are grippers that open and close."""
    grip_ticks: int = 30
    closed_m: float = 0.01
    opened_m: float = 0.07
    beyond: Literal["clipped", "refused"] = "clipped"
    """What happens to a finite action outside the limits."""
    snapshots: bool = True
    picture_tolerance: float = 0.0
    """Mean difference of two processes' pictures of one scene, in levels of 255."""
    rest: Callable[[EnvSpec, Proprio], Action] = resting
    """The row that holds still with open grippers."""
    leaves_out: Mapping[str, str] = field(default_factory=dict)
    """Checks of `env_contract.py` that this simulator cannot be asked, and why."""

    def simulator(self) -> Simulator:
        """Return the simulator; skip where it is not installed."""
        if lives_apart(self.sim):
            return installed(self.sim)
        try:
            found = find_simulator(self.sim)
        except ConfigError as error:
            pytest.skip(str(error))
        choose_graphics(self.sim)
        return found

    def make(self) -> RemoteEnv:
        """Build the environment in a process of its own."""
        simulator = self.simulator()
        if not lives_apart(self.sim):
            return RemoteEnv(self.sim, self.suite, self.index, self.render)
        made = simulator.make(self.suite, self.index, self.render)
        assert isinstance(made, RemoteEnv)
        return made


class World:
    """One task in two processes, with a folder that holds all that they put aside."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.simulator = facts, facts.simulator()
        # Short, because local sockets have short paths.
        self.folder = Path(tempfile.mkdtemp(prefix="zetta-contract-"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(self.folder))
            patch.setattr(tempfile, "tempdir", None)
            self.env, self.spare = facts.make(), facts.make()
        assert isinstance(self.env, RemoteEnv)
        self.subject = Subject(
            self.simulator, facts.suite, facts.index, self.env, self.spare, facts.rest
        )
        self._settled: bytes | None = None

    @property
    def scene(self) -> Scene:
        """The scene that every physical check begins with."""
        task = self.simulator.task(self.facts.suite, self.facts.index)
        return Scene(task, Init(self.facts.init), seed=3)

    @cached_property
    def spec(self) -> EnvSpec:
        """Conventions of the environment."""
        return self.env.spec

    def begun(self) -> Step:
        """Return the scene as it is after a reset, which a restore is cheaper than."""
        if self._settled is not None:
            return self.env.restore(self._settled)
        step = self.env.reset(self.scene)
        if self.facts.snapshots:
            self._settled = self.env.snapshot()
        return step

    def rest(self, step: Step) -> Action:
        """Return the row that holds still with open grippers."""
        return np.array(self.facts.rest(self.spec, step.proprio))

    def columns(self, arm: int, kind: Literal["move", "turn", "gripper"]) -> list[int]:
        """Return the columns of an arm: three, three or one."""
        names = {"move": ("dx", "dy", "dz"), "turn": ("rx", "ry", "rz"), "gripper": ("gripper",)}
        if self.spec.action.kind == "target_pose":
            names["move"] = ("x", "y", "z")
        prefix = f"{self.spec.arms[arm]}_" if len(self.spec.arms) > 1 else ""
        return [self.spec.action.names.index(prefix + name) for name in names[kind]]

    def held(self, action: Action, ticks: int) -> Step:
        """Repeat one action and return the last step."""
        return [self.env.step(action) for _ in range(ticks)][-1]

    def close(self) -> None:
        """End both processes and remove the folder."""
        self.env.close()
        self.spare.close()
        shutil.rmtree(self.folder)
