"""Rollout processes that share one policy server: equal results, and nothing that stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cli_eval import answered, leave, wait_for_rows
from test_eval_interrupted import sockets_of, sockets_of_this_machine, wait_until

from zetta.runtime.cli import shared_policy
from zetta.runtime.cli.shared_policy import shared_site
from zetta.runtime.errors import ConfigError, ConnectionLost, WorkerDied
from zetta.runtime.policies import served
from zetta.runtime.rollouts.pool import PoolSettings
from zetta.runtime.rollouts.sharing import RESTARTS, SharingSite
from zetta.runtime.soak import descendants

ASKED = ["eval", "--sim", "toy", "--suites", "toy_pick", "--layout", "sampled"]
SOME = [*ASKED, "--tasks", "0-1", "--seeds", "0-2"]
MANY = [*ASKED, "--tasks", "0", "--seeds", "0-499"]
HANGS = """
import time
from zetta.runtime.policies.toy_reach import load

class Hangs:
    def __init__(self): self.inner = load("toy/reach"); self.spec = self.inner.spec
    def reset(self, instruction, seed): time.sleep(600)
    def infer(self, observation): return self.inner.infer(observation)
    def close(self): self.inner.close()

def fails():
    raise ValueError("no such weights")
"""


def rows_of(folder: Path) -> dict[str, Any]:
    """Return every row by its key, without what only the clock and the errors decide."""
    found = {}
    for shard in folder.glob("*/episodes-*.jsonl"):
        for row in map(json.loads, shard.read_text().splitlines()[1:]):
            del row["record"]["wall_s"]
            found[row["key"]] = {**row, "attempts": 1}
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "out"
    assert leave(*SOME, "--out", str(out)) == 0
    return out


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary things whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="z", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_shared_policy_brings_the_records_of_loaded_ones(
    workers: str, plain: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shared = tmp_path / "shared"
    answer = answered(capfd, *SOME, "--share-policy", "--workers", workers, "--out", str(shared))
    assert rows_of(shared) == rows_of(plain)
    assert len(rows_of(shared)) == answer["arms"]["none"]["n"] == 6
    assert (shared / "tables.md").read_bytes() == (plain / "tables.md").read_bytes()
    assert "zmq://" not in (shared / "results.json").read_text()
    assert set(answer["policies"]) == {"toy/reach"}
    assert len(answer["policies"]["toy/reach"]) == 64


def test_sharing_or_not_continues_what_the_other_began(
    plain: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = tmp_path / "begun"
    shutil.copytree(plain, begun)
    (shard,) = begun.glob("*/episodes-*.jsonl")
    lines = shard.read_text().splitlines(keepends=True)
    shard.write_text("".join(lines[:-1]))
    answered(capfd, *SOME, "--share-policy", "--resume", "--out", str(begun))
    assert rows_of(begun) == rows_of(plain)
    assert [each.parent for each in begun.glob("*/*.jsonl")] == [shard.parent]
    answered(capfd, *SOME, "--resume", "--out", str(begun))
    assert len(shard.read_text().splitlines()) == len(lines)


def start(asked: list[str], out: Path) -> subprocess.Popen[str]:
    program = f"from zetta.runtime.cli.main import main; main({[*asked, '--out', str(out)]!r})"
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def server_below(pid: int) -> int:
    """Return the process that serves the policy."""
    (found,) = [
        each
        for each in descendants(pid)
        if shared_policy.MAIN in Path(f"/proc/{each}/cmdline").read_text()
    ]
    return found


def test_killed_policy_server_costs_its_running_episodes_which_are_run_again(
    plain: Path, tmp_path: Path, scratch: Path
) -> None:
    out = tmp_path / "out"
    with start([*SOME, "--share-policy", "--workers", "2"], out) as parent:
        wait_for_rows(out, 1)
        os.kill(server_below(parent.pid), signal.SIGKILL)
        said = parent.communicate(timeout=100)[1]
    assert parent.returncode == 0, said
    assert "ended (signal SIGKILL)" in said
    assert "it is started again" in said
    assert rows_of(out) == rows_of(plain)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_end_of_the_command_leaves_no_server_no_socket_and_no_folder(
    number: signal.Signals, tmp_path: Path, scratch: Path
) -> None:
    out = tmp_path / "out"
    with start([*MANY, "--share-policy", "--workers", "2"], out) as parent:
        wait_for_rows(out, 1)
        below = descendants(parent.pid)
        sockets = sockets_of([parent.pid, *below])
        assert server_below(parent.pid) in below
        assert list(scratch.glob("*/*.socket"))
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in scratch.iterdir())
        parent.send_signal(number)
        parent.communicate(timeout=60)
    assert parent.returncode != 0
    wait_until(lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()])
    wait_until(lambda: not sockets & sockets_of_this_machine())
    wait_until(lambda: not list(scratch.iterdir()))


def site(folder: Path, policy: str, silence_s: float = 60.0, temperature: str = "") -> SharingSite:
    used = PoolSettings("nobody:asks", folder / "logs", silence_s=silence_s, start_s=60.0)
    return shared_site([policy], temperature, used)


def test_server_that_dies_again_and_again_ends_the_command(tmp_path: Path, scratch: Path) -> None:
    made = site(tmp_path, "toy/reach")
    (server,) = made.servers
    try:
        for _ in range(RESTARTS):
            os.kill(server.pid, signal.SIGKILL)
            wait_until(lambda before=server.pid: made.has_room() and server.pid != before)
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match=r"SIGKILL.*started again 3 times.*--resume"):
            wait_until(lambda: made.has_room() is None)  # never: it only looks
    finally:
        made.close()
    assert not list(scratch.iterdir())


def test_policy_that_hangs_is_ended_and_served_anew(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    made = site(tmp_path, f"python:{tmp_path / 'hangs.py'}:Hangs", silence_s=1.0)
    (server,) = made.servers
    before = server.pid
    try:
        client = served.load(f"{server.address.partition('@')[0]}@reset_within=60")
        with pytest.raises(ConnectionLost, match="went away during reset"):
            client.reset("pick", 0)
        client.close()
        wait_until(lambda: made.has_room() and server.pid != before)
    finally:
        made.close()


def test_policy_that_cannot_be_loaded_is_named_and_leaves_nothing(
    tmp_path: Path, scratch: Path
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    with pytest.raises(ConfigError, match="no such weights"):
        site(tmp_path, f"python:{tmp_path / 'hangs.py'}:fails")
    with pytest.raises(ConfigError, match="'toy/reach' has no temperature"):
        site(tmp_path, "toy/reach", temperature="0.5")
    assert not list(scratch.iterdir())


def test_policies_that_no_worker_loads_are_not_shared(tmp_path: Path) -> None:
    for name in ("oracle/expert", "zmq://127.0.0.1:5601", "openpi://h:8000@libero"):
        with pytest.raises(ConfigError, match="nothing to share"):
            site(tmp_path, name)
