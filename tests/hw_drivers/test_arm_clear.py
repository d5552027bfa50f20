"""A clear names the stop that its person saw; what came after it stays latched."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import Served, served, told, until
from tests.hw_drivers.test_arms_cli import run
from zetta.hw_drivers.arm_latch import StopLatch
from zetta.hw_drivers.arm_person import clear_stop, press_stop, stop_id, what_is_stopped
from zetta.hw_drivers.arm_server import ArmServer
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.errors import InfraError, SafetyStop, SpecMismatch
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import Request


@pytest.fixture
def running() -> Iterator[Served]:
    with served(SimpleSide()) as each:
        yield each


def asked(endpoint: str, do: str, **given: object) -> Any:
    """Send one request and return its answer."""
    with contextlib.closing(Dealer(endpoint)) as dealer:
        return dealer.call(do, given, 5.0)


def pressed(running: Served, by: str, **more: object) -> str:
    """Stop the arm; return the id of the stop."""
    return stop_id(asked(running.server.endpoints.stop, "stop", by=by, reason="", **more))


def test_clear_that_is_late_leaves_a_stop_that_came_meanwhile(running: Served) -> None:
    seen = pressed(running, "Ada", token="a")
    late = {"by": "Ada", "stop": seen}  # she looked, and the network kept her clear for a while
    newer = pressed(running, "Bob", token="b")
    with pytest.raises(SafetyStop, match=rf"and then stopped by Bob.*look.*again.*--stop {newer}"):
        asked(running.url, "clear", **late)
    latched = what_is_stopped(running.url)
    assert latched is not None
    assert (latched.stop, "stopped by Bob" in latched.said) == (newer, True)
    assert "clear" not in told(running.side)  # type: ignore[arg-type]
    assert "stopped by Ada" in clear_stop(running.url, "Ada", stop=newer)
    until(lambda: what_is_stopped(running.url) is None, "it is cleared")
    assert asked(running.url, "clear", **late) == {"cleared": ""}
    with contextlib.closing(Dealer(running.server.endpoints.stop)) as dealer:
        again = press_stop(dealer, "Cy", "once more")  # the clear that waited is of no use
    with pytest.raises(SafetyStop):
        asked(running.url, "clear", by="Ada", stop=newer)
    assert clear_stop(running.url, "Ada", stop=again)


def test_repetitions_of_a_stop_are_the_same_stop_and_others_are_not(running: Served) -> None:
    first = pressed(running, "Ada", token="a")
    assert pressed(running, "Ada", token="a") == first
    other = pressed(running, "Bob", token="b")
    assert pressed(running, "Ada", token="a") == first != other  # hers is not the newest
    with pytest.raises(SafetyStop):
        clear_stop(running.url, "Ada", stop=first)
    assert pressed(running, "Ada") != pressed(running, "Ada")  # of a version that tells no token
    assert clear_stop(running.url, "Ada")


def test_clear_that_names_no_stop_is_refused(running: Served) -> None:
    assert asked(running.url, "clear", by="Ada") == {"cleared": ""}
    pressed(running, "Ada")
    for odd in ({}, {"stop": ""}, {"stop": 7}):
        with pytest.raises(SpecMismatch, match="same version of zetta on both sides"):
            asked(running.url, "clear", by="Ada", **odd)
    assert what_is_stopped(running.url) is not None


def test_server_that_does_not_know_ids_is_said_so(
    running: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ArmServer._asked

    def older(server: ArmServer, request: Request) -> object:
        if request.do == "stopped":
            raise InfraError("nothing here does 'stopped'")
        return before(server, request)

    monkeypatch.setattr(ArmServer, "_asked", older)
    with pytest.raises(SpecMismatch, match="does not say which stop is latched"):
        clear_stop(running.url, "Ada")


def test_restart_makes_no_other_stop_of_it(tmp_path: Path) -> None:
    latch = tmp_path / "stop.json"
    with served(SimpleSide(), latch=latch) as running:
        pressed(running, "Ada", token="a")
        stop = pressed(running, "Bob", token="b")
    with served(SimpleSide(), latch=latch) as running:
        latched = what_is_stopped(running.url)
        assert latched is not None
        assert latched.stop == stop
        assert "stopped by Ada" in latched.said
        assert "then stopped by Bob" in latched.said
        assert clear_stop(running.url, "Ada", stop=stop)
    assert not latch.exists()
    latch.write_text(json.dumps({"stopped": "of an older version"}))
    with served(SimpleSide(), latch=latch) as running:
        assert clear_stop(running.url, "Ada") == "of an older version"


def test_each_stop_of_the_arm_itself_is_another_one(running: Served) -> None:
    side = running.side

    def stopped_by_itself() -> str:
        side.stop()
        until(lambda: what_is_stopped(running.url) is not None, "the server sees it")
        latched = what_is_stopped(running.url)
        assert latched is not None
        return latched.stop

    first = stopped_by_itself()
    assert clear_stop(running.url, "Ada", stop=first)
    until(lambda: what_is_stopped(running.url) is None, "it is cleared")
    second = stopped_by_itself()
    with pytest.raises(SafetyStop, match="not what is latched now"):
        clear_stop(running.url, "Ada", stop=first)
    assert clear_stop(running.url, "Ada", stop=second)


def test_estop_names_the_stop_and_clear_takes_it(
    running: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("arms", "estop", running.url, "--json") == 0
    (first,) = json.loads(capsys.readouterr().out)["arms"]
    assert run("arms", "estop", running.url, "--reason", "a hand") == 0
    said = capsys.readouterr().out
    newer = said.split("--stop ")[1].strip()
    assert f"zetta arms clear {running.url} --by YOUR-NAME --stop {newer}" in said
    assert run("arms", "check", running.url) == 1
    assert f"--by YOUR-NAME --stop {newer}" in capsys.readouterr().out
    old = ("arms", "clear", running.url, "--by", "Ada", "--stop", first["stop"])
    assert run(*old) == 1
    assert "look at the arm again" in capsys.readouterr().err
    assert run("arms", "clear", running.url, "--by", "Ada", "--json") == 0  # shown, then cleared
    shown = capsys.readouterr()
    assert f"stop {newer}: stopped by zetta arms estop" in shown.err
    assert json.loads(shown.out)["stop"] == newer
    assert run("arms", "clear", running.url, "--by", "Ada") == 0
    assert "no stop was latched" in capsys.readouterr().out


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12))
def test_only_the_newest_stop_is_named_by_its_id(stops: list[tuple[str, bool]]) -> None:
    latch, by_itself = StopLatch(None), replace(SimpleSide().read(), mode="stopped")
    ids: list[str] = []
    for token, watched in stops:
        ids.append(latch.set(f"stopped by {token}", token))
        if watched:  # that an arm reports our own stop is no other stop
            latch.watch(by_itself)
    assert len(set(ids)) == len({token for token, _ in stops})
    assert latch.stop in ids
    for stop in set(ids):
        if stop == latch.stop:
            assert latch.named(stop) == latch.said
        else:
            with pytest.raises(SafetyStop):
                latch.named(stop)
