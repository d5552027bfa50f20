"""The twin's world as a MuJoCo model: a Panda at a table with plain things on it.

The arm's base is the world, the table's top is z = 0. Every seed has the same model and other
places, so one compiled model and one drawing context serve all scenes. Shapes and masses of the
arm are those of the robosuite package, read from its files; robosuite itself is never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from zetta.hw_drivers.twin.things import THINGS, Thing
from zetta.runtime.arm_model import ArmModel
from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError

JOINTS: Final = tuple(f"joint{k}" for k in range(1, 8))
FINGERS: Final = ("hand_finger_joint1", "hand_finger_joint2")
GRIP_SITE: Final = "hand_grip_site"
HAND: Final = "right_hand"
"""Body whose orientation is that of the hand, as in LIBERO: z approaches, y is the fingers' way."""
GRIP_M: Final = 0.097
"""The grip site lies so far along the hand's z."""
SITE: Final = "grip"
"""Its name in `arm_model`."""
TIMESTEP_S: Final = 0.002
PICTURE_SIZE: Final = 256
TABLE: Final = ((0.18, -0.60), (1.00, 0.60))
"""Two corners of the table's top, metres."""
GRIP_FORCE_N: Final = 50.0
"""At most this by each finger; a Franka hand holds with up to 70 N."""
ARMATURE: Final = 0.1
"""Reflected inertia of each motor, kg m^2."""
NEAR_M: Final = 0.03
FAR_M: Final = 5.0
"""What the cameras see lies between."""
_TORQUES: Final = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
"""Nm; Franka's data sheet."""


@dataclass(frozen=True, slots=True)
class Eye:
    """A camera of the twin."""

    mount: Literal["world", "wrist"]
    fovy_deg: float
    place: tuple[float, float, float]
    """World frame, or for the wrist that of the hand's body. Metres."""
    looks_at: tuple[float, float, float]
    up: tuple[float, float, float]

    def pose(self) -> Array:
        """Return it: optical frame (x right, y down, z forward) in its parent. Shape (4, 4)."""
        forward = np.subtract(self.looks_at, self.place)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        T = np.eye(4)
        T[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
        T[:3, 3] = self.place
        return T

    def intrinsics(self, size: int = PICTURE_SIZE) -> Array:
        """Return the pinhole matrix of square pictures. Shape (3, 3)."""
        focal = 0.5 * size / np.tan(np.deg2rad(self.fovy_deg) / 2.0)
        return np.array([[focal, 0.0, size / 2], [0.0, focal, size / 2], [0.0, 0.0, 1.0]])


EYES: Final[Mapping[str, Eye]] = MappingProxyType(
    {
        "agentview": Eye("world", 45.0, (1.22, 0.0, 0.78), (0.52, 0.0, 0.02), (0.0, 0.0, 1.0)),
        # Before the palm, looking past the finger tips.
        "wrist": Eye("wrist", 75.0, (0.055, 0.0, 0.0), (0.055, 0.0, 1.0), (1.0, 0.0, 0.0)),
    }
)


def engine() -> Any:
    """Return the module `mujoco`.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import mujoco
    except ImportError:
        raise ConfigError("the twin needs MuJoCo; run: pip install 'zetta[twin]'") from None
    return mujoco


def assets() -> Path:
    """Return the folder of robosuite's models.

    Raises:
        ConfigError: robosuite is not installed.
    """
    found = find_spec("robosuite")
    folder = Path(str(found.origin)).parent / "models" / "assets" if found else None
    if folder is None or not (folder / "robots" / "panda" / "robot.xml").is_file():
        raise ConfigError(
            "the twin takes the shape of the Panda from robosuite 1.4, which is not installed; "
            "run: pip install 'zetta[twin]'"
        )
    return folder


@cache
def model() -> Any:
    """Return the compiled model of arm, table and things; shared, so it is not to be changed.

    Raises:
        ConfigError: MuJoCo or robosuite is not installed.
    """
    spec = _panda()
    _settings(spec)
    _furniture(spec)
    for thing in THINGS.values():
        _add_thing(spec, thing)
    for name, eye in EYES.items():
        parent = spec.worldbody if eye.mount == "world" else spec.body(HAND)
        camera = parent.add_camera(name=name, fovy=eye.fovy_deg)
        camera.pos, camera.quat = eye.place, _camera_quat(eye)
    return spec.compile()


@cache
def arm_alone() -> Any:
    """Return the compiled bare arm with its hand, for kinematics.

    Raises:
        ConfigError: MuJoCo or robosuite is not installed.
    """
    return _bare().compile()


@cache
def arm_model() -> ArmModel:
    """Return the arm's kinematics as data, for who plans with it.

    Raises:
        ConfigError: MuJoCo or robosuite is not installed.
    """
    spec, compiled = _bare(), arm_alone()
    spec.compile()
    low, high = compiled.jnt_range.T
    return ArmModel(spec.to_xml(), JOINTS, SITE, read_only(low), read_only(high), np.eye(4))


def _bare() -> Any:
    spec = _panda()
    for geom in list(spec.geoms):
        spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for joint in list(spec.joints):
        if joint.name in FINGERS:
            spec.delete(joint)
    # Both together as one site: where the grip site is, turned as the hand is.
    spec.body(HAND).add_site(name=SITE, pos=(0.0, 0.0, GRIP_M))
    return spec


def body_of(thing: str) -> str:
    """Return the name of a thing's body.

    >>> body_of("red cube")
    'red_cube'
    """
    return thing.replace(" ", "_")


def _panda() -> Any:
    """Return the spec of arm and hand, drawn by the shapes that collide: a tenth of the cost."""
    mj, folder = engine(), assets()
    arm = mj.MjSpec.from_file(str(folder / "robots" / "panda" / "robot.xml"))
    hand = mj.MjSpec.from_file(str(folder / "grippers" / "panda_gripper.xml"))
    for spec in (arm, hand):
        spec.compiler.degree = False
        _without_looks(spec)
    arm.delete(arm.camera("eye_in_hand"))
    arm.delete(arm.camera("robotview"))
    arm.attach(hand, prefix="hand_", frame=arm.body(HAND).add_frame())
    for sensor in list(arm.sensors):
        arm.delete(sensor)
    for site in list(arm.sites):
        if site.name != GRIP_SITE:
            arm.delete(site)
    _drives(arm)
    for geom in arm.geoms:
        dark = "finger" in geom.name
        geom.rgba = (0.30, 0.30, 0.32, 1.0) if dark else (0.88, 0.89, 0.91, 1.0)
        if "finger" not in geom.name:
            geom.contype, geom.conaffinity = 0, 1  # it meets things and the table, not itself
    return arm


def _without_looks(spec: Any) -> None:
    for geom in list(spec.geoms):
        if geom.group == 1:
            spec.delete(geom)
    used = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in used:
            spec.delete(mesh)
    for material in list(spec.materials):
        spec.delete(material)


def _drives(arm: Any) -> None:
    mj = engine()
    for joint in arm.joints:
        if joint.name in JOINTS:
            joint.armature = ARMATURE
    for actuator in list(arm.actuators):
        arm.delete(actuator)
    for name, most in zip(JOINTS, _TORQUES, strict=True):
        motor = arm.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT)
        motor.ctrllimited, motor.ctrlrange = True, (-most, most)
    for name, ends in zip(FINGERS, ((0.0, 0.04), (-0.04, 0.0)), strict=True):
        finger = arm.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT)
        finger.set_to_position(kp=4000.0)
        finger.ctrllimited, finger.ctrlrange = True, ends
        finger.forcelimited, finger.forcerange = True, (-GRIP_FORCE_N, GRIP_FORCE_N)


def _settings(spec: Any) -> None:
    mj = engine()
    option = spec.option
    option.timestep = TIMESTEP_S
    option.integrator = mj.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone, option.impratio = mj.mjtCone.mjCONE_ELLIPTIC, 10.0
    # Depth has the precision of these two; they do not change with the scene.
    spec.stat.extent, spec.stat.center = 1.0, (0.5, 0.0, 0.2)
    spec.visual.map.znear, spec.visual.map.zfar = NEAR_M, FAR_M
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (0.40,) * 3, (0.40,) * 3
    spec.visual.headlight.specular = (0.0,) * 3
    spec.visual.quality.offsamples = 0
    global_ = spec.visual.global_
    global_.offwidth = global_.offheight = PICTURE_SIZE


def _furniture(spec: Any) -> None:
    mj, world = engine(), spec.worldbody
    world.add_light(
        pos=(0.6, 0.3, 2.0), dir=(-0.05, -0.15, -1.0), diffuse=(0.25,) * 3, specular=(0.0,) * 3,
        castshadow=False, type=mj.mjtLightType.mjLIGHT_DIRECTIONAL,
    )  # fmt: skip
    low, high = np.array(TABLE)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    world.add_geom(
        name="table", type=mj.mjtGeom.mjGEOM_BOX, pos=(*middle, -0.02), size=(*half, 0.02),
        rgba=(0.62, 0.60, 0.57, 1.0), friction=(1.0, 0.005, 0.0001), group=1,
    )  # fmt: skip
    world.add_geom(
        name="pedestal", type=mj.mjtGeom.mjGEOM_BOX, pos=(-0.03, 0.0, -0.35),
        size=(0.11, 0.11, 0.35), rgba=(0.35, 0.36, 0.38, 1.0), contype=0, conaffinity=0, group=1,
    )  # fmt: skip
    world.add_geom(
        name="floor", type=mj.mjtGeom.mjGEOM_PLANE, pos=(0.0, 0.0, -0.70), size=(3.0, 3.0, 0.1),
        rgba=(0.45, 0.47, 0.50, 1.0), group=1,
    )  # fmt: skip


def _add_thing(spec: Any, thing: Thing) -> None:
    mj = engine()
    x, y, z = thing.size
    body = spec.worldbody.add_body(name=body_of(thing.name), pos=(0.5, 0.0, z / 2.0))
    body.add_freejoint(name=body_of(thing.name))
    round_ = thing.form == "cylinder"
    body.add_geom(
        name=body_of(thing.name),
        type=mj.mjtGeom.mjGEOM_CYLINDER if round_ else mj.mjtGeom.mjGEOM_BOX,
        size=(x / 2.0, z / 2.0, 0.0) if round_ else (x / 2.0, y / 2.0, z / 2.0),
        rgba=(*thing.colour, 1.0),
        mass=thing.mass,
        friction=(1.0, 0.01, 0.0005),
        condim=4,
        solref=(0.01, 1.0),
        group=1,
    )


def _camera_quat(eye: Eye) -> Array:
    mj, quat = engine(), np.zeros(4)
    # MuJoCo cameras look along -z with y up.
    turned = eye.pose()[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    mj.mju_mat2Quat(quat, turned.ravel())
    return quat
