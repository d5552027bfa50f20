"""Ctrl-C in the middle of `zetta run --json` and `zetta drive --json`: what is finished is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE_S = 120.0
INTERRUPTING = """
import os, signal, sys
from zetta.runtime.cli import main, run_episodes
finished = []
facts_of = run_episodes.facts_of
def after_an_episode(spec, assembled):
    finished.append(spec)
    if len(finished) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return facts_of(spec, assembled)
run_episodes.facts_of = after_an_episode
main.main(sys.argv[1:])
"""
"""Presses Ctrl-C when the second episode is over and not yet kept."""


@pytest.mark.parametrize(
    "verb",
    [
        ("run", "--policy", "toy/reach-exact"),
        ("drive", "--agent", "scripted", "--suite", "toy_pick", "--task", "0"),
    ],
    ids=["run", "drive"],
)
def test_an_interrupt_prints_the_finished_episodes_and_leaves_with_130(
    tmp_path: Path, verb: tuple[str, ...]
) -> None:
    name, *others = verb
    argv = [name, "--sim", "toy", *others, "--episodes", "3", "--json"]
    child = subprocess.run(
        [sys.executable, "-c", INTERRUPTING, *argv, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    answer = json.loads(child.stdout)

    assert child.returncode == 128 + signal.SIGINT
    assert len(answer["episodes"]) == 1
    assert answer["interrupted"] is True
    assert "stopped; 1 finished episode can be found in" in child.stderr
