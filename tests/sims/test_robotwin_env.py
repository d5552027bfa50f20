"""What the RoboTwin adapter promises beyond the contract, asked where RoboTwin is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robotwin_body
from apart_sims import installed, told_by
from env_contract import CHECKS, Subject

from zetta.runtime.cli.main import main
from zetta.runtime.core import Init, Look, Scene, Sense, Simulator, SnapshotEnv
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


def test_scenes_with_backgrounds_say_which_part_they_lack(
    robotwin: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robotwin_body.write(tmp_path)
    monkeypatch.setenv("ROBOTWIN_ASSETS_ROOT", str(tmp_path))
    with pytest.raises(InfraError, match="--part background_texture"):
        robotwin.make("robotwin_randomized_qpos", 0)


def test_a_body_with_two_arms_of_six_joints_takes_fourteen_numbers(
    robotwin: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robotwin_body.write(tmp_path)
    monkeypatch.setenv("ROBOTWIN_ASSETS_ROOT", str(tmp_path))
    suite = "robotwin_clean_qpos"
    index = tasks.number(suite, "stack_blocks_two")
    env = robotwin.make(suite, index)
    begun = env.reset(Scene(robotwin.task(suite, index), Init(0))).proprio.arms
    assert env.spec.action.size == 14
    assert "another robot" not in env.spec.versions["comparable"]
    assert begun[0].ee_pos[0] < 0.0 < begun[1].ee_pos[0]
    row = np.concatenate([np.r_[arm.joint_pos, 1.0] for arm in begun])
    row[0] += 0.2
    row[13] = 0.0
    moved = env.step(row).proprio.arms
    env.close()
    np.testing.assert_allclose(moved[0].joint_pos, row[:6], atol=0.01)
    np.testing.assert_allclose(moved[1].joint_pos, row[7:13], atol=0.01)
    assert moved[0].gripper_opening > 0.07
    assert moved[1].gripper_opening < 0.04


KEPT = (
    "spec_is_consistent",
    "first_step_describes_an_unsolved_start",
    "time_advances_by_the_control_period",
    "reset_forgets_every_history",
    "records_stay_what_they_were",
    "what_is_sensed_anew_is_what_the_step_said",
    "bad_actions_are_refused_and_change_nothing",
    "snapshot_continues_bit_exactly",
    "scenes_of_another_task_are_refused",
)
"""Of the contract of environments, what asks for no pictures."""


@pytest.fixture(scope="module")
def planned(robotwin: Simulator) -> Iterator[Subject]:
    """Worlds whose actions are planned motions."""
    env, spare = (robotwin.make("robotwin_blocks_qpos", 0) for _ in range(2))
    assert isinstance(env, SnapshotEnv)
    assert isinstance(spare, SnapshotEnv)
    yield Subject(robotwin, "robotwin_blocks_qpos", 0, env, spare)
    env.close()
    spare.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_planned_motions_keep_the_contract_of_environments(planned: Subject, name: str) -> None:
    CHECKS[name](planned)


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


@pytest.mark.parametrize(
    ("suite", "policy", "said"),
    [
        ("robotwin_blocks_ee", "random@left,right", "signals need ticks of a fixed rate"),
        ("robotwin_blocks", "random", "as in: --policy random@left,right"),
    ],
)
def test_what_a_campaign_cannot_have_is_refused_for_the_right_reason(
    robotwin: Simulator,
    suite: str,
    policy: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("evolve", "--sim", "robotwin", "--suite", suite, "--tasks", "0", "--policy", policy)
    with pytest.raises(SystemExit):
        main([*words, "--sensing", "oracle", "--out", str(tmp_path)])
    assert said in capsys.readouterr().err
