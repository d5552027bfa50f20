"""The twin's back door: set the scene, ask for the truth, make things go wrong.

A real arm has no such door. It listens on loopback alone, and nothing that drives an arm may use
it: it is there to set scenes and to measure what was achieved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.faults import Faults
from zetta.hw_drivers.twin.side import TwinSide
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.transport import Dealer, Router, is_loopback
from zetta.runtime.wire import (
    Frame,
    Reply,
    Request,
    claimed_id,
    explained,
    from_wire,
    read_request,
    reply_frames,
    to_wire,
)

DOOR_PORT: Final = 5709
MAX_BYTES: Final = 2**16
WITHIN_S: Final = 5.0
A_TURN: Final = 4
"""Requests that are answered before the arm is looked after again."""


@dataclass(frozen=True, slots=True)
class TruePlace:
    """Where a thing is: its middle in the world."""

    pos: Array
    """Metres. Shape (3,)."""
    quat: Array
    """xyzw. Shape (4,)."""


@dataclass(frozen=True, slots=True)
class TwinTruth:
    """What the twin knows of itself."""

    seed: int
    things: Mapping[str, TruePlace]
    faults: Mapping[str, str] = field(default_factory=dict)
    """What goes wrong now, with its value."""
    lost_s: float = 0.0
    """Time that the physics did not catch up with."""


class Door:
    """The robot's end. The thread that serves the arm answers here too."""

    def __init__(
        self,
        bind: str,
        side: TwinSide,
        faults: Faults,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        """Listen.

        Args:
            bind: on loopback.
            side: the arm.
            faults: what can be made to go wrong.
            reset: called when a scene was set, for what must then begin anew.

        Raises:
            ConfigError: another machine could reach it.
            InfraError: the address is taken.
        """
        host = bind.removeprefix("tcp://").rpartition(":")[0].strip("[]")
        if not bind.startswith("tcp://") or not is_loopback(host):
            raise ConfigError(
                f"the twin's door listens on loopback alone, got {bind}; reach it through an SSH "
                "tunnel"
            )
        self._side, self._faults, self._reset = side, faults, reset
        self._router = Router(bind, None, MAX_BYTES)

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return self._router.endpoint

    def answer(self) -> None:
        """Answer what has come; one who asks badly is told so."""
        for _ in range(A_TURN):
            message = self._router.receive()
            if message is None:
                return
            peer, *frames = message
            self._router.send(bytes(peer), reply_frames(self._reply(frames)))

    def close(self) -> None:
        """Stop listening; calling it again does nothing."""
        self._router.close()

    def _reply(self, frames: list[Frame]) -> Reply:
        number = claimed_id(frames[0]) if frames else -1
        try:
            return Reply(number, self._done(read_request(frames)))
        except Exception as error:  # boundary: one who asks never ends the server
            return Reply(number, error=explained(error))

    def _done(self, request: Request) -> Any:
        given = request.given
        match request.do:
            case "scene":
                seed = given.get("seed")
                if not isinstance(seed, int) or isinstance(seed, bool):
                    raise SpecMismatch(f"a scene has a whole number, got {seed!r:.40}")
                self._side.set_scene(seed)
                self._reset()
                return {"seed": seed}
            case "truth":
                return to_wire(self._truth())
            case "fault":
                name, on, value = (given.get(k) for k in ("name", "on", "value"))
                if not (isinstance(name, str) and isinstance(on, bool) and isinstance(value, str)):
                    raise SpecMismatch("a fault has a name, on or off, and a value that is text")
                self._faults.set(name, on, value)
                return {"on": dict(self._faults.on)}
            case "faults":
                return {name: fault.says for name, fault in self._faults.table.items()}
        raise SpecMismatch(f"the twin's door does not know {request.do!r:.40}")

    def _truth(self) -> TwinTruth:
        world = self._side.world
        things = {name: TruePlace(pose.pos, pose.quat) for name, pose in world.truth().items()}
        return TwinTruth(world.seed, things, self._faults.on, self._side.lost_s)


class TwinDoor:
    """The other end, for who sets scenes and measures. Not to be shared by threads."""

    def __init__(self, endpoint: str = f"tcp://127.0.0.1:{DOOR_PORT}") -> None:
        """Connect in the background.

        Raises:
            ConfigError: the endpoint is no place that can be connected to.
        """
        self._dealer = Dealer(endpoint)

    def scene(self, seed: int) -> None:
        """Set the scene of a seed, with the arm home.

        Raises:
            ConfigError: no such scene.
            InfraError: nobody answers.
        """
        self._dealer.call("scene", {"seed": seed}, WITHIN_S)

    def truth(self) -> Mapping[str, Pose]:
        """Return where every thing is; never to be told to who drives.

        Raises:
            InfraError: nobody answers.
        """
        things = self.report().things
        return {n: Pose(np.array(place.pos), np.array(place.quat)) for n, place in things.items()}

    def report(self) -> TwinTruth:
        """Return all that the twin knows of itself.

        Raises:
            InfraError: nobody answers.
        """
        return from_wire(TwinTruth, self._dealer.call("truth", {}, WITHIN_S))

    def fault(self, name: str, on: bool = True, value: str = "") -> None:
        """Begin or end a fault.

        Raises:
            ConfigError: there is none of that name, or the value makes no sense.
            InfraError: nobody answers.
        """
        self._dealer.call("fault", {"name": name, "on": on, "value": value}, WITHIN_S)

    def faults(self) -> Mapping[str, str]:
        """Return what can go wrong, with a sentence on each.

        Raises:
            InfraError: nobody answers.
        """
        return dict(self._dealer.call("faults", {}, WITHIN_S))

    def close(self) -> None:
        """Close; calling it again does nothing."""
        self._dealer.close()
