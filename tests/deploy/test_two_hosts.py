"""The two computers of the guide's test: apart while it runs, gone when it ends or dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.host_agent import descendants
from tests.deploy.two_hosts import KINDS, Kind, NoSuchHosts, TwoHosts

APART = {"gpu": "10.78.0.1", "robot": "10.78.0.2"}
TOGETHER = {"gpu": "127.78.0.1", "robot": "127.78.0.2"}
PLAIN = {"PATH": os.environ.get("PATH", os.defpath)}
LISTEN = """
import socket, sys
door = socket.create_server((sys.argv[1], 0))
print(door.getsockname()[1], flush=True)
door.settimeout(20)
print(door.accept()[1][0])
"""
DIAL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()"


@pytest.fixture(params=KINDS)
def hosts(request: pytest.FixtureRequest) -> Iterator[TwoHosts]:
    kind: Kind = request.param
    try:
        made = TwoHosts(kind, TOGETHER if kind == "loopback" else APART)
    except NoSuchHosts as why:
        pytest.skip(f"this machine gives no {kind}: {why}")
    yield made
    made.close()


def until_said(hosts: TwoHosts, name: str) -> str:
    deadline = time.monotonic() + 20.0
    while not (said := hosts.told(name)).endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return said.strip()


def test_computers_reach_each_other_by_address(hosts: TwoHosts, tmp_path: Path) -> None:
    listen = f"{sys.executable} -c '{LISTEN}' {hosts.addresses['gpu']}"
    hosts.start("gpu", listen, tmp_path, PLAIN, "door")
    port = until_said(hosts, "door")
    dial = f"{sys.executable} -c '{DIAL}' {hosts.addresses['gpu']} {port}"
    assert hosts.run("robot", dial, tmp_path, PLAIN).code == 0
    ended = hosts.wait("door")
    caller = hosts.addresses["robot"] if hosts.kind != "loopback" else "127.0.0.1"
    assert (ended.code, ended.said.split()[1]) == (0, caller)


def test_loopback_of_one_is_not_that_of_the_other(hosts: TwoHosts, tmp_path: Path) -> None:
    if hosts.kind == "loopback":
        pytest.skip("two names for one machine share its loopback")
    hosts.start("gpu", f"{sys.executable} -c '{LISTEN}' 127.0.0.1", tmp_path, PLAIN, "door")
    port = until_said(hosts, "door")
    ended = hosts.run("robot", f"{sys.executable} -c '{DIAL}' 127.0.0.1 {port}", tmp_path, PLAIN)
    assert "refused" in ended.said
    assert not Path(f"/proc/{os.getpid()}/ns/net").samefile(f"/proc/{hosts.pid}/ns/net")


def test_pulled_cable_cuts_and_comes_back(hosts: TwoHosts, tmp_path: Path) -> None:
    if not hosts.cable(plugged=False):
        pytest.skip("two names for one machine have no cable")
    dial = f"{sys.executable} -c '{DIAL}' {hosts.addresses['gpu']} 9"
    assert "refused" not in hosts.run("robot", dial, tmp_path, PLAIN).said
    hosts.cable(plugged=True)
    assert "refused" in hosts.run("robot", dial, tmp_path, PLAIN).said


def test_script_that_does_not_end_is_ended(hosts: TwoHosts, tmp_path: Path) -> None:
    ended = hosts.run("gpu", "echo begun; sleep 600", tmp_path, PLAIN, within_s=0.5)
    assert ended.late
    assert ended.said == "begun\n"


def test_script_is_interrupted_as_by_hand(hosts: TwoHosts, tmp_path: Path) -> None:
    hosts.start("robot", "echo begun; sleep 605; echo not reached", tmp_path, PLAIN, "sleeper")
    until_said(hosts, "sleeper")
    ended = hosts.wait("sleeper", 10.0, interrupt=True)
    assert ended.said == "begun\n"
    assert not ended.late


def test_first_failing_line_ends_a_script(hosts: TwoHosts, tmp_path: Path) -> None:
    ended = hosts.run("robot", "echo one\nfalse\necho two", tmp_path, PLAIN)
    assert (ended.code, ended.said) == (1, "one\n")


def test_nothing_stays_when_they_are_closed(hosts: TwoHosts, tmp_path: Path) -> None:
    started = "setsid sleep 601 & setsid sleep 602 & wait"
    hosts.start("robot", started, tmp_path, PLAIN, "sleepers")
    while len(below := descendants(hosts.pid)) < 3:
        time.sleep(0.02)
    hosts.close()
    assert not {pid for pid in below if Path(f"/proc/{pid}").exists() and alive(pid)}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_when_the_test_is_killed(kind: Kind, tmp_path: Path) -> None:
    told = json.dumps([kind, TOGETHER if kind == "loopback" else APART, str(tmp_path)])
    program = (
        "import json, os, sys, time\n"
        "from pathlib import Path\n"
        "from tests.deploy.two_hosts import TwoHosts\n"
        "kind, addresses, folder = json.loads(sys.argv[1])\n"
        "hosts = TwoHosts(kind, addresses)\n"
        "hosts.start('gpu', 'setsid sleep 603 & wait', Path(folder), dict(os.environ), 'x')\n"
        "print('begun', flush=True)\n"
        "hosts.run('robot', 'sleep 604', Path(folder), dict(os.environ))\n"
    )
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", program, told],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    with child:
        assert child.stdout is not None
        if child.stdout.readline() != b"begun\n":
            pytest.skip(f"this machine gives no {kind}")
        while len(below := descendants(child.pid)) < 4:
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20.0
    while left := {pid for pid in below if alive(pid)}:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
