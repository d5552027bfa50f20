"""Colours on a terminal, plain text in a pipe, and the variables by which a person decides."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from zetta.runtime.cli import colours, output
from zetta.runtime.cli import main as cli

ESCAPE = "\x1b["
TABLES = ("sims list", "skills list", "critics list", "arms list")


@pytest.fixture(autouse=True)
def undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but the stream decide, in a home without anything in it."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@contextmanager
def terminal() -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """Yield a stream that is a terminal, and what returns all that was written, at the end."""
    ours, theirs = pty.openpty()
    read: list[bytes] = []

    def listen() -> None:
        try:
            while some := os.read(ours, 65536):
                read.append(some)
        except OSError:  # the other end is closed
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    stream = os.fdopen(theirs, "w", encoding="utf-8")

    def said() -> str:
        stream.close()
        listener.join()
        return b"".join(read).decode().replace("\r\n", "\n")

    try:
        yield stream, said
    finally:
        stream.close()
        listener.join()
        os.close(ours)


def on_terminal(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what `zetta LINE` writes to a terminal."""
    with terminal() as (stream, said):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            with pytest.raises(SystemExit):
                cli.main(line.split())
        return said()


def in_pipe(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what `zetta LINE` writes into a pipe."""
    stream = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit):
            cli.main(line.split())
    return stream.getvalue()


def bare(text: str) -> str:
    """Return text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("line", TABLES)
def test_a_table_has_colours_on_a_terminal_and_is_plain_in_a_pipe(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, piped = on_terminal(line, monkeypatch), in_pipe(line, monkeypatch)

    assert "\x1b[1m" in seen  # the heading
    assert ESCAPE not in piped
    assert bare(seen) == piped


def test_a_state_has_the_colour_of_what_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = on_terminal("sims list", monkeypatch)

    assert "\x1b[32mready\x1b[0m" in seen


@pytest.mark.parametrize(
    ("variables", "on_tty", "piped"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_a_person_decides_by_variables(
    variables: dict[str, str], on_tty: bool, piped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    seen = on_terminal("arms list", monkeypatch)

    assert (ESCAPE in seen) is on_tty
    assert (ESCAPE in in_pipe("arms list", monkeypatch)) is piped


def test_a_table_that_is_written_into_a_file_stays_plain() -> None:
    table = output.table(["name", "state"], [["toy", "ready"], ["libero", "missing"]])

    assert f"{table}\n" == "name    state\ntoy     ready\nlibero  missing\n"
    assert bare(table.coloured) == table
    assert "\x1b[31mmissing\x1b[0m" in table.coloured


def test_headings_of_markdown_are_bold_and_its_words_are_not_touched() -> None:
    text = "# Results\n\n| arm | n |\n|---|---|\n| none | 9/10 |\n"
    seen = colours.markdown(text)

    assert bare(seen) == text
    assert seen.splitlines()[0] == "\x1b[1m# Results\x1b[0m"
    assert seen.splitlines()[2].startswith("\x1b[1m|")
    assert seen.splitlines()[4] == "| none | 9/10 |"


def test_an_evaluation_is_coloured_on_a_terminal_and_its_progress_is_not_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "eval --sim toy --suites toy_pick --tasks 0 --inits 0 --out results"
    with terminal() as (stream, said):
        monkeypatch.setattr(sys, "stderr", stream)
        seen = on_terminal(line, monkeypatch)
        progress = bare(said())

    assert "\x1b[1m" in seen
    assert "evaluating" not in seen
    assert "evaluating" in progress
    assert "1/1" in progress
    assert "left" in progress


def test_progress_on_a_dumb_terminal_is_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with terminal() as (stream, said):
        monkeypatch.setattr(sys, "stderr", stream)
        with output.progress("thinking", 2) as advance:
            advance(2, "")
        told = said()

    assert re.fullmatch(r"thinking: 2/2, 0 s so far, 0 s left\n", told)
