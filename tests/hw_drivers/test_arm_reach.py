"""What an arm's environment tells of its reach."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zetta.hw_drivers.arm_reach import model_of, workspace_of
from zetta.hw_drivers.arm_setup import ArmSetup, read_setup
from zetta.hw_drivers.kinematic_chain import ChainSetup
from zetta.runtime.errors import ConfigError

BARE = ArmSetup("bench", limits="panda")
TWO_JOINTS = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="upper"><joint name="a" axis="0 0 1" range="-1 2"/><geom size="0.01"/>
    <body name="lower" pos="0.3 0 0"><joint name="b" axis="0 0 1" range="-2 2"/>
      <geom size="0.01"/><site name="tip" pos="0.2 0 0"/></body></body>
</worldbody></mujoco>"""


def test_workspace_is_the_box_of_the_limits_in_the_world() -> None:
    box = workspace_of(BARE)
    assert box is not None
    assert (box.low, box.high) == ((0.28, -0.4, 0.02), (0.75, 0.4, 0.65))


def test_workspace_turns_and_moves_with_the_base() -> None:
    half = math.sqrt(0.5)
    turned = replace(BARE, base_pos=(1.0, 0.0, 0.5), base_quat=(0.0, 0.0, half, half))
    box = workspace_of(turned)  # a quarter turn to the left: ahead is +y
    assert box is not None
    assert np.allclose(box.low, (0.6, 0.28, 0.52))
    assert np.allclose(box.high, (1.4, 0.75, 1.15))


def test_askew_base_has_no_box_and_limits_that_are_not_there_none() -> None:
    askew = replace(BARE, base_quat=(0.0, 0.0, math.sin(0.2), math.cos(0.2)))
    assert workspace_of(askew) is None
    assert workspace_of(ArmSetup("bench")) is None


def test_chain_beside_the_setup_gives_the_kinematics(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(TWO_JOINTS, encoding="utf-8")
    setup = tmp_path / "arm.toml"
    setup.write_text(
        'name = "bench"\n[chain]\nmjcf = "arm.xml"\nsite = "tip"\njoints = ["a", "b"]\n',
        encoding="utf-8",
    )
    model = model_of(read_setup(setup))
    assert model is not None
    assert (model.site, model.joints) == ("tip", ("a", "b"))
    assert model.low.tolist() == [-1.0, -2.0]
    assert "lower" in model.mjcf


def test_chain_that_counts_otherwise_is_refused() -> None:
    chain = ChainSetup("arm.xml", "tip", ("a", "b"), signs=(1.0, -1.0))
    with pytest.raises(ConfigError, match="leave out base, signs"):
        model_of(replace(BARE, chain=chain))


def test_setup_without_a_chain_has_no_kinematics() -> None:
    assert model_of(BARE) is None
