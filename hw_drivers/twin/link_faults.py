"""What goes wrong between two machines, on purpose: at the sockets of the arm's server.

Messages are lost, late, out of order, doubled and spoiled, towards the robot and from it, and the
robot's clock may be wrong. Equal seeds make equal mischief of equal messages. Nothing of it knows
what a message means, and nothing behind the sockets knows of it.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from zetta.hw_drivers.arm_sockets import Publisher, Sockets
from zetta.hw_drivers.twin.faults import Fault
from zetta.runtime.curve_keys import ServerKeys
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.transport import Router
from zetta.runtime.wire import Frame

T = TypeVar("T")
Way: TypeAlias = Literal["in", "out"]
"""`in`: towards the robot. `out`: from it."""
WAYS: Final[tuple[Way, ...]] = ("in", "out")
OVERTAKEN_S: Final = 0.03
"""A message that loses its place comes so much later; those behind it do not wait."""
MOST_S: Final = 10.0
MOST_BITS: Final = 8
A_LOOK: Final = 64
"""Messages that are taken from a socket at a time."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What one way of the link suffers from. All zero: nothing."""

    loss: float = 0.0
    """Share of the messages that never arrive."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Up to so much more, drawn anew for each message; the order is kept."""
    reorder: float = 0.0
    """Share that is overtaken."""
    duplicate: float = 0.0
    """Share that comes twice, the second time as an overtaken one."""
    corrupt: float = 0.0
    """Share that is spoiled: up to 8 bits turned, or the end cut off."""

    def __post_init__(self) -> None:
        for name in ("loss", "reorder", "duplicate", "corrupt"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is a share from 0 to 1, got {getattr(self, name):g}")
        for name in ("delay_s", "jitter_s"):
            if not 0.0 <= getattr(self, name) <= MOST_S:
                raise ConfigError(f"{name} is 0 to {MOST_S:g} s, got {getattr(self, name):g}")


class Line(Generic[T]):
    """One way of one socket: what is put in comes out later, elsewhere in the order, or not."""

    def __init__(self, seed: str, spoil: Callable[[T, random.Random], T]) -> None:
        """Draw from `seed`; `spoil` turns bits of a message."""
        self._draw, self._spoil = random.Random(seed), spoil
        self._waiting: list[tuple[float, int, T]] = []
        self._count, self._last_due = 0, -math.inf

    def put(self, message: T, now: float, trouble: Trouble) -> None:
        """Take a message in."""
        lost, spoiled, late, twice = (self._draw.random() for _ in range(4))
        due = now + trouble.delay_s + trouble.jitter_s * self._draw.random()
        if lost < trouble.loss:
            return
        if spoiled < trouble.corrupt:
            message = self._spoil(message, self._draw)
        if late < trouble.reorder:
            self._keep(due + OVERTAKEN_S, message)
        else:
            self._last_due = due = max(due, self._last_due)
            self._keep(due, message)
        if twice < trouble.duplicate:
            self._keep(due + OVERTAKEN_S, message)

    def take(self, now: float) -> T | None:
        """Return the next message that is due; None while there is none."""
        if self._waiting and self._waiting[0][0] <= now:
            return heapq.heappop(self._waiting)[2]
        return None

    def _keep(self, due: float, message: T) -> None:
        self._count += 1  # equal times keep their order, and messages are never compared
        heapq.heappush(self._waiting, (due, self._count, message))


class FaultyLink:
    """The faults of one server's sockets. The thread that serves also sets them."""

    def __init__(self, seed: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a sound link; `clock` is the real one, whatever clock the robot is given."""
        self._seed, self.now, self._made = seed, clock, 0
        self.trouble: dict[Way, Trouble] = dict.fromkeys(WAYS, Trouble())
        """What each way suffers from now."""

    @property
    def sockets(self) -> Sockets:
        """What to give to an `ArmServer` as its sockets."""
        return Sockets(
            lambda bind, keys, limit: _FaultyRouter(self, bind, keys, limit),
            lambda bind, keys: _FaultyPublisher(self, bind, keys),
        )

    def suffer(self, ways: tuple[Way, ...] = WAYS, **changes: float) -> None:
        """Change what `ways` suffer from, by the names of `Trouble`.

        Raises:
            ConfigError: unknown name, or a number that makes no sense.
        """
        for name in changes:
            if name not in Trouble.__dataclass_fields__:
                raise ConfigError(
                    f"a link has no {name!r}; {suggest(name, Trouble.__dataclass_fields__)}"
                )
        for way in ways:
            self.trouble[way] = replace(self.trouble[way], **changes)

    def heal(self) -> None:
        """Let nothing go wrong any more; what is late still comes."""
        self.trouble = dict.fromkeys(WAYS, Trouble())

    def line(self, way: Way, spoil: Callable[[T, random.Random], T]) -> Line[T]:
        """Make one way of one more socket."""
        self._made += 1
        return Line(f"{self._seed} {way} {self._made}", spoil)


class WrongClock:
    """The robot's clock, made wrong. It never goes back: no monotonic clock does."""

    def __init__(self, offset_s: float = 0.0, base: Callable[[], float] = time.monotonic) -> None:
        """Run as `base` does, ahead of it by `offset_s`, which may be negative."""
        self._base = base
        self._since, self._shown, self._rate = base(), base() + offset_s, 1.0

    def __call__(self) -> float:
        """Return the wrong time."""
        return self._shown + (self._base() - self._since) * self._rate

    def drift(self, share: float) -> None:
        """Run so much too fast from now on; negative for too slow.

        Raises:
            ConfigError: it would stand, or go back.
        """
        if not -0.9 <= share <= 10.0:
            raise ConfigError(f"a clock drifts by -0.9 to 10 of its rate, got {share:g}")
        self._shown, self._since = self(), self._base()
        self._rate = 1.0 + share

    def jump(self, seconds: float) -> None:
        """Jump ahead, as after a machine was frozen.

        Raises:
            ConfigError: it would go back.
        """
        if not 0.0 <= seconds <= 1e6:
            raise ConfigError(f"a monotonic clock jumps ahead only, got {seconds:g} s")
        self._shown += seconds


def link_faults(link: FaultyLink, clock: WrongClock | None = None) -> tuple[Fault, ...]:
    """Return the faults of the link, and of the robot's clock where there is a wrong one."""

    def fault(name: str, field: str, says: str, value: str) -> Fault:
        def handler(on: bool, given: str) -> None:
            number, ways = _number_and_ways(name, given) if on else (0.0, WAYS)
            link.suffer(ways, **{field: number})

        return Fault(f"link_{name}", says, handler, f"{value}, then in or out for one way only")

    made = [
        fault("loss", "loss", "Messages are lost.", "share"),
        fault("delay", "delay_s", "Messages are late.", "seconds"),
        fault("jitter", "jitter_s", "Messages are late, each by another time.", "seconds"),
        fault("reorder", "reorder", "Messages are overtaken.", "share"),
        fault("duplicate", "duplicate", "Messages come twice.", "share"),
        fault("corrupt", "corrupt", "Messages are spoiled under way.", "share"),
    ]
    if clock is not None:
        made += _clock_faults(clock)
    return tuple(made)


def _clock_faults(clock: WrongClock) -> list[Fault]:
    def drift(on: bool, given: str) -> None:
        clock.drift(_number("clock_drift", given) if on else 0.0)

    def jump(on: bool, given: str) -> None:
        if on:
            clock.jump(_number("clock_jump", given))

    return [
        Fault("clock_drift", "The robot's clock runs too fast.", drift, "share; negative: slow"),
        Fault("clock_jump", "The robot's clock jumps ahead.", jump, "seconds", momentary=True),
    ]


def _number_and_ways(name: str, given: str) -> tuple[float, tuple[Way, ...]]:
    number, _, way = given.strip().partition(" ")
    ways: tuple[Way, ...] = WAYS
    match way.strip():
        case "in":
            ways = ("in",)
        case "out":
            ways = ("out",)
        case "":
            pass
        case other:
            raise ConfigError(f"a link has the ways in and out, got {other!r:.40}")
    return _number(f"link_{name}", number), ways


def _number(name: str, given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ConfigError(f"the fault {name} needs a number, got {given!r:.40}") from None


class _FaultyRouter(Router):
    """A router whose messages go through two lines."""

    def __init__(
        self, link: FaultyLink, bind: str, keys: ServerKeys | None, max_bytes: int
    ) -> None:
        super().__init__(bind, keys, max_bytes)
        self._link = link
        self._in: Line[list[Frame]] = link.line("in", _spoiled)
        self._out: Line[list[Frame]] = link.line("out", _spoiled)

    def receive(self) -> list[Frame] | None:
        """Return the next message that is due; send what is due as well."""
        now, trouble = self._link.now(), self._link.trouble["in"]
        for _ in range(A_LOOK):
            message = super().receive()
            if message is None:
                break
            self._in.put(message, now, trouble)
        self._flush(now)
        return self._in.take(now)

    def send(self, peer: bytes, frames: list[Frame]) -> None:
        """Send when it is due."""
        now = self._link.now()
        self._out.put([peer, *frames], now, self._link.trouble["out"])
        self._flush(now)

    def _flush(self, now: float) -> None:
        while (message := self._out.take(now)) is not None:
            super().send(bytes(message[0]), message[1:])


class _FaultyPublisher(Publisher):
    """A publisher whose messages go through a line."""

    def __init__(self, link: FaultyLink, bind: str, keys: ServerKeys | None) -> None:
        super().__init__(bind, keys)
        self._link = link
        self._out: Line[bytes] = link.line("out", _spoiled_bytes)

    def send(self, message: bytes) -> None:
        """Send when it is due, which is seen with the next message."""
        now = self._link.now()
        self._out.put(message, now, self._link.trouble["out"])
        while (due := self._out.take(now)) is not None:
            super().send(due)


def _spoiled(message: list[Frame], draw: random.Random) -> list[Frame]:
    """Spoil one frame; the first is the peer's name, which never leaves its machine."""
    if len(message) < 2:
        return message
    which = draw.randrange(1, len(message))
    return [
        _spoiled_bytes(bytes(frame), draw) if k == which else frame
        for k, frame in enumerate(message)
    ]


def _spoiled_bytes(message: bytes, draw: random.Random) -> bytes:
    if not message:
        return message
    if draw.random() < 0.25:
        return message[: draw.randrange(len(message))]
    spoiled = bytearray(message)
    for _ in range(draw.randint(1, MOST_BITS)):
        spoiled[draw.randrange(len(spoiled))] ^= 1 << draw.randrange(8)
    return bytes(spoiled)
