"""`zetta arms estop`: many arms, those that do not answer, and how soon the message is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hw_drivers.arm_parts import served, told, until
from tests.hw_drivers.test_arms_cli import run
from zetta.hw_drivers.arm_messages import COMMAND_PORT, STOP_PORT, Endpoints, port_of
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.cli import arms_telegram
from zetta.runtime.curve_keys import read_server_keys, write_keys
from zetta.runtime.wire import PROTOCOL, Request, request_frames

SILENT = "tcp://127.0.0.1:5999"
"""Nobody is there."""


def in_a_row(port: int) -> Endpoints:
    return Endpoints.on(port=port)


def test_all_arms_stop_and_one_that_is_silent_makes_it_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = SimpleSide("left"), SimpleSide("right")
    with served(left) as one, served(right) as other:
        setup = tmp_path / "right.toml"
        setup.write_text(f'name = "right"\nurl = "{other.url}"\n')
        argv = ["arms", "estop", one.url, SILENT, "nonsense", "--setup", str(setup), "--json"]
        assert run(*argv) == 1
        answer = json.loads(capsys.readouterr().out)
        assert not answer["stopped"]
        stopped = {row["arm"]: row["stopped"] for row in answer["arms"]}
        assert stopped == {one.url: True, other.url: True, SILENT: False, "nonsense": False}
        assert told(left) == told(right) == ["stop"]
        assert run("arms", "estop", one.url, other.url, "--json") == 0
        assert json.loads(capsys.readouterr().out)["stopped"]


def test_stop_typed_in_haste_is_estop(capsys: pytest.CaptureFixture[str]) -> None:
    side = SimpleSide()
    with served(side) as running:
        assert run("arms", "stop", running.url) == 0
        assert told(side) == ["stop"]
        assert "zetta arms clear" in capsys.readouterr().out


def test_estop_of_nothing_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("arms", "estop") == 1
    assert "say which arm" in capsys.readouterr().err


def test_the_telegram_leaves_before_numpy_is_imported() -> None:
    program = (
        "import sys\n"
        "from zetta.runtime.cli import arms_telegram, main\n"
        "def telegraph(*given):\n"
        "    print('numpy' in sys.modules)\n"
        "    raise SystemExit\n"
        "arms_telegram.telegraph = telegraph\n"
        "main.main(['arms', 'estop', 'tcp://127.0.0.1:1'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stdout.strip() == "False", ended.stderr


def test_telegram_is_the_request_that_the_wire_would_make() -> None:
    given = {"by": arms_telegram.BY, "reason": "smoke", "token": "t"}
    assert [arms_telegram.telegram("smoke", "t")] == request_frames(Request(1, "stop", given))
    assert arms_telegram.PROTOCOL == PROTOCOL
    assert arms_telegram.STOP_AFTER_COMMAND == STOP_PORT - COMMAND_PORT


def test_telegram_alone_stops_an_arm_at_the_usual_place(tmp_path: Path) -> None:
    server_key, client_key = write_keys(tmp_path / "keys")
    for keys, given in ((None, None), (read_server_keys(server_key), client_key)):
        side = SimpleSide()
        with served(side, endpoints=in_a_row(free_row()), keys=keys) as running:
            sockets = arms_telegram.telegraph([running.url], [], given, "smoke", "t")
            until(lambda side=side: told(side) == ["stop"], "stopped")  # type: ignore[misc]
            for socket in sockets:
                socket.close(0)


def test_telegram_of_a_set_up_needs_no_more_than_its_url(tmp_path: Path) -> None:
    setup = tmp_path / "arm.toml"
    setup.write_text('url = "tcp://127.0.0.1:5801"\nunknown = 1\n')
    assert arms_telegram._declared(setup) == ("tcp://127.0.0.1:5801", None)
    assert arms_telegram.telegraph(["x", "tcp://a:b"], [tmp_path / "none"], None, "r", "t") == []


def test_what_the_message_does_not_need_is_not_imported() -> None:
    """Otherwise the arm goes on for as long as the import takes."""
    code = (
        "import sys; import zetta.runtime.cli.main, zetta.runtime.cli.arms_estop; "
        "print([m for m in ('numpy', 'asyncio', 'PIL', 'cv2') if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "[]"


def free_row() -> int:
    """Return the first of three ports that are free at present."""
    with served(SimpleSide()) as running:
        return port_of(running.url) + 1000 if port_of(running.url) < 60000 else 30001
