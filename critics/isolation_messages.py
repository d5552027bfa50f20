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

READ_BYTES: Final = 2**16
"""Read at once: what a pipe holds."""
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


def read_message(arrived: bytes) -> dict[str, Any] | None:
    """Return the map in a message, or None while a part of it is still to come.

    Raises:
        SpecMismatch: there is none, it is too long, or more follows it: each side waits for the
            other, so there is one message at a time.
    """
    if len(arrived) < HEADER.size:
        return None
    (length,) = HEADER.unpack_from(arrived)
    if length > MAX_BYTES:
        raise SpecMismatch(f"a message of {length} bytes is longer than {MAX_BYTES}")
    if len(arrived) < HEADER.size + length:
        return None
    if len(arrived) > HEADER.size + length:
        raise SpecMismatch("more than one message came at once")
    message = unpack(arrived[HEADER.size :])
    if not isinstance(message, dict):
        raise SpecMismatch(f"got {type(message).__name__}, expected a map")
    return message
