"""`lerobot:FILE` as the name of an arm: a robot of LeRobot, made from a declaration.

LeRobot is imported here and nowhere else, and only when an arm is made. What is run is what is
installed: nothing is downloaded, and nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

from zetta.hw_drivers.arm import RobotSide
from zetta.hw_drivers.declared import read_declared
from zetta.hw_drivers.kinematic_chain import ChainSetup, KinematicChain
from zetta.hw_drivers.kinematic_side import KinematicSide
from zetta.hw_drivers.lerobot_rows import LerobotArm, LerobotRobot
from zetta.hw_drivers.lerobot_side import LerobotSide
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.user_code import their_errors

SCHEME: Final = "lerobot:"
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "so100_follower": ("lerobot.robots.so_follower", "lerobot.robots.so100_follower"),
    "so101_follower": ("lerobot.robots.so_follower", "lerobot.robots.so101_follower"),
    "koch_follower": ("lerobot.robots.koch_follower",),
    "omx_follower": ("lerobot.robots.omx_follower",),
}
"""Where LeRobot keeps a type of robot; releases differ."""
CAMERAS: Final[Mapping[str, str]] = {
    "opencv": "lerobot.cameras.opencv",
    "intelrealsense": "lerobot.cameras.realsense",
    "zmq": "lerobot.cameras.zmq",
}
MAX_RELATIVE_TARGET: Final = 10.0
"""LeRobot's own limit on one command, in its units; it has none unless told."""


@dataclass(frozen=True, slots=True)
class LerobotSetup:
    """The file that `lerobot:` names."""

    type: str
    """LeRobot's name for the robot, such as `so101_follower`."""
    config: Mapping[str, Any]
    """Fields of LeRobot's configuration of it: `port`, `id`, `cameras`, ..."""
    package: str = ""
    """Module that makes the type known, where it is not one of LeRobot's arms."""
    degrees: bool = False
    """Somebody looked: this robot reports degrees. Asked only where LeRobot has no switch for it.
    """
    arm: LerobotArm = field(default_factory=LerobotArm)
    kinematics: ChainSetup | None = None
    """With it the arm takes poses too, and its readings have one."""


def load(name: str) -> RobotSide:
    """Connect to the robot of `lerobot:FILE`.

    Raises:
        ConfigError: LeRobot is not installed, the file is odd, or the robot was not calibrated.
        InfraError: the robot cannot be reached, or does not report.
    """
    path = Path(name.removeprefix(SCHEME)).expanduser()
    setup = read_declared(path, LerobotSetup)
    chain = KinematicChain(setup.kinematics, path.parent) if setup.kinematics else None
    robot = make_robot(setup)
    side = LerobotSide(robot, setup.arm, _versions())
    try:
        return side if chain is None else KinematicSide(side, chain)
    except BaseException:
        side.close()
        raise


def make_robot(setup: LerobotSetup) -> LerobotRobot:
    """Return the robot that is declared, not connected.

    Raises:
        ConfigError: LeRobot is not installed, does not know it, or refuses its fields.
    """
    robots = _imported("lerobot.robots")
    draccus = _imported("draccus")
    _register(setup)
    with their_errors(f"making the robot {setup.type!r} of LeRobot"):
        known = robots.RobotConfig.get_known_choices()
        if setup.type not in known:
            raise ConfigError(
                f"LeRobot knows no robot {setup.type!r}; {suggest(setup.type, list(known))}, or "
                "name the module that brings it as package"
            )
        kind = known[setup.type]
        config = draccus.decode(kind, _careful(setup, {f.name for f in fields(kind)}))
        return cast(LerobotRobot, robots.make_robot_from_config(config))


def _register(setup: LerobotSetup) -> None:
    """Import what makes the types of the robot and of its cameras known to LeRobot."""
    packages = (setup.package,) if setup.package else PACKAGES.get(setup.type, ())
    for package in packages:
        try:
            _imported(package)
            break
        except ConfigError:
            if package == packages[-1]:
                raise
    for camera, declared in _cameras(setup).items():
        kind = str(declared.get("type")) if isinstance(declared, dict) else "nothing"
        if kind not in CAMERAS:
            raise ConfigError(
                f"the camera {camera!r} is of the type {kind!r}; {suggest(kind, CAMERAS)}"
            )
        if str(declared.get("color_mode", "rgb")).lower() != "rgb":
            raise ConfigError(f"the camera {camera!r} must give rgb: pictures are RGB everywhere")
        _imported(CAMERAS[kind])


def _careful(setup: LerobotSetup, known: set[str]) -> dict[str, Any]:
    """Return the fields for LeRobot, with what its defaults leave dangerous set.

    Raises:
        ConfigError: a field that would make the arm unsafe or its numbers unreadable.
    """
    given = dict(setup.config)
    if "use_degrees" in known:
        if given.setdefault("use_degrees", True) is not True:
            raise ConfigError("use_degrees must be true: of -100 to 100 no angle can be made")
    elif not setup.degrees:
        raise ConfigError(
            f"LeRobot has no use_degrees for {setup.type!r}; compare its numbers with the arm and "
            "say degrees = true if they are degrees"
        )
    if "max_relative_target" in known:
        limit = given.setdefault("max_relative_target", MAX_RELATIVE_TARGET)
        given["max_relative_target"] = _limit(limit)
    if "disable_torque_on_disconnect" in known:
        # LeRobot's default lets the arm fall when the program ends.
        given.setdefault("disable_torque_on_disconnect", False)
    return given


def _limit(limit: Any) -> Any:
    """Return a finite limit above 0, or one for each motor, as floats: LeRobot takes no integer."""
    each = list(limit.values()) if isinstance(limit, dict) else [limit]
    for value in each:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 180:
            raise ConfigError(f"max_relative_target lies above 0 and up to 180, got {value!r}")
    return {k: float(v) for k, v in limit.items()} if isinstance(limit, dict) else float(limit)


def _cameras(setup: LerobotSetup) -> Mapping[str, Any]:
    cameras = setup.config.get("cameras", {})
    if not isinstance(cameras, dict):
        raise ConfigError(f"cameras is a table of cameras, got {cameras!r:.60}")
    return cameras


def _imported(module: str) -> Any:
    with their_errors(f"importing {module}"):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"an arm of LeRobot needs {module} ({error}); pip install 'lerobot[feetech]', in "
                "an environment of its own if its versions clash"
            ) from None


def _versions() -> Mapping[str, str]:
    try:
        return {"lerobot": version("lerobot")}
    except PackageNotFoundError:
        return {}
