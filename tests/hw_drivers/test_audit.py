from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from zetta.hw_drivers.audit import AuditLog, verify
from zetta.hw_drivers.decisions import AuditEntry, Command, Grip
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch


def entry(tick: int, verdict: str = "changed", values: object = (1.0, 2.0)) -> AuditEntry:
    command = Command("target_pose", values, Grip(0.08, 0.1, 20.0))  # type: ignore[arg-type]
    return AuditEntry(0.05 * tick, tick, "decision", "policy", verdict, command, None, ("speed",))


def written(folder: Path, count: int = 20, max_bytes: int = 16 * 2**20) -> list[Path]:
    log = AuditLog(folder, max_bytes)
    for tick in range(count):
        log(entry(tick))
    log.close()
    return sorted(folder.glob("audit-*.jsonl"))


def test_each_entry_is_one_line_that_says_what_was_asked_and_why(tmp_path: Path) -> None:
    (path,) = written(tmp_path, 3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["tick"] for line in lines] == [0, 1, 2]
    assert lines[0]["asked"]["values"] == [1.0, 2.0]
    assert lines[0]["reasons"] == ["speed"]
    report = verify(tmp_path)
    assert (report.lines, report.first, report.dropped) == (3, 0, 0)


def test_files_are_closed_at_a_size_and_the_chain_goes_on(tmp_path: Path) -> None:
    assert len(written(tmp_path, 20, max_bytes=1000)) > 3
    written(tmp_path, 5)  # another run
    assert verify(tmp_path).lines == 25


def test_a_line_that_was_taken_out_is_noticed(tmp_path: Path) -> None:
    (path,) = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7] + lines[8:]))
    with pytest.raises(SpecMismatch, match="after line 6 comes line 8"):
        verify(tmp_path)


def test_a_line_that_was_changed_is_noticed(tmp_path: Path) -> None:
    (path,) = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"tick": 7', b'"tick": 9', 1))
    with pytest.raises(SpecMismatch, match=r"audit-000001\.jsonl:8"):
        verify(tmp_path)


def test_a_whole_file_that_was_taken_out_is_noticed(tmp_path: Path) -> None:
    paths = written(tmp_path, 20, max_bytes=1000)
    paths[1].unlink()
    with pytest.raises(SpecMismatch, match="taken out"):
        verify(tmp_path)


def test_older_files_that_were_moved_away_are_told(tmp_path: Path) -> None:
    paths = written(tmp_path, 20, max_bytes=1000)
    paths[0].unlink()
    assert verify(tmp_path).first > 0


def test_the_head_tells_that_the_end_was_cut(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for tick in range(5):
        log(entry(tick))
    log.close()
    assert verify(tmp_path).head == log.head
    path = tmp_path / "audit-000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert verify(tmp_path).head != log.head


def test_a_torn_last_line_is_left_out_and_the_log_goes_on(tmp_path: Path) -> None:
    (path,) = written(tmp_path, 5)
    path.write_bytes(path.read_bytes()[:-20])
    written(tmp_path, 5)
    assert verify(tmp_path).lines == 9


def test_two_logs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    with pytest.raises(ConfigError, match="another audit log"):
        AuditLog(tmp_path)
    log.close()
    log.close()
    AuditLog(tmp_path).close()


def test_a_full_queue_never_waits_and_says_how_many_it_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, taken = threading.Event(), threading.Event()
    append = AuditLog._append

    def slow(self: AuditLog, plain: dict[str, object]) -> None:
        taken.set()
        assert gate.wait(20.0)
        append(self, plain)

    monkeypatch.setattr(AuditLog, "_append", slow)
    log = AuditLog(tmp_path, waiting=4)
    log(entry(0))
    assert taken.wait(20.0)
    for tick in range(1, 20):
        log(entry(tick))
    gate.set()
    log.close()
    report = verify(tmp_path)
    assert report.dropped == 15
    assert report.lines == 5 + 1


def test_a_disk_that_fails_raises_at_the_next_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: AuditLog, plain: dict[str, object]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AuditLog, "_append", full)
    log = AuditLog(tmp_path)
    log(entry(0))
    log._thread.join(20.0)
    with pytest.raises(InfraError, match="No space left"):
        log(entry(1))
    with pytest.raises(InfraError, match="No space left"):
        log.close()


@pytest.mark.parametrize(
    "values",
    [
        np.array([np.nan, np.inf, -np.inf, 5e-324, 1e308]),
        np.zeros((3, 4)),
        ["a", "b"],
        np.full(100_000, 1.0),
        object(),
        None,
        [10**400],
    ],
)
def test_hostile_commands_are_recorded_as_what_they_are(tmp_path: Path, values: object) -> None:
    log = AuditLog(tmp_path)
    log(entry(0, values=values))
    log(AuditEntry(float("nan"), 1, "decision", "x" * 500, "held", "no", None, ()))  # type: ignore[arg-type]
    log.close()
    assert verify(tmp_path).lines == 2
    assert (tmp_path / "audit-000001.jsonl").stat().st_size < 8000


def test_no_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no audit log"):
        verify(tmp_path)
    with pytest.raises(ConfigError, match="above 0"):
        AuditLog(tmp_path, max_bytes=0)
