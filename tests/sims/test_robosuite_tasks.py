"""What robosuite offers is told without robosuite."""

from __future__ import annotations

import pytest

from zetta.primitives.roles import roles_or_none
from zetta.runtime.cli.run_plan import Wishes, meant_tasks, plan
from zetta.runtime.core import Init
from zetta.runtime.errors import ConfigError
from zetta.sims.apart import ApartSimulator, NamesTasks
from zetta.sims.robosuite.simulator import RobosuiteSimulator
from zetta.sims.robosuite.tasks import TASKS, arms_of

NOT_UNDERSTOOD = {"Wipe"}
"""Tasks that no command of an agent does."""


@pytest.fixture
def robosuite() -> RobosuiteSimulator:
    return RobosuiteSimulator()


def test_there_are_thirteen_tasks_with_names(robosuite: RobosuiteSimulator) -> None:
    assert sum(robosuite.suites().values()) == 13
    assert isinstance(robosuite, NamesTasks)
    for suite, listed in TASKS.items():
        for index, task in enumerate(listed):
            assert robosuite.task_number(suite, task.name) == index
            assert robosuite.task(suite, index).instruction == task.instruction
            assert robosuite.init_count(suite, index) > 1
    assert [len(arms_of(suite)) for suite in TASKS] == [1, 2]


def test_instructions_differ_and_most_are_understood() -> None:
    tasks = [task for listed in TASKS.values() for task in listed]
    assert len({task.instruction for task in tasks}) == len(tasks)
    for task in tasks:
        if not task.name.startswith("TwoArm") and task.name not in NOT_UNDERSTOOD:
            assert roles_or_none(task.instruction) is not None, task.name


def test_unknown_names_are_told_with_the_nearest(robosuite: RobosuiteSimulator) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Lift'"):
        robosuite.task_number("robosuite_one_arm", "Lif")
    with pytest.raises(ConfigError, match="--suite robosuite_two_arm"):
        robosuite.task_number("robosuite_one_arm", "TwoArmLift")
    with pytest.raises(ConfigError, match="tasks 0-3"):
        robosuite.task("robosuite_two_arm", 4)


def test_a_task_can_be_chosen_by_its_name(robosuite: RobosuiteSimulator) -> None:
    apart = ApartSimulator(robosuite, "python")
    specs = plan(
        Wishes("robosuite", suite="robosuite_one_arm", tasks="Stack", policy="random"), apart
    )
    assert [(spec.task, spec.layout) for spec in specs] == [(1, Init(0))]
    assert meant_tasks("Stack,Lift", apart, "robosuite_one_arm") == (1, 0)
    assert meant_tasks("0-2", apart, "robosuite_one_arm") == (0, 1, 2)
    assert len(meant_tasks("all", apart, "robosuite_two_arm")) == 4
    with pytest.raises(ConfigError, match="Stak"):
        plan(Wishes("robosuite", suite="robosuite_one_arm", tasks="Stak", policy="random"), apart)
