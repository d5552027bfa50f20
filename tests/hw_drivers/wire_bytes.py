"""Protobuf bytes made by hand from field numbers: independent of the library and of our tables."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """Seven bits at a time, the lowest first; the top bit says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int, kind: int) -> bytes:
    return varint(field << 3 | kind)


def number(field: int, value: int) -> bytes:
    """A bool, an enumeration or an unsigned integer; zero is left out, as proto3 does."""
    return tag(field, 0) + varint(value) if value else b""


def double(field: int, value: float) -> bytes:
    raw = struct.pack("<d", value)
    return tag(field, 1) + raw if raw != bytes(8) else b""


def doubles(field: int, values: list[float]) -> bytes:
    """Packed; an empty list is left out."""
    raw = struct.pack(f"<{len(values)}d", *values)
    return inside(field, raw) if raw else b""


def inside(field: int, raw: bytes) -> bytes:
    """Length-delimited: a message or text; present even when empty."""
    return tag(field, 2) + varint(len(raw)) + raw


def wrapped(field: int, name: str, raw: bytes) -> bytes:
    """A google.protobuf.Any: type url 1, value 2."""
    value = inside(2, raw) if raw else b""
    return inside(field, inside(1, f"type.googleapis.com/{name}".encode()) + value)
