"""What a policy says about itself: how far its plans agree, how sure it is, what its hand wants."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from zetta.runtime.core import ActionChunk, Array, PolicySpec
from zetta.runtime.signals_arm import closes, gripper_column, pose_column
from zetta.runtime.signals_gripper import NAN

FLIPS_S = 2.0
"""Flips of the gripper's intent are counted over this time, seconds."""


@dataclass(slots=True)
class PolicyMemory:
    """What is remembered from tick to tick."""

    t_obs: float = NAN
    """Of the chunk that is known; NaN when none is."""
    plan: list[list[float]] = field(default_factory=list)
    """Its positions, or displacements of a `delta_pose`, in metres. Shape (H, 3)."""
    closing: list[bool] = field(default_factory=list)
    """Which of its rows close the gripper."""
    disagreement: float = NAN
    intent: bool | None = None
    flips: list[float] = field(default_factory=list)
    """When the intent changed."""


class PolicySignals:
    """Computes the signals `POLICY` of the registry, in that order."""

    def __init__(self, spec: PolicySpec, arm: int) -> None:
        self._spec = spec.action
        self._hz = spec.control_hz
        self._relative = spec.action.kind == "delta_pose"
        self._pose = pose_column(spec.action, arm)
        self._gripper = gripper_column(spec.action, arm)
        self._scale: Array = np.ones(3)
        if self._pose is not None and self._relative:
            self._scale = np.array(spec.action.scale[self._pose : self._pose + 3])
        self.memory = PolicyMemory()

    def begin(self) -> None:
        """Forget the last episode."""
        self.memory = PolicyMemory()

    def update(self, t: float, chunk: ActionChunk | None) -> tuple[float, ...]:
        """Return the signals of this tick; `chunk` is the pending one."""
        m = self.memory
        if chunk is None:
            # A plan made before a motion drove says nothing about one made after it.
            m.t_obs, m.disagreement, m.intent = NAN, NAN, None
        elif chunk.t_obs != m.t_obs:
            self._take(chunk)
        if chunk is not None and m.closing:
            # The row of the tick before: of the present one nobody knows yet whether it is used.
            row = min(max(round((t - chunk.t_obs) * self._hz) - 1, 0), len(m.closing) - 1)
            if m.intent is not None and m.intent != m.closing[row]:
                m.flips.append(t)
            m.intent = m.closing[row]
        while m.flips and t - m.flips[0] > FLIPS_S + 1e-9:
            del m.flips[0]
        dispersion, age = (NAN, NAN) if chunk is None else (chunk.dispersion, t - chunk.t_obs)
        return m.disagreement, dispersion, float(len(m.flips)), age

    def _take(self, chunk: ActionChunk) -> None:
        m = self.memory
        if self._gripper is not None:
            commands = chunk.actions[:, self._gripper].tolist()
            m.closing = [closes(self._spec, command) for command in commands]
        if self._pose is not None:
            plan = chunk.actions[:, self._pose : self._pose + 3] * self._scale  # (H, 3)
            m.disagreement = self._disagreement(plan, chunk.t_obs)
            m.plan = plan.tolist()
        m.t_obs = chunk.t_obs

    def _disagreement(self, plan: Array, t_obs: float) -> float:
        """Compare `plan` with the known one where both speak of the same time.

        Displacements are added up from the first common tick on: where the hand really is then
        does not matter, so a controller's lag is no disagreement.
        """
        m = self.memory
        if math.isnan(m.t_obs):
            return NAN
        later = round((t_obs - m.t_obs) * self._hz)
        common = min(len(m.plan) - later, len(plan))
        if later <= 0 or common <= 0:
            return NAN
        old, new = np.array(m.plan[later : later + common]), plan[:common]
        if self._relative:
            old, new = old.cumsum(axis=0), new.cumsum(axis=0)
        return float(np.sqrt(((old - new) ** 2).sum(axis=1).mean()))
