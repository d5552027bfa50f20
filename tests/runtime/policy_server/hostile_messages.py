"""Malformed and hostile messages by the thousand, the same ones at every run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

BOMBS = (
    b"",
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\x91" * 5000,
    b"\x81\xa1x" * 5000,
    b"\xdc\x0f\xa0" + (b"\xdc\x00\x20" + b"\x90" * 32) * 4000,
    b"\xd4\x2a\x00",
    b"\xd6\xff\x00\x00\x00\x00",
    b"\x00" * 100_000,
)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, float("nan"), "", "x" * 3000, b"", b"\xff" * 50, [], {},
    [[[]]], {"a": {"b": {}}}, ["go"], [[["go"]]], 3.5, "\ud7ff", "../../etc/passwd", "kill",
)  # fmt: skip
SHAPES = ((), (0,), (7,), (8,), (1, 1), (2, 8), (224, 224, 3), (3, 224, 224), (1,) * 16)
DTYPES = ("|u1", "<f4", "<f8", "|b1", "<i8", "<f2")


def messages(
    good: Callable[[random.Random], dict[str, Any]],
    encode: Callable[[object], bytes],
    count: int,
    seed: int = 0,
) -> Iterator[bytes]:
    """Yield `count` messages made of good ones, none of which should be obeyed or survive.

    A few of the damaged ones may still be good: the receiver has to live with any of them.
    """
    draw = random.Random(seed)
    for k in range(count):
        match k % 5:
            case 0:
                yield BOMBS[(k // 5) % len(BOMBS)]
            case 1:
                yield draw.randbytes(draw.randrange(1, 400))
            case 2:
                yield _damaged(encode(good(draw)), draw)
            case 3:
                yield bytes(msgpack.packb(_odd(draw), unicode_errors="surrogatepass"))
            case _:
                yield encode(_changed(good(draw), draw))


def _damaged(body: bytes, draw: random.Random) -> bytes:
    changed = bytearray(body)
    for _ in range(draw.randrange(1, 6)):
        # Near the start are the keys and lengths, further on only pixels.
        where = draw.randrange(min(len(changed), draw.choice((40, 400, len(changed)))))
        changed[where] = draw.randrange(256)
    return bytes(changed[: draw.choice((len(changed), draw.randrange(len(changed))))])


def _odd(draw: random.Random) -> Any:
    value = draw.choice(ODD)
    for _ in range(draw.randrange(3)):
        value = draw.choice(([value], {"data": value}, {"endpoint": value}, {"prompt": value}))
    return value


def _changed(message: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return `message` with one of its leaves taken away or made something odd."""
    inner = message
    while True:
        key = draw.choice(sorted(inner))
        if isinstance(inner[key], dict) and inner[key] and draw.random() < 0.9:
            inner = inner[key]
            continue
        if draw.random() < 0.2:
            del inner[key]
        else:
            inner[key] = draw.choice((draw.choice(ODD), _array(draw)))
        return message


def _array(draw: random.Random) -> Any:
    array = np.zeros(draw.choice(SHAPES), draw.choice(DTYPES))
    if array.dtype.kind == "f" and draw.random() < 0.5:
        array[...] = draw.choice((np.nan, np.inf, 1e4))
    return array


def resident_mib() -> float:
    """Return how much memory this process holds, MiB."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096 / 2**20
