"""`zetta serve` as users meet it."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

import pytest
from server_processes import ServerProcess, free_port

from zetta.runtime.cli.main import main
from zetta.runtime.policies.served import ServedPolicy, parse


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(args))
    return int(left.value.code or 0)


def test_keygen_writes_two_private_files_and_prints_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("serve", "keygen", "--out", str(tmp_path / "keys")) == 0
    said = "".join(capfd.readouterr())

    for name in ("server.key", "client.key"):
        path = tmp_path / "keys" / name
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text())["secret"] not in said
        assert str(path) in said
    assert run("serve", "keygen", "--out", str(tmp_path / "keys")) == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "--policy"),
        (("--policy", "ecco"), "did you mean 'echo'"),
        (("--policy", "echo", "--bind", "tcp://0.0.0.0:5601"), "zetta serve keygen"),
        (("--policy", "echo", "--bind", "5601"), "expected tcp://HOST:PORT"),
        (("--policy", "echo", "--batch", "3"), "1, 2, 4, 8 rows"),
        (("--policy", "echo", "--door", "grpc"), "unknown door"),
        (("--policy", "echo", "--keys", "none"), "zetta serve keygen"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(
    args: tuple[str, ...], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("serve", *args) == 1
    said = capfd.readouterr().err

    assert why in said
    assert "Traceback" not in said


def test_json_says_where_it_listens_metrics_tell_figures_and_sigterm_is_a_clean_end() -> None:
    port = free_port()
    server = ServerProcess("echo", free_port(), "--metrics", str(port))
    told = server.wait_ready()
    policy = ServedPolicy(parse(f"zmq://{server.place}"))
    policy.reset("lift it", 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        figures = answer.read().decode()
    policy.close()
    code, said = server.end(signal.SIGTERM)

    assert told["endpoint"] == f"tcp://{server.place}"
    assert told["pid"] == server.process.pid
    assert "zetta_serve_sessions 1.0" in figures
    assert "zetta_serve_resets_total 1.0" in figures
    assert code == 0, said
    assert f"--policy zmq://{server.place}" in said
