"""RoboCasa as a `Simulator`: lists without an engine, builds where RoboCasa lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from zetta.runtime.errors import InfraError
from zetta.sims.own_interpreter import OwnInterpreterSimulator, TaskList
from zetta.sims.probes import refused_argument
from zetta.sims.robocasa import tasks

TAKEN = "robosuite.environments.manipulation.manipulation_env:ManipulationEnv:load_model_on_init"
"""What tells the robosuite that RoboCasa needs from the one of the same version that it cannot
use."""


class RobocasaSimulator(OwnInterpreterSimulator):
    """The tasks of RoboCasa365, with a Panda arm on a mobile base."""

    name = "robocasa"
    tasks: ClassVar[TaskList] = tasks
    made = "RobocasaEnv"
    packages: ClassVar[Mapping[str, str]] = {
        "rlinf-robocasa365": "1.0.1",
        "praxis-robosuite": "1.5.2.post1",
    }

    def require(self) -> None:
        """Refuse an interpreter without what RoboCasa runs from.

        Raises:
            InfraError: a package is missing or of another version, or robosuite is not the one
                that RoboCasa needs.
        """
        super().require()
        refused = refused_argument(TAKEN)
        if refused:
            raise InfraError(
                f"{refused}; make the environment anew with: zetta sims install robocasa --again"
            )
