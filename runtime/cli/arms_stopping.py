"""Stopping arms for sure: each is told where its server says that its stop is, and confirms."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from zetta.hw_drivers.arm_messages import COMMAND_PORT, STOP_PORT, beside, port_of
from zetta.hw_drivers.arm_person import ASK_WITHIN_S, STOP_WITHIN_S, hello, press_stop, stop_id
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
class Wish:
    """A stop of all of them."""

    reason: str
    token: str
    """What all its messages share: more than one is sent, and it is one stop."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of one arm."""

    url: str
    said: str
    """Empty if it confirmed the stop; otherwise why it may be moving."""
    after_s: float
    """From the wish to its end."""
    stop: str = ""
    """Its id, which a clear names; empty where an older server tells none."""


def stop_all(
    places: Sequence[Place], reason: str, told: Callable[[Stopped], None], token: str = ""
) -> list[Stopped]:
    """Stop all arms, each in a thread of its own: one that does not answer delays no other.

    Args:
        places: the arms.
        reason: everybody is told.
        told: called with what became of each, as soon as it is known, by one thread.
        token: what all messages of this stop share.
    """
    results: queue.SimpleQueue[Stopped] = queue.SimpleQueue()
    wish = Wish(reason, token or secrets.token_hex(8))
    for place in places:
        threading.Thread(target=_stop, args=(place, wish, results)).start()
    ended = []
    for _ in places:
        ended.append(results.get())
        told(ended[-1])
    return ended


def _stop(place: Place, wish: Wish, results: queue.SimpleQueue[Stopped]) -> None:
    began = time.monotonic()
    try:
        said, stop = _press(place, wish)
    except ZettaError as error:
        said, stop = str(error), ""
    results.put(Stopped(place.url, said, time.monotonic() - began, stop))


def _press(place: Place, wish: Wish) -> tuple[str, str]:
    """Stop one arm; return why it is not sure that it was stopped, or nothing, and the stop's id.

    Raises:
        ZettaError: its server refuses to talk to us.
    """
    usual = beside(place.url, port_of(place.url) + STOP_PORT - COMMAND_PORT)
    came = [("not asked", "")]
    first = threading.Thread(target=lambda: came.append(_pressed(place, usual, wish, False)))
    first.start()
    try:
        told = _told(place) or usual
        # Another program may stand at the usual place: what it confirms proves nothing.
        elsewhere = _pressed(place, told, wish) if told != usual else None
    finally:
        first.join()
    if elsewhere is not None:
        return elsewhere
    return _pressed(place, usual, wish) if came[-1][0] else came[-1]


def _told(place: Place) -> str:
    """Return where the stop socket is by its server's word; empty if the server is mute."""
    asked = Dealer(place.url, place.keys)
    try:
        return beside(place.url, hello(asked, "", ASK_WITHIN_S).stop_port)
    except (InfraError, SpecMismatch):  # a stop is taken from every version
        return ""
    finally:
        asked.close()


def _pressed(place: Place, endpoint: str, wish: Wish, tries: bool = True) -> tuple[str, str]:
    """Send the stop to an endpoint, until it is confirmed or once.

    Returns what went wrong, or nothing, and the id of the stop.
    """
    dealer = Dealer(endpoint, place.keys)
    try:
        if tries:
            return "", press_stop(dealer, BY, wish.reason, wish.token)
        given = {"by": BY, "reason": wish.reason[:200], "token": wish.token}
        return "", stop_id(dealer.call("stop", given, STOP_WITHIN_S))
    except ZettaError as error:
        return str(error), ""
    finally:
        dealer.close()


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
