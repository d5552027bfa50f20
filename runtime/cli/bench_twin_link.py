"""`zetta bench twin-link`: how often errands of a served twin are done, in real time over its link.

The twin is served by `zetta arms serve --twin panda`, limits and all, and every drive is a
`zetta drive --arm` (or, for a policy, a `zetta run --arm`) as a person would type it. Scenes are
set, and what was achieved is judged, through the twin's door, of which who drives knows nothing.
"""

from __future__ import annotations

import json
import math
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.door import TwinDoor
from zetta.hw_drivers.twin.tasks import RESTS_M, TASKS, TwinTask
from zetta.hw_drivers.twin.things import THINGS
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.errors import InfraError
from zetta.runtime.success_rates import wilson

ZETTA: Final = (sys.executable, "-m", "zetta.runtime.cli.main")
STARTS_WITHIN_S: Final = 120.0
A_DRIVE_S: Final = 300.0
FIRST_SEED: Final = 400
AGENT: Final = "agent/scripted"
POLICIES: Final = "twin/"
"""How the policies are called that can do these errands; anything else stands for the agent."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One drive."""

    seed: int
    instruction: str
    done: bool
    """By the twin's truth, when the program had ended."""
    verified: bool | None
    """By what the program saw; None where it cannot tell, or was not asked."""
    seconds: float
    error: str | None


def twin_link_figures(policy: str, trials: int) -> list[Figure]:
    """Return how many errands are done, and how long one takes.

    Raises:
        InfraError: the twin cannot be served here.
    """
    driver = policy if policy.startswith(POLICIES) else AGENT
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (door, setup):
        found = [_trial(door, setup, driver, k) for k in range(trials)]
    scored = [trial for trial in found if trial.error is None]
    if not scored:
        raise InfraError(f"no drive was carried out: {found[0].error}")
    done = sum(trial.done for trial in scored)
    low, high = wilson(done, len(scored))
    output.note(
        f"{driver}: {done}/{len(scored)} done by the twin's truth ({100 * low:.0f} to "
        f"{100 * high:.0f} %), {sum(bool(t.verified) for t in scored)} by the evidence of cameras "
        f"and gripper, {len(found) - len(scored)} with errors and no score"
    )
    seconds = sorted(trial.seconds for trial in scored)
    return [
        Figure("twin_link_done", done / len(scored), "share", higher_is_better=True),
        Figure("twin_link_scored", len(scored), "drives", higher_is_better=True),
        Figure("twin_link_errors", len(found) - len(scored), "drives"),
        Figure("twin_link_median_s", seconds[len(seconds) // 2], "s"),
    ]


@contextmanager
def served(folder: Path) -> Iterator[tuple[TwinDoor, Path]]:
    """Serve a twin as a person would; give its door and the file of its set-up.

    Raises:
        InfraError: it does not start.
    """
    setup, log = folder / "twin.toml", folder / "twin.log"
    words = ["arms", "serve", "--twin", "panda", "--port", "0", "--write-setup", str(setup)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*ZETTA, *words, "--json"], stdout=subprocess.PIPE, stderr=said, start_new_session=True
        )
    try:
        door = TwinDoor(str(_announced(process, log)["door"]))
        try:
            yield door, setup
        finally:
            door.close()
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _announced(process: subprocess.Popen[bytes], log: Path) -> Mapping[str, object]:
    """Return what a server says of itself when it listens."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], STARTS_WITHIN_S)[0]:
        raise InfraError(f"the twin was not ready within {STARTS_WITHIN_S:g} s")
    line = process.stdout.readline()
    if not line:
        raise InfraError(f"the twin did not start: {log.read_text().strip()[-300:]}")
    return dict(json.loads(line))


def _trial(door: TwinDoor, setup: Path, driver: str, k: int) -> Trial:
    errands = [(index, task) for index, task in enumerate(TASKS) if task.on]
    index, errand = errands[k % len(errands)]
    seed = FIRST_SEED + k
    door.scene(seed)
    who = ["run", "--policy", driver, "--policy-seed", str(k), "--no-video"]
    if driver == AGENT:
        who = ["drive", "--agent", "scripted", "--localizer", "geometry"]
    begun = time.monotonic()
    answer = _asked(
        [*who, "--arm", str(setup), "--task", str(index), "--out", str(setup.parent / f"{k:03d}")]
    )
    seconds = time.monotonic() - begun
    done = stands(errand, door.truth())
    episode = _episode(answer)
    error = episode.get("error")
    trial = Trial(
        seed,
        errand.instruction,
        done,
        verified=None if episode.get("verified") is None else bool(episode["verified"]),
        seconds=seconds,
        error=None if error is None else str(error),
    )
    said = f"error: {trial.error}" if trial.error else ("done" if done else "not done")
    output.note(f"scene {seed}: {errand.instruction}: {said} ({seconds:.0f} s)")
    return trial


def _asked(words: list[str]) -> object:
    command = [*ZETTA, *words, "--json"]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=A_DRIVE_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": {"message": f"no answer within {A_DRIVE_S:g} s"}}
    return json.loads(ended.stdout or b"{}")


def _episode(answer: object) -> Mapping[str, object]:
    assert isinstance(answer, dict)
    episodes = answer.get("episodes")
    if episodes:
        return dict(episodes[0])
    return {"error": answer.get("error", {}).get("message", "no answer")}


def stands(errand: TwinTask, truth: Mapping[str, Pose]) -> bool:
    """Say whether the thing of an errand stands upright on its plate, and hangs in no hand."""
    thing, plate = truth[errand.thing], truth[errand.on]
    wide, half = THINGS[errand.on].size, THINGS[errand.thing].size[2] / 2.0
    beside = math.hypot(*(thing.pos - plate.pos)[:2])
    above = float(thing.pos[2] - plate.pos[2]) - wide[2] / 2.0
    return beside < wide[0] / 2.0 and abs(above - half) < RESTS_M
