"""How ManiSkill is built, reset and stepped: quietly, and the same after any history.

A reset builds the physics anew (0.2 s of processor): PhysX keeps contacts from one tick to the
next, and what it remembers of an episode before would be another start.
"""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from zetta.runtime.core import Action
from zetta.runtime.errors import ConfigError, InfraError, suggest
from zetta.sims.maniskill.tasks import WRIST, ManiSkillTask
from zetta.sims.quiet import quiet

PACKAGES: Final = ("mani_skill", "sapien", "torch", "numpy")
CONTROL_MODE: Final = "pd_ee_delta_pose"
ROBOTS: Final = ("panda", WRIST)
"""Robots whose actions are seven numbers for one arm with two fingers."""
NO_DEVICE: Final = (
    "SAPIEN finds no Vulkan device that it can draw with, and builds no world without one, not "
    "even a blind one; zetta sims check maniskill tells the line that brings one"
)


def build(task: ManiSkillTask) -> Any:
    """Return ManiSkill's own environment of a task; it observes nothing and draws nothing.

    Raises:
        ConfigError: there is no such task, its robot is no Panda, or its assets are missing.
        InfraError: no Vulkan device that draws.
    """
    with quiet():
        import gymnasium
        import mani_skill.envs  # registers the tasks
        import torch
        from mani_skill.utils.registration import REGISTERED_ENVS

        _check_device()
        mani_skill.logger.setLevel(logging.ERROR)
        torch.set_num_threads(1)  # a world is small; more threads only fight for the cores
        module, _, name = task.name.rpartition(":")
        if not module and name not in REGISTERED_ENVS:
            known = sorted(REGISTERED_ENVS)
            raise ConfigError(f"ManiSkill registers no task {name!r}; {suggest(name, known)}")
        if name in REGISTERED_ENVS:
            _check_assets(REGISTERED_ENVS[name])
        robot: dict[str, Any] = {"robot_uids": task.robot} if task.robot else {}
        try:
            made = gymnasium.make(
                task.name,
                obs_mode="none",
                reward_mode="none",
                control_mode=CONTROL_MODE,
                sim_backend="cpu",
                render_backend="gpu",  # where there is none it is the processor
                **robot,
            ).unwrapped
        except RuntimeError as error:
            raise ConfigError(f"ManiSkill cannot build {task.name} here: {error}") from error
        except (KeyError, AssertionError, TypeError, NotImplementedError, OSError) as error:
            raise ConfigError(
                f"{task.name} cannot be built with one Panda arm that takes {CONTROL_MODE}: {error}"
            ) from error
    _check_robot(made, task.name)
    return made


def reset(env: Any, seed: int) -> None:
    """Draw a layout of the task from `seed`, in physics without a past."""
    with quiet():
        env.reset(seed=seed, options={"reconfigure": True})


def step(env: Any, row: Action) -> None:
    """Advance one control tick."""
    env.step(np.asarray(row, np.float32))


def versions(env: Any) -> dict[str, str]:
    """Return the versions that decide how an episode goes, and what draws."""
    found = {package: version(package) for package in PACKAGES}
    return {**found, "device": str(env.scene.sub_scenes[0].render_system.device.name)}


def outcome(env: Any) -> tuple[bool, bool]:
    """Return whether ManiSkill says that the task is solved, and whether it is lost."""
    told = env.get_info()
    return bool(told.get("success", False)), bool(told.get("fail", False))


def _check_device() -> None:
    import sapien

    try:
        sapien.render.RenderSystem()
    except RuntimeError as error:
        raise InfraError(f"{NO_DEVICE} ({error})") from error


def _check_assets(registered: Any) -> None:
    """Refuse a task whose assets were not downloaded; ManiSkill would ask on the terminal."""
    from mani_skill.utils.assets import DATA_GROUPS, is_data_source_downloaded

    for listed in registered.asset_download_ids:
        for asset in DATA_GROUPS.get(listed, [listed]):
            if not is_data_source_downloaded(asset):
                raise ConfigError(
                    f"{registered.uid} needs the assets {asset!r}, which are not in the package; "
                    f"download them with: {sys.executable} -m mani_skill.utils.download_asset "
                    f"{listed}"
                )


def _check_robot(env: Any, name: str) -> None:
    agent = env.agent
    if str(getattr(agent, "uid", "none")) not in ROBOTS or env.single_action_space.shape != (7,):
        robot = getattr(agent, "uid", type(agent).__name__)
        raise ConfigError(
            f"{name} is a task of the robot {robot!r}; only those of one arm are driven here, with "
            f"the robot {' or '.join(ROBOTS)}"
        )
