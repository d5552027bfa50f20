"""Which ports a computer listens at, as its kernel tells it."""

from __future__ import annotations

import ipaddress
from typing import Final

LISTENING: Final = "0A"
SCRIPT: Final = "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true"


def listening(table: str) -> set[tuple[str, int]]:
    """Return address and port of every listening socket in a table of the kernel.

    >>> listening("  0: 01004D0A:15E1 00000000:0000 0A 0")
    {('10.77.0.1', 5601)}
    """
    found = set()
    for line in table.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == LISTENING:
            address, _, port = fields[1].partition(":")
            # Words of four bytes, each in the order of the machine.
            words = [bytes.fromhex(address[n : n + 8])[::-1] for n in range(0, len(address), 8)]
            found.add((str(ipaddress.ip_address(b"".join(words))), int(port, 16)))
    return found


def reachable(sockets: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return those that another computer could reach."""
    return {s for s in sockets if not ipaddress.ip_address(s[0]).is_loopback}
