"""What a person asks of an arm's server: who is there, stop, clear, approve.

None of it takes hold of the arm.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from typing import Final

from zetta.hw_drivers.arm_messages import (
    ARM_PROTOCOL,
    COMMAND_PORT,
    MAX_NAME,
    STOP_PORT,
    Welcome,
    beside,
    opened,
    port_of,
)
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError, SpecMismatch, Timeout
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import from_wire

ASK_WITHIN_S: Final = 0.5
"""How long a stop asks where it has to go."""
STOP_TRIES: Final = 4
STOP_WITHIN_S: Final = 0.25
"""For each try."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A target that waits for a person's approval."""

    token: str
    said: str
    """Who asks for what, to be read before it is approved."""


@dataclass(frozen=True, slots=True)
class Latched:
    """A stop that is latched."""

    stop: str
    """Its id, which a clear names."""
    said: str
    """Why, to be read before it is cleared."""


def hello(dealer: Dealer, robot: str, within_s: float) -> Welcome:
    """Ask who is there; nothing is taken hold of.

    Raises:
        Timeout: nobody answers.
        SpecMismatch: it is another robot, or speaks another protocol.
    """
    asked = {"arm_protocol": ARM_PROTOCOL, "robot": robot}
    try:
        answer = dealer.call("hello", asked, within_s)
    except Timeout as error:
        raise Timeout(f"no arm answers: {error}; is zetta arms serve running there?") from error
    welcome = from_wire(Welcome, opened(answer))
    if welcome.protocol != ARM_PROTOCOL:
        raise SpecMismatch(
            f"{dealer.endpoint} speaks arm protocol {welcome.protocol}, this side {ARM_PROTOCOL}"
        )
    return welcome


def stop_endpoint(url: str, keys: ClientKeys | None) -> str:
    """Return where the stop of an arm is: as its server says, or two ports further if it is mute.

    Raises:
        SpecMismatch: the server speaks another protocol.
    """
    dealer = Dealer(url, keys)
    try:
        return beside(url, hello(dealer, "", ASK_WITHIN_S).stop_port)
    except InfraError:
        return beside(url, port_of(url) + STOP_PORT - COMMAND_PORT)
    finally:
        dealer.close()


def press_stop(dealer: Dealer, by: str, reason: str, token: str = "") -> str:
    """Stop the arm behind the stop socket of `dealer`; return the id of the stop.

    Args:
        dealer: connected to that socket.
        by: who stops.
        reason: why.
        token: what all messages of this stop share; one is made up without it.

    Raises:
        Timeout: it did not confirm; use the emergency stop.
    """
    token = token or secrets.token_hex(8)
    given = {"by": by[:MAX_NAME], "reason": reason[:200], "token": token}
    for _ in range(STOP_TRIES):
        with contextlib.suppress(Timeout, ConnectionLost):
            return stop_id(dealer.call("stop", given, STOP_WITHIN_S))
    raise Timeout(
        f"{dealer.endpoint} did not confirm the stop within {STOP_TRIES * STOP_WITHIN_S:g} s; "
        "press the emergency stop of the robot"
    )


def stop_id(answer: object) -> str:
    """Return the id of a stop in the answer to it; empty where an older server tells none."""
    match answer:
        case {"stop": str(stop)}:
            return stop
    return ""


def what_is_stopped(
    url: str, keys: ClientKeys | None = None, within_s: float = 2.0
) -> Latched | None:
    """Return the stop that is latched, or for which the arm stopped by itself; None without one.

    Raises:
        SpecMismatch: the server does not tell, for it is of another version.
        Timeout: nobody answers.
    """
    dealer = Dealer(url, keys)
    try:
        return _latched(dealer, within_s)
    finally:
        dealer.close()


def clear_stop(
    url: str,
    by: str,
    keys: ClientKeys | None = None,
    within_s: float = 2.0,
    stop: str = "",
) -> str:
    """Clear a latched stop, as the person `by`, and return why the arm was stopped.

    Whoever held the arm does not hold it any more.

    Args:
        url: the command socket of the arm.
        by: name of the person; it is recorded.
        keys: where the server asks for them.
        within_s: how long each answer is waited for.
        stop: id of the stop that the person saw; empty for the one that is latched when asked.

    Raises:
        ConfigError: nobody's name is given.
        SafetyStop: another stop than `stop` is latched, or what was sent still moves.
        SpecMismatch: the server is of another version.
        Timeout: nobody answers.
    """
    if not by.strip():
        raise ConfigError("say who clears the stop: a person looked at the arm and takes it on")
    dealer = Dealer(url, keys)
    try:
        if not stop:
            latched = _latched(dealer, within_s)
            if latched is None:
                return ""
            stop = latched.stop
        match dealer.call("clear", {"by": by.strip()[:MAX_NAME], "stop": stop}, within_s):
            case {"cleared": str(reason)}:
                return reason
        raise SpecMismatch(f"{url} answered clear with something else")
    finally:
        dealer.close()


def what_waits(url: str, keys: ClientKeys | None = None, within_s: float = 2.0) -> Waiting | None:
    """Return the target that waits for a person's approval; None where none does.

    Raises:
        Timeout: nobody answers.
    """
    dealer = Dealer(url, keys)
    try:
        return _waiting(dealer, within_s)
    finally:
        dealer.close()


def approve_waiting(
    url: str,
    by: str,
    keys: ClientKeys | None = None,
    token: str = "",
    within_s: float = 2.0,
) -> Waiting:
    """Let the target that waits be followed, as the person `by`, and return what it is.

    Args:
        url: the command socket of the arm.
        by: name of the person; it is recorded.
        keys: where the server asks for them.
        token: of the target that the person has read; empty for whichever waits now.
        within_s: how long each answer is waited for.

    Raises:
        ConfigError: nobody's name is given, nothing waits, or something else than `token` does.
        Timeout: nobody answers.
    """
    if not by.strip():
        raise ConfigError("say who approves: a person read what is asked and takes it on")
    dealer = Dealer(url, keys)
    try:
        waiting = _waiting(dealer, within_s)
        if waiting is None:
            raise ConfigError(f"nothing waits for an approval at {url}")
        asked = {"by": by.strip()[:MAX_NAME], "token": token or waiting.token}
        dealer.call("approve", asked, within_s)
        return waiting
    finally:
        dealer.close()


def _latched(dealer: Dealer, within_s: float) -> Latched | None:
    try:
        answer = dealer.call("stopped", {}, within_s)
    except (Timeout, ConnectionLost):
        raise
    except InfraError as error:  # it does not know the question
        raise SpecMismatch(
            f"{dealer.endpoint} does not say which stop is latched ({error}); install the same "
            "version of zetta on both sides"
        ) from error
    match answer:
        case {"stop": str(stop), "said": str(said)}:
            return Latched(stop, said) if said else None
    raise SpecMismatch(f"{dealer.endpoint} answered stopped with something else")


def _waiting(dealer: Dealer, within_s: float) -> Waiting | None:
    match dealer.call("waiting", {}, within_s):
        case {"waiting": str(token), "said": str(said)}:
            return Waiting(token, said) if token else None
    raise SpecMismatch(f"{dealer.endpoint} answered waiting with something else")
