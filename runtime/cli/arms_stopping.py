"""Stopping arms for sure: each is told where its server says that its stop is, and confirms."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from zetta.hw_drivers.arm_messages import COMMAND_PORT, STOP_PORT, beside, port_of
from zetta.hw_drivers.arm_person import ASK_WITHIN_S, STOP_WITHIN_S, hello, press_stop
from zetta.hw_drivers.arm_setup import read_setup
from zetta.runtime.cli.arms_options import client_keys
from zetta.runtime.cli.arms_telegram import BY
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, ZettaError
from zetta.runtime.transport import Dealer, check_destination


@dataclass(frozen=True, slots=True)
class Place:
    """One arm that shall stop."""

    url: str
    keys: ClientKeys | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of one arm."""

    url: str
    said: str
    """Empty if it confirmed the stop; otherwise why it may be moving."""
    after_s: float
    """From the wish to its end."""


def stop_all(
    places: Sequence[Place], reason: str, told: Callable[[Stopped], None]
) -> list[Stopped]:
    """Stop all arms, each in a thread of its own: one that does not answer delays no other.

    Args:
        places: the arms.
        reason: everybody is told.
        told: called with what became of each, as soon as it is known, by one thread.
    """
    results: queue.SimpleQueue[Stopped] = queue.SimpleQueue()
    for place in places:
        threading.Thread(target=_stop, args=(place, reason, results)).start()
    ended = []
    for _ in places:
        ended.append(results.get())
        told(ended[-1])
    return ended


def _stop(place: Place, reason: str, results: queue.SimpleQueue[Stopped]) -> None:
    began = time.monotonic()
    try:
        said = _press(place, reason)
    except ZettaError as error:
        said = str(error)
    results.put(Stopped(place.url, said, time.monotonic() - began))


def _press(place: Place, reason: str) -> str:
    """Stop one arm; return why it is not sure that it was stopped, or nothing.

    Raises:
        ZettaError: its server refuses to talk to us.
    """
    usual = beside(place.url, port_of(place.url) + STOP_PORT - COMMAND_PORT)
    said = ["not asked"]
    first = threading.Thread(target=lambda: said.append(_pressed(place, usual, reason, False)))
    first.start()
    try:
        told = _told(place) or usual
        # Another program may stand at the usual place: what it confirms proves nothing.
        refused = _pressed(place, told, reason) if told != usual else ""
    finally:
        first.join()
    if told == usual and said[-1]:
        refused = _pressed(place, usual, reason)
    return refused


def _told(place: Place) -> str:
    """Return where the stop socket is by its server's word; empty if the server is mute."""
    asked = Dealer(place.url, place.keys)
    try:
        return beside(place.url, hello(asked, "", ASK_WITHIN_S).stop_port)
    except (InfraError, SpecMismatch):  # a stop is taken from every version
        return ""
    finally:
        asked.close()


def _pressed(place: Place, endpoint: str, reason: str, tries: bool = True) -> str:
    """Send the stop to an endpoint, until it is confirmed or once; return what went wrong."""
    dealer = Dealer(endpoint, place.keys)
    try:
        if tries:
            press_stop(dealer, BY, reason)
        else:
            dealer.call("stop", {"by": BY, "reason": reason[:200]}, STOP_WITHIN_S)
    except ZettaError as error:
        return str(error)
    finally:
        dealer.close()
    return ""


def places(
    urls: list[str], setups: list[Path], keys: Path | None
) -> tuple[list[Place], list[Stopped]]:
    """Return the arms, and what was named and is none: it must not keep the others from stopping.

    Raises:
        ConfigError: nothing is named, or the key file cannot be read.
    """
    if not urls and not setups:
        raise ConfigError("say which arm: zetta arms estop tcp://HOST:5701, or --setup FILE")
    shared = client_keys(keys)
    found, wrong = [], []
    for url in urls:
        try:
            check_destination(url)
            port_of(url)
            found.append(Place(url, shared))
        except ConfigError as error:
            wrong.append(Stopped(url, str(error), 0.0))
    for path in setups:
        try:
            setup = read_setup(path)
            if not setup.url:
                raise ConfigError(f"{path} declares no url")
            port_of(setup.url)
            own = shared if shared is not None or not setup.keys else client_keys(Path(setup.keys))
            found.append(Place(setup.url, own))
        except ConfigError as error:
            wrong.append(Stopped(str(path), str(error), 0.0))
    return found, wrong
