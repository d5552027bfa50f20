"""Six servos on a serial line that is a pseudo-terminal: Feetech's protocol 0, STS3215.

Written from the manual's packet layout: `FF FF id length instruction parameters checksum`, the
checksum being the complement of the sum of what stands between; numbers have two bytes, low first.
"""

from __future__ import annotations

import os
import pty
import select
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PING, READ, WRITE, SYNC_READ, SYNC_WRITE = 1, 2, 3, 0x82, 0x83
MODEL, MODEL_NUMBER = 3, 777
LIMIT_LOW, LIMIT_HIGH, OFFSET = 9, 11, 31
TORQUE, GOAL, PRESENT = 40, 42, 56
MIDDLE, STEPS = 2047, 4096
SPEED = 2000.0
"""Steps a second."""


@dataclass
class Servo:
    """The memory of one servo, and where it is."""

    memory: bytearray = field(default_factory=lambda: bytearray(128))
    at: float = float(MIDDLE)
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        for address, value in (
            (MODEL, MODEL_NUMBER),
            (LIMIT_LOW, 0),
            (LIMIT_HIGH, STEPS - 1),
            (GOAL, MIDDLE),
        ):
            self.memory[address : address + 2] = value.to_bytes(2, "little")
        self.memory[0] = 3

    def move(self) -> None:
        """Go on towards the goal, where the torque is on."""
        now = time.monotonic()
        goal = int.from_bytes(self.memory[GOAL : GOAL + 2], "little")
        if self.memory[TORQUE] == 1:
            reach = SPEED * (now - self.since)
            self.at += min(max(goal - self.at, -reach), reach)
        self.since = now
        self.memory[PRESENT : PRESENT + 2] = round(self.at).to_bytes(2, "little")


class FeetechBus:
    """Answers whatever comes over the line."""

    def __init__(self, count: int = 6) -> None:
        self.servos = {number: Servo() for number in range(1, count + 1)}
        self.lost = threading.Event()
        """Set, nobody answers any more: the plug is out."""
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)

    def _serve(self) -> None:
        waiting = b""
        while not self._ended.is_set():
            ready, _, _ = select.select([self._master], [], [], 0.05)
            if ready:
                waiting += os.read(self._master, 4096)
            while len(waiting) >= 4 and len(waiting) >= 4 + waiting[3]:
                packet, waiting = waiting[: 4 + waiting[3]], waiting[4 + waiting[3] :]
                assert packet[:2] == b"\xff\xff"
                assert packet[-1] == checksum(packet[2:-1])
                if not self.lost.is_set():
                    os.write(self._master, b"".join(self._answers(packet)))

    def _answers(self, packet: bytes) -> Iterator[bytes]:
        number, instruction, told = packet[2], packet[4], packet[5:-1]
        if instruction == PING:
            yield reply(number)
        elif instruction == READ:
            yield self._read(number, told[0], told[1])
        elif instruction == WRITE:
            self._write(number, told[0], told[1:])
            yield reply(number)
        elif instruction == SYNC_READ:
            for each in told[2:]:
                yield self._read(each, told[0], told[1])
        elif instruction == SYNC_WRITE:
            size = told[1] + 1
            for start in range(2, len(told), size):
                self._write(told[start], told[0], told[start + 1 : start + size])

    def _read(self, number: int, address: int, size: int) -> bytes:
        servo = self.servos[number]
        servo.move()
        return reply(number, bytes(servo.memory[address : address + size]))

    def _write(self, number: int, address: int, data: bytes) -> None:
        servo = self.servos[number]
        servo.move()
        servo.memory[address : address + len(data)] = data


def checksum(told: bytes) -> int:
    """Return the checksum of what stands between header and checksum."""
    return ~sum(told) & 0xFF


def reply(number: int, data: bytes = b"") -> bytes:
    """Return a status packet without an error."""
    told = bytes([number, len(data) + 2, 0]) + data
    return b"\xff\xff" + told + bytes([checksum(told)])


@contextmanager
def feetech_bus() -> Iterator[FeetechBus]:
    """Give a line with six servos, and close it."""
    bus = FeetechBus()
    try:
        yield bus
    finally:
        bus.close()
