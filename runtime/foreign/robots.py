"""The conventions of published openpi and GR00T servers, as data.

LIBERO's pictures are the trap. robosuite hands out OpenGL rows, that is our upright picture flipped
upside down. The published LIBERO clients turn that by 180 degrees, and their policies were trained
on the result: our upright picture *mirrored* left to right. So the turn from ours is `mirror`, not
`rotate` and not `none` (`tests/sims/test_libero_foreign.py` holds it against the simulator).
"""

from __future__ import annotations

import math
from typing import Final

from zetta.runtime.core import ActionKind, ActionSpec, CameraSpec
from zetta.runtime.foreign.conventions import (
    Convention,
    Part,
    Path,
    Picture,
    Rows,
    State,
    Switch,
    Turn,
)

_LIBERO_ACTION: Final = ActionSpec(
    kind="delta_pose",
    names=("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
    low=(-1.0,) * 7,
    high=(1.0,) * 7,
    scale=(0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1.0),
)
_PANDA_STROKE_M: Final = 0.08
_LIBERO_RESPONSE: Final = 0.24
"""Measured over an episode of libero_object#0: displacement of the hand over what was commanded."""
_ROBOTIQ_STROKE_M: Final = 0.085
_ALOHA_STROKE_M: Final = 2 * (0.058 - 0.01844)
"""Both fingers travel between these positions (openpi, `aloha_policy.py`)."""


def _picture(
    path: Path,
    camera: str,
    size: tuple[int, int] = (224, 224),
    turn: Turn = "none",
    chw: bool = False,
    drawn: tuple[int, int] = (256, 256),
) -> Picture:
    mount = "wrist" if "wrist" in camera else "world"
    spec = CameraSpec(camera, *drawn, "wrist" if mount == "wrist" else "world", depth=False)
    return Picture(path, spec, size, turn, "CHW" if chw else "HWC")


def _joint_action(
    kind: ActionKind, arms: int, joints: int, limit: float, scale: float
) -> ActionSpec:
    """Return joints and gripper; a single arm's 1 closes (DROID), two arms' 1 opens (ALOHA)."""
    sides = ("",) if arms == 1 else ("left_", "right_")
    names = [f"{s}{n}" for s in sides for n in (*(f"j{k + 1}" for k in range(joints)), "gripper")]
    low, high = (-limit,) * joints + (0.0,), (limit,) * joints + (1.0,)
    scales = (scale,) * joints + (1.0,)
    opens, closes = (1.0, 0.0) if arms == 2 else (0.0, 1.0)
    return ActionSpec(
        kind, tuple(names), low * arms, high * arms, scales * arms,
        gripper_open=opens, gripper_close=closes,
    )  # fmt: skip


OPENPI_LIBERO: Final = Convention(
    name="libero",
    protocol="openpi",
    pictures=(
        _picture(("observation/image",), "agentview", turn="mirror"),
        _picture(("observation/wrist_image",), "wrist", turn="mirror"),
    ),
    states=(
        State(
            ("observation/state",),
            (Part("ee_pos"), Part("ee_axis_angle"), Part("gripper_fingers")),
        ),
    ),
    prompt=("prompt",),
    action=_LIBERO_ACTION,
    rows=(Rows("actions", 7),),
    horizon=10,
    replan_steps=5,
    control_hz=20.0,
    joints=7,
    stroke_m=_PANDA_STROKE_M,
    response=_LIBERO_RESPONSE,
    checked="openpi examples/libero/main.py and the simulator",
)

OPENPI_DROID: Final = Convention(
    name="droid",
    protocol="openpi",
    pictures=(
        _picture(("observation/exterior_image_1_left",), "exterior", drawn=(720, 1280)),
        _picture(("observation/wrist_image_left",), "wrist", drawn=(720, 1280)),
    ),
    states=(
        State(("observation/joint_position",), (Part("joint_pos"),)),
        State(("observation/gripper_position",), (Part("gripper_closed"),)),
    ),
    prompt=("prompt",),
    # Velocities are shares of the largest joint step, 0.2 rad for each tick of 1/15 s.
    action=_joint_action("joint_velocity", 1, 7, 1.0, 0.2),
    rows=(Rows("actions", 8),),
    horizon=10,
    replan_steps=8,
    control_hz=15.0,
    joints=7,
    stroke_m=_ROBOTIQ_STROKE_M,
    switches=(Switch(7, low=0.0, high=1.0),),
    checked="openpi examples/droid/main.py, without a robot",
)

OPENPI_ALOHA: Final = Convention(
    name="aloha",
    protocol="openpi",
    pictures=tuple(
        _picture(("images", name), name, chw=True, drawn=(480, 640))
        for name in ("cam_high", "cam_low", "cam_left_wrist", "cam_right_wrist")
    ),
    states=(
        State(
            ("state",),
            (
                Part("joint_pos", 0),
                Part("gripper_opened", 0),
                Part("joint_pos", 1),
                Part("gripper_opened", 1),
            ),
        ),
    ),
    prompt=("prompt",),
    action=_joint_action("joint_position", 2, 6, 2 * math.pi, 1.0),
    rows=(Rows("actions", 14),),
    horizon=50,
    replan_steps=25,
    control_hz=50.0,
    joints=6,
    arms=2,
    stroke_m=_ALOHA_STROKE_M,
    checked="openpi aloha_policy.py, without a robot",
)

_XYZ_RPY: Final = ("x", "y", "z", "roll", "pitch", "yaw")

GR00T_LIBERO: Final = Convention(
    name="libero",
    protocol="gr00t",
    pictures=(
        _picture(("video", "image"), "agentview", (256, 256), "mirror"),
        _picture(("video", "wrist_image"), "wrist", (256, 256), "mirror"),
    ),
    states=(
        *(
            # "roll, pitch, yaw" are the three numbers of the axis-angle vector.
            State(("state", key), (Part("ee_pos" if k < 3 else "ee_axis_angle", index=k % 3),))
            for k, key in enumerate(_XYZ_RPY)
        ),
        State(("state", "gripper"), (Part("gripper_fingers"),)),
    ),
    prompt=("language", "annotation.human.action.task_description"),
    action=_LIBERO_ACTION,
    rows=(*(Rows(key, 1) for key in _XYZ_RPY), Rows("gripper", 1)),
    horizon=8,
    replan_steps=8,
    control_hz=20.0,
    joints=7,
    stroke_m=_PANDA_STROKE_M,
    # Their 1 opens, their 0 closes.
    switches=(Switch(6, low=1.0, high=0.0),),
    state_dtype="<f4",
    response=_LIBERO_RESPONSE,
    checked="Isaac-GR00T examples/Libero/eval (N1.5), libero_sim (N1.6) and the simulator",
)

GR00T_DROID: Final = Convention(
    name="droid",
    protocol="gr00t",
    pictures=(
        _picture(("video", "exterior_image_1_left"), "exterior", (180, 320), drawn=(720, 1280)),
        _picture(("video", "wrist_image_left"), "wrist", (180, 320), drawn=(720, 1280)),
    ),
    states=(
        State(("state", "joint_position"), (Part("joint_pos"),)),
        State(("state", "gripper_position"), (Part("gripper_closed"),)),
    ),
    prompt=("language", "annotation.language.language_instruction"),
    action=_joint_action("joint_position", 1, 7, 2 * math.pi, 1.0),
    rows=(Rows("joint_position", 7), Rows("gripper_position", 1)),
    horizon=16,
    replan_steps=15,
    control_hz=15.0,
    joints=7,
    stroke_m=_ROBOTIQ_STROKE_M,
    switches=(Switch(7, low=0.0, high=1.0),),
    state_dtype="<f4",
    checked="Isaac-GR00T examples/DROID/main_gr00t.py, without a robot",
)

_ROBOCASA_CAMERAS: Final = {
    "res256_image_side_0": "robot0_agentview_left",
    "res256_image_side_1": "robot0_agentview_right",
    "res256_image_wrist_0": "robot0_eye_in_hand",
}

GR00T_ROBOCASA: Final = Convention(
    name="robocasa",
    protocol="gr00t",
    pictures=tuple(
        _picture(("video", key), camera, (256, 256)) for key, camera in _ROBOCASA_CAMERAS.items()
    ),
    states=(
        State(("state", "end_effector_position_relative"), (Part("ee_pos_base"),)),
        State(("state", "end_effector_rotation_relative"), (Part("ee_quat_base"),)),
        State(("state", "gripper_qpos"), (Part("gripper_fingers"),)),
        State(("state", "base_position"), (Part("base_pos"),)),
        State(("state", "base_rotation"), (Part("base_quat"),)),
    ),
    prompt=("language", "annotation.human.action.task_description"),
    action=ActionSpec(
        kind="delta_pose",
        names=(
            *("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
            *("base_vx", "base_vy", "base_vyaw", "torso", "base_mode"),
        ),
        low=(-1.0,) * 12,
        high=(1.0,) * 12,
        scale=(0.05,) * 3 + (0.5,) * 3 + (1.0,) * 6,
        frame="base",
        rest=(0.0, 0.0, 0.0, 0.0, -1.0),
    ),
    rows=(
        Rows("end_effector_position", 3),
        Rows("end_effector_rotation", 3),
        Rows("gripper_close", 1),
        Rows("base_motion", 4),
        Rows("control_mode", 1),
    ),
    horizon=8,
    replan_steps=8,
    control_hz=20.0,
    joints=7,
    stroke_m=_PANDA_STROKE_M,
    switches=(Switch(6, low=0.0, high=1.0), Switch(11, low=0.0, high=1.0)),
    state_dtype="<f4",
    base_height_m=0.7,
    checked="the key names of robocasa's gym wrapper, without a server",
)

CONVENTIONS: Final = (
    OPENPI_LIBERO,
    OPENPI_DROID,
    OPENPI_ALOHA,
    GR00T_LIBERO,
    GR00T_DROID,
    GR00T_ROBOCASA,
)
