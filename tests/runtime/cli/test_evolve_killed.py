"""A campaign of the command whose process is killed again and again, with `kill -9`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cli.test_evolve_campaign import contents
from zetta.runtime.cli.planted_fix import FAULT, NAME, POLICY, write_fix
from zetta.skills.evolve.campaign import STAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

KILLS = 12


def command(folder: Path, drafts: Path) -> list[str]:
    return [
        sys.executable, "-m", "zetta.runtime.cli.main", "evolve", "--sim", "toy", "--suite",
        "toy_pick", "--policy", POLICY, "--author", "human", "--drafts",
        str(drafts), "--sensing", "oracle", "--option", f"toy_faults={FAULT}", "--option",
        "recovery_share=0.7", "--seed", "a1", "--out", str(folder),
    ]  # fmt: skip


def finished(folder: Path, drafts: Path) -> float:
    """Run the command to its end and return how long it took, s."""
    start = time.monotonic()
    done = subprocess.run(command(folder, drafts), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return time.monotonic() - start


def records(folder: Path) -> int:
    return len([s for s in STAGES if (folder / "000" / f"{s}.json").exists()])


def rollouts(folder: Path) -> Counter[str]:
    rows = [
        json.loads(line)
        for path in sorted((folder / "rollouts").rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return Counter(row["key"] for row in rows if "key" in row)


def killed(folder: Path, drafts: Path, after: float) -> bool:
    """Kill the command after so many seconds; return whether it was still running."""
    process = subprocess.Popen(
        command(folder, drafts), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def killed_at_a_stage(folder: Path, drafts: Path) -> bool:
    """Kill the command as soon as another record is there."""
    before = records(folder)
    process = subprocess.Popen(
        command(folder, drafts), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        if records(folder) > before:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.005)
    return False


def without_paths(content: Any, folder: Path) -> Any:
    return json.loads(json.dumps(content).replace(str(folder), "FOLDER"))


def test_killed_at_stage_boundaries_and_in_mid_rollout_it_ends_the_same(tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    write_fix(drafts)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    took = finished(whole, drafts)

    deaths = 0
    for k in range(KILLS):
        if k % 2:
            deaths += killed_at_a_stage(broken, drafts)
        else:
            deaths += killed(broken, drafts, 2.0 + took / KILLS * (0.5 + k / KILLS))
    finished(broken, drafts)

    assert deaths >= KILLS // 2
    assert without_paths(contents(broken), broken) == without_paths(contents(whole), whole)
    assert rollouts(broken) == rollouts(whole)
    assert max(rollouts(broken).values()) == 1, "an episode that was finished was run again"
    assert (broken / "000" / "candidate" / NAME).is_dir()
    assert contents(broken)["controls"]["evidence"]["random"], "the gate was not reached"
