"""What the loop and the process of isolated critics say to each other.

Each message is its length, 4 bytes little-endian, and a map in msgpack. The loop asks, the process
answers each request once. What comes from the process is checked like anything from outside.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zetta.critics.critic import Critic, compile_critic
from zetta.critics.parameters import Parameter
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.signals import SIGNALS, SignalSpec
from zetta.runtime.wire import pack, unpack

HEADER: Final = struct.Struct("<I")
MAX_BYTES: Final = 4 * 2**20
"""Of one message: the programs of two hundred critics, or five seconds of all signals at 500 Hz."""


@dataclass(frozen=True, slots=True)
class CriticProgram:
    """The text of a critic and the values of its parameters: all that is needed to compile it."""

    name: str
    path: str
    """Of the program, for messages."""
    source: str
    parameters: Mapping[str, Parameter]
    values: Mapping[str, float]
    """Of some parameters; the others take their defaults."""

    def compile(self, control_hz: float, extra: Sequence[SignalSpec] = ()) -> Critic:
        """Return the critic; the program is checked anew.

        Args:
            control_hz: ticks per second of the windows it will see.
            extra: signals that exist beside the built-in ones.

        Raises:
            ScreenError: the program is not in the language.
            ConfigError: a value is out of bounds.
        """
        known = {**SIGNALS, **{spec.name: spec for spec in extra}}
        return compile_critic(
            self.source, self.path, self.name, control_hz, known, self.parameters, self.values
        )


@dataclass(frozen=True, slots=True)
class Setup:
    """The first thing a process hears: which critics it runs."""

    programs: tuple[CriticProgram, ...]
    control_hz: float
    extra: tuple[SignalSpec, ...]
    """Installed signals, beside the built-in ones."""


def framed(message: Mapping[str, object]) -> bytes:
    """Return a message as it is written.

    Raises:
        SpecMismatch: it holds what cannot be sent, or is too long.
    """
    body = pack(message)
    if len(body) > MAX_BYTES:
        raise SpecMismatch(f"a message of {len(body)} bytes is longer than {MAX_BYTES}")
    return HEADER.pack(len(body)) + body


def body_bytes(header: bytes) -> int:
    """Return how long the message is that follows a header.

    Raises:
        SpecMismatch: longer than any message.
    """
    (length,) = HEADER.unpack(header)
    if length > MAX_BYTES:
        raise SpecMismatch(f"a message of {length} bytes is longer than {MAX_BYTES}")
    return int(length)


def read(body: bytes) -> dict[str, Any]:
    """Return the map in a message.

    Raises:
        SpecMismatch: there is none.
    """
    message = unpack(body)
    if not isinstance(message, dict):
        raise SpecMismatch(f"got {type(message).__name__}, expected a map")
    return message
