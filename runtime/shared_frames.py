"""Large arrays through shared memory, for two processes of one user on one host.

The client makes a segment, offers its name, and the server opens it; from then on the name is
gone and nothing is left behind, however either side ends. Frames are written there and the message
carries a note of where they lie. Whatever does not work (another host, no `/dev/shm`, no room)
falls back to frames on the socket.

Files are read and written, not mapped: a peer that shrinks its segment under a mapping would kill
the reader, and the copy is needed anyway, because the writer goes on. Python's `SharedMemory` is
not used: its tracker of version 3.11 removes segments that others still use.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.wire import MAX_FRAMES, MAX_MESSAGE_BYTES, OWN_FRAME_BYTES, Frame, pack, unpack

FOLDER: Final = Path("/dev/shm")
PREFIX: Final = "zetta-frames-"
_NAME = re.compile(rf"{PREFIX}(\d{{1,10}})-[0-9a-f]{{32}}")
MAGIC: Final = b"zetta-shm\x00"
"""Begins a note; a frame that is an array is never as short as a note."""
HALVES: Final = 2
"""Messages that the segment holds: the next one never overwrites the one being read."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A segment that the other side may open."""

    name: str
    size: int
    """Bytes."""


class FrameWriter:
    """The client's end. Not to be shared by threads."""

    def __init__(self, largest: int) -> None:
        """Make a segment for messages whose frames have at most `largest` bytes together.

        Raises:
            ConfigError: there is no shared memory here, or no room in it.
        """
        if not 0 < largest <= MAX_MESSAGE_BYTES:
            raise ConfigError(f"got {largest} bytes, expected 1 to {MAX_MESSAGE_BYTES}")
        self._half, self._turn = largest, 0
        name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(16)}"
        self.offer = Offer(name, HALVES * largest)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(FOLDER / name, flags, 0o600)
        except OSError as error:
            raise ConfigError(f"no shared memory here: {error.strerror}") from error
        try:
            os.posix_fallocate(self._file, 0, self.offer.size)
        except OSError as error:
            self.close()
            raise ConfigError(f"no room in shared memory: {error.strerror}") from error

    def place(self, frames: Sequence[Frame]) -> list[Frame]:
        """Write all frames but the first; return that one and a note of where the others lie.

        Frames that do not fit are returned as they are.
        """
        body, *large = frames
        if not large or sum(map(len, large)) > self._half:
            return list(frames)
        self._turn = (self._turn + 1) % HALVES
        offset, places = self._turn * self._half, []
        for frame in large:
            if os.pwrite(self._file, frame, offset) != len(frame):
                return list(frames)
            places.append([offset, len(frame)])
            offset += len(frame)
        return [body, MAGIC + pack(places)]

    def forget_name(self) -> None:
        """Remove the name; who has the segment open keeps it."""
        with contextlib.suppress(FileNotFoundError):
            (FOLDER / self.offer.name).unlink()

    def close(self) -> None:
        """Give the memory back; calling it again does nothing."""
        self.forget_name()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class FrameReader:
    """The server's end."""

    def __init__(self, offer: Offer) -> None:
        """Open a segment of this user and remove its name.

        Raises:
            ConfigError: the name is not one of ours, the segment is not there, belongs to somebody
                else, can be read by others, or has another size.
        """
        if not _NAME.fullmatch(offer.name) or offer.size > HALVES * MAX_MESSAGE_BYTES:
            raise ConfigError(f"got the segment {offer.name!r:.80}, which is none of ours")
        path = FOLDER / offer.name
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(f"cannot open {offer.name}: {error.strerror}") from error
        found = os.fstat(self._file)
        private = stat.S_ISREG(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
        if not private or found.st_uid != os.geteuid() or found.st_size != offer.size:
            self.close()
            raise ConfigError(f"{offer.name} is not a private segment of this user and size")
        with contextlib.suppress(OSError):
            path.unlink()

    def read(self, frames: Sequence[Frame]) -> list[Frame]:
        """Undo `FrameWriter.place`; what it returned as it was is returned as it is.

        Raises:
            SpecMismatch: the note is none, or points outside the segment.
        """
        if not is_placed(frames):
            return list(frames)
        places = _places(unpack(bytes(frames[1])[len(MAGIC) :]))
        return [frames[0], *(self._piece(offset, length) for offset, length in places)]

    def close(self) -> None:
        """Give the memory back; calling it again does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _piece(self, offset: int, length: int) -> memoryview:
        piece = np.empty(length, np.uint8)
        try:
            got = os.preadv(self._file, [piece.data], offset)
        except OSError as error:
            raise SpecMismatch(f"the shared segment cannot be read: {error.strerror}") from error
        if got != length:
            raise SpecMismatch(f"got {got} bytes at {offset} of the shared segment, not {length}")
        return piece.data


def is_placed(frames: Sequence[Frame]) -> bool:
    """Tell whether the frames of a message lie in shared memory."""
    return (
        len(frames) == 2
        and len(frames[1]) < OWN_FRAME_BYTES
        and bytes(frames[1][: len(MAGIC)]) == MAGIC
    )


def sweep() -> int:
    """Remove segments whose makers are gone before anybody opened them; return how many."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in FOLDER.glob(f"{PREFIX}*"):
            named = _NAME.fullmatch(path.name)
            with contextlib.suppress(OSError):
                if named and path.lstat().st_uid == os.geteuid() and not _lives(int(named[1])):
                    path.unlink()
                    removed += 1
    return removed


def _places(plain: Any) -> list[tuple[int, int]]:
    match plain:
        case list(pairs) if len(pairs) < MAX_FRAMES and all(_is_place(pair) for pair in pairs):
            places = [(offset, length) for offset, length in pairs]
        case other:
            raise SpecMismatch(f"got {other!r:.60}, expected places in a shared segment")
    if sum(length for _, length in places) > MAX_MESSAGE_BYTES:
        raise SpecMismatch(f"a message has at most {MAX_MESSAGE_BYTES} bytes")
    return places


def _is_place(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(n) is int and 0 <= n <= HALVES * MAX_MESSAGE_BYTES for n in pair)
    )


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
