"""The twin as a person would declare it: a set-up with its cameras, its tasks and its home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.hw_drivers.arm_setup import ArmSetup, CameraSetup, Matrix, TaskSetup
from zetta.hw_drivers.kinematic_chain import ChainSetup
from zetta.hw_drivers.twin.scene import EYES, GRIP_M, PICTURE_SIZE, Eye, arm_model
from zetta.hw_drivers.twin.tasks import MAX_STEPS, TASKS
from zetta.hw_drivers.twin.world import HOME_POS, HOME_QUAT
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError

NAME: Final = "twin"
"""Of the environment; the hand is known by it."""
CONTROL_HZ: Final = 20.0
FRAME_AGE_S: Final = 0.4
"""A picture counts as old after this: on a busy machine one is drawn ten times a second."""
STATE_AGE_S: Final = 0.15
"""A state counts as old after this, as in `limits/panda.toml`: both ends share one machine."""


def twin_setup(
    url: str = "",
    robot: str = "twin",
    cameras: Mapping[str, str] | None = None,
    keys: str = "",
    limits: str = "panda",
    path: Path | None = None,
) -> ArmSetup:
    """Return the set-up of a twin, and write it to a TOML file where one is named.

    Args:
        url: command socket of its server.
        robot: its name.
        cameras: where the pictures of each camera are published.
        keys: client key file.
        limits: what the safety kernel of the program keeps to; empty for no kernel.
        path: the file.

    Raises:
        ConfigError: the file cannot be written.
    """
    places = cameras if cameras is not None else dict.fromkeys(EYES, "tcp://127.0.0.1:1")
    setup = ArmSetup(
        name=NAME,
        url=url,
        robot=robot,
        keys=keys,
        limits=limits,
        tasks=tuple(TaskSetup(task.instruction, MAX_STEPS) for task in TASKS),
        cameras={name: _camera(EYES[name], place) for name, place in places.items()},
        control_hz=CONTROL_HZ,
        max_state_age_s=STATE_AGE_S,
        max_frame_age_s=FRAME_AGE_S,
        home_pos=HOME_POS,
        home_quat=HOME_QUAT,
    )
    if path is not None:
        return write_setup(setup, path)
    return setup


def write_setup(setup: ArmSetup, path: Path) -> ArmSetup:
    """Write the set-up of a twin to a TOML file, and its kinematics to `NAME.arm.xml` beside it.

    Returns:
        What `read_setup` makes of the file.

    Raises:
        ConfigError: a file cannot be written, or MuJoCo or robosuite is not installed.
    """
    model = arm_model()
    beside = path.with_suffix(".arm.xml")
    declared = replace(setup, chain=ChainSetup(beside.name, model.site, model.joints))
    try:
        beside.write_text(model.mjcf, encoding="utf-8")
        path.write_text(to_toml(declared), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    return replace(setup, chain=ChainSetup(str(beside), model.site, model.joints))


def to_toml(setup: ArmSetup) -> str:
    """Return a set-up as `read_setup` reads it."""
    plain = _plain(setup)
    lines = [f"{k} = {_text(v)}" for k, v in plain.items() if not _nested(v)]
    for part in ("action", "chain"):
        if part in plain:
            lines += ["", f"[{part}]", *(f"{k} = {_text(v)}" for k, v in plain[part].items())]
    for task in plain["tasks"]:
        lines += ["", "[[tasks]]", *(f"{k} = {_text(v)}" for k, v in task.items())]
    for name, camera in plain["cameras"].items():
        lines += ["", f"[cameras.{name}]", *(f"{k} = {_text(v)}" for k, v in camera.items())]
    return "\n".join(lines) + "\n"


def _camera(eye: Eye, place: str) -> CameraSetup:
    T = eye.pose()
    if eye.mount == "wrist":
        T[2, 3] -= GRIP_M  # from the hand's frame to that of the grip site
    return CameraSetup(
        source=f"zmq:{place}",
        height=PICTURE_SIZE,
        width=PICTURE_SIZE,
        intrinsics=_matrix(eye.intrinsics()),
        T_parent_cam=_matrix(T),
        mount=eye.mount,
        depth=True,
    )


def _matrix(array: Array) -> Matrix:
    return tuple(tuple(float(x) for x in row) for row in np.round(array, 12))


def _plain(value: object) -> Any:
    """Return records as maps and tuples as lists; what is empty is left to its default."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {name: v for name, v in plain.items() if v not in ("", [], None)}
    if isinstance(value, Mapping):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _nested(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(v, dict) for v in value)
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return repr(value)
