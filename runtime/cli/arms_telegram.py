"""A stop that is under way before anything else is imported: one message, to the usual place.

Reading a set-up, numpy and the words of arms take longer to import than the message takes to the
robot. So it is written here by hand (a test compares it with `zetta.runtime.wire`) and sent to the
stop socket at its usual place, two ports above the commands. Nothing is awaited and nothing is
complained of here: `arms_stopping` then stops each arm again, with a confirmation.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgpack
import zmq

PROTOCOL = 1
STOP_AFTER_COMMAND = 2
"""Ports from the commands to the stop."""
BY = "zetta arms estop"


def telegraph(
    urls: Sequence[str], setups: Sequence[Path], keys: Path | None, reason: str, token: str
) -> list[zmq.Socket[bytes]]:
    """Send the stop to every arm that can be made out; keep the sockets until the end."""
    declared = [found for path in setups if (found := _declared(path)) is not None]
    sockets = []
    for url, own in [*((url, None) for url in urls), *declared]:
        with contextlib.suppress(zmq.ZMQError, OSError, ValueError, KeyError, TypeError):
            sockets.append(_send(url, keys or own, telegram(reason, token)))
    return sockets


def telegram(reason: str, token: str) -> bytes:
    """Return the stop as bytes; by `token` it is known as the one that is sent again."""
    given = {"by": BY, "reason": reason[:200], "token": token}
    message = {"protocol": PROTOCOL, "id": 1, "do": "stop", "given": given}
    packed: bytes = msgpack.packb(message)
    return packed


def _send(url: str, keys: Path | None, message: bytes) -> zmq.Socket[bytes]:
    host, _, port = url.rpartition(":")
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    try:
        socket.linger = 0
        if keys is not None:
            known = json.loads((keys / "client.key" if keys.is_dir() else keys).read_text())
            socket.curve_serverkey = known["server"].encode()
            socket.curve_publickey = known["public"].encode()
            socket.curve_secretkey = known["secret"].encode()
        socket.connect(f"{host}:{int(port) + STOP_AFTER_COMMAND}")
        socket.send(message, zmq.NOBLOCK)
    except BaseException:
        socket.close(0)
        raise
    return socket


def _declared(path: Path) -> tuple[str, Path | None] | None:
    """Return URL and key file of a set-up, without judging it."""
    with contextlib.suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
        url, keys = plain.get("url"), plain.get("keys")
        if isinstance(url, str):
            return url, Path(keys) if isinstance(keys, str) and keys else None
    return None
