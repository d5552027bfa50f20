"""What ManiSkill offers is told without ManiSkill."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from zetta.primitives.roles import roles_or_none
from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import Init
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.apart import ApartSimulator, NamesTasks
from zetta.sims.maniskill.arm import engine_row, rest_row
from zetta.sims.maniskill.engine import build
from zetta.sims.maniskill.simulator import ManiSkillSimulator
from zetta.sims.maniskill.tasks import INIT_COUNT, TASKS


@pytest.fixture
def maniskill() -> ManiSkillSimulator:
    return ManiSkillSimulator()


def test_tasks_have_names_instructions_and_budgets(maniskill: ManiSkillSimulator) -> None:
    assert isinstance(maniskill, NamesTasks)
    names = [task.name for listed in TASKS.values() for task in listed]
    assert {"PickCube-v1", "StackCube-v1", "PushCube-v1"} <= set(names)
    assert len(set(names)) == len(names)
    for suite, listed in TASKS.items():
        for index, task in enumerate(listed):
            told = maniskill.task(suite, index)
            assert maniskill.task_number(suite, task.name) == index
            assert (told.instruction, told.max_steps) == (task.instruction, task.max_steps)
            assert maniskill.init_count(suite, index) == INIT_COUNT


def test_the_instructions_of_the_first_suite_are_understood() -> None:
    for task in TASKS["maniskill"]:
        assert roles_or_none(task.instruction) is not None, task.name


def test_any_registered_task_is_a_suite_of_its_own(maniskill: ManiSkillSimulator) -> None:
    apart = ApartSimulator(maniskill, "python")
    task = apart.task("maniskill:MyOwnTask-v2", 0)
    assert task.instruction == "do the task my own task"
    assert apart.task_number("maniskill:MyOwnTask-v2", "MyOwnTask-v2") == 0
    assert (
        apart.task("maniskill:my_package.tasks:MyTask-v1", 0).instruction == "do the task my task"
    )
    with pytest.raises(ConfigError, match="tasks 0-0, got 1"):
        apart.task("maniskill:MyOwnTask-v2", 1)
    for wrong in ("maniskill:", "maniskill:no version", "maniskil"):
        with pytest.raises(ConfigError, match="unknown suite of ManiSkill"):
            apart.task(wrong, 0)


def test_unknown_names_are_told_with_the_nearest(maniskill: ManiSkillSimulator) -> None:
    with pytest.raises(ConfigError, match="did you mean 'PickCube-v1'"):
        maniskill.task_number("maniskill", "PickCub-v1")
    with pytest.raises(ConfigError, match="--suite maniskill_more"):
        maniskill.task_number("maniskill", "PlugCharger-v1")
    with pytest.raises(ConfigError, match="--suite maniskill:TurnFaucet-v1"):
        maniskill.task_number("maniskill", "TurnFaucet-v1")


def test_a_task_can_be_chosen_by_its_name(maniskill: ManiSkillSimulator) -> None:
    apart = ApartSimulator(maniskill, "python")
    specs = plan(Wishes("maniskill", tasks="StackCube-v1"), apart)
    assert [(s.suite, s.task, s.layout) for s in specs] == [("maniskill", 1, Init(0))]
    specs = plan(Wishes("maniskill", suite="maniskill:MyTask-v1"), apart)
    assert [(s.suite, s.task) for s in specs] == [("maniskill:MyTask-v1", 0)]


def test_a_row_turns_into_the_angles_that_maniskill_reads() -> None:
    turn = np.array([0.3, -0.5, 0.6])
    angles = engine_row(np.array([0, 0, 0, *turn, 1.0]))
    # ManiSkill: 0.1 rad per 1.0 with the opposite sign, about x, then y, then z of what turned.
    meant = Rotation.from_euler("XYZ", -0.1 * angles[3:6]).as_rotvec()
    np.testing.assert_allclose(meant, 0.1 * turn, atol=1e-9)
    assert angles[6] == -1.0, "it opens with +1"


def test_a_row_beyond_the_limits_is_clipped() -> None:
    np.testing.assert_array_equal(
        engine_row(np.array([9.0, -9.0, 0, 0, 0, 9.0, 5.0])), [1, -1, 0, 0, 0, -1, -1]
    )
    long = engine_row(np.array([0, 0, 0, 1.0, 1.0, 1.0, 0]))[3:6]
    turned = Rotation.from_euler("XYZ", -0.1 * long).magnitude()
    np.testing.assert_allclose(turned, 0.1, atol=1e-9)
    np.testing.assert_array_equal(engine_row(rest_row()), [0, 0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize(
    "said",
    [
        "failed to find a rendering device",
        "vk::createInstanceUnique: ErrorIncompatibleDriver",  # no driver on the machine at all
    ],
)
def test_a_machine_without_a_device_is_told_the_command_that_looks_for_one(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_device() -> None:
        raise RuntimeError(said)

    skill = SimpleNamespace(logger=logging.getLogger("made-up"), envs=None)
    for name, module in {
        "sapien": SimpleNamespace(render=SimpleNamespace(RenderSystem=no_device)),
        "gymnasium": SimpleNamespace(),
        "mani_skill": skill,
        "mani_skill.envs": SimpleNamespace(),
        "mani_skill.utils": SimpleNamespace(),
        "mani_skill.utils.registration": SimpleNamespace(REGISTERED_ENVS={}),
        "torch": SimpleNamespace(set_num_threads=lambda count: None),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    task = next(iter(TASKS.values()))[0]
    with pytest.raises(InfraError, match=re.escape(said)) as refused:
        build(replace(task, name="mine:Task-v1"))
    assert "zetta sims check maniskill" in str(refused.value)
