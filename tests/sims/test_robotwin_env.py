"""What the RoboTwin adapter promises beyond the contract, asked where RoboTwin is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apart_sims import installed, told_by

from zetta.runtime.core import Init, Look, Scene, Sense, Simulator
from zetta.runtime.errors import InfraError
from zetta.sims.robotwin import tasks

pytestmark = [pytest.mark.sims, pytest.mark.timeout(600)]
CHILD = Path(__file__).with_name("robotwin_child.py")
SUBJECTS = (*tasks.BLOCKS, "seeds", "qpos", "ee")


@pytest.fixture(scope="module")
def blind() -> dict[str, Any]:
    """The answers on a machine without any Vulkan device."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
            patch.setenv(name, "/nowhere/driver.json")
        told: dict[str, Any] = told_by("robotwin", CHILD)
    return told


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_keeps_its_promises_without_a_vulkan_device(blind: dict[str, Any], subject: str) -> None:
    assert [name for name, holds in blind[subject].items() if not holds] == []


def test_without_a_device_only_a_look_fails_and_says_what_to_type(blind: dict[str, Any]) -> None:
    assert blind["pictures"]["profile"] == "robotwin-none"
    assert "zetta sims check robotwin" in blind["pictures"]["told"]


def test_every_result_says_that_it_is_not_comparable(blind: dict[str, Any]) -> None:
    comparable = blind["pictures"]["comparable"]
    assert comparable.startswith("no (")
    for word in ("SAPIEN", "robot", "pictures"):
        assert word in comparable


@pytest.fixture(scope="module")
def robotwin() -> Simulator:
    return installed("robotwin")


def test_tasks_with_downloaded_objects_say_what_to_type(
    robotwin: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROBOTWIN_ASSETS_ROOT", raising=False)
    with pytest.raises(InfraError, match=r"zetta sims assets robotwin$"):
        robotwin.make("robotwin_clean_qpos", 0)
    with pytest.raises(InfraError, match="try --suite robotwin_blocks"):
        robotwin.make("robotwin_clean", tasks.number("robotwin_clean", "stack_blocks_two"))


@pytest.mark.parametrize("suite", ["robotwin_blocks", "robotwin_blocks_ee"])
def test_the_expert_stacks_two_blocks(robotwin: Simulator, suite: str) -> None:
    env = robotwin.make(suite, 0)
    step = env.reset(Scene(robotwin.task(suite, 0), Init(0)))
    motion = robotwin.expert(env)
    asked = next(motion)
    while not (step.success or step.truncated):
        if not isinstance(asked, Look):
            step = env.step(asked)
        asked = motion.send(Sense(step.proprio))
    env.close()
    assert step.success
