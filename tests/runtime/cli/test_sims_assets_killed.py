"""A download of assets that is interrupted, killed at any step or done twice at once goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.cli import asset_lists
from tests.runtime.cli.asset_lists import SIM
from tests.runtime.cli.asset_parts import NEEDED_FILES, folder, get, lying
from tests.runtime.cli.asset_server import BLOCK, Server
from zetta.runtime.cli.main import main

HOUSE = Path(__file__).parents[3]


def child(small_lists: Path, step: str, *words: str) -> subprocess.Popen[str]:
    """Run the command in a process that can be killed."""
    program = [sys.executable, "-m", asset_lists.__name__, str(small_lists), step]
    return subprocess.Popen(
        [*program, "sims", "assets", SIM, *words],
        cwd=HOUSE,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_two_commands_at_once_download_once(small_lists: Path, zips: Server) -> None:
    file = zips.files["robots.zip"]
    file.hold_after = BLOCK
    first = child(small_lists, "-", "--from", zips.url)
    assert file.sent.wait(60)
    second = child(small_lists, "-", "--from", zips.url)
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    file.go_on.set()
    assert (first.wait(60), second.wait(60)) == (0, 0)
    for process in (first, second):
        process.communicate()
    assert [a for a in file.asked if a != "bytes=0-0"] == [""]


@pytest.mark.parametrize(("signalled", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_download_that_is_interrupted_goes_on(
    small_lists: Path,
    zips: Server,
    signalled: signal.Signals,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = zips.files["robots.zip"]
    file.hold_after = 4 * BLOCK
    process = child(small_lists, "-", "--from", zips.url, "--json")
    assert file.sent.wait(60)
    part = folder().zip_of(folder().assets.parts[0]).with_suffix(".part")
    while not part.exists() or part.stat().st_size < 4 * BLOCK:
        assert process.poll() is None
    process.send_signal(signalled)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    if signalled is signal.SIGINT:
        assert json.loads(out)["error"]["kind"] == "Interrupted"
    assert folder().state_of(folder().assets.parts[0]) == "incomplete"
    assert folder().fetched(folder().assets.parts[0]) == 4 * BLOCK
    with pytest.raises(SystemExit):
        main(["sims", "assets", SIM, "--list"])
    assert "robots  incomplete, 66 kB here" in capsys.readouterr().out
    file.hold_after = None
    assert get(zips.url)
    assert file.asked[-1] == f"bytes={4 * BLOCK}-"
    assert lying(folder()) == NEEDED_FILES


STEPS = 14
"""Moves, writes and removals between the first download and the last stamp."""
QUICK = (0, 2, 4, 6, 7, 13, STEPS)
"""Before a whole zip, amid unpacking, amid moving, before a stamp, before the last removal."""


@pytest.mark.parametrize(
    "step",
    [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in range(STEPS + 1)],
)
def test_a_kill_at_any_step_leaves_what_can_be_gone_on_with(
    small_lists: Path, zips: Server, step: int
) -> None:
    process = child(small_lists, str(step), "--from", zips.url)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (0 if step == STEPS else -signal.SIGKILL), err
    for part in folder().assets.parts[:2]:
        if folder().state_of(part) == "ready":
            assert folder().stamp(part) is not None
            assert set(folder().files_path(part).read_text().splitlines()) <= lying(folder())
    assert get(zips.url) or step >= STEPS - 1
    assert folder().state == "ready"
    assert lying(folder()) == NEEDED_FILES
    fetched = [a for a in zips.files["robots.zip"].asked if a != "bytes=0-0"]
    assert fetched == [""], "one download of it was enough"
    assert not [p for p in folder().marks.iterdir() if p.suffix not in (".json", ".files")]
