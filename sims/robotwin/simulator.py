"""RoboTwin as a `Simulator`: lists without an engine, builds where RoboTwin's runtime lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from zetta.sims.own_interpreter import OwnInterpreterSimulator, TaskList
from zetta.sims.robotwin import tasks


class RobotwinSimulator(OwnInterpreterSimulator):
    """The fifty tasks of RoboTwin 2.0, five of them on a robot of ours as well."""

    name = "robotwin"
    tasks: ClassVar[TaskList] = tasks
    made = "RobotwinEnv"
    packages: ClassVar[Mapping[str, str]] = {"rlinf-robotwin-runtime": "0.1.3"}
