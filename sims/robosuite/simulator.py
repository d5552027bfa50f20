"""robosuite as a `Simulator`: lists without an engine, builds where robosuite 1.5.2 lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from zetta.sims.own_interpreter import OwnInterpreterSimulator, TaskList
from zetta.sims.robosuite import tasks


class RobosuiteSimulator(OwnInterpreterSimulator):
    """The thirteen tasks of robosuite, with Panda arms."""

    name = "robosuite"
    tasks: ClassVar[TaskList] = tasks
    made = "RobosuiteEnv"
    packages: ClassVar[Mapping[str, str]] = {"robosuite": "1.5.2"}
