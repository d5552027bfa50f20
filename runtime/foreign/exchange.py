"""What the clients of every foreign protocol do alike: reach a server and read what it says."""

from __future__ import annotations

import socket
import time
from typing import Any, Final

from zetta.runtime.core import PolicySpec, read_only
from zetta.runtime.errors import ConnectionLost, SpecMismatch, Timeout

RETRY_S: Final = 0.2


def reached(host: str, port: int, ends: float) -> socket.socket:
    """Return a connected socket; a server that is still starting is waited for until `ends`.

    Raises:
        ConnectionLost: nothing listens there.
        Timeout: the machine does not answer.
    """
    while True:
        left = max(RETRY_S, ends - time.monotonic())
        try:
            return socket.create_connection((host, port), timeout=left)
        except TimeoutError:
            raise Timeout(
                f"{host}:{port} does not answer; is the machine on, and the way to it open?"
            ) from None
        except OSError as error:
            if time.monotonic() + RETRY_S >= ends:
                raise ConnectionLost(
                    f"nothing listens on {host}:{port} ({error.strerror or error}); start the "
                    "policy server, or correct the address"
                ) from error
        time.sleep(RETRY_S)


def kept(rows: Any, spec: PolicySpec) -> Any:
    """Return the first rows of a chunk, as many as `spec` says. Shape (horizon, A), read-only.

    Raises:
        SpecMismatch: there are fewer.
    """
    if len(rows) < spec.horizon:
        raise SpecMismatch(
            f"the server gave {len(rows)} rows and {spec.horizon} are expected; say "
            f"horizon={len(rows)} in the name of the policy"
        )
    return read_only(rows[: spec.horizon])


def last_line(text: str) -> str:
    """Return the last line of a foreign traceback, which says what happened."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return f"{lines[-1]:.300}" if lines else "it gave no reason"
