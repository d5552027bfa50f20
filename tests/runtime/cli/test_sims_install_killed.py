"""An installation that is killed leaves half an environment, which is noticed and made anew."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.cli import install_steps
from tests.runtime.cli.install_steps import NAME, STEPS, quick_steps
from zetta.runtime.cli import sims_install, sims_lock
from zetta.runtime.cli.sims_install import install
from zetta.runtime.cli.sims_venv import STAMP, Venv, venv_of
from zetta.sims.installs import lists

HOUSE = Path(__file__).parents[3]


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let installations be quick, in a new data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(lists, "find", lists.find)
    monkeypatch.setattr(sims_install, "find_python", sims_install.find_python)
    monkeypatch.setattr(sims_install, "_PIP", sims_install._PIP)
    quick_steps(tmp_path)
    return tmp_path


def installing(folder: Path, step: str, *words: str) -> subprocess.Popen[str]:
    """Begin an installation in a process of its own; it stops at `step`."""
    (folder / f"stop-{step}").touch()
    return subprocess.Popen(
        [sys.executable, "-m", install_steps.__name__, str(folder), step, *words],
        cwd=HOUSE,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stopped_in(folder: Path, process: subprocess.Popen[str]) -> int:
    """Wait until a step has stopped; return its process."""
    while not (folder / "stopped").exists():
        assert process.poll() is None, process.communicate()
    return int((folder / "stopped").read_text())


def held(venv: Venv) -> bool:
    """Say whether somebody holds the lock."""
    with venv.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(False, id="anew"),
        pytest.param(True, id="over a whole one", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_in_any_step_leaves_half_an_environment(steps: Path, step: str, again: bool) -> None:
    if again:
        assert install(NAME).fresh
    process = installing(steps, step, *(["--again"] if again else []))
    if step != "stamp":
        child = stopped_in(steps, process)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        assert held(venv_of(NAME)), "the step that goes on alone keeps others away"
        os.kill(child, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert venv_of(NAME).state == "incomplete"
    assert venv_of(NAME).fix == f"zetta sims install {NAME}"
    (steps / f"stop-{step}").unlink()
    assert install(NAME).fresh
    assert venv_of(NAME).state == "ready"
    assert not install(NAME).fresh


def test_a_kill_while_a_whole_one_is_removed_leaves_half_an_environment(steps: Path) -> None:
    assert install(NAME).fresh
    process = installing(steps, "removal", "--again")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert venv_of(NAME).python.exists(), "all of it still lies there"
    assert venv_of(NAME).state == "incomplete"


def test_an_interrupted_step_ends_with_the_command(steps: Path) -> None:
    process = installing(steps, "second", "--json")
    stopped_in(steps, process)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["error"]["kind"] == "Interrupted"
    assert venv_of(NAME).state == "incomplete"
    assert not held(venv_of(NAME))


def test_the_second_of_two_installations_waits_and_finds_nothing_to_do(
    steps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = installing(steps, "second")
    child = stopped_in(steps, process)
    told = threading.Event()
    monkeypatch.setattr(sims_lock.output, "note", lambda text: told.set())
    done: list[bool] = []
    second = threading.Thread(target=lambda: done.append(install(NAME).fresh))
    second.start()
    assert told.wait(60), "it says that it waits"
    assert not done
    os.kill(child, signal.SIGKILL)  # the step of the first one fails
    (steps / "stop-second").unlink()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "installing second==2.0 failed" in err
    second.join(60)
    assert done == [True], "what the first one left was half"


def test_a_whole_environment_is_left_alone_and_an_older_one_is_made_anew(
    steps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install(NAME).fresh
    mark = venv_of(NAME).folder / "mark"
    mark.touch()
    assert not install(NAME).fresh
    assert mark.exists()
    newer = replace(install_steps.LIST, packages=("first==1.0", "second==2.1"))
    monkeypatch.setattr(lists, "find", lambda name: newer)
    assert venv_of(NAME).state == "outdated"
    assert install(NAME).fresh
    assert not mark.exists()
    assert json.loads((venv_of(NAME).folder / STAMP).read_text())["digest"] == newer.digest
