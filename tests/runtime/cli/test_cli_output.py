"""Run folders never collide; progress speaks without a terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli import output
from zetta.runtime.errors import ConfigError, InfraError

HOLD = """
import sys
from pathlib import Path
from zetta.runtime.cli import output
print(output.run_folder("run", Path(sys.argv[1]) if len(sys.argv) > 1 else None), flush=True)
sys.stdin.read()
"""


def holder(folder: Path, *args: str) -> subprocess.Popen[str]:
    """Start a process that holds a run folder until its stdin is closed."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, *args],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that another process is writing to."""
    child = holder(tmp_path, str(tmp_path / "out"))
    assert child.stdout is not None
    assert child.stdout.readline().strip() == str(tmp_path / "out")
    yield tmp_path / "out"
    child.communicate()


def test_runs_of_one_moment_get_different_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [output.run_folder("run") for _ in range(20)]

    assert len(set(folders)) == 20
    assert all(f.parent == tmp_path / "runs" and "-run-" in f.name for f in folders)


def test_two_processes_get_different_folders(tmp_path: Path) -> None:
    children = [holder(tmp_path) for _ in range(2)]
    answers = [child.communicate()[0].strip() for child in children]

    assert len(set(answers)) == 2
    assert all(Path(answer).is_dir() for answer in answers)


def test_a_folder_in_use_is_refused_even_for_resuming(held: Path) -> None:
    with pytest.raises(ConfigError, match="in use by another run"):
        output.run_folder("run", held, resume=True)


def test_a_folder_is_free_again_after_its_process_was_killed(tmp_path: Path) -> None:
    child = holder(tmp_path, str(tmp_path / "out"))
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.communicate()

    assert output.run_folder("run", tmp_path / "out", resume=True) == tmp_path / "out"


def test_a_command_gives_its_folder_back_when_it_ends(tmp_path: Path) -> None:
    output.run_folder("run", tmp_path)
    with pytest.raises(SystemExit):
        cli.main(["--version"])

    assert output.run_folder("run", tmp_path) == tmp_path


def test_a_used_folder_is_refused_unless_resuming(tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()

    with pytest.raises(ConfigError, match=r"already holds 'result\.json'"):
        output.run_folder("run", tmp_path)


def test_a_refused_folder_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConfigError, match=r"already holds 'thesis\.txt'"):
        output.run_folder("run", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("place", ["closed", "full"])
@pytest.mark.parametrize("arguments", [["sims", "list"], ["sims", "list", "--json"]])
def test_an_answer_that_finds_no_place_is_an_error(arguments: list[str], place: str) -> None:
    shell = ">&-" if place == "closed" else ">/dev/full"
    command = f'"{sys.executable}" -m zetta.runtime.cli.main {" ".join(arguments)} {shell}'
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert "stdout" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_resuming_accepts_a_used_folder(tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()

    assert output.run_folder("run", tmp_path, resume=True) == tmp_path


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match="is a file"):
        output.run_folder("run", tmp_path / "file")


def test_a_place_that_cannot_be_written_is_explained() -> None:
    with pytest.raises(InfraError, match="choose another folder with --out"):
        output.run_folder("run", Path("/proc/nowhere"))


def test_progress_without_a_terminal_ends_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("episodes", 3) as advance:
        advance(1, "first")
        advance(3, "last")

    assert capsys.readouterr().err.splitlines() == ["episodes: 3/3, 0 s so far, 0 s left last"]


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from zetta.runtime.cli import output; output.answer('seen')"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == ""
    assert child.wait(60) == 0
    child.stderr.close()


def test_a_full_disk_behind_stdout_is_an_error() -> None:
    told = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m zetta.runtime.cli.main skills list > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "cannot be written to stdout" in told.stderr
