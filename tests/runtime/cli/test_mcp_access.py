"""Where `zetta mcp` may listen, and its token."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from zetta.runtime.cli.main import main
from zetta.runtime.cli.mcp_access import (
    Place,
    check_place,
    listen,
    names_of,
    parse_place,
    token_at,
)
from zetta.runtime.errors import ConfigError, InfraError


@pytest.mark.parametrize("text", ["8931", "robot.local:1", "127.0.0.1:x", "127.0.0.1:70000", ""])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="ADDRESS:PORT"):
        parse_place(text)


def test_a_place_that_others_reach_needs_everything_said(tmp_path: Path) -> None:
    everywhere, token = Place("0.0.0.0", 1), tmp_path / "token"
    for allowed, file, names in (
        (False, token, ["robot:1"]),
        (True, None, ["robot:1"]),
        (True, token, []),
    ):
        with pytest.raises(ConfigError, match="--allow-remote"):
            check_place(everywhere, allowed, file, names)
    check_place(everywhere, True, token, ["robot:1"])
    check_place(Place("127.0.0.1", 1), False, None, [])
    check_place(Place("::1", 1), False, None, [])


def test_only_the_names_of_the_place_are_answered() -> None:
    assert names_of(Place("127.0.0.1", 0), 81, []) == ("127.0.0.1:81", "localhost:81")
    assert names_of(Place("::1", 0), 81, [])[0] == "[::1]:81"
    assert names_of(Place("0.0.0.0", 0), 81, ["robot:81"]) == ("robot:81",)


def test_a_place_that_is_taken_is_named() -> None:
    with listen(Place("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(InfraError, match=f"cannot listen at 127.0.0.1:{port}"):
            listen(Place("127.0.0.1", port))


def test_a_made_token_is_for_its_owner_and_goes_with_the_server() -> None:
    with token_at(None) as (token, path):
        assert path.read_text().strip() == token
        assert len(token) >= 32
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.parent.exists()


def test_a_token_of_ones_own_is_kept_from_others(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a-token-of-my-own\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"), token_at(file):
        pass
    file.chmod(0o600)
    with token_at(file) as (token, path):
        assert (token, path) == ("a-token-of-my-own", file)
    assert file.exists()
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="at least 16 characters"), token_at(file):
        pass
    with pytest.raises(ConfigError, match="cannot be read"), token_at(tmp_path / "absent"):
        pass


def test_without_the_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "zetta.primitives.mcp_server", raising=False)
    for package in ("mcp", "mcp_types"):
        for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match="1"):
        main(["mcp", "--sim", "toy"])
    assert "pip install 'zetta[mcp]'" in capsys.readouterr().err


def test_stdout_of_the_protocol_is_not_promised_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(["mcp", "--sim", "toy", "--json"])
    assert "stdout belongs to the protocol" in capsys.readouterr().err


def test_drive_points_at_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(["drive", "--sim", "toy", "--agent", "mcp"])
    assert "zetta mcp" in capsys.readouterr().err


def _serve_alone(*more: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["mcp", "--sim", "toy", "--http", "127.0.0.1:0", "--json", *more])
    return int(left.value.code or 0)


def test_a_server_that_nobody_calls_ends_when_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert _serve_alone("--idle", "0.2", "--out", str(out)) == 0
    told = capsys.readouterr()
    report = json.loads(told.out)["episodes"][0]
    assert report["ended"] == "nobody called for 0.2 s"
    assert report["success"] is False
    assert _serve_alone("--idle", "0.2", "--out", str(tmp_path / "b"), "--require-success") == 1


def test_an_episode_that_cannot_be_run_ends_the_server_with_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "used").write_text("")
    assert _serve_alone("--out", str(tmp_path)) == 1
    told = capsys.readouterr()
    assert "already holds 'used'" in told.err
    assert "already holds 'used'" in json.loads(told.out)["error"]["message"]


@pytest.mark.parametrize("option", [("--call-seconds", "0"), ("--idle", "-1"), ("--linger", "-1")])
def test_an_impossible_patience_is_refused(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _serve_alone(*option) == 1
    assert "greater" in capsys.readouterr().err
