"""`zetta serve --door openpi` and `--door gr00t` from start to end, in a process of their own."""

from __future__ import annotations

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

from tests.runtime.foreign.foreign_servers import sensed
from zetta.runtime import registry
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.serve_doors import Access, ForeignDoor, gr00t_serving, own_door
from zetta.runtime.errors import ConfigError

MAIN = "from zetta.runtime.cli.main import main; main()"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    line = [sys.executable, "-c", MAIN, "serve", "--policy", "random", "--json", *options]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("door", "options"), [("openpi", ()), ("gr00t", ()), ("gr00t", ("--generation", "n1.5"))]
)
def test_a_foreign_door_serves_until_it_is_told_to_end(door: str, options: tuple[str, ...]) -> None:
    bind = f"tcp://127.0.0.1:{free_port()}"
    with serving("--door", door, "--bind", bind, *options) as (child, told):
        assert told["door"] == door
        policy = registry.policy(f"{told['endpoint']},replan_steps=4;horizon=8")
        policy.reset("pick it up", 3)
        assert policy.infer(sensed()).actions.shape == (8, 7)
        policy.close()
        os.kill(child.pid, signal.SIGTERM)
        _, notes = child.communicate(timeout=30)
    assert child.returncode == 0
    assert f"--policy {door}://127.0.0.1" in notes
    assert "1 chunks" in notes


def test_equal_seeds_give_equal_chunks_through_a_door() -> None:
    with serving("--door", "openpi", "--bind", f"tcp://127.0.0.1:{free_port()}") as (_, told):
        policy = registry.policy(f"{told['endpoint']},replan_steps=4,horizon=8")
        chunks = []
        for seed in (5, 6, 5):
            policy.reset("pick it up", seed)
            chunks.append(policy.infer(sensed()).actions.tobytes())
        policy.close()
    assert chunks[0] == chunks[2] != chunks[1]


def test_others_may_come_only_with_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["serve", "--policy", "random", "--door", "openpi", "--bind", "tcp://0.0.0.0:0"]
    with pytest.raises(SystemExit) as left:
        cli.main(line)
    assert left.value.code == 1
    assert "has no key" in capsys.readouterr().err


def test_the_two_kinds_of_keys_are_not_taken_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("geheim")

    def nobody(endpoint: str, instance: str) -> None:
        raise AssertionError(endpoint)

    with pytest.raises(ConfigError, match="--keys"):
        own_door(Access(key_file=file), nobody)
    with pytest.raises(ConfigError, match=r"n1\.5 or n1\.6"):
        gr00t_serving(Access(generation="n2"), nobody)
    assert isinstance(gr00t_serving(Access(key_file=file), nobody), ForeignDoor)
    with pytest.raises(ConfigError, match="droid"):
        gr00t_serving(Access(convention="droit"), nobody)


@pytest.mark.parametrize("bind", ["ipc:///tmp/x", "tcp://127.0.0.1", "tcp://127.0.0.1:99999"])
def test_a_place_where_one_cannot_listen_is_explained(
    bind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["serve", "--policy", "random", "--door", "openpi", "--bind", bind])
    assert left.value.code == 1
    assert "cannot listen at" in capsys.readouterr().err
