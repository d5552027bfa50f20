"""Folders of runs for tests of the dashboard: real ones of the toy, made-up ones, and a flash."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.skills.evolve.made_campaign import made as made_campaign
from zetta.runtime.cli.made_runs import Made, write_made_run
from zetta.runtime.cli.main import main
from zetta.runtime.episode_log import POSES, TICKS, read_episode
from zetta.runtime.tick_tables import write_ticks
from zetta.sims.toy_render import FRONT_POSE
from zetta.sims.toy_state import ARM_WIDTH

COMMITTED: Final = Path(__file__).parents[1] / "results" / "campaigns"
FLASH_TICK: Final = 23
"""At this tick alone a red cube fills the front camera, and the signal jumps."""
FLASH_SIGNAL: Final = "ee_speed"
FLASH_VALUE: Final = 9.0
NEAR: Final = 0.05
"""Metres from the front camera to the cube at the flash."""
REAL, PLAIN, HELPED, FLASH = "with-recovery", "nightly-none", "nightly-starter", "flash"


def zetta(*words: str) -> None:
    """Run a command that must succeed."""
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0


def toy_run(folder: Path, policy_seed: int, episodes: int = 1) -> Path:
    """Run the toy under the starter bundle: seed 1 succeeds alone, seed 2 needs a recovery."""
    zetta(
        "run", "--sim", "toy", "--policy-seed", str(policy_seed), "--episodes", str(episodes),
        "--bundle", "starter", "--sensing", "oracle", "--no-video", "--json", "--out", str(folder),
    )  # fmt: skip
    return folder


def flash_run(folder: Path, run: Path) -> Path:
    """Copy the first episode of a run of the toy, with a flash at one tick."""
    log = folder / "episodes" / "000"
    shutil.copytree(run / "episodes" / "000", log)
    (log / "strip.png").unlink(missing_ok=True)
    episode = read_episode(log)
    assert episode.poses is not None
    poses = np.array(episode.poses)
    cube = slice(1 + ARM_WIDTH, 1 + ARM_WIDTH + 3)
    poses[FLASH_TICK, cube] = FRONT_POSE[:3, 3] + NEAR * FRONT_POSE[:3, 2]
    np.savez_compressed(log / POSES, poses=poses)
    ticks = [
        replace(
            tick,
            signals={**tick.signals, FLASH_SIGNAL: FLASH_VALUE * (tick.index == FLASH_TICK)},
        )
        for tick in episode.ticks
    ]
    write_ticks(log / TICKS, ticks, episode.header.spec.arms)
    return folder


def dashboard_root(root: Path) -> Path:
    """Fill a folder with one of everything that the dashboard shows."""
    run = toy_run(root / REAL, policy_seed=2, episodes=2)
    flash_run(root / FLASH, run)
    write_made_run(root / PLAIN, Made(60, bundle="none", solved=0.45))
    write_made_run(root / HELPED, Made(60, seed=1, solved=0.8))
    shutil.copytree(COMMITTED / "tiny-lan", root / "tiny-lan")
    pictures = root / "tiny-lan" / "pictures"
    pictures.mkdir()
    shutil.copy(run / "episodes" / "000" / "strip.png", pictures / "000-000.png")
    made_campaign(root / "hostile")
    return root
