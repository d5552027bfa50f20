"""A robot with the interface of LeRobot's, and a package of it that is not LeRobot."""

from __future__ import annotations

import dataclasses
import sys
import threading
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
PICTURE = np.full((4, 6, 3), (200, 10, 10), np.uint8)


class FakeSo101:
    """Motors that are at once where they are sent; degrees, and 0 to 100 for the gripper."""

    name = "so101_follower"

    def __init__(self, limit: float = 10.0, cameras: tuple[str, ...] = ()) -> None:
        self.at = dict.fromkeys((f"{motor}.pos" for motor in MOTORS), 0.0)
        self.limit, self.cameras = limit, cameras
        self.is_calibrated = True
        self.sent: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.error: Exception | None = None
        self.hangs = threading.Event()
        self.goes_on = threading.Event()
        self.picture: Any = PICTURE
        self.threads: set[int] = set()

    @property
    def observation_features(self) -> Mapping[str, Any]:
        return {**dict.fromkeys(self.at, float), **dict.fromkeys(self.cameras, (4, 6, 3))}

    @property
    def action_features(self) -> Mapping[str, Any]:
        return dict.fromkeys(self.at, float)

    def connect(self, calibrate: bool = True) -> None:
        self._called("calibrated" if calibrate else "connect")

    def disconnect(self) -> None:
        self._called("disconnect")

    def get_observation(self) -> Mapping[str, Any]:
        self.threads.add(threading.get_ident())
        if self.hangs.is_set():
            assert self.goes_on.wait(20.0)
        if self.error is not None:
            raise self.error
        return {**self.at, **dict.fromkeys(self.cameras, self.picture)}

    def send_action(self, action: dict[str, Any]) -> Mapping[str, Any]:
        self.threads.add(threading.get_ident())
        kept = {
            key: self.at[key] + float(np.clip(goal - self.at[key], -self.limit, self.limit))
            for key, goal in action.items()
        }
        self.sent.append(dict(action))
        self.at = kept
        return kept

    def _called(self, what: str) -> None:
        self.threads.add(threading.get_ident())
        self.calls.append(what)


@dataclasses.dataclass
class FakeConfig:
    port: str
    id: str | None = None
    max_relative_target: float | dict[str, float] | None = None
    disable_torque_on_disconnect: bool = True
    use_degrees: bool = False
    cameras: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class FakeKoch:
    port: str


def install(patch: pytest.MonkeyPatch) -> list[Any]:
    """Put modules of LeRobot's names into place; return the configurations that are made."""
    made: list[Any] = []

    class RobotConfig:
        known: dict[str, type] = {}  # noqa: RUF012

        @classmethod
        def get_known_choices(cls) -> dict[str, type]:
            return cls.known

    def decode(kind: type, raw: dict[str, Any]) -> Any:
        return kind(**raw)

    def make(config: Any) -> FakeSo101:
        made.append(config)
        return FakeSo101()

    robots = _module(patch, "lerobot.robots", RobotConfig=RobotConfig, make_robot_from_config=make)
    robots.RobotConfig.known = {"so101_follower": FakeConfig, "koch_follower": FakeKoch}
    for name in ("lerobot", "lerobot.cameras", "lerobot.cameras.opencv", "my_arms",
                 "lerobot.robots.so101_follower", "lerobot.robots.koch_follower"):  # fmt: skip
        _module(patch, name)
    _module(patch, "draccus", decode=decode)
    return made


def _module(patch: pytest.MonkeyPatch, name: str, **contents: Any) -> Any:
    module = types.ModuleType(name)
    module.__path__ = []
    for key, value in contents.items():
        setattr(module, key, value)
    patch.setitem(sys.modules, name, module)
    return module
