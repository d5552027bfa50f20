"""What a person declares about an arm and its cameras, in one TOML file.

Nothing in it is guessed: an arm that is set up wrongly moves wrongly, so what is missing or odd is
refused with its name.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import numpy as np

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.kinematic_chain import ChainSetup
from zetta.runtime.core import ActionSpec, Array, Camera, CameraSpec, EnvSpec, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json

Matrix: TypeAlias = tuple[tuple[float, ...], ...]
IDENTITY: Final[Matrix] = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
T = TypeVar("T")
ROUNDING: Final = 1e-3
"""How far a written rotation may be from one."""


@dataclass(frozen=True, slots=True)
class ActionSetup:
    """How a row of actions is meant; poses are in the world frame."""

    kind: Literal["delta_pose", "target_pose"] = "delta_pose"
    translation_m: float = 0.05
    """`delta_pose`: metres for 1.0."""
    rotation_rad: float = 0.5
    """`delta_pose`: radians for 1.0."""
    reach_low: tuple[float, ...] = ()
    """`target_pose`: lower corner of the positions that may be asked for, metres."""
    reach_high: tuple[float, ...] = ()
    gripper_open: float = -1.0
    gripper_close: float = 1.0

    def spec(self) -> ActionSpec:
        """Return the convention.

        Raises:
            ConfigError: a scale or a corner makes no sense.
        """
        if self.gripper_open == self.gripper_close:
            raise ConfigError("gripper_open and gripper_close must differ")
        low, high = sorted((self.gripper_open, self.gripper_close))
        gripper = (self.gripper_open, self.gripper_close)
        if self.kind == "delta_pose":
            if not (0.0 < self.translation_m <= 0.2 and 0.0 < self.rotation_rad <= math.pi):
                raise ConfigError(
                    "translation_m lies in (0, 0.2] and rotation_rad in (0, pi], got "
                    f"{self.translation_m:g} and {self.rotation_rad:g}"
                )
            names = ("dx", "dy", "dz", "rx", "ry", "rz", "gripper")
            scale = (self.translation_m,) * 3 + (self.rotation_rad,) * 3 + (1.0,)
            lows, highs = (-1.0,) * 6 + (low,), (1.0,) * 6 + (high,)
            return ActionSpec("delta_pose", names, lows, highs, scale, "world", *gripper)
        box = (*self.reach_low, *self.reach_high)
        shaped = len(self.reach_low) == len(self.reach_high) == 3 and all(map(math.isfinite, box))
        if not shaped or any(a >= b for a, b in zip(self.reach_low, self.reach_high, strict=True)):
            raise ConfigError(
                "target_pose needs reach_low and reach_high, two corners of a box in metres; got "
                f"{self.reach_low} and {self.reach_high}"
            )
        names = ("x", "y", "z", "rx", "ry", "rz", "gripper")
        turn = (math.pi,) * 3
        least = (*self.reach_low, *(-angle for angle in turn), low)
        most = (*self.reach_high, *turn, high)
        return ActionSpec("target_pose", names, least, most, (1.0,) * 7, "world", *gripper)


@dataclass(frozen=True, slots=True)
class CameraSetup:
    """One camera: where its pictures come from, and its calibration."""

    source: str
    """`usb:N`, `usb:/dev/...`, `zmq:tcp://HOST:PORT`, `realsense:SERIAL` or
    `realsense:RECORDING.db3` (or `.bag`)."""
    height: int
    width: int
    intrinsics: Matrix
    """Pinhole matrix K of pictures of this size, pixels. Shape (3, 3)."""
    T_parent_cam: Matrix
    """Pose of the optical frame (x right, y down, z forward) in the world, or for a camera at the
    wrist in the frame of the grip site. Shape (4, 4)."""
    mount: Literal["world", "wrist"] = "world"
    depth: bool = False

    def __post_init__(self) -> None:
        K, T = np.array(self.intrinsics), np.array(self.T_parent_cam)
        if K.shape != (3, 3) or not (K[0, 0] > 0.0 and K[1, 1] > 0.0 and K[2, 2] == 1.0):
            raise ConfigError(f"intrinsics are [[fx, s, cx], [0, fy, cy], [0, 0, 1]], got {K}")
        if not (0.0 < K[0, 2] < self.width and 0.0 < K[1, 2] < self.height):
            raise ConfigError(
                f"the optical centre {K[0, 2]:g}, {K[1, 2]:g} lies outside the picture of "
                f"{self.width} x {self.height}; was it calibrated at another size?"
            )
        if T.shape != (4, 4) or not np.array_equal(T[3], (0.0, 0.0, 0.0, 1.0)):
            raise ConfigError(f"T_parent_cam is a pose of shape (4, 4), got {T}")
        R = T[:3, :3]
        if np.abs(R @ R.T - np.eye(3)).max() > ROUNDING or np.linalg.det(R) < 0.0:
            raise ConfigError(f"the rotation of T_parent_cam is none: {R.tolist()}")

    def spec(self, name: str) -> CameraSpec:
        """Return what the loop and policies know of it."""
        return CameraSpec(name, self.height, self.width, self.mount, self.depth)

    def camera(self, name: str, T_world_ee: Array) -> Camera:
        """Return its calibration while the hand is at `T_world_ee`. Shape (4, 4)."""
        T = np.array(self.T_parent_cam)
        placed = T_world_ee @ T if self.mount == "wrist" else T
        return Camera(name, read_only(self.intrinsics), read_only(placed))


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """What the arm may be asked to do."""

    instruction: str
    max_steps: int
    """Ticks that it may try."""

    def __post_init__(self) -> None:
        if not self.instruction.strip() or self.max_steps < 1:
            raise ConfigError(
                "a task has an instruction and at least 1 step, got "
                f"{self.instruction!r:.40} and {self.max_steps}"
            )


@dataclass(frozen=True, slots=True)
class ArmSetup:
    """An arm as an environment."""

    name: str
    url: str = ""
    """Command socket of its server, for who connects by this set-up alone."""
    robot: str = ""
    """Name of the robot that must be there; empty takes any."""
    keys: str = ""
    """Client key file of its server and of its streamed cameras."""
    limits: str = ""
    """Limits of this very arm in its cell: a file (.toml), or a name that comes with zetta. Nobody
    drives an arm by this set-up without them."""
    calibration: str = ""
    """File of what was measured of its cameras (`zetta arms calibrate`), which replaces what stands
    here; from where the set-up is."""
    chain: ChainSetup | None = None
    """The arm's kinematics, for the dry run of commands; its file from where the set-up is."""
    tasks: tuple[TaskSetup, ...] = ()
    action: ActionSetup = field(default_factory=ActionSetup)
    cameras: Mapping[str, CameraSetup] = field(default_factory=dict)
    control_hz: float = 20.0
    base_pos: tuple[float, ...] = (0.0, 0.0, 0.0)
    """The arm's base in the world, metres."""
    base_quat: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    """xyzw."""
    command_ttl_s: float = 0.1
    """A command that is on its way for longer is not executed."""
    max_state_age_s: float = 0.1
    max_frame_age_s: float = 0.15
    """Older pictures are refused, and the arm is held for a camera that gives no newer ones."""
    home_joints: tuple[float, ...] = ()
    """Where a homing goes, for an arm that takes joints; radians."""
    home_pos: tuple[float, ...] = ()
    """Where a homing goes, for an arm that takes poses: grip site in the world, metres."""
    home_quat: tuple[float, ...] = ()
    """xyzw, in the world."""

    def __post_init__(self) -> None:
        for name in ("control_hz", "command_ttl_s", "max_state_age_s", "max_frame_age_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} is a finite number above 0, got {value:g}")
        for name, size in (("base_pos", 3), ("base_quat", 4), ("home_pos", 3), ("home_quat", 4)):
            value = getattr(self, name)
            unit = not name.endswith("quat") or abs(np.linalg.norm(value) - 1.0) < ROUNDING
            if (value or name.startswith("base")) and (
                len(value) != size or not np.isfinite(value).all() or not unit
            ):
                raise ConfigError(
                    f"{name} are {size} finite numbers (a quaternion of length 1), got {value}"
                )
        self.action.spec()

    @property
    def T_world_base(self) -> Pose:
        """The arm's base in the world."""
        return Pose(np.array(self.base_pos), np.array(self.base_quat))

    def spec(self, versions: Mapping[str, str]) -> EnvSpec:
        """Return the conventions of the environment."""
        return EnvSpec(
            name=self.name,
            control_hz=self.control_hz,
            action=self.action.spec(),
            cameras=tuple(camera.spec(name) for name, camera in self.cameras.items()),
            sensing="vision",
            render_profile="camera",
            versions=versions,
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """A file of calibrations alone, which another tool may write."""

    cameras: Mapping[str, CalibratedCamera]


@dataclass(frozen=True, slots=True)
class CalibratedCamera:
    """The part of a `CameraSetup` that is measured."""

    height: int
    width: int
    intrinsics: Matrix
    T_parent_cam: Matrix


def declared_setup(path: Path) -> ArmSetup:
    """Return the set-up of a TOML file as it stands there, without what was measured.

    Raises:
        ConfigError: the file cannot be read, or something in it is unknown, missing or odd.
    """
    setup = _read(path, ArmSetup)
    if setup.limits.endswith(".toml"):  # a file is meant from where the set-up is
        setup = replace(setup, limits=str(path.parent / setup.limits))
    if setup.calibration:
        setup = replace(setup, calibration=str(path.parent / setup.calibration))
    if setup.chain is not None:
        mjcf = str(path.parent / Path(setup.chain.mjcf).expanduser())
        setup = replace(setup, chain=replace(setup.chain, mjcf=mjcf))
    return setup


def read_setup(path: Path, calibration: Path | None = None) -> ArmSetup:
    """Return the set-up of a TOML file, with what was measured of its cameras.

    Args:
        path: the set-up.
        calibration: file of what was measured; the one that the set-up names if it is None.

    Raises:
        ConfigError: a file cannot be read, or something in it is unknown, missing or odd.
    """
    setup = declared_setup(path)
    if calibration is None and setup.calibration:
        calibration = Path(setup.calibration)
    if calibration is None:
        return setup
    measured = _read(calibration, Calibration).cameras
    unknown = sorted(set(measured) - set(setup.cameras))
    if unknown:
        raise ConfigError(f"{calibration} calibrates {unknown}, which {path} does not have")
    cameras = dict(setup.cameras)
    for name, found in measured.items():
        camera = cameras[name]
        if (found.height, found.width) != (camera.height, camera.width):
            raise ConfigError(
                f"{calibration} calibrates {name} at {found.width} x {found.height}, its pictures "
                f"are {camera.width} x {camera.height}"
            )
        cameras[name] = replace(
            camera, intrinsics=found.intrinsics, T_parent_cam=found.T_parent_cam
        )
    return replace(setup, cameras=cameras)


def _read(path: Path, kind: type[T]) -> T:
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        return from_json(kind, plain)
    except (SpecMismatch, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error
