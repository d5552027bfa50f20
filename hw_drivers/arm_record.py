"""A passive recorder: it listens to an arm and its cameras, and takes hold of nothing."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_messages import Beat, Welcome, beside, opened, sealed
from zetta.hw_drivers.arm_person import hello
from zetta.hw_drivers.arm_record_file import RecordingHeader, columns_of, write_header
from zetta.hw_drivers.arm_record_tapes import (
    LookTape,
    PictureTape,
    StateTape,
    StreamTape,
    Tape,
    pictures_of,
    states_of,
)
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.camera_sources import check_source, open_camera
from zetta.hw_drivers.clock_offset import ClockOffset
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, ZettaError
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import from_wire

HELLO_S: Final = 5.0
FIRST_BEATS: Final = 8
BEAT_EVERY_S: Final = 0.5
BEAT_S: Final = 1.0
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
SILENT_S: Final = 5.0
"""After so long without a first state there is nothing to record."""


@dataclass(frozen=True, slots=True)
class SoFar:
    """How a recording gets on."""

    seconds: float
    states: int
    missed_states: int
    pictures: dict[str, int]
    missed_pictures: dict[str, int]
    trouble: str


class Recorder:
    """Records one arm into one folder. Used by one thread, once."""

    def __init__(
        self,
        url: str,
        folder: Path,
        setup: ArmSetup | None = None,
        keys: ClientKeys | None = None,
        picture_hz: float = 0.0,
        robot: str = "",
    ) -> None:
        """Ask who is there, open the cameras and begin.

        Args:
            url: command socket of the arm.
            folder: it exists and is empty.
            setup: whose cameras are recorded; None for states alone.
            keys: where the server asks for them.
            picture_hz: pictures a second of each camera at most; 0 for all.
            robot: name of the robot that must be there; empty takes any.

        Raises:
            ConfigError: the URL or a camera is written wrongly.
            InfraError: nobody answers, a camera gives nothing, or the folder cannot be written.
            SpecMismatch: it is another robot, or speaks another protocol.
        """
        self._url, self._folder = url, folder
        self._dealer = Dealer(url, keys)
        self._tapes: list[PictureTape] = []
        self._clocks = ClockOffset()
        self._session = self._trouble = ""
        try:
            welcome = hello(self._dealer, robot, HELLO_S)
            self._session = welcome.session
            for _ in range(FIRST_BEATS):
                self._beat()
            self.began = time.monotonic()
            self._header = _header(url, welcome, setup)
            write_header(folder, self._header)
            endpoint = beside(url, welcome.state_port)
            self._states = StateTape(folder, states_of(endpoint, keys), welcome.arm, self._ours)
            for name in {} if setup is None else setup.cameras:
                assert setup is not None
                self._tapes.append(_tape(folder, name, setup, keys, self.began, picture_hz))
        except OSError as error:
            self._abandon()
            raise InfraError(f"cannot write to {folder}: {error.strerror}") from error
        except BaseException:
            self._abandon()
            raise
        for tape in self._all():
            tape.start()

    def run(self, until: Callable[[float], bool], told: Callable[[SoFar], None]) -> RecordingHeader:
        """Record until `until`, which waits for as long as it is told, says so.

        Args:
            until: asked again and again.
            told: called about twice a second with how it gets on.

        Raises:
            InfraError: no state came, or the disk takes nothing more. What was recorded stays;
                `recorded` says whether there is any.
        """
        failure = ""
        try:
            while not until(BEAT_EVERY_S):
                self._look_after()
                told(self.so_far())
                failure = next((tape.failure for tape in self._all() if tape.failure), "")
                silent = not self._states.count and time.monotonic() - self.began > SILENT_S
                if silent:
                    failure = f"no state came from {self._url} within {SILENT_S:g} s"
                if failure:
                    break
        finally:
            header = self._finish(failure)
        if failure and not self.recorded:
            raise InfraError(f"nothing was recorded: {failure}")
        if failure:
            raise InfraError(f"the recording in {self._folder} was cut short: {failure}")
        return header

    @property
    def recorded(self) -> bool:
        """Say whether there is a state or a picture so far."""
        return any(tape.count for tape in self._all())

    def so_far(self) -> SoFar:
        """Return how it gets on."""
        tapes = self._tapes
        return SoFar(
            seconds=time.monotonic() - self.began,
            states=self._states.count,
            missed_states=self._states.missed or 0,
            pictures={tape.camera: tape.count for tape in tapes},
            missed_pictures={t.camera: t.missed for t in tapes if t.missed is not None},
            trouble=next((t.trouble for t in self._all() if t.trouble), self._trouble),
        )

    def _look_after(self) -> None:
        """Keep the clocks compared; an arm that is silent for a while is no reason to end."""
        try:
            self._beat()
            self._trouble = ""
        except InfraError as error:
            self._trouble = str(error)
        except SpecMismatch as error:
            self._trouble = str(error)

    def _beat(self) -> None:
        t0 = time.monotonic()
        answer = self._dealer.call("beat", sealed({"lease": ""}), BEAT_S)
        t3 = time.monotonic()
        beat = from_wire(Beat, opened(answer))
        if beat.session != self._session:  # a new start may be a new clock
            self._session, self._clocks = beat.session, ClockOffset()
        self._clocks.add(t0, beat.t_received, beat.t_sent, t3)

    def _ours(self, t_robot: float) -> float:
        return t_robot - self._clocks.seconds - self.began

    def _finish(self, failure: str) -> RecordingHeader:
        for tape in self._all():
            tape.end()
        self._dealer.close()
        failure = failure or next((tape.failure for tape in self._all() if tape.failure), "")
        ended = self.so_far()
        header = replace(
            self._header,
            complete=not failure,
            seconds=ended.seconds,
            states=ended.states,
            missed_states=ended.missed_states,
            pictures=ended.pictures,
            missed_pictures=ended.missed_pictures,
            clock_bound_ms=1000.0 * self._clocks.bound(time.monotonic()),
            trouble=failure or ended.trouble,
        )
        # What makes the folder unwritable was said already.
        with contextlib.suppress(OSError):
            write_header(self._folder, header)
        return header

    def _all(self) -> list[Tape]:
        return [self._states, *self._tapes]

    def _abandon(self) -> None:
        self._dealer.close()
        for tape in (getattr(self, "_states", None), *self._tapes):
            if tape is not None:
                tape.finish()


def _header(url: str, welcome: Welcome, setup: ArmSetup | None) -> RecordingHeader:
    cameras = () if setup is None else tuple(setup.cameras)
    began = datetime.now().astimezone().isoformat(timespec="milliseconds")
    return RecordingHeader(url, welcome.arm, columns_of(welcome.arm), cameras, began)


def _tape(
    folder: Path,
    name: str,
    setup: ArmSetup,
    keys: ClientKeys | None,
    began: float,
    hz: float,
) -> PictureTape:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a camera is recorded into a folder of its name; {name!r} is none")
    camera = setup.cameras[name]
    kind, place = check_source(camera.source)
    try:
        if kind == "zmq":
            size = (camera.height, camera.width)
            return StreamTape(folder, name, size, pictures_of(place, keys), began, hz)
        return LookTape(folder, name, open_camera(name, camera, keys), began, hz)
    except ZettaError as error:
        raise type(error)(
            f"{error}; leave the camera out of the set-up to record without"
        ) from None
