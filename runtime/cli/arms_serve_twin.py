"""`zetta arms serve --twin`: an arm that is not there, with the link and limits of a real one."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.twin.serve import Twin, TwinSettings, serve_twin
from zetta.hw_drivers.twin.setups import to_toml
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_serve import status_line, told_regularly
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.errors import ConfigError, suggest

TWINS: Final = ("panda",)
CAMERAS_AFTER: Final = 3
"""Ports from the commands to the first camera."""
DOOR_AFTER: Final = 9
"""And to the door of the twin."""


@dataclass(frozen=True, slots=True)
class TwinWish:
    """Which twin, and how it is served."""

    arm: str
    seed: int
    port: int
    """Of the commands; 0 takes any that are free."""
    faults: str
    setup: Path | None
    """Where its set-up is written."""
    latch: Path | None

    def settings(self) -> TwinSettings:
        """Return what the twin is told.

        Raises:
            ConfigError: no such twin, or no such ports.
        """
        if self.arm not in TWINS:
            raise ConfigError(f"there is no twin {self.arm!r}; {suggest(self.arm, TWINS)}")
        if not 0 <= self.port <= 65535 - DOOR_AFTER:
            raise ConfigError(f"--port and the nine after it lie in 0 to 65535, got {self.port}")
        ports = [self.port + k if self.port else 0 for k in (0, 1, 2, CAMERAS_AFTER, DOOR_AFTER)]
        command, state, stop, camera, door = ports
        return TwinSettings(
            command_port=command,
            state_port=state,
            stop_port=stop,
            camera_port=camera,
            door_port=door,
            seed=self.seed,
            latch=self.latch,
        )


def serve(wish: TwinWish, as_json: bool) -> None:
    """Serve the twin until SIGTERM or Ctrl-C.

    Raises:
        ConfigError: no such twin or fault, something is not installed, or a port is taken.
        InfraError: its cameras cannot draw here.
    """
    settings, limits = wish.settings(), load_limits(wish.arm)
    if wish.setup is not None and wish.setup.exists():
        raise ConfigError(f"{wish.setup} exists already; choose another file for the set-up")
    # The limits are those of a real arm: what runs here keeps them there.
    facts = TwinSide(TwinWorld(settings.seed), robot=settings.robot).facts
    guard = KernelGuard(limits, facts)
    served: list[Twin] = []

    def ready(twin: Twin) -> None:
        for name, value in faults_of(wish.faults):
            twin.faults.set(name, True, value)
        served.append(twin)
        _announce(wish, twin, as_json)

    with wish_to_end() as ending:
        output.note(f"building a twin of {wish.arm}")
        with told_regularly(lambda: status_line(served[0].server) if served else ""):
            serve_twin(settings, ending.stop.is_set, guard, ready, began_anew=guard.held)
    output.note(f"ended; {status_line(served[0].server)}")


def faults_of(text: str) -> list[tuple[str, str]]:
    """Return the faults of a text, each with its value.

    >>> faults_of("stuck_gripper;camera_lost=front")
    [('stuck_gripper', ''), ('camera_lost', 'front')]
    """
    entries = [entry.strip().partition("=") for entry in text.split(";") if entry.strip()]
    return [(name.strip(), value.strip()) for name, _, value in entries]


def _announce(wish: TwinWish, twin: Twin, as_json: bool) -> None:
    places, robot = twin.server.endpoints, twin.settings.robot
    setup = replace(twin.setup(), limits=wish.arm)
    if wish.setup is not None:
        try:
            wish.setup.write_text(to_toml(setup), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write {wish.setup}: {error.strerror}") from error
    output.note(
        f"serving {robot!r}, a twin of {wish.arm}, at {places.command}, states {places.state}, "
        f"stop {places.stop}; its door is {twin.door.endpoint}"
    )
    for name, place in twin.pictures.endpoints.items():
        output.note(f"camera {name} at {place}")
    if wish.setup is not None:
        output.note(f"try it: zetta run --arm {wish.setup}")
    if as_json:
        output.emit(
            {
                "robot": robot,
                "driver": f"twin {wish.arm}",
                "command": places.command,
                "state": places.state,
                "stop": places.stop,
                "cameras": dict(twin.pictures.endpoints),
                "door": twin.door.endpoint,
                "limits": wish.arm,
                "setup": None if wish.setup is None else str(wish.setup),
                "pid": os.getpid(),
            }
        )
