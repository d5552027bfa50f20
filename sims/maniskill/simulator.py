"""ManiSkill as a `Simulator`: lists without an engine, builds where ManiSkill 3.0.1 lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from zetta.sims.maniskill import tasks
from zetta.sims.own_interpreter import OwnInterpreterSimulator, TaskList


class ManiSkillSimulator(OwnInterpreterSimulator):
    """Tasks of ManiSkill with one Panda arm; `maniskill:ID` is a suite as well."""

    name = "maniskill"
    tasks: ClassVar[TaskList] = tasks
    made = "ManiSkillEnv"
    packages: ClassVar[Mapping[str, str]] = {"mani_skill": "3.0.1"}
