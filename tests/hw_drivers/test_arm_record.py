"""The passive recorder: what it writes, what it counts, and that it touches nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.hw_drivers.arm_parts import pose, served, told, until
from tests.hw_drivers.camera_parts import HEIGHT, WIDTH, camera_setup, picture
from tests.hw_drivers.test_arms_cli import run
from zetta.hw_drivers.arm import ArmReading
from zetta.hw_drivers.arm_messages import StateMessage, sealed
from zetta.hw_drivers.arm_record import Recorder, SoFar
from zetta.hw_drivers.arm_record_file import (
    HEADER,
    lines_of,
    read_picture,
    read_recording,
)
from zetta.hw_drivers.arm_record_tapes import Every, StateTape, StreamTape
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.arm_sockets import Publisher
from zetta.hw_drivers.camera_stream import CameraPublisher
from zetta.hw_drivers.cameras import Frame
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, Timeout
from zetta.runtime.wire import pack, to_wire


@contextmanager
def filmed(camera: str = "front", encoding: str = "jpeg") -> Iterator[str]:
    """Publish pictures for the length of a block; give the endpoint."""
    publisher = CameraPublisher("tcp://127.0.0.1:*", camera, encoding)  # type: ignore[arg-type]
    over = threading.Event()

    def show() -> None:
        seed = 0
        while not over.wait(0.01):
            seed += 1
            publisher.send(Frame(picture(seed), time.monotonic()))

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield publisher.endpoint
    finally:
        over.set()
        thread.join()
        publisher.close()


class Enough:
    """Ends a recording when so much of everything has come."""

    def __init__(self, states: int, pictures: int = 0) -> None:
        self.states, self.pictures = states, pictures
        self.over = threading.Event()

    def until(self, wait_s: float) -> bool:
        return self.over.wait(min(wait_s, 0.05))

    def told(self, so_far: SoFar) -> None:
        pictures = min(so_far.pictures.values(), default=0)
        if so_far.states >= self.states and pictures >= self.pictures:
            self.over.set()


def test_recording_has_states_and_pictures_and_the_arm_felt_nothing(tmp_path: Path) -> None:
    side = SimpleSide("left")
    with served(side) as running, filmed() as camera:
        setup = ArmSetup("bench", cameras={"front": camera_setup(f"zmq:{camera}")})
        arm = ZmqArm(running.url)
        arm.connect()
        enough = Enough(100, 5)
        recorder = Recorder(running.url, tmp_path, setup)
        arm.command(pose(z=0.35), 1.0)
        header = recorder.run(enough.until, enough.told)
        assert arm.state(5.0).mode != "stopped"  # who holds the arm, holds it still
        arm.close()
    assert set(told(side)) <= {"send", "hold", "close"}
    assert header.complete
    read = read_recording(tmp_path)
    assert read.header == header
    assert len(read.rows) == header.states >= 100
    assert header.missed_states == 0
    numbers = read.column("number")
    assert (np.diff(numbers) == 1).all()
    times = read.column("t")
    assert (np.diff(times) >= 0).all()
    assert -1.0 < times[0] < times[-1] < header.seconds + 0.1
    assert read.column("ee_z").max() > 0.301
    pictures = read.pictures["front"]
    assert len(pictures) == (header.pictures or {})["front"] >= 5
    image = read_picture(pictures[0].path)
    assert image.shape == (HEIGHT, WIDTH, 3)
    assert image[0, 0, 0] > 150  # red is red
    owners = [line["owner"] for line in lines_of(tmp_path / "events.jsonl")]
    assert any(owners)


def test_recording_that_was_killed_has_what_reached_the_disk(tmp_path: Path) -> None:
    with served(SimpleSide()) as running:
        enough = Enough(50)
        recorder = Recorder(running.url, tmp_path)
        header = json.loads((tmp_path / HEADER).read_text())
        recorder.run(enough.until, enough.told)
    assert header["complete"] is False  # as it stands while it records
    (tmp_path / HEADER).write_text(json.dumps(header))
    raw = (tmp_path / "states.f64").read_bytes()
    (tmp_path / "states.f64").write_bytes(raw[:-5])
    read = read_recording(tmp_path)
    assert not read.header.complete
    assert len(read.rows) == len(raw) // (8 * len(read.header.columns)) - 1


def test_lost_states_are_counted(tmp_path: Path) -> None:
    side = SimpleSide()
    publisher = Publisher("tcp://127.0.0.1:*", waiting=1000)
    tape = StateTape(tmp_path, Every(publisher.endpoint, None, 2**16, 100), side.facts, lambda t: t)
    tape.start()
    reading = side.read()
    odd = replace(reading, joint_pos=np.zeros(3))

    def send(number: int, what: ArmReading = reading, session: str = "a") -> None:
        publisher.send(pack(sealed(to_wire(StateMessage(1, session, number, what)))))

    until(lambda: send(1) or tape.count > 0, "subscribed")  # type: ignore[func-returns-value]
    for number in (2, 3, 7, 8):
        send(number)
    until(lambda: tape.missed == 3, "counted")
    before = tape.count
    publisher.send(pack(to_wire(StateMessage(1, "a", 9, reading))))
    until(lambda: "spoiled" in tape.trouble, "said")
    send(9, odd)
    send(1, session="b")
    until(lambda: tape.session == "b", "taken")
    assert tape.count > before
    assert "3 joints report" in tape.trouble  # and the spoiled one is none
    assert tape.missed == 3  # another start counts anew
    tape.end()
    publisher.close()
    sessions = [line["session"] for line in lines_of(tmp_path / "events.jsonl")]
    assert sessions == ["a", "b"]


def test_lost_pictures_and_wrong_ones_are_counted(tmp_path: Path) -> None:
    publisher = CameraPublisher("tcp://127.0.0.1:*", "front")
    source = Every(publisher.endpoint, None, 2**24, 100)
    tape = StreamTape(tmp_path, "front", (HEIGHT, WIDTH), source, 0.0, 0.0)
    tape.start()

    def send() -> None:
        publisher.send(Frame(picture(), time.monotonic()))

    until(lambda: send() or tape.count > 0, "subscribed")  # type: ignore[func-returns-value]
    publisher._number += 4
    until(lambda: send() or (tape.missed or 0) >= 4, "counted")  # type: ignore[func-returns-value]

    def send_odd() -> None:
        publisher.send(Frame(picture()[:-1], time.monotonic()))

    until(lambda: send_odd() or "32 x 23" in tape.trouble, "said")  # type: ignore[func-returns-value]
    tape.end()
    publisher.close()


def test_pictures_come_no_faster_than_wanted(tmp_path: Path) -> None:
    with served(SimpleSide()) as running, filmed(encoding="raw") as camera:
        setup = ArmSetup("bench", cameras={"front": camera_setup(f"zmq:{camera}")})
        enough = Enough(10, 3)
        Recorder(running.url, tmp_path, setup, picture_hz=10.0).run(enough.until, enough.told)
    times = [p.t for p in read_recording(tmp_path).pictures["front"]]
    assert min(np.diff(times)) >= 0.09


def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    with pytest.raises(Timeout, match="5998"):
        _short_hello(tmp_path / "a")
    with served(SimpleSide("left")) as running:
        with pytest.raises(SpecMismatch, match="'left'"):
            Recorder(running.url, tmp_path, robot="right")
        odd = ArmSetup("bench", cameras={"../front": camera_setup()})
        with pytest.raises(ConfigError, match="folder of its name"):
            Recorder(running.url, tmp_path, odd)
        with pytest.raises(InfraError, match="cannot write"):
            Recorder(running.url, tmp_path / "none")
    with pytest.raises(ConfigError, match="no recording"):
        read_recording(tmp_path / "none")
    (tmp_path / HEADER).write_text('{"format": "other"}')
    with pytest.raises(SpecMismatch, match="other"):
        read_recording(tmp_path)


def _short_hello(folder: Path) -> None:
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zetta.hw_drivers.arm_record.HELLO_S", 0.2)
        Recorder("tcp://127.0.0.1:5998", folder)


def test_disk_that_takes_no_more_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with served(SimpleSide()) as running:
        recorder = Recorder(running.url, tmp_path)
        until(lambda: recorder.recorded, "a state was written down")
        monkeypatch.setattr("zetta.hw_drivers.arm_record_tapes.row_of", full)
        with pytest.raises(InfraError, match=r"cut short: .*No space left"):
            recorder.run(lambda wait_s: time.sleep(min(wait_s, 0.05)) is not None, lambda _: None)
    read = read_recording(tmp_path)
    assert not read.header.complete
    assert "No space" in read.header.trouble


def test_command_records_for_as_long_as_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rec"
    with served(SimpleSide()) as running:
        argv = ["arms", "record", running.url, "--out", str(out), "--seconds", "0.7"]
        assert run(*argv, "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert said["complete"]
        assert said["states"] == len(read_recording(out).rows) > 20
        assert run(*argv) == 1  # the folder is used
        assert run("arms", "record", running.url, "--seconds", "-1") == 1


@pytest.mark.parametrize("empty_before", [False, True])
def test_recording_that_failed_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    empty_before: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zetta.hw_drivers.arm_record.HELLO_S", 0.2)
    monkeypatch.setattr("zetta.hw_drivers.arm_record.SILENT_S", 0.2)
    out = Path("a/b")
    if empty_before:
        out.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    assert run("arms", "record", "tcp://127.0.0.1:5998", "--out", str(out)) == 1
    assert run("arms", "record", "tcp://127.0.0.1:5998") == 1
    with served(Mute()) as running:  # it answers, and has no state
        assert run("arms", "record", running.url, "--out", str(out)) == 1
        assert "nothing was recorded: no state came" in capsys.readouterr().err
        assert run("arms", "record", running.url) == 1
    assert sorted(tmp_path.rglob("*")) == before


class Mute(SimpleSide):
    """An arm without power."""

    def read(self) -> ArmReading:
        """Report nothing.

        Raises:
            InfraError: always.
        """
        raise InfraError("no power at the arm")
