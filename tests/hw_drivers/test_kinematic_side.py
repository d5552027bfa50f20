"""Poses for an arm of joints: the chain against its own table, and a side that is driven by it."""

from __future__ import annotations

import builtins
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

from tests.hw_drivers.chain_parts import (
    HOME,
    PANDA_SETUP,
    panda_pose,
    write_five,
    write_panda,
)
from zetta.hw_drivers.arm import ArmFacts, ArmReading, ArmTarget, JointTarget, PoseTarget
from zetta.hw_drivers.frames import Pose, product, rotation, rotation_vector
from zetta.hw_drivers.kinematic_chain import ChainSetup, KinematicChain
from zetta.hw_drivers.kinematic_side import STEP_M, KinematicSide
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch


class JointArm:
    """Joints that follow what they are sent, less a sag."""

    def __init__(self, joints: Array, sag: float = 0.0, accepts: Any = ("joints",)) -> None:
        self.joints, self.sag = np.array(joints), sag
        self.sent: list[JointTarget] = []
        self.told: list[str] = []
        names = tuple(f"motor{k}" for k in range(len(joints)))
        self.facts = ArmFacts("bench", "test", names, (), (), 0.08, accepts)

    def read(self) -> ArmReading:
        nowhere = (read_only([math.nan] * 3), read_only([math.nan] * 4))
        return ArmReading(0.0, read_only(self.joints), *nowhere, 0.08)

    def send(self, target: ArmTarget) -> None:
        assert isinstance(target, JointTarget)
        self.sent.append(target)
        self.joints = target.joint_pos - self.sag * np.sign(target.joint_pos)

    def hold(self) -> None:
        self.told.append("hold")

    def stop(self) -> None:
        self.told.append("stop")

    def clear(self) -> None:
        self.told.append("clear")

    def close(self) -> None:
        self.told.append("close")


@pytest.fixture
def chain(tmp_path: Path) -> KinematicChain:
    write_panda(tmp_path)
    return KinematicChain(PANDA_SETUP, tmp_path)


def postures(chain: KinematicChain, count: int, seed: int = 1) -> Array:
    draw = np.random.default_rng(seed)
    drawn: Array = draw.uniform(chain.low + 0.1, chain.high - 0.1, (count, len(chain.low)))
    return drawn


def apart(one: Pose, other: Pose) -> tuple[float, float]:
    back = other.quat * np.array((-1.0, -1.0, -1.0, 1.0))
    turn = rotation_vector(product(one.quat, back))
    return float(np.linalg.norm(one.pos - other.pos)), float(np.linalg.norm(turn))


def test_forward_kinematics_are_those_of_the_published_table(chain: KinematicChain) -> None:
    for joints in postures(chain, 50):
        assert apart(chain.forward(joints), panda_pose(joints)) == pytest.approx((0, 0), abs=1e-9)
    assert chain.low.tolist()[3] == -3.0718
    assert not chain.low.flags.writeable


def test_forward_kinematics_are_those_of_the_simulator_wherever_the_base_stands(
    tmp_path: Path,
) -> None:
    import mujoco

    path = write_panda(tmp_path, "0.3 -0.2 0.9", "0.2 -0.4 1.1")
    chain = KinematicChain(replace(PANDA_SETUP, base="base"), tmp_path)
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    for joints in postures(chain, 20):
        assert apart(chain.forward(joints), panda_pose(joints)) == pytest.approx((0, 0), abs=1e-9)
        state.qpos[:] = joints
        mujoco.mj_forward(model, state)
        T_world_base = Pose(state.body("base").xpos, state.body("base").xquat[[1, 2, 3, 0]])
        hand = T_world_base @ chain.forward(joints)
        assert np.allclose(hand.pos, state.site("grip").xpos, atol=1e-9)


def test_the_inverse_finds_poses_nearby_and_stays_within_the_limits(chain: KinematicChain) -> None:
    draw = np.random.default_rng(2)
    for joints in postures(chain, 60):
        goal_joints = np.clip(joints + draw.uniform(-0.08, 0.08, 7), chain.low, chain.high)
        found = chain.nearest(joints, panda_pose(goal_joints))
        assert np.all((found.joints >= chain.low) & (found.joints <= chain.high))
        assert found.position_error < 1e-3
        assert found.turn_error < 1e-2
        assert apart(panda_pose(found.joints), panda_pose(goal_joints))[0] == pytest.approx(
            found.position_error, abs=1e-9
        )


def test_a_joint_at_its_limit_stays_there_and_the_others_go_on(chain: KinematicChain) -> None:
    joints = HOME.copy()
    joints[0] = chain.high[0]
    ahead = chain.forward(joints)
    goal = replace(ahead, pos=ahead.pos + np.array((0.0, -0.02, 0.03)))
    found = chain.nearest(joints, goal)
    assert found.joints[0] <= chain.high[0]
    assert found.position_error < 1e-3


def test_a_pose_out_of_reach_is_neared_and_never_made_worse(chain: KinematicChain) -> None:
    start = chain.forward(HOME)
    far = replace(start, pos=np.array((2.0, 0.0, 0.3)))
    found = chain.nearest(HOME, far)
    assert 0.5 < found.position_error < float(np.linalg.norm(far.pos - start.pos))
    assert np.isfinite(found.joints).all()


def test_signs_and_offsets_are_of_the_arm_and_its_limits_follow(tmp_path: Path) -> None:
    write_panda(tmp_path)
    plain = KinematicChain(PANDA_SETUP, tmp_path)
    signs = (1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0)
    offsets = tuple(HOME.tolist())
    turned = KinematicChain(replace(PANDA_SETUP, signs=signs, offsets_rad=offsets), tmp_path)
    for joints in postures(turned, 10):
        model_joints = np.array(signs) * joints + HOME
        assert apart(turned.forward(joints), plain.forward(model_joints))[0] < 1e-12
    assert turned.low[3] == pytest.approx(HOME[3] + 0.0698)
    goal = turned.forward(np.full(7, 0.05))
    assert turned.nearest(np.zeros(7), goal).position_error < 1e-4


def test_an_arm_of_five_joints_reaches_places_and_gives_way_in_rotation(tmp_path: Path) -> None:
    write_five(tmp_path)
    chain = KinematicChain(
        ChainSetup("five.xml", "grip", ("pan", "lift", "elbow", "wrist", "roll"), rotation_m=0.01),
        tmp_path,
    )
    start = np.array((0.1, 0.2, 0.3, 0.4, 0.0))
    hand = chain.forward(start)
    goal = Pose(hand.pos + np.array((0.01, 0.02, 0.01)), hand.quat)
    found = chain.nearest(start, goal)
    assert found.position_error < 5e-3
    assert 1e-3 < found.turn_error < 0.3  # five joints have no sixth direction to give


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mjcf": "none.xml"}, "there is no model"),
        ({"site": "gripp"}, "did you mean 'grip'"),
        ({"base": "bse"}, "did you mean 'base'"),
        ({"joints": ("joint1", "jont2")}, "no joint 'jont2'; did you mean 'joint2'"),
    ],
)
def test_what_the_model_has_not_is_named(tmp_path: Path, change: Any, said: str) -> None:
    write_panda(tmp_path)
    with pytest.raises(ConfigError, match=said):
        KinematicChain(replace(PANDA_SETUP, **change), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"joints": ()},
        {"joints": ("a", "a")},
        {"signs": (1.0, 1.0)},
        {"signs": (2.0,) * 7},
        {"offsets_rad": (math.nan,) * 7},
        {"rotation_m": 0.0},
    ],
)
def test_a_wrong_declaration_is_refused(change: Any) -> None:
    with pytest.raises(ConfigError):
        replace(PANDA_SETUP, **change)


def test_a_model_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "panda.xml").write_text("<mujoco><nonsense/></mujoco>")
    with pytest.raises(ConfigError, match="does not compile"):
        KinematicChain(PANDA_SETUP, tmp_path)


def test_without_mujoco_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "mujoco":
            raise ImportError("No module named 'mujoco'")
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="pip install mujoco"):
        KinematicChain(PANDA_SETUP, tmp_path)


# ------------------------------------------------------------------------------- the side


def drive(side: KinematicSide, target: PoseTarget, ticks: int) -> Pose:
    for _ in range(ticks):
        side.send(target)
    seen = side.read()
    return Pose(seen.ee_pos, seen.ee_quat)


def test_a_pose_target_is_reached_in_steps(chain: KinematicChain) -> None:
    arm = JointArm(HOME)
    side = KinematicSide(arm, chain)
    assert side.facts.accepts == ("pose", "joints")
    assert side.facts.joint_low == tuple(chain.low.tolist())
    start = chain.forward(HOME)
    assert np.allclose(side.read().ee_pos, start.pos)
    turned = product(rotation(np.array((0.0, 0.0, 0.4))), start.quat)
    target = PoseTarget(start.pos + np.array((0.1, -0.15, 0.05)), turned, 0.03)
    side.send(target)
    step = chain.forward(arm.sent[0].joint_pos).pos - start.pos
    assert float(np.linalg.norm(step)) <= STEP_M + 1e-3
    hand = drive(side, target, 12)
    assert apart(hand, Pose(target.ee_pos, turned)) == pytest.approx((0.0, 0.0), abs=1e-3)
    assert arm.sent[-1].gripper_opening == 0.03


def test_a_servo_that_sags_does_not_sag_further_with_every_target(chain: KinematicChain) -> None:
    arm = JointArm(HOME, sag=0.02)
    side = KinematicSide(arm, chain)
    start = chain.forward(HOME)
    target = PoseTarget(start.pos, start.quat, 0.08)
    drive(side, target, 5)
    early = arm.joints.copy()
    drive(side, target, 200)
    assert np.abs(arm.joints - early).max() < 1e-3


def test_joints_that_do_not_follow_are_not_left_behind(chain: KinematicChain) -> None:
    arm = JointArm(HOME)
    side = KinematicSide(arm, chain)
    start = chain.forward(HOME)
    drive(side, PoseTarget(start.pos, start.quat, 0.08), 1)
    arm.joints = HOME + 0.6  # somebody pushed it
    side.send(PoseTarget(start.pos, start.quat, 0.08))
    assert np.abs(arm.sent[-1].joint_pos - (HOME + 0.6)).max() <= 0.5 + 1e-9


def test_joint_targets_holds_and_stops_pass_through(chain: KinematicChain) -> None:
    arm = JointArm(HOME)
    side = KinematicSide(arm, chain)
    side.send(JointTarget(read_only(HOME + 0.1), 0.05))
    assert arm.sent[0].joint_pos.tolist() == (HOME + 0.1).tolist()
    side.hold()
    side.stop()
    side.clear()
    side.close()
    assert arm.told == ["hold", "stop", "clear", "close"]


def test_an_arm_that_does_not_report_is_not_moved(chain: KinematicChain) -> None:
    class Mute(JointArm):
        def read(self) -> ArmReading:
            raise InfraError("no cable")

    side = KinematicSide(Mute(HOME), chain)
    with pytest.raises(InfraError, match="no cable"):
        side.send(PoseTarget(np.array((0.4, 0.0, 0.3)), np.array((1.0, 0.0, 0.0, 0.0)), 0.0))
    with pytest.raises(InfraError, match="no cable"):
        side.read()


def test_an_arm_that_does_not_fit_the_chain_is_refused(chain: KinematicChain) -> None:
    with pytest.raises(ConfigError, match="7 joints and bench 5"):
        KinematicSide(JointArm(np.zeros(5)), chain)
    with pytest.raises(ConfigError, match="takes no joint targets"):
        KinematicSide(SimpleSide(), chain)
    with pytest.raises(SpecMismatch, match="7 joints"):
        chain.forward(np.zeros(5))


def test_the_tighter_of_two_limits_counts(chain: KinematicChain) -> None:
    arm = JointArm(HOME)
    arm.facts = replace(arm.facts, joint_low=(-1.0,) * 7, joint_high=(4.0,) * 7)
    side = KinematicSide(arm, chain)
    assert side.facts.joint_low == (-1.0, -1.0, -1.0, -1.0, -1.0, -0.0175, -1.0)
    assert side.facts.joint_high == tuple(chain.high.tolist())
