"""Progress in bytes: words, a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from zetta.runtime.cli import output
from zetta.runtime.cli.byte_progress import byte_progress, in_words

HOUSE = Path(__file__).parents[3]
ON_A_TERMINAL = """
from zetta.runtime.cli.byte_progress import byte_progress
with byte_progress("downloading walls") as reached:
    for done in range(0, 10**6, 10**3):
        reached(done, 10**6)
    reached(10**6, 10**6)
"""


def test_bytes_are_said_as_people_say_them() -> None:
    assert [in_words(n) for n in (0, 999, 1000, 5e6, 3.74e9)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "5 MB",
        "3.7 GB",
    ]


def test_without_a_terminal_lines_come_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with byte_progress("downloading walls") as reached:
        for done in range(0, 101, 10):
            reached(done * 10**6, 10**8)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, "nothing but the end came after 10 s"
    assert lines[0].startswith("downloading walls: 100 MB of 100 MB, ")
    monkeypatch.setattr(output, "PLAIN_PROGRESS_S", 0.0)
    with byte_progress("downloading walls") as reached:
        reached(40 * 10**6, 10**8)
        reached(60 * 10**6, 0)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "downloading walls: 40 MB of 100 MB, 0 bytes/s", "those lay here before"
    assert second.startswith("downloading walls: 60 MB, "), "nobody knows how long it will be"


def test_a_terminal_gets_a_bar_with_speed_and_time_left() -> None:
    ours, theirs = pty.openpty()
    child = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL],
        cwd=HOUSE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    drawn = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert child.stdout == b""
    assert "downloading walls" in drawn
    assert "1.0/1.0 MB" in drawn
    assert "left" in drawn
