"""Briefs and answers for the author `llm`; the brief holds what must not be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from tests.skills.evolve.search_briefs import drawn_brief
from zetta.runtime.core import Sensing
from zetta.skills.evolve.authors import Brief, Rejection
from zetta.skills.evolve.branches import Continuation
from zetta.skills.evolve.diagnosis import ClusterDiagnosis, Difference
from zetta.skills.evolve.llm_reference import CRITIC_EXAMPLE, RECOVERY_EXAMPLE
from zetta.skills.package import SkillPackage

SEED, BRANCH_SEED = 918273645, 564738291
DIGEST = "c0ffee" * 10 + "abcd"
TASK, EPISODE = "libero_secret_suite/7", "episode-scene-4711"
SECRETS = (
    str(SEED), str(BRANCH_SEED), f"{SEED:x}", DIGEST, DIGEST[:8], TASK, "libero", EPISODE, "4711",
    "0.123456", "truth.", "oracle", "31.4159", "trace-of",
)  # fmt: skip
"""What stands in the brief and nowhere in a request."""
REASON = "it fires in 40 % of the successes"
GOOD: dict[str, Any] = {
    "name": "hold-tight",
    "description": "The held object slips; take it anew.",
    "applies": "the task carries an object",
    "roles": ["object"],
    "max_ticks": 160,
    "critic_py": CRITIC_EXAMPLE,
    "recovery_py": RECOVERY_EXAMPLE,
    "params": [
        {"name": "slip", "default": 0.004, "low": 0.001, "high": 0.02, "unit": "m", "doc": "Slip."},
        {"name": "drop", "default": 0.15, "low": 0.05, "high": 0.3, "unit": "m", "doc": "Down."},
        {"name": "rise", "default": 0.1, "low": 0.03, "high": 0.2, "unit": "m", "doc": "Up."},
    ],
    "hypothesis": "The fingers do not hold, and a second grasp does.",
}


def critic(body: str, name: str = "hold-tight") -> str:
    """Return a `critic.py` whose `check` begins with these lines."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return CRITIC_EXAMPLE.replace("hold-tight", name).replace("w, p):\n", f"w, p):\n{lines}\n")


def answer(**changed: Any) -> dict[str, Any]:
    """Return the good answer with other fields."""
    return {**GOOD, **changed}


LOOPING = answer(critic_py=critic("for k in w.slip:\n    pass"))
IMPORTING = answer(critic_py="import os\n" + CRITIC_EXAMPLE)
ORACLE = answer(critic_py=critic("if now(w.oracle_object_x) < now(w.ee_x):\n    return ok()"))
CLOCK = answer(critic_py=critic("if now(w.elapsed) > 71.0:\n    return recover('late')"))
PLACE = answer(critic_py=critic("if now(w.object_x) > 0.123456:\n    return ok()"))


def brief(
    parent: Sequence[SkillPackage] = (),
    strips: Sequence[Path] = (),
    rejected: Sequence[Rejection] = (),
    sensing: Sensing = "vision",
) -> Brief:
    """Return a brief whose hidden parts are known."""
    drawn = drawn_brief(4, 4)
    cluster = ClusterDiagnosis(
        3, 4, "grasped", 31.4159, "truth.jaw", EPISODE, 0.9,
        (Difference("object_offset, after", 2.5, 0.1), Difference("oracle_object_x, after", 9, 9)),
        (Difference("truth.jaw, after", 4.0, 0.0),), {TASK: 4},
    )  # fmt: skip
    failures = tuple(
        replace(each, name=f"{EPISODE}-{k}", ticks=tuple(
            replace(t, signals={**t.signals, "object_x": 0.123456, "oracle_object_x": 0.123456})
            for t in each.ticks
        ))
        for k, each in enumerate(drawn.failures)
    )  # fmt: skip
    named = {old.name: new.name for old, new in zip(drawn.failures, failures, strict=True)}
    trials = tuple(
        replace(trial, episode=named[trial.episode], runs=tuple(map(_marked, trial.runs)))
        for trial in drawn.trials
    )
    return replace(
        drawn, cluster=cluster, failures=failures, trials=trials, parent=tuple(parent),
        sensing=sensing, seed=SEED, strips=tuple(strips), rejected=tuple(rejected),
    )  # fmt: skip


def _marked(run: Continuation) -> Continuation:
    return replace(run, snapshot=DIGEST, seed=BRANCH_SEED, trace=f"trace-of-{run.trace}")


def rejection(reason: str = REASON, digest: str = DIGEST) -> Rejection:
    return Rejection("the hand is too fast", "shadow", reason, digest)


def strips(folder: Path, count: int, size: tuple[int, int] = (3000, 900)) -> list[Path]:
    """Write pictures whose names and texts tell the scene."""
    told = PngImagePlugin.PngInfo()
    told.add_text("scene", f"{TASK} {SEED} {DIGEST}")
    paths = [folder / f"{EPISODE}-{k}.png" for k in range(count)]
    for k, path in enumerate(paths):
        Image.new("RGB", size, (k, 40, 80)).save(path, pnginfo=told)
    return paths
