"""The command as a user meets it: exit codes, one line on stderr, one object on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli import output, skills
from zetta.runtime.errors import ConfigError

HEAVY = (
    "mujoco", "torch", "pyarrow", "onnxruntime", "robosuite", "scipy", "numpy", "typer", "rich",
)  # fmt: skip


def leave(*args: str) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(args)
    code = left.value.code
    assert isinstance(code, int)
    return code


def failing_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `zetta skills list` raise `error`."""

    def fail(_: Path) -> tuple[str, ...]:
        raise error

    monkeypatch.setattr(skills, "skill_folders", fail)


def test_importing_the_command_loads_nothing_heavy() -> None:
    program = (
        "import sys; import zetta.runtime.cli.main; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stdout.strip() == "[]", ended.stderr


def test_help_of_all_verbs_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom zetta.runtime.cli import main\n"
        "try:\n    main.main(['--help'])\nfinally:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stderr.strip() == "[]"


def test_help_names_every_verb_without_importing_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--help") == 0

    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown for verb in cli.present_verbs())


def test_every_declared_verb_has_a_module() -> None:
    assert cli.present_verbs() == tuple(cli.VERBS)


@pytest.mark.parametrize("verb", list(cli.VERBS))
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(verb, "--help") == 0
    assert "Usage: zetta " + verb in capsys.readouterr().out


def test_an_unknown_verb_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("skils") == 2
    assert "did you mean 'skills'" in capsys.readouterr().err


def test_an_unknown_option_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("skills", "list", "--jsn") == 2
    assert "--jsn" in capsys.readouterr().err


def test_the_command_can_be_typed_again_as_it_was() -> None:
    assert leave("skills", "list", "--of", "a b") == 2
    assert output.command_line() == "zetta skills list --of 'a b'"


def test_a_verb_without_module_breaks_only_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "VERBS", {**cli.VERBS, "fly": "not written yet"})

    assert leave("fly") == 1
    assert "'fly' is not part of this installation" in capsys.readouterr().err
    assert leave("skills", "list") == 0


def test_an_explained_error_is_one_line_and_exit_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(ConfigError("got this\nexpected that"), monkeypatch)

    assert leave("skills", "list") == 1
    assert capsys.readouterr().err == "error: got this expected that\n"


def test_a_traceback_comes_only_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(ValueError("surprise"), monkeypatch)

    assert leave("skills", "list") == 1
    assert "Traceback" not in capsys.readouterr().err
    assert leave("skills", "list", "--debug") == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_missing_package_names_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(ModuleNotFoundError("No module named 'torch'", name="torch.nn"), monkeypatch)

    assert leave("skills", "list") == 1
    assert "zetta[train]" in capsys.readouterr().err


def test_an_interrupt_is_one_line_and_exit_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(KeyboardInterrupt(), monkeypatch)

    assert leave("skills", "list") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_error_under_json_is_still_one_object(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failing_with(ConfigError("got this"), monkeypatch)

    assert leave("skills", "list", "--json") == 1
    assert json.loads(capfd.readouterr().out) == {
        "error": {"kind": "ConfigError", "message": "got this"}
    }


NOISY = """
import os, subprocess, sys
from zetta.runtime.cli import output
with output.reserved_stdout(True):
    print("a stray print")
    os.write(1, b"a library written in C\\n")
    subprocess.run(["echo", "a child process"])
    output.emit({"answer": 42})
print("free again")
"""


def test_under_json_stdout_holds_the_object_and_nothing_else() -> None:
    ended = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True)

    first, rest = ended.stdout.split("\n", 1)
    assert json.loads(first) == {"answer": 42}
    assert rest == "free again\n"
    assert "a stray print" in ended.stderr
    assert "a library written in C" in ended.stderr
    assert "a child process" in ended.stderr


def test_a_second_object_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with output.reserved_stdout(True):
        output.emit({"answer": 1})
        with pytest.raises(RuntimeError, match="exactly one"):
            output.emit({"answer": 2})

    assert json.loads(capsys.readouterr().out) == {"answer": 1}


WAITING = """
import sys, time
from pathlib import Path
from zetta.runtime.cli import main, skills
def wait(library):
    Path(sys.argv[1]).touch()
    time.sleep(60)
skills.skill_folders = wait
main.main(["skills", "list"])
"""


def test_control_c_leaves_with_one_line_and_130(tmp_path: Path) -> None:
    started = tmp_path / "started"
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(started)], stderr=subprocess.PIPE, text=True
    )
    while not started.exists():
        assert child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=30)

    assert child.returncode == 130
    assert errors == "interrupted\n"
