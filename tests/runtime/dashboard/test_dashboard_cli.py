"""`zetta dashboard` from start to end, in a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.dashboard.board_parts import write_run
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.dashboard import hosts_of, place_of
from zetta.runtime.errors import ConfigError

MAIN = "from zetta.runtime.cli.main import main; main()"


@contextmanager
def dashboard(
    runs: Path, cache: Path, *options: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    line = [sys.executable, "-c", MAIN, "dashboard", str(runs), "--json", "--port", "0", *options]
    child = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )  # fmt: skip
    assert child.stdout is not None
    try:
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


def asked(url: str, path: str, host: str | None = None) -> tuple[int, str]:
    place = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", path, headers={"Host": host or place})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_ends_well_when_told_to(
    tmp_path: Path, number: signal.Signals
) -> None:
    runs = write_run(tmp_path / "runs" / "one", "sf").parent
    with dashboard(runs, tmp_path / "cache") as (child, told):
        assert told["runs"] == str(runs)
        assert told["url"].startswith("http://127.0.0.1:")
        assert asked(told["url"], "/")[0] == 200
        assert "import" in asked(told["url"], "/static/app.js")[1]
        assert asked(told["url"], "/api/fleet", "evil.example")[0] == 421
        os.kill(child.pid, number)
        rest, notes = child.communicate(timeout=60)
    assert child.returncode == 0
    assert rest == ""
    assert "the dashboard has ended" in notes
    assert "Traceback" not in notes


def test_an_open_page_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    runs = write_run(tmp_path / "runs" / "one", "s").parent
    with dashboard(runs, tmp_path / "cache") as (child, told):
        place = told["url"].removeprefix("http://").rstrip("/")
        connection = http.client.HTTPConnection(place, timeout=60)
        connection.request("GET", "/api/events")
        assert connection.getresponse().readline().startswith(b"event: news")
        os.kill(child.pid, signal.SIGINT)
        _, notes = child.communicate(timeout=60)
        connection.close()
    assert child.returncode == 0
    assert "Traceback" not in notes


def refused(capsys: pytest.CaptureFixture[str], *line: str) -> str:
    with pytest.raises(SystemExit) as left:
        cli.main(["dashboard", *line])
    assert left.value.code == 1
    return capsys.readouterr().err


def test_a_port_that_is_taken_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(capsys, str(tmp_path), "--port", port)
    assert f"cannot listen at 127.0.0.1:{port}" in said
    assert "choose another port" in said
    assert len(said.splitlines()) == 1


def test_a_folder_that_is_not_there_is_named_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, str(tmp_path / "nowhere"))
    assert "there is no folder" in said
    assert "zetta run" in said


def test_listening_everywhere_needs_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--name HOST:" in refused(capsys, str(tmp_path), "--host", "0.0.0.0", "--port", "0")


def test_only_addresses_are_listened_at() -> None:
    for host in ("example.com", "", "127.0.0.1:80"):
        with pytest.raises(ConfigError):
            place_of(host, 0)
    with pytest.raises(ConfigError):
        place_of("127.0.0.1", 70000)


def test_names_are_compared_without_regard_to_case() -> None:
    assert hosts_of(place_of("0.0.0.0", 9), 9, ["Robot.Lab:9"]) == ("robot.lab:9",)
    assert hosts_of(place_of("::1", 0), 7, ()) == ("[::1]:7", "localhost:7")
