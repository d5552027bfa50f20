"""The kinematics of an arm as data, and the environments that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from zetta.runtime.core import Array, Env


@dataclass(frozen=True, slots=True)
class ArmModel:
    """The bare chain of an arm, from its base to its grip site; shapes and drives are left out."""

    mjcf: str
    """MJCF text whose world is the base of the arm."""
    joints: tuple[str, ...]
    """Names of the joints there, in the order of `ArmState.joint_pos`."""
    site: str
    """Name of the site there whose pose is `ArmState.ee_pos` and `ee_quat`."""
    low: Array
    """Least joint positions, radians. Shape (J,)."""
    high: Array
    """Greatest joint positions, radians. Shape (J,)."""
    T_world_base: Array
    """Pose of the base in the world. Shape (4, 4)."""


@runtime_checkable
class ArmModels(Env, Protocol):
    """An environment that knows the kinematics of its arms."""

    def arm_model(self, index: int) -> ArmModel | None:
        """Return the chain of arm `index`, its base where it is now; None where it is unknown."""
        ...
