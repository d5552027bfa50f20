"""How RoboCasa is built and reset: quietly, without a renderer, and the same after any history.

Every scene of RoboCasa is a world of its own: kitchen, fixtures and objects are drawn anew and
compiled at each reset. All of it comes from one generator, which is set before; the kitchen is
chosen here, from those of the split.

The environment variable `ROBOCASA_ASSETS_PATH`, which RoboCasa itself reads when it is imported, is
read and set here and nowhere else.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.runtime.errors import InfraError
from zetta.sims.libero.scratch import scratch_folder
from zetta.sims.quiet import global_numpy_seed, robosuite_quiet
from zetta.sims.robocasa import kitchen
from zetta.sims.robocasa.tasks import RobocasaTask, Split, kitchens

BUILD_SEED: Final = 0
PACKAGES: Final = ("rlinf-robocasa365", "praxis-robosuite", "mujoco", "numpy")
ASSETS: Final = "ROBOCASA_ASSETS_PATH"
NEEDED: Final = ("textures", "fixtures/sinks", "objects/objaverse", "objects/lightwheel", "arenas")
"""Folders that a kitchen of the benchmark cannot do without."""
FIX: Final = "zetta sims assets robocasa"


def build(task: RobocasaTask, split: Split, control_hz: float) -> Any:
    """Return RoboCasa's own environment of a task; nothing is laid out before `reset`.

    Raises:
        InfraError: the task needs assets that are not there.
    """
    _choose_assets(split)
    os.environ.setdefault("MPLCONFIGDIR", str(scratch_folder("matplotlib")))
    with robosuite_quiet(), global_numpy_seed(BUILD_SEED):
        import robocasa  # noqa: F401 - it registers the tasks
        from robocasa.environments.kitchen.kitchen import REGISTERED_KITCHEN_ENVS
        from robosuite.controllers import load_composite_controller_config

        made = REGISTERED_KITCHEN_ENVS[task.name]
        if split == "bundled":
            made = type(f"Bundled{task.name}", (made,), {"_get_obj_cfgs": lambda self: []})
        env = made(
            robots="PandaOmron",
            controller_configs=load_composite_controller_config(robot="PandaOmron"),
            control_freq=control_hz,
            use_camera_obs=False,
            has_renderer=False,
            has_offscreen_renderer=False,
            renderer="mujoco",
            ignore_done=True,  # the budget is ours
            layout_and_style_ids=[list(pair) for pair in kitchens(split)],
            obj_instance_split=None if split in ("bundled", "all") else split,
            seed=BUILD_SEED,
        )
    # Nothing here reads observables, and they do not act on physics.
    env._update_observables = lambda force=False: None
    env._get_observations = lambda force_update=False: {}
    return env


def reset(env: Any, seed: int, pair: tuple[int, int]) -> None:
    """Draw a scene in the kitchen of layout and style `pair`; the same one after any history.

    Raises:
        InfraError: RoboCasa finds no room for what the task needs in this kitchen.
    """
    # In place: samplers, fixtures and objects hold this very generator.
    env.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    env.layout_and_style_ids = [pair]
    env.unset_ep_meta()
    with robosuite_quiet(), global_numpy_seed(seed):
        try:
            env.reset()
        except FileNotFoundError as error:
            raise InfraError(
                f"RoboCasa needs assets: {error.filename} is missing; download them with: {FIX}"
            ) from error
        except RuntimeError as error:
            raise InfraError(
                f"RoboCasa found no room for seed {seed} in layout {pair[0]}: {error}; use "
                "another seed"
            ) from error


def versions(split: Split) -> dict[str, str]:
    """Return the versions that decide how an episode goes, and whether tasks are as published."""
    told = {package: version(package) for package in PACKAGES}
    # The name of the package that lies in the folder `robosuite` here.
    if split == "bundled":
        told["tasks"] = "modified: RoboCasa's tasks in bundled kitchens, without objects"
    return told


def missing(root: Path) -> tuple[str, ...]:
    """Return which of the needed folders of assets are not there, or empty."""
    return tuple(name for name in NEEDED if not any((root / name).glob("*")))


def _choose_assets(split: Split) -> None:
    """Tell RoboCasa where its assets lie, before it is imported.

    Raises:
        InfraError: they are not there, or this process holds those of other kitchens.
    """
    root = _bundled() if split == "bundled" else _downloaded()
    held = sys.modules.get("robocasa.models")
    if held is not None and held.assets_root != str(root):
        raise InfraError(
            f"this process holds RoboCasa with the assets of {held.assets_root}; use a process for "
            "each environment"
        )
    os.environ[ASSETS] = str(root)


def _bundled() -> Path:
    spec = find_spec("robocasa")
    assert spec is not None and spec.origin is not None  # noqa: PT018 - it was asked for before
    # Beside the packages they were made from: they go when those go.
    return kitchen.assets(Path(spec.origin).parent / "models" / "assets", Path(sys.prefix))


def _downloaded() -> Path:
    named = os.environ.get(ASSETS, "")
    if not named:
        raise InfraError(
            f"RoboCasa's kitchens need assets (textures, fixtures and objects, about 10 GB), and "
            f"{ASSETS} names no folder; download them with: {FIX} - or drive in the kitchens that "
            "need none: --suite robocasa_bundled"
        )
    lacking = missing(Path(named))
    if lacking:
        raise InfraError(
            f"RoboCasa needs assets: {named} lacks {', '.join(lacking)}; download them with: {FIX}"
        )
    return Path(named)
