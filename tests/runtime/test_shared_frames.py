"""Frames in shared memory: private, bounded, and gone when both sides are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zetta.runtime import shared_frames
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.shared_frames import (
    FOLDER,
    MAGIC,
    PREFIX,
    FrameReader,
    FrameWriter,
    Offer,
    is_placed,
)
from zetta.runtime.wire import Frame, decode, encode, pack

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="there is no /dev/shm here")
SIZE = 100_000


@pytest.fixture
def pair() -> Iterator[tuple[FrameWriter, FrameReader]]:
    writer = FrameWriter(SIZE)
    reader = FrameReader(writer.offer)
    yield writer, reader
    writer.close()
    reader.close()


def note(*places: object) -> list[Frame]:
    return [b"\x80", MAGIC + pack(list(places))]


def test_frames_arrive_as_they_were(pair: tuple[FrameWriter, FrameReader]) -> None:
    writer, reader = pair
    for k in range(5):
        pictures = [np.full((64, 64, 3), k + n, np.uint8) for n in range(3)]
        placed = writer.place(encode({"pictures": pictures}))
        assert is_placed(placed)
        assert sum(map(len, placed)) < 500
        for sent, arrived in zip(pictures, decode(reader.read(placed))["pictures"], strict=True):
            np.testing.assert_array_equal(sent, arrived)
            assert not arrived.flags.writeable


def test_the_next_message_does_not_touch_the_one_before(
    pair: tuple[FrameWriter, FrameReader],
) -> None:
    writer, reader = pair
    first = writer.place(encode(np.full(50_000, 1, np.uint8)))
    writer.place(encode(np.full(50_000, 2, np.uint8)))

    assert set(decode(reader.read(first)).tolist()) == {1}


def test_small_and_oversized_messages_go_as_they_are(
    pair: tuple[FrameWriter, FrameReader],
) -> None:
    writer, reader = pair
    for array in (np.zeros(10), np.zeros(SIZE + 1, np.uint8)):
        frames = writer.place(encode(array))
        assert not is_placed(frames)
        np.testing.assert_array_equal(decode(reader.read(frames)), array)


def test_the_name_is_gone_once_it_was_opened(pair: tuple[FrameWriter, FrameReader]) -> None:
    writer, _ = pair

    assert not (FOLDER / writer.offer.name).exists()
    with pytest.raises(ConfigError, match="cannot open"):
        FrameReader(writer.offer)


def test_a_writer_that_nobody_read_leaves_nothing() -> None:
    writer = FrameWriter(SIZE)
    path = FOLDER / writer.offer.name
    assert path.exists()
    assert path.stat().st_mode & 0o777 == 0o600
    writer.close()
    writer.close()

    assert not path.exists()


def test_a_segment_whose_maker_was_killed_is_swept_and_others_are_not() -> None:
    code = (
        "import os, signal\nfrom zetta.runtime.shared_frames import FrameWriter\n"
        "print(FrameWriter(100).offer.name, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False
    )
    orphan = FOLDER / child.stdout.strip()
    mine = FrameWriter(SIZE)
    assert orphan.exists()

    shared_frames.sweep()

    assert not orphan.exists()
    assert (FOLDER / mine.offer.name).exists()
    mine.close()


@pytest.mark.parametrize(
    "name",
    ["", "x", "../etc/passwd", f"{PREFIX}1-{'g' * 32}", f"{PREFIX}1-{'0' * 31}", f"{PREFIX}/a"],
)
def test_foreign_names_are_not_opened(name: str) -> None:
    with pytest.raises(ConfigError, match="none of ours"):
        FrameReader(Offer(name, 10))


def test_a_segment_that_others_can_read_or_of_another_size_is_not_opened() -> None:
    for mode, size in ((0o644, 2 * SIZE), (0o600, 2 * SIZE + 1)):
        writer = FrameWriter(SIZE)
        (FOLDER / writer.offer.name).chmod(mode)
        with pytest.raises(ConfigError, match="private segment"):
            FrameReader(Offer(writer.offer.name, size))
        writer.close()


def test_a_link_is_not_followed() -> None:
    name = f"{PREFIX}{os.getpid()}-{'0' * 32}"
    (FOLDER / name).symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="cannot open"):
        FrameReader(Offer(name, 10))
    (FOLDER / name).unlink()


@pytest.mark.parametrize(
    "frames",
    [
        note([0, 10**12]),
        note([-1, 10]),
        note([0, -5]),
        note([2 * SIZE, 10]),
        note([0.5, 10]),
        note([True, 10]),
        note([0, 10, 10]),
        note("x"),
        note(*([[0, 1]] * 300)),
        note([0, 40 * 2**20], [0, 40 * 2**20]),
        [b"\x80", MAGIC],
        [b"\x80", MAGIC + b"\xc1"],
    ],
)
def test_a_note_that_points_elsewhere_is_refused(
    pair: tuple[FrameWriter, FrameReader], frames: list[Frame]
) -> None:
    with pytest.raises(SpecMismatch):
        pair[1].read(frames)


@given(st.binary(max_size=60))
def test_random_notes_are_places_or_refused(rest: bytes) -> None:
    writer = FrameWriter(SIZE)
    reader = FrameReader(writer.offer)
    try:
        reader.read([b"\x80", MAGIC + rest])
    except SpecMismatch:
        pass
    finally:
        writer.close()
        reader.close()


def test_a_segment_that_shrank_is_an_error_and_no_crash() -> None:
    writer = FrameWriter(SIZE)
    path = FOLDER / writer.offer.name
    keeper = os.open(path, os.O_RDWR)
    reader = FrameReader(writer.offer)
    placed = writer.place(encode(np.zeros(50_000, np.uint8)))
    os.ftruncate(keeper, 0)

    with pytest.raises(SpecMismatch, match="got 0 bytes"):
        reader.read(placed)
    os.close(keeper)
    writer.close()
    reader.close()
