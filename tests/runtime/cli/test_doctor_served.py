"""`zetta doctor policy zmq://…` asks a server of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.runtime.policy_server.server_processes import ServerProcess, free_port
from zetta.runtime.cli import main as cli


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    started = ServerProcess("echo", free_port())
    started.wait_ready()
    yield started
    started.end()


def doctor(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", "policy", *args])
    return int(left.value.code or 0)


def test_it_shows_what_the_policy_needs_and_that_it_answers(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"zmq://{server.place}"
    assert doctor(url, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["reachable"], found["fits"], found["policy"]) == (True, True, url)
    assert found["cameras"]
    assert len(found["action"]["names"]) == len(found["action"]["scale"])
    assert 1 <= found["replan_steps"] <= found["horizon"]
    assert found["median_ms"] > 0.0

    assert doctor(url) == 0
    said = capsys.readouterr().out
    assert "it emits: delta_pose" in said
    assert "ok  it answers" in said


def test_nobody_there_is_said_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(f"zmq://127.0.0.1:{free_port()}@within=0.5", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["reachable"] is False
    assert found["reason"] in ("refused", "no answer")
