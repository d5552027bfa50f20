"""Drafts and watched episodes for tests, drawn by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from zetta.runtime.core import ArmState, Proprio, Tick
from zetta.skills.evolve.authors import Draft, WatchedEpisode
from zetta.skills.package import SkillPackage, load_skill
from zetta.skills.rehearsals import HZ, Rehearsal, Thing
from zetta.skills.shelf import library_folder
from zetta.skills.template import write_template

INSTRUCTION = "put the bowl on the plate"
MAX_STEPS = 200
PAGE = """---
name: {name}
version: 0.1.0
description: The hand is told to move and does not.
applies: always
roles: {roles}
max_ticks: 60
provenance:
  author: a test
  made_by: search
  date: 2026-11-30
---

# {name}
"""
CRITIC = '''"""The hand is told to move and does not."""

WINDOW_S = 2.0
SKILL = "{name}"


def check(w, p):
{body}
'''
BODY = 'if now(w.stalled_for) < p.stall:\n    return ok()\nreturn recover("stuck")'
BODY_LINE = 8
"""Line of the first statement of `check`."""
RECOVERY = '''"""Rise."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
{body}


def reentry(w, p):
    return now(w.stalled_for) < p.stall
'''
RISE = "yield from robot.retreat(p.rise)"
RECOVER_LINE = 9
PARAMETERS = """[stall]
default = 1.0
low = 0.5
high = 3.0
unit = "s"
stricter = "up"

[rise]
default = 0.08
low = 0.02
high = 0.20
unit = "m"
"""


def indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in body.splitlines())


def draft_of(
    body: str = BODY,
    name: str = "unstick",
    recover: str = RISE,
    roles: str = "[]",
    **files: str,
) -> Draft:
    """Return a draft of a new skill; `files` replaces whole files by stem."""
    texts = {
        "SKILL.md": PAGE.format(name=name, roles=roles),
        "critic.py": CRITIC.format(name=name, body=indented(body)),
        "recovery.py": RECOVERY.format(body=indented(recover)),
        "params.toml": PARAMETERS,
    }
    stems = {path.split(".")[0]: path for path in texts}
    return Draft(name, {**texts, **{stems[s]: t for s, t in files.items()}}, "it gets stuck")


def parents(folder: Path) -> tuple[SkillPackage, ...]:
    """Return a parent's two skills, `probe` of the template and a copy of the library's reseat."""
    write_template("probe", folder)
    return (load_skill(folder / "probe"), load_skill(library_folder() / "reseat"))


def rehearsed(stuck: bool, x: float = 0.1, seed: int = 0) -> Rehearsal:
    """Return a hand that goes to a thing and either sticks there or comes back."""
    rehearsal = Rehearsal({"object": Thing(x, 0.0), "receptacle": Thing(x, 0.2)}, seed=seed)
    rehearsal.to("object", 0.05, 1.0)
    if stuck:
        rehearsal.wait(3.0, asked=(0.0, 0.0, -0.01))
    rehearsal.move(0.0, 0.0, 0.3, 1.0)
    return rehearsal


def watched(
    name: str,
    success: bool,
    signals: Mapping[str, Sequence[float] | np.ndarray],
    instruction: str = INSTRUCTION,
    sources: Sequence[str] | None = None,
    max_steps: int = MAX_STEPS,
) -> WatchedEpisode:
    """Return an episode that holds these signals."""
    count = len(next(iter(signals.values())))
    arm = ArmState(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(7), 0.08)
    ticks = tuple(
        Tick(
            k, Proprio(k / HZ, (arm,)), np.zeros(7), sources[k] if sources else "policy",
            {n: float(v[k]) for n, v in signals.items()},
        )
        for k in range(count)
    )  # fmt: skip
    return WatchedEpisode(name, instruction, success, HZ, max_steps, ticks)


def episodes(stuck: int, free: int) -> list[WatchedEpisode]:
    """Return failures in which the hand sticks, then successes in which it does not."""
    return [
        watched(f"{k}", k >= stuck, rehearsed(k < stuck, 0.05 + 0.01 * k, k).signals())
        for k in range(stuck + free)
    ]
