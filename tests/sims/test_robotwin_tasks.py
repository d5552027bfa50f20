"""What RoboTwin offers is told without RoboTwin."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.primitives.roles import roles_or_none
from zetta.runtime.cli.waypoints import check_ticks
from zetta.runtime.core import ActionSpec, EnvSpec
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.apart import NamesTasks
from zetta.sims.robotwin import panda, sight, tasks
from zetta.sims.robotwin.simulator import RobotwinSimulator

LIMITS = {
    400: "adjust_bottle beat_block_hammer click_alarmclock click_bell grab_roller lift_pot "
    "move_can_pot move_pillbottle_pad move_playingcard_away move_stapler_pad "
    "pick_diverse_bottles pick_dual_bottles place_a2b_left place_a2b_right place_container_plate "
    "place_fan place_mouse_pad place_object_scale place_object_stand place_phone_stand "
    "press_stapler rotate_qrcode stamp_seal turn_switch",
    500: "place_bread_skillet place_burger_fries place_empty_cup place_shoe scan_object",
    600: "dump_bin_bigbin handover_mic place_dual_shoes",
    700: "open_laptop place_bread_basket place_can_basket place_object_basket put_object_cabinet "
    "shake_bottle shake_bottle_horizontally",
    800: "handover_block place_cans_plasticbox stack_blocks_two",
    900: "hanging_mug stack_bowls_two",
    1200: "blocks_ranking_rgb blocks_ranking_size stack_blocks_three stack_bowls_three",
    1500: "open_microwave",
    1700: "put_bottles_dustbin",
}
"""Tasks by the step limit of RoboTwin's evaluation."""


@pytest.fixture
def robotwin() -> RobotwinSimulator:
    return RobotwinSimulator()


def test_there_are_fifty_tasks_with_the_limits_of_the_benchmark() -> None:
    limits = {name: limit for limit, names in LIMITS.items() for name in names.split()}
    assert len(limits) == 50
    for suite in ("robotwin_clean_qpos", "robotwin_randomized_ee", "robotwin_clean"):
        assert {task.name: task.limit for task in tasks.tasks_of(suite)} == limits


def test_suites_are_a_setting_and_a_way_to_act(robotwin: RobotwinSimulator) -> None:
    assert isinstance(robotwin, NamesTasks)
    assert len(robotwin.suites()) == 9
    assert robotwin.suites()["robotwin_blocks"] == 5
    assert robotwin.suites()["robotwin_randomized_qpos"] == 50
    for suite in robotwin.suites():
        for index, task in enumerate(tasks.tasks_of(suite)):
            assert robotwin.task_number(suite, task.name) == index
            assert robotwin.init_count(suite, index) == 100


def test_a_fixed_rate_gives_the_time_that_the_waypoints_stand_for(
    robotwin: RobotwinSimulator,
) -> None:
    assert robotwin.task("robotwin_blocks_qpos", 0).max_steps == 800
    assert robotwin.task("robotwin_blocks", 0).max_steps == 960
    assert tasks.CONTROL_HZ == 20.0


def test_instructions_differ_and_those_of_the_stacks_are_understood() -> None:
    every = tasks.tasks_of("robotwin_clean")
    assert len({task.instruction for task in every}) == len(every)
    for task in tasks.tasks_of("robotwin_blocks")[:2]:
        assert roles_or_none(task.instruction) is not None


def test_unknown_names_are_told_with_the_nearest(robotwin: RobotwinSimulator) -> None:
    with pytest.raises(ConfigError, match="did you mean 'stack_blocks_two'"):
        robotwin.task_number("robotwin_blocks", "stack_block_two")
    with pytest.raises(ConfigError, match="--suite robotwin_clean"):
        robotwin.task_number("robotwin_blocks", "lift_pot")
    with pytest.raises(ConfigError, match="tasks 0-4"):
        robotwin.task("robotwin_blocks", 5)
    with pytest.raises(ConfigError, match="robotwin_blocks_qpos"):
        robotwin.task("robotwin_block_qpos", 0)


@given(k=st.integers(0, 99), seed=st.integers(0, 2**40), attempt=st.integers(0, 20))
def test_sampled_scenes_never_meet_those_of_tables_or_demonstrations(
    k: int, seed: int, attempt: int
) -> None:
    init, sampled = tasks.seed_of(k, seed, attempt), tasks.seed_of(None, seed, attempt)
    assert 2**31 <= sampled < 2**32
    assert init == 100_000 + k if attempt == 0 else init >= 2**31
    assert init != sampled
    assert sampled != tasks.seed_of(None, seed, attempt + 1)
    assert init == tasks.seed_of(k, seed + 1, attempt)


def test_the_robot_is_written_from_installed_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = str(tmp_path / "mani_skill" / "__init__.py")
    monkeypatch.setattr(panda, "find_spec", lambda name: ModuleSpec(name, None, origin=origin))
    monkeypatch.setattr(panda, "scratch_folder", lambda name: tmp_path / name)
    folder, told = panda.embodiment()
    again, _ = panda.embodiment()
    assert folder == again
    urdf = ElementTree.parse(folder / "panda.urdf").getroot()
    turning = [j.get("name") for j in urdf.iter("joint") if j.get("type") == "revolute"]
    assert tuple(turning) == panda.ARM_JOINTS
    meshes = {mesh.get("filename", "") for mesh in urdf.iter("mesh")}
    assert len(meshes) == 19
    assert all(name.startswith(str(tmp_path / "mani_skill")) for name in meshes)
    assert told["arm_joints_name"] == [list(panda.ARM_JOINTS)] * 2
    # RoboTwin takes the third folder above for the root of its assets.
    assert folder.parents[1].name == "assets"


def test_without_the_shapes_the_line_that_installs_them_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(panda, "find_spec", lambda name: None)
    with pytest.raises(InfraError, match="zetta sims install robotwin"):
        panda.embodiment()


def test_only_a_gpu_that_traces_rays_has_robotwins_look() -> None:
    processor = "GPU: llvmpipe\n  Supported: 1\n  cudaId:    -1\n  rayTrace:  1\n"
    card = "GPU: some card\n  Supported: 1\n  cudaId:    0\n  rayTrace:  1\n"
    assert not sight._traces_rays(processor)
    assert sight._traces_rays(card)
    assert not sight._traces_rays(card.replace("rayTrace:  1", "rayTrace:  0"))


def test_what_hangs_ends_the_process_with_a_sentence() -> None:
    program = (
        "import threading; from zetta.sims.robotwin.sight import watched\n"
        "with watched(0.2, 'drawing a picture'): threading.Event().wait()"
    )
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert child.returncode == 1
    assert "drawing a picture hangs: it took longer than 0.2 s" in child.stderr


def test_what_ends_in_time_goes_on() -> None:
    with sight.watched(60.0, "nothing"):
        pass


def test_what_needs_ticks_is_refused_where_actions_are_planned_motions() -> None:
    def spec(kind: str) -> EnvSpec:
        action = ActionSpec(kind, ("x",), (0.0,), (1.0,), (1.0,))  # type: ignore[arg-type]
        return EnvSpec("robotwin", 20.0, action, ())

    check_ticks(spec("delta_pose"), "robotwin_blocks", "critics")
    with pytest.raises(ConfigError, match="critics need ticks of a fixed rate"):
        check_ticks(spec("waypoint"), "robotwin_blocks_qpos", "critics")
