"""`zetta arms audit`: is the log whole, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hw_drivers.arm_parts import served
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_serving import GuardSettings, kernel_guard
from zetta.hw_drivers.audit import AuditLog
from zetta.hw_drivers.decisions import AuditEntry
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.cli import main as cli


def audit(*argv: str) -> int:
    return cli_code("arms", "audit", *argv)


def cli_code(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(argv))
    return int(ended.value.code or 0)


def written(folder: Path) -> Path:
    log = AuditLog(folder)
    for verdict in ("as asked", "held", "held"):
        log(AuditEntry(1.0, 1, "decision", "policy", verdict, None, None, ()))
    log(AuditEntry(2.0, 2, "stop", "ada", "stopped", None, None, ("smoke",)))
    log.close()
    return next(folder.glob("audit-*.jsonl"))


def test_it_counts_verdicts_and_what_people_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path)
    assert audit(str(tmp_path), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["entries"] == {"as asked": 1, "held": 2, "stop": 1}
    assert (found["lines"], found["dropped"]) == (4, 0)
    assert audit(str(tmp_path)) == 0
    assert "none changed or taken out" in capsys.readouterr().out


def test_one_stop_by_command_is_one_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = ("arms", "estop", "URL")
    starts = [(stop, stop), (), (("arms", "clear", "URL", "--by", "Ada"), stop)]
    for commands in starts:  # a latched stop outlives the first two
        side = SimpleSide()
        with (
            kernel_guard(load_limits("simple"), side.facts, GuardSettings(tmp_path)) as guard,
            served(side, guard=guard, latch=tmp_path / "stop.json") as running,
        ):
            for argv in commands:
                assert cli_code(*(running.url if a == "URL" else a for a in argv)) == 0
            assert running.server.counts["stops"] == bool(commands)
    capsys.readouterr()
    assert audit(str(tmp_path), "--json") == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert (entries["stop"], entries["clear"]) == (2, 1)
    assert entries["stop again"] >= 3  # the second command, and two starts


def test_stop_after_a_start_that_forgot_the_last_one_is_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path)
    for tick, event, verdict in ((9, "stop", "stop"), (0, "stop", "stop"), (1, "stop", "stop")):
        log(AuditEntry(1.0, tick, event, "ada", verdict, None, None, ()))  # type: ignore[arg-type]
    for event, verdict in (("decision", "stopped"), ("decision", "as asked"), ("stop", "stop")):
        log(AuditEntry(2.0, 2, event, "ada", verdict, None, None, ()))  # type: ignore[arg-type]
    log.close()
    assert audit(str(tmp_path), "--json") == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert entries == {"as asked": 1, "stop": 3, "stop again": 1, "stopped": 1}


def test_changed_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace('"held"', '"as asked"', 1))
    assert audit(str(tmp_path)) == 1
    assert "audit-000001.jsonl:2" in capsys.readouterr().err


def test_folder_without_a_log_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(str(tmp_path)) == 1
    assert "there is no audit log" in capsys.readouterr().err
