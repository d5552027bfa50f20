"""The twin behind the link of a real arm: server, cameras and door, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm import OPEN, Guard
from zetta.hw_drivers.arm_messages import COMMAND_PORT, Endpoints
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.camera_stream import CAMERA_PORT
from zetta.hw_drivers.twin.door import DOOR_PORT, Door
from zetta.hw_drivers.twin.faults import Fault, Faults, world_faults
from zetta.hw_drivers.twin.link_faults import FaultyLink, WrongClock, link_faults
from zetta.hw_drivers.twin.pictures import Pictures
from zetta.hw_drivers.twin.scene import EYES
from zetta.hw_drivers.twin.setups import twin_setup
from zetta.hw_drivers.twin.side import TwinSide
from zetta.hw_drivers.twin.world import TwinWorld
from zetta.runtime.curve_keys import read_server_keys

__all__ = ["Twin", "TwinSettings", "serve_twin", "twin_setup"]

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """How a twin is served. Any port may be 0: one that is free is taken."""

    host: str = LOOPBACK
    command_port: int = COMMAND_PORT
    state_port: int = COMMAND_PORT + 1
    stop_port: int = COMMAND_PORT + 2
    camera_port: int = CAMERA_PORT
    """Of the first camera; the others follow."""
    door_port: int = DOOR_PORT
    """On loopback, wherever the rest listens."""
    seed: int = 0
    """Of the first scene."""
    robot: str = "twin"
    keys: Path | None = None
    """Server key file; without it only loopback is bound."""
    client_keys: Path | None = None
    """Client key file, as the set-up names it."""
    latch: Path | None = None
    """File in which a stop outlives the server."""
    picture_hz: float = 12.0
    """Pictures a second of each camera; 0 for a twin without cameras."""

    def endpoints(self) -> Endpoints:
        """Return where the arm's three sockets are bound.

        Raises:
            ConfigError: a port that other systems use by default.
        """
        ports = (self.command_port, self.state_port, self.stop_port)
        return Endpoints(*(_address(self.host, port) for port in ports))

    def cameras(self) -> dict[str, str]:
        """Return where each camera's pictures are published."""
        if self.picture_hz <= 0.0:
            return {}
        first = self.camera_port
        return {name: _address(self.host, first + k if first else 0) for k, name in enumerate(EYES)}


class Twin:
    """A served twin. One thread builds it, runs `serve`, and closes it."""

    def __init__(
        self,
        settings: TwinSettings,
        guard: Guard = OPEN,
        clock: Callable[[], float] = time.monotonic,
        faults: Callable[[Twin], Iterable[Fault]] | None = None,
        began_anew: Callable[[], None] = lambda: None,
    ) -> None:
        """Build the world, start the cameras and bind everything; nothing moves yet.

        Args:
            settings: where and how.
            guard: stands before every command.
            clock: the robot's.
            faults: more that can go wrong, made once everything else is there.
            began_anew: called when the door has set another scene: the arm has jumped home.

        Raises:
            ConfigError: something is not installed, or an address may not be bound.
            InfraError: an address is taken, or the cameras cannot draw here.
        """
        self.settings, self._guard, self._began_anew = settings, guard, began_anew
        keys = None if settings.keys is None else read_server_keys(settings.keys)
        self.link, self.clock = FaultyLink(settings.seed), WrongClock(base=clock)
        self.side = TwinSide(TwinWorld(settings.seed), self.clock, settings.robot)
        self._opened: list[ArmServer | Pictures | Door] = []
        try:
            self.server = ArmServer(
                self.side,
                guard,
                ServerSettings(settings.endpoints(), latch=settings.latch),
                keys,
                self.clock,
                self.link.sockets,
            )
            self._opened.append(self.server)
            self.pictures = Pictures(
                settings.cameras(), max(settings.picture_hz, 1.0), settings.keys
            )
            self._opened.append(self.pictures)
            self.faults = Faults(world_faults(self.side, self.pictures))
            for fault in link_faults(self.link, self.clock):
                self.faults.add(fault)
            for fault in faults(self) if faults is not None else ():
                self.faults.add(fault)
            self.door = Door(
                _address(LOOPBACK, settings.door_port), self.side, self.faults, self._jumped
            )
            self._opened.append(self.door)
        except BaseException:
            self.close()
            raise

    def setup(self, path: Path | None = None) -> ArmSetup:
        """Return the matching set-up, and write it to a TOML file where one is named.

        Raises:
            ConfigError: the file cannot be written.
        """
        return twin_setup(
            self.server.endpoints.command,
            self.settings.robot,
            self.pictures.endpoints,
            str(self.settings.client_keys or ""),
            path=path,
        )

    def serve(self, until: Callable[[], bool]) -> None:
        """Serve in real time until `until`, which is asked in every turn, says so."""

        def turn() -> bool:
            self.door.answer()
            # Cameras are stamped by the machine's clock, whatever clock the robot is given.
            self.pictures.show(time.monotonic(), self.side.world.qpos)
            return until()

        self.side.rewind()  # starting the cameras has taken seconds
        self.server.serve(turn)

    def _jumped(self) -> None:
        """Let the guard begin where the arm now is: no arm follows a jump."""
        self._guard.held()
        self._began_anew()

    def close(self) -> None:
        """Hold the arm and close everything; calling it again does nothing."""
        while self._opened:
            self._opened.pop().close()


def serve_twin(
    settings: TwinSettings,
    until: Callable[[], bool],
    guard: Guard = OPEN,
    ready: Callable[[Twin], None] = lambda twin: None,
    faults: Callable[[Twin], Iterable[Fault]] | None = None,
    began_anew: Callable[[], None] = lambda: None,
) -> None:
    """Serve a twin in real time until `until` says so.

    Args:
        settings: where and how.
        until: asked in every turn, some 200 times a second.
        guard: stands before every command.
        ready: called once with the twin when it listens, to say where.
        faults: more that can go wrong.
        began_anew: called when the door has set another scene.

    Raises:
        ConfigError: something is not installed, or an address may not be bound.
        InfraError: an address is taken, or the cameras cannot draw here.
    """
    twin = Twin(settings, guard, faults=faults, began_anew=began_anew)
    try:
        ready(twin)
        twin.serve(until)
    finally:
        twin.close()


def _address(host: str, port: int) -> str:
    return f"tcp://{host}:{port or '*'}"
