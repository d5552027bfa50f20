"""A command that fails before it has anything to keep leaves no folder behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli import output, run_answer
from zetta.runtime.errors import InfraError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a new folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def leave(line: str) -> int:
    """Run `zetta LINE` and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(line.split())
    assert isinstance(left.value.code, int)
    return left.value.code


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run fail once its folder is made."""

    def fail(sim: str) -> str:
        raise InfraError(f"{sim} draws nothing")

    monkeypatch.setattr(run_answer, "choose_graphics", fail)


def test_a_run_that_cannot_be_put_together_leaves_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)

    assert leave("run --sim toy") == 1
    assert list(here.iterdir()) == []


def test_folders_on_the_way_go_too_and_what_was_there_before_stays(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    (here / "runs").mkdir()
    (here / "runs" / "mine").mkdir()

    assert leave("run --sim toy --out a/b") == 1
    assert leave("run --sim toy --out runs/mine") == 1
    assert [p.relative_to(here).as_posix() for p in here.rglob("*")] == ["runs", "runs/mine"]


def test_a_policy_that_does_not_exist_leaves_nothing(here: Path) -> None:
    assert leave("run --sim toy --policy onnx:nowhere.onnx") == 1
    assert list(here.iterdir()) == []


def test_a_run_that_was_carried_out_stays(here: Path) -> None:
    assert leave("run --sim toy --out mine") == 0
    assert (here / "mine" / "run.json").exists()


def test_a_folder_with_anything_in_it_stays(here: Path) -> None:
    folder = output.run_folder("test", here / "kept")
    (folder / "inside").mkdir()
    (folder / "inside" / "note.txt").write_text("kept")
    output.release_folders()

    assert (folder / "inside" / "note.txt").read_text() == "kept"
