"""A policy behind `zetta serve`: `zmq://HOST:PORT`, a client that never executes an old answer.

The server tells what the policy needs; each reset of a session and each inference is one request
with a deadline. When an answer is late, or the server went away or is not the one that the episode
began with, `infer` raises an infrastructure error: the episode is no score. The next reset begins
with a new session. So does one after a pause in which the server gave the session up; nothing is
sent to keep a session, because a policy that was left alone for so long is best begun anew.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.runtime.core import ActionChunk, Observation, PolicySpec
from zetta.runtime.curve_keys import read_client_keys
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
    suggest,
)
from zetta.runtime.shared_frames import FrameWriter, is_placed
from zetta.runtime.transport import Dealer, Place, check_bind
from zetta.runtime.wire import MAX_MESSAGE_BYTES, Frame, from_wire, to_wire

SCHEME: Final = "zmq://"
OPTIONS: Final = ("keys", "robot", "within", "reset_within", "shared", "priority")
SPARE_BYTES: Final = 2**16
"""Room in shared memory beside pictures and depth."""


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """Where the server is and how long it is waited for."""

    endpoint: str
    """`tcp://HOST:PORT` or `ipc://PATH`."""
    within_s: float = 10.0
    """For one inference, and for everything but a reset."""
    reset_s: float = 60.0
    """For one reset: a server may load an instance first."""
    keys: Path | None = None
    """File of `zetta serve keygen`."""
    robot: str = ""
    """A robot has one session: the newest. Empty: a name that nobody else has."""
    priority: int = 0
    """Among the robots of the server, higher goes first."""
    shared: bool = True
    """Let pictures go through shared memory where both sides are on one host."""

    def __post_init__(self) -> None:
        if not (0 < self.within_s < 3600 and 0 < self.reset_s < 3600):
            raise ConfigError(
                f"a policy server is waited for from 0 to 3600 s, got {self.within_s:g} s and "
                f"{self.reset_s:g} s"
            )


class ServedPolicy:
    """A `Policy` in another process. Not to be shared by threads."""

    def __init__(self, settings: ServedSettings) -> None:
        """Ask the server what its policy needs.

        Raises:
            InfraError: nobody answers, or the keys are not those of the server.
            SpecMismatch: it is no server of this version.
        """
        self._settings = settings
        keys = None if settings.keys is None else read_client_keys(settings.keys)
        self._robot = settings.robot or f"{socket.gethostname()}-{secrets.token_hex(4)}"
        self._dealer, self._calling = Dealer(settings.endpoint, keys), threading.Lock()
        self._owner = os.getpid()
        self._frames: FrameWriter | None = None
        self._session = self._instance = ""
        self._closed = False
        try:
            self._spec = self._hello()
        except Timeout as error:
            self._dealer.close()
            raise Timeout(
                f"{error}; start a server with: zetta serve --policy NAME --bind "
                f"{settings.endpoint}"
            ) from None
        except BaseException:
            self._dealer.close()
            raise

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits, as the server told it."""
        return self._spec

    @property
    def late(self) -> int:
        """Answers that came after they had been given up; none of them was used."""
        return self._dealer.late

    @property
    def reconnections(self) -> int:
        """How often the connection was made anew."""
        return self._dealer.rebuilt

    @property
    def shares_memory(self) -> bool:
        """Whether pictures go through shared memory."""
        return self._frames is not None

    def lost(self) -> bool:
        """Say whether the server went away since it was last asked; any thread may ask this."""
        if not self._calling.acquire(blocking=False):
            return False  # it is being asked now, and its answer will tell
        try:
            return not self._closed and self._dealer.lost()
        finally:
            self._calling.release()

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode, in a new session where the last one is lost.

        Raises:
            ConfigError: the policy does not take the instruction, or the server is full.
            InfraError: the server cannot be reached.
        """
        if self._session:
            with contextlib.suppress(ConnectionLost):
                self._begin(instruction, seed)
                return
        self._open()
        self._begin(instruction, seed)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows.

        Raises:
            ConnectionLost: the server went away, was restarted, or has forgotten the session.
            Timeout: the answer did not come in time.
            SpecMismatch: there was no reset, or the policy cannot take the observation.
        """
        if not self._session:
            if self._instance:
                raise ConnectionLost("the session with the policy server is lost; reset first")
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        within_s = self._settings.within_s
        given = {"observation": to_wire(observation), "left_s": within_s}
        chunk = from_wire(ActionChunk, self._ask("infer", given, within_s).get("chunk"))
        self._check(chunk, observation)
        return chunk

    def close(self) -> None:
        """Close the session and the connection; calling it again does nothing."""
        if self._closed or self._owner != os.getpid():
            return
        self._closed = True
        with self._calling:
            if self._session:
                with contextlib.suppress(InfraError, SpecMismatch):
                    self._dealer.call("close", {"session": self._session}, 1.0)
            self._lose_session()
            self._dealer.close()

    # ------------------------------------------------------------------ calls

    def _hello(self) -> PolicySpec:
        told = self._told(self._call("hello", {}, self._settings.within_s))
        return from_wire(PolicySpec, told.get("spec"))

    def _open(self) -> None:
        """Open a session; the server may be another one than before, but not another policy."""
        self._lose_session()
        spec = self._hello()
        if spec != self._spec:
            raise SpecMismatch(
                f"{self._settings.endpoint} now serves {spec.name} {spec.digest[:12]} and served "
                f"{self._spec.name} {self._spec.digest[:12]} before; start the run again"
            )
        frames = self._segment()
        offered = None if frames is None else to_wire(frames.offer)
        given = {"robot": self._robot, "priority": self._settings.priority, "shared": offered}
        try:
            told = self._told(self._call("open", given, self._settings.within_s))
        except BaseException:
            if frames is not None:
                frames.close()
            raise
        if frames is not None:
            frames.forget_name()
            if told.get("shared") is not True:
                frames.close()
                frames = None
        self._frames, self._session = frames, _text(told, "session")
        self._instance = _text(told, "instance")

    def _begin(self, instruction: str, seed: int) -> None:
        self._ask("reset", {"instruction": instruction, "seed": seed}, self._settings.reset_s)

    def _ask(self, do: str, given: dict[str, Any], within_s: float) -> dict[str, Any]:
        """Return the reply to a request of the session, from the server that it was opened with."""
        try:
            told = self._told(
                self._call(do, {"session": self._session, **given}, within_s, self._placed)
            )
            instance = _text(told, "instance")
            if instance != self._instance:
                raise ConnectionLost(
                    f"{self._settings.endpoint} was restarted during the episode; reset first"
                )
        except InfraError:
            self._lose_session()
            raise
        return told

    def _call(
        self, do: str, given: dict[str, Any], within_s: float, place: Place | None = None
    ) -> object:
        with self._calling:
            return self._dealer.call(do, given, within_s, place)

    def _placed(self, frames: list[Frame]) -> list[Frame]:
        placed = frames if self._frames is None else self._frames.place(frames)
        if is_placed(placed):
            return [placed[0], bytes(placed[1]) + self._session.encode()]
        return placed

    def _check(self, chunk: ActionChunk, observation: Observation) -> None:
        """Refuse a chunk that does not belong to what was asked.

        Raises:
            InfraError: it was inferred from another observation.
            SpecMismatch: it has another shape than was declared.
        """
        if chunk.t_obs != observation.proprio.t:
            self._lose_session()
            raise InfraError(
                f"got a chunk for the time {chunk.t_obs:g} s when {observation.proprio.t:g} s was "
                "asked; it was not used"
            )
        expected = (self._spec.horizon, self._spec.action.size)
        if chunk.actions.shape != expected or not np.isfinite(chunk.actions).all():
            raise SpecMismatch(
                f"got a chunk of shape {chunk.actions.shape} from {self._settings.endpoint}, "
                f"expected {expected} finite numbers"
            )

    def _lose_session(self) -> None:
        self._session = ""
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def _segment(self) -> FrameWriter | None:
        """Return shared memory for the largest observation; None where there can be none."""
        depth = 4 if self._spec.depth else 0
        pixels = sum(c.height * c.width * (3 + depth) for c in self._spec.cameras)
        largest = pixels + SPARE_BYTES
        if not self._settings.shared or not pixels or largest > MAX_MESSAGE_BYTES:
            return None
        try:
            check_bind(self._settings.endpoint, keys=False)  # loopback: perhaps the same host
            return FrameWriter(largest)
        except ConfigError:
            return None

    def _told(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise SpecMismatch(
                f"{self._settings.endpoint} answered {value!r:.40}; is it zetta serve?"
            )
        return value


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value:
        raise SpecMismatch(f"got {name} = {value!r:.40} from the policy server, expected text")
    return value


def parse(name: str) -> ServedSettings:
    """Return the settings that a policy name asks for.

    >>> parse("zmq://127.0.0.1:5601@within=2,robot=left").within_s
    2.0

    Raises:
        ConfigError: no such place or option.
    """
    place, _, text = name.partition("@")
    where = place.removeprefix(SCHEME)
    options = dict(_option(name, part) for part in text.split(",") if part)
    if not place.startswith(SCHEME) or not where:
        raise ConfigError(
            f"got the policy {name!r}, expected zmq://HOST:PORT, for example zmq://127.0.0.1:5601"
        )
    seconds = {"within_s": "within", "reset_s": "reset_within"}
    return ServedSettings(
        endpoint=f"ipc://{where}" if where.startswith("/") else f"tcp://{where}",
        keys=Path(options["keys"]).expanduser() if "keys" in options else None,
        robot=options.get("robot", ""),
        priority=_whole(name, options.get("priority", "0")),
        shared=options.get("shared", "yes") != "no",
        **{field: _number(name, options[key]) for field, key in seconds.items() if key in options},
    )


def _option(name: str, part: str) -> tuple[str, str]:
    key, _, value = part.partition("=")
    if key not in OPTIONS or not value:
        raise ConfigError(f"the policy {name!r} has the option {part!r}; {suggest(key, OPTIONS)}")
    return key, value


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"the policy {name!r} has {text!r} where seconds belong") from None


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            f"the policy {name!r} has {text!r} where a whole number belongs"
        ) from None


def load(name: str) -> ServedPolicy:
    """Connect to the policy server of `zmq://HOST:PORT[@OPTION=VALUE,...]`.

    Options: `keys` (a client key file), `within` and `reset_within` (seconds), `robot` (a name for
    people and for taking a lost session over), `priority` (higher goes first), `shared=no` (frames
    over the socket only).

    Raises:
        ConfigError: no such place or option.
        InfraError: nobody answers there.
    """
    return ServedPolicy(parse(name))
