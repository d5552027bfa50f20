"""What a robot of LeRobot tells and takes, in our units: degrees and hundredths become SI here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from zetta.runtime.core import Array, Image, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch

POSITION: Final = ".pos"
MOST_DEG: Final = 360.0
"""No joint of these arms turns further; more is another unit."""
SLACK: Final = 0.05
"""A gripper may report so far outside its range; calibrations are not exact."""


class LerobotRobot(Protocol):
    """The part of LeRobot's `Robot` that is used. One thread calls all of it."""

    @property
    def name(self) -> str:
        """Its type."""
        ...

    @property
    def observation_features(self) -> Mapping[str, Any]:
        """Keys of an observation: `float` for a number, a shape for a picture."""
        ...

    @property
    def action_features(self) -> Mapping[str, Any]:
        """Keys of an action."""
        ...

    @property
    def is_calibrated(self) -> bool:
        """Whether its motors hold its calibration."""
        ...

    def connect(self, calibrate: bool = True) -> None:
        """Open the line and the cameras."""
        ...

    def get_observation(self) -> Mapping[str, Any]:
        """Wait for numbers and pictures."""
        ...

    def send_action(self, action: dict[str, Any]) -> Mapping[str, Any]:
        """Send the motors somewhere; return what was sent."""
        ...

    def disconnect(self) -> None:
        """Close everything."""
        ...


@dataclass(frozen=True, slots=True)
class LerobotArm:
    """What the robot does not tell, and how it is driven."""

    robot: str = "lerobot"
    gripper: str = "gripper"
    """Its motor; 0 is closed, 100 open."""
    gripper_max_m: float = 0.08
    """Opening of the open gripper, metres. Measure yours."""
    max_step_deg: float = 10.0
    """No joint is sent further than this from where it is."""
    max_speed_deg_s: float = 60.0
    read_hz: float = 30.0
    max_age_s: float = 0.2
    """An older reading is an error."""
    connect_s: float = 15.0

    def __post_init__(self) -> None:
        for name, most in (
            ("gripper_max_m", 0.5),
            ("max_step_deg", 45.0),
            ("max_speed_deg_s", 360.0),
            ("read_hz", 200.0),
            ("max_age_s", 2.0),
            ("connect_s", 600.0),
        ):
            value = getattr(self, name)
            if not 0.0 < value <= most:
                raise ConfigError(f"{name} lies above 0 and up to {most:g}, got {value:g}")


@dataclass(frozen=True, slots=True)
class LerobotRow:
    """Where the arm is, or is to be."""

    t: float
    """Seconds of our clock at which its reading began."""
    joints: Array
    """Radians. Shape (J,)."""
    share: float
    """Of the opening: 0 closed, 1 open."""


class Rows:
    """Converts for one robot."""

    def __init__(self, robot: LerobotRobot, arm: LerobotArm) -> None:
        """Look at what the robot tells and takes; it need not be connected.

        Raises:
            ConfigError: it is driven by more than positions, or does not report what it takes.
        """
        taken, told = dict(robot.action_features), dict(robot.observation_features)
        others = [key for key in taken if not key.endswith(POSITION)]
        if others:
            raise ConfigError(
                f"the robot {robot.name!r} is also driven by {', '.join(others)}; only arms that "
                "take positions and nothing else fit"
            )
        grip = arm.gripper + POSITION
        self._keys = tuple(key for key in taken if key != grip)
        if grip not in taken or not self._keys:
            raise ConfigError(
                f"the robot {robot.name!r} takes {', '.join(taken)}; expected joints and a gripper "
                f"called {grip!r}"
            )
        missing = [key for key in taken if key not in told]
        if missing:
            raise ConfigError(f"the robot {robot.name!r} does not report {', '.join(missing)}")
        self._grip = grip
        self.joints = tuple(key.removesuffix(POSITION) for key in self._keys)
        self.cameras: Mapping[str, tuple[int, ...]] = {
            key: tuple(shape) for key, shape in told.items() if isinstance(shape, tuple)
        }
        """Shape of each camera's pictures."""

    def row(self, raw: Mapping[str, Any], t: float) -> LerobotRow:
        """Return the numbers of an observation.

        Raises:
            SpecMismatch: one is missing, not finite, or in another unit.
        """
        degrees = [_number(raw, key) for key in self._keys]
        if max(map(abs, degrees)) > MOST_DEG:
            raise SpecMismatch(f"got joints of {degrees} degrees; is this another unit?")
        share = _number(raw, self._grip) / 100.0
        if not -SLACK <= share <= 1.0 + SLACK:
            raise SpecMismatch(f"got a gripper at {100 * share:g}, expected 0 (closed) to 100")
        return LerobotRow(t, np.radians(degrees), share)

    def image(self, raw: Mapping[str, Any], camera: str) -> Image:
        """Return the picture of a camera. Shape as its features say, uint8, RGB.

        Raises:
            SpecMismatch: there is none, or it is another array.
        """
        image: Any = raw.get(camera)
        shape = self.cameras[camera]
        if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.shape != shape:
            array = isinstance(image, np.ndarray)
            got = f"{image.dtype} {image.shape}" if array else type(image).__name__
            raise SpecMismatch(f"the camera {camera!r} gave {got}, expected uint8 {shape}")
        return read_only(image, np.uint8)

    def action(self, row: LerobotRow) -> dict[str, Any]:
        """Return a row as LeRobot takes it."""
        action = {
            key: math.degrees(angle)
            for key, angle in zip(self._keys, row.joints.tolist(), strict=True)
        }
        action[self._grip] = 100.0 * min(1.0, max(0.0, row.share))
        return action


def _number(raw: Mapping[str, Any], key: str) -> float:
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise SpecMismatch(f"got {value!r:.40} for {key!r}, expected a number")
    if not math.isfinite(value):
        raise SpecMismatch(f"got {value!r} for {key!r}, which is not finite")
    return float(value)
