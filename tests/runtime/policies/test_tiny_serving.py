"""From a predicted path to actions, and from heat to attention: numpy only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from zetta.runtime import registry
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.manifest import Execution
from zetta.runtime.policies.tiny.serve import (
    Gripper,
    Neighbourhood,
    load,
    load_from,
    softmax,
    target_rows,
)

PHASES = ("approach", "lift")
EXECUTION = Execution(
    gripper_lead=2, release_lead=1, stall_rows=3, stall_phases=("approach",), replan_steps=2
)
H = 16
HERE, THERE = np.zeros(3), np.full(3, 0.1)


def chances(first: int) -> np.ndarray:
    """Return a chunk that closes from a row on."""
    return (np.arange(H) >= first).astype(np.float32)


def rows_closed(commands: np.ndarray) -> list[int]:
    return np.flatnonzero(commands > 0).tolist()


def test_closing_runs_ahead_of_the_prediction() -> None:
    commands = Gripper(EXECUTION, PHASES).commands(chances(5), HERE, 0)
    assert rows_closed(commands)[0] == 3


def test_opening_runs_ahead_by_its_own_lead() -> None:
    gripper = Gripper(EXECUTION, PHASES)
    gripper.commands(chances(0), HERE, 0)
    commands = gripper.commands(1 - chances(5), THERE, 1)
    assert rows_closed(commands) == [0, 1, 2, 3]


def test_a_hand_that_stands_still_looks_farther_ahead() -> None:
    gripper = Gripper(EXECUTION, PHASES)
    first = [rows_closed(gripper.commands(chances(15), HERE, 0))[0] for _ in range(4)]
    assert first == [13, 10, 7, 4]


@pytest.mark.parametrize(("places", "phase"), [((HERE, THERE, HERE), 0), ((HERE,) * 3, 1)])
def test_a_hand_that_moves_or_has_reason_to_stand_does_not(
    places: tuple[np.ndarray, ...], phase: int
) -> None:
    gripper = Gripper(EXECUTION, PHASES)
    assert [rows_closed(gripper.commands(chances(15), p, phase))[0] for p in places] == [13] * 3


def test_targets_run_ahead_of_the_path_and_turn_the_present_hand() -> None:
    path = np.linspace(0.01, 0.16, H)[:, None].repeat(3, 1).astype(np.float32)
    rot = np.zeros((H, 3), np.float32)
    rot[:, 2] = np.linspace(0.1, 1.6, H)
    now = Rotation.from_rotvec([np.pi, 0.0, 0.0])
    rows = target_rows(path, rot, -np.ones(H), np.ones(3), now.as_quat(), count=H - 4)
    assert rows.shape == (H - 4, 7)
    assert rows[0, :3] == pytest.approx([1.05] * 3, abs=1e-6)
    turned = Rotation.from_rotvec(rows[0, 3:6]) * now.inv()
    assert turned.as_rotvec() == pytest.approx([0.0, 0.0, 0.5], abs=1e-6)


def test_attention_stays_around_a_drawn_cell_and_adds_up_to_one() -> None:
    heat = np.full(24 * 32, -20.0, np.float32)
    peaks = (3 * 32 + 4, 20 * 32 + 28)
    heat[list(peaks)] = 5.0
    drawn = Neighbourhood((24, 32), 2.0).draw(
        softmax(heat), heat, 40, 1.0, np.random.default_rng(0)
    )
    assert drawn.sum(1) == pytest.approx(1.0, abs=1e-5)
    assert {int(row.argmax()) for row in drawn} == set(peaks)
    assert drawn.max(1).min() > 0.99


def test_a_high_temperature_draws_from_everywhere() -> None:
    heat = np.zeros(24 * 24, np.float32)
    heat[0] = 12.0
    around = Neighbourhood((24, 24), 1.0)
    cold, hot = (
        around.draw(softmax(heat), heat, 60, t, np.random.default_rng(0)).argmax(1)
        for t in (0.5, 100.0)
    )
    assert set(cold.tolist()) == {0}
    assert len(set(hot.tolist())) > 10


@pytest.mark.parametrize("name", ["zetta/tiny@T=x", "zetta/tiny@hot", "zetta/tiny@T="])
def test_a_bad_temperature_is_refused_before_anything_is_read(name: str) -> None:
    with pytest.raises(ConfigError, match="@T=1"):
        registry.policy(name)


def test_an_unknown_variant_suggests_a_known_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'zetta/tiny'"):
        load("zetta/tinny")


def test_a_folder_without_weights_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="zetta train tiny"):
        load_from(tmp_path)


def test_loading_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    code = "from zetta.runtime import registry; registry.policy('zetta/tiny').close()"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "ORT_"))}
    subprocess.run(
        [sys.executable, "-c", code], env={**environment, "HOME": str(tmp_path)}, check=True
    )
    assert list(tmp_path.rglob("*")) == []
