"""`zetta arms audit`: is the log whole, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zetta.hw_drivers.audit import AuditLog
from zetta.hw_drivers.decisions import AuditEntry
from zetta.runtime.cli import main as cli


def audit(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["arms", "audit", *argv])
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
