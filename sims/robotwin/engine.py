"""How RoboTwin's tasks are built and begun: quietly, the same after any history.

A task is RoboTwin's own class with its drawing taken out: it draws only when somebody looks, and
never while it moves. RoboTwin makes a new world for each scene; what it draws at random comes from
numpy's global generator, which is set before and put back after.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import MethodType
from typing import Any, Final

import numpy as np

from zetta.runtime.errors import InfraError
from zetta.sims.libero.scratch import scratch_folder
from zetta.sims.quiet import global_numpy_seed, quiet
from zetta.sims.robotwin import panda, sight, stand_ins
from zetta.sims.robotwin.tasks import RobotwinTask, Setting, Suite

PHYSICS_HZ: Final = 250.0
PLAN_S: Final = 110.0
"""A motion whose planning takes longer hangs."""
PACKAGES: Final = ("rlinf-robotwin-runtime", "sapien", "mplib", "toppra", "numpy")
ASSETS: Final = "ROBOTWIN_ASSETS_ROOT"
"""Environment variable of this process: the folder that RoboTwin's downloads lie in."""
OWN_ROBOT: Final = "aloha-agilex"
_BACKGROUNDS: Final = "assets/background_texture"
_CONFIGS: Final[Mapping[Setting, str]] = {
    "blocks": "demo_clean",
    "clean": "demo_clean",
    "randomized": "demo_randomized",
}


class Unusable(Exception):
    """RoboTwin refuses a seed: something is not at rest in its scene."""


@dataclass(frozen=True, slots=True)
class _Robot:
    """What RoboTwin is told about the robot."""

    name: str
    folder: Path
    settings: dict[str, Any]
    one_body: bool
    """Both arms are parts of one model."""


class Engine:
    """One task of RoboTwin.

    Attributes:
        task: RoboTwin's own object, for scripted experts and truth.
        shader: how pictures are drawn here.
        robot_name: the robot's model.
        planner: what plans motions.
    """

    def __init__(self, own: RobotwinTask, suite: Suite) -> None:
        """Load RoboTwin and make the task; its first world comes with `begin`.

        Raises:
            InfraError: assets or packages are missing.
        """
        robot = _two_pandas() if suite.setting == "blocks" else _own_robot(_assets_root(own, suite))
        with quiet(errors=True):
            os.environ.setdefault("MPLCONFIGDIR", str(scratch_folder("matplotlib")))
            stand_ins.install()
            self.shader = sight.choose_shader()
            self.task = _task_class(own.name, self.shader)()
        self.planner = _planner()
        self.robot_name = robot.name
        self._told = _told(own, suite, robot, self.planner)
        self._plans = suite.acting != "rate"

    def begin(self, seed: int) -> None:
        """Make a new world from a seed of RoboTwin.

        Raises:
            Unusable: RoboTwin refuses this seed.
            InfraError: RoboTwin cannot build the world.
        """
        unstable = import_module("robotwin.envs.utils.create_actor").UnStableError
        robots = import_module("robotwin.envs.robot.robot").Robot
        with (
            quiet(errors=True),
            global_numpy_seed(seed),
            _planning(robots, self._plans),
            sight.watched(PLAN_S, "making a world"),
        ):
            self.task.close_env()
            try:
                self.task.setup_demo(seed=seed, **copy.deepcopy(self._told))
            except unstable as error:
                raise Unusable(str(error)) from error
        self.task.step_lim = None  # the budget is ours
        self.task.crazy_random_light = 0  # it would change with each look
        if self._plans:
            _refuse_empty_plans(self.task.robot)

    def move(self, action: np.ndarray[Any, Any], kind: str) -> bool:
        """Carry out one planned motion of RoboTwin; say whether the goal held on its way."""
        self.task.eval_success = False
        with quiet(errors=True), sight.watched(PLAN_S, "RoboTwin's planner"):
            self.task.take_action(action, action_type=kind)
        return bool(self.task.eval_success)

    def close(self) -> None:
        """Let the world go."""
        with quiet(errors=True), contextlib.suppress(AttributeError):
            self.task.close_env()

    def versions(self) -> dict[str, str]:
        """Return what decides how an episode goes, and why it compares with no published one."""
        return {
            **{package: version(package) for package in PACKAGES},
            "arm": self.robot_name,
            "shader": self.shader,
            "planner": self.planner,
            "comparable": "no (" + ", ".join(self._differences()) + ")",
        }

    def _differences(self) -> Iterator[str]:
        """Yield in what this differs from the published benchmark."""
        yield f"SAPIEN {version('sapien')} for 3.0.0b1"
        if self.shader != "rt":
            yield "not ray-traced" if self.shader == "default" else "no pictures"
        if self.robot_name != OWN_ROBOT:
            yield "another robot"
        if self.planner != "curobo":
            yield f"{self.planner} for cuRobo"
        if not self._plans:
            yield "driven at a fixed rate"


# --------------------------------------------------------------------------- RoboTwin's own class


def _task_class(name: str, shader: sight.Shader) -> Callable[[], Any]:
    base = getattr(import_module(f"robotwin.envs.{name}"), name)
    parts: dict[str, object] = {
        "_update_render": lambda self: None,
        "get_obs": lambda self: {},
        "draw": base._update_render,
    }
    if shader == "none":
        parts |= {"setup_scene": _scene_without_pictures, "load_camera": lambda self, **told: None}
    return type(name, (base,), parts)


def _scene_without_pictures(task: Any) -> None:
    """Do what RoboTwin's `setup_scene` does, but for lights and the renderer."""
    import sapien

    task.engine = task.renderer = None
    task.direction_light_lst, task.point_light_lst = [], []
    task.scene = sapien.Scene([sapien.physx.PhysxCpuSystem()])
    task.scene.set_timestep(1.0 / PHYSICS_HZ)
    task.scene.add_ground(0.0, render=False)
    task.scene.default_physical_material = task.scene.create_physical_material(0.5, 0.5, 0.0)


def _told(own: RobotwinTask, suite: Suite, robot: _Robot, planner: str) -> dict[str, Any]:
    """Return what RoboTwin's `setup_demo` takes."""
    config = import_module("robotwin.config").load_task_config(_CONFIGS[suite.setting])
    return {
        "task_name": own.name,
        "now_ep_num": 0,
        "render_freq": 0,
        "eval_mode": True,
        "save_data": False,
        "domain_randomization": config["domain_randomization"],
        "camera": config["camera"],
        "data_type": config["data_type"],
        "left_embodiment_config": robot.settings,
        "right_embodiment_config": copy.deepcopy(robot.settings),
        "left_robot_file": str(robot.folder),
        "right_robot_file": str(robot.folder),
        "dual_arm_embodied": robot.one_body,
        "embodiment_dis": panda.APART_M,
        "planner_backend": planner,
    }


# --------------------------------------------------------------------------- robots and assets


def _two_pandas() -> _Robot:
    folder, settings = panda.embodiment()
    return _Robot(panda.NAME, folder, settings, one_body=False)


def _own_robot(root: Path) -> _Robot:
    import yaml

    folder = root / "assets" / "embodiments" / OWN_ROBOT
    try:
        settings = yaml.safe_load((folder / "config.yml").read_text(encoding="utf-8"))
    except OSError as error:
        raise InfraError(
            f"RoboTwin's robot is not below {root}: {error.strerror}; get it with: "
            "zetta sims assets robotwin"
        ) from error
    return _Robot(OWN_ROBOT, folder, settings, one_body=True)


def _assets_root(own: RobotwinTask, suite: Suite) -> Path:
    named = os.environ.get(ASSETS, "")
    if not named or not (Path(named) / "assets").is_dir():
        hint = "; without it try --suite robotwin_blocks" if own.bundled else ""
        raise InfraError(
            f"the task {own.name} on RoboTwin's own robot needs RoboTwin's downloads; get them "
            f"with: zetta sims assets robotwin{hint}"
        )
    if suite.setting == "randomized" and not (Path(named) / _BACKGROUNDS).is_dir():
        raise InfraError(
            f"{suite.name} needs RoboTwin's backgrounds, which are not below {named}; get them "
            "with: zetta sims assets robotwin --part background_texture"
        )
    # RoboTwin's tasks read this one.
    os.environ["ASSETS_PATH"] = named
    return Path(named)


# --------------------------------------------------------------------------- planners


def _planner() -> str:
    """Return which planner there is: RoboTwin's own choice needs a GPU and is on no index."""
    if find_spec("curobo") is not None and _has_motion_generation():
        return "curobo"
    return "mplib"


def _has_motion_generation() -> bool:
    # A package of that name without anything in it can be had as well.
    try:
        return find_spec("curobo.wrap.reacher.motion_gen") is not None
    except ModuleNotFoundError:
        return False


@contextlib.contextmanager
def _planning(robots: Any, plans: bool) -> Iterator[None]:
    """Where nothing is planned, let RoboTwin's robot begin without its planners."""
    if plans:
        yield
        return
    grippers = _Grippers()

    def no_planner(self: Any, scene: object = None) -> None:
        self.communication_flag = False
        self.left_planner = self.right_planner = grippers

    original = robots.set_planner
    robots.set_planner = no_planner
    try:
        yield
    finally:
        robots.set_planner = original


class _Grippers:
    """Opens and closes grippers as RoboTwin's planners do."""

    def plan_grippers(self, now_val: float, target_val: float) -> dict[str, Any]:
        planner = import_module("robotwin.envs.robot.planner").MplibPlanner
        planned: dict[str, Any] = planner.plan_grippers(self, now_val, target_val)
        return planned


STILL_M, STILL_RAD = 1e-4, 1e-3
"""A motion that would be shorter than this is none: RoboTwin divides by its length."""


_HELD: Final = {"status": "Fail"}
"""The arm is held while its gripper moves, as where RoboTwin finds no plan."""


def _refuse_empty_plans(robot: Any) -> None:
    for side in ("left", "right"):
        plan = getattr(robot, f"{side}_plan_path")
        where = getattr(robot, f"get_{side}_ee_pose")
        setattr(robot, f"{side}_plan_path", MethodType(_guarded(plan, where), robot))


def _guarded(plan: Callable[..., Any], where: Callable[[], Any]) -> Callable[..., Any]:
    def guarded(self: object, target: Any, *given: Any, **named: Any) -> Any:
        now, goal = np.asarray(where()), np.asarray(target, np.float64)
        turn = 2.0 * np.arccos(min(1.0, abs(float(now[3:] @ goal[3:]))))
        if np.linalg.norm(goal[:3] - now[:3]) < STILL_M and turn < STILL_RAD:
            return _HELD
        try:
            return plan(target, *given, **named)
        except (ArithmeticError, RuntimeError, ValueError):  # what its timing of short ones raises
            return _HELD

    return guarded
