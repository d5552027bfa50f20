"""Run folders of made-up episodes, as large as wanted, for the dashboard's bench and for tests.

What lies on disk is what a run writes: headers by `records.to_json`, ticks by `write_ticks`, the
answer by `Answer`. Only the ticks are few: episodes share a dozen tables through hard links, so
that ten thousand episodes take seconds and little room.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from zetta.runtime.cli.run_answer import Answer
from zetta.runtime.cli.run_episodes import EPISODES, RESULT, EpisodeReport, Facts
from zetta.runtime.core import (
    ActionSpec,
    ArmState,
    CameraSpec,
    EnvSpec,
    EpisodeResult,
    Init,
    Proprio,
    Recovery,
    RunSpec,
    Scene,
    Task,
    Tick,
    Verdict,
)
from zetta.runtime.episode_log import FORMAT, HEADER, TICKS, RunFacts
from zetta.runtime.records import to_json
from zetta.runtime.tick_tables import write_ticks

SKILLS: Final = ("regrasp", "reseat", "restage")
VERBS: Final = ("put", "move", "bring", "carry")
THINGS: Final = ("red cube", "white mug", "black bowl", "alphabet soup", "butter", "book")
PLACES: Final = ("plate", "tray", "drawer", "basket")
LENGTHS: Final = (48, 72, 96, 120)
MOST_TICKS: Final = 160
HZ: Final = 20.0
SUITES: Final = ("toy_pick", "toy_place")
SHARE_SOLVED, SHARE_HELPED, SHARE_ERRORS = 0.62, 0.3, 0.01
SPEC: Final = EnvSpec(
    "toy", HZ,
    ActionSpec(
        "delta_pose", ("dx", "dy", "dz", "rx", "ry", "rz", "gripper"), (-1.0,) * 7, (1.0,) * 7,
        (0.05,) * 3 + (0.5,) * 3 + (1.0,),
    ),
    (CameraSpec("front", 48, 64), CameraSpec("wrist", 48, 48, "wrist")),
    render_profile="toy-fast", versions={"toy": "1"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """How a run is made up; equal ones give equal runs."""

    episodes: int
    seed: int = 0
    tasks: int = 24
    """Spread over two suites."""
    bundle: str = "starter"
    solved: float = SHARE_SOLVED
    errors: float = SHARE_ERRORS


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of one episode."""

    number: int
    scene: Scene
    policy_seed: int
    success: bool
    error: str
    ticks: int
    skill: str
    """That had the robot; empty for none."""

    @property
    def table(self) -> str:
        """Name of its table of ticks."""
        return f"{self.ticks}-{self.skill or 'none'}.parquet"

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        """The one time that a skill had the robot, or none."""
        if not self.skill:
            return ()
        begin = self.ticks // 3
        why = "the hand goes away without the object"
        return (Recovery(self.skill, self.skill, why, begin, 16, True, "back above the object"),)


def write_made_run(
    folder: Path, made: Made, advance: Callable[[int], None] = lambda finished: None
) -> Path:
    """Write a run of made-up episodes into `folder`, which must not exist, and return it.

    Args:
        folder: of the run.
        made: how many episodes, and how they fare.
        advance: told how many are written.

    Raises:
        FileExistsError: `folder` exists.
        OSError: it cannot be written.
    """
    episodes = folder / EPISODES
    episodes.mkdir(parents=True)
    tables = folder / f".{TICKS}"
    tables.mkdir()
    spec = RunSpec("toy", SUITES[0], 0, Init(0), policy="toy/reach", bundle=made.bundle)
    command = f"zetta run --sim toy --policy toy/reach --bundle {made.bundle}"
    facts = Facts({"zetta": "made up"}, SPEC.render_profile, made.bundle, {"name": "toy/reach"})
    answer = Answer(folder, spec, command, facts=facts)
    for number in range(made.episodes):
        fate = _fate(number, made)
        log = episodes / f"{fate.number:05d}"
        write_made_episode(log, fate, tables, RunFacts(
            "toy/reach", policy_seed=fate.policy_seed, bundle=made.bundle,
            bundle_digest="" if made.bundle == "none" else "b" * 64, command=command,
        ))  # fmt: skip
        answer.reports.append(_report(fate, log))
        if fate.number % 100 == 0:
            advance(fate.number)
    shutil.rmtree(tables)
    text = json.dumps(answer.to_json(), allow_nan=False)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    return folder


def write_made_episode(log: Path, fate: _Fate, tables: Path, facts: RunFacts) -> None:
    """Write the folder of one episode; it has its name only when it is whole."""
    table = tables / fate.table
    if not table.exists():
        write_ticks(table, list(_ticks(fate)), ["arm"])
    partial = log.with_name(f".{log.name}.partial-made")
    partial.mkdir()
    text = json.dumps(_header(fate, facts), allow_nan=False)
    (partial / HEADER).write_text(text + "\n", encoding="utf-8")
    os.link(table, partial / TICKS)
    partial.rename(log)


def add_made_episode(folder: Path, number: int, made: Made) -> Path:
    """Add one more episode to a run, as one that is still going on would; return its log."""
    fate = _fate(number, made)
    tables = folder / f".{TICKS}"
    tables.mkdir(exist_ok=True)
    log = folder / EPISODES / f"{number:05d}"
    write_made_episode(log, fate, tables, RunFacts("toy/reach", bundle=made.bundle))
    return log


# ------------------------------------------------------------------------------ fates


def _fate(number: int, made: Made) -> _Fate:
    task = number % made.tasks
    verb, thing, place = VERBS[task % 4], THINGS[task % 6], PLACES[task // 6 % 4]
    scene = Scene(
        Task(
            SUITES[task % len(SUITES)], task // len(SUITES), f"{verb} the {thing} on the {place}",
            MOST_TICKS,
        ),
        Init(number // made.tasks),
    )  # fmt: skip
    draw = np.random.default_rng((made.seed, number)).random(4)
    error = "the simulator stopped: made up" if draw[0] < made.errors else ""
    success = not error and bool(draw[1] < made.solved)
    helped = not error and draw[2] < SHARE_HELPED and made.bundle != "none"
    return _Fate(
        number, scene, 0, success, error,
        LENGTHS[int(draw[3] * 4)] if success else MOST_TICKS,
        SKILLS[int(draw[3] * 97) % 3] if helped else "",
    )  # fmt: skip


def _header(fate: _Fate, facts: RunFacts) -> dict[str, object]:
    """Return `episode.json`; what is equal in all of them is made plain once."""
    scene, result = to_json(fate.scene), _result(fate)
    kept = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "scene"}
    plain = {"scene": scene, **{name: to_json(value) for name, value in kept.items()}}
    return {
        "scene": scene, "instruction": fate.scene.task.instruction, "spec": _plain_spec(),
        "run": to_json(facts), "result": plain, "complete": not fate.error, "sim": "toy",
        "format": FORMAT,
    }  # fmt: skip


@cache
def _plain_spec() -> object:
    return to_json(SPEC)


def _result(fate: _Fate) -> EpisodeResult:
    driven = sum(each.ticks for each in fate.recoveries)
    sources = {"policy": fate.ticks - driven} | ({f"skill:{fate.skill}": driven} if driven else {})
    return EpisodeResult(
        fate.scene,
        fate.success,
        "error" if fate.error else "success" if fate.success else "truncated",
        fate.ticks,
        sources,
        len(fate.recoveries),
        wall_s=fate.ticks / 40,
        success_at_end=fate.success,
        first_success=fate.ticks if fate.success else None,
        inferences=fate.ticks // 4,
        scene_digest=_digest(fate.scene),
        detail=fate.error,
        recoveries=fate.recoveries,
    )


def _digest(scene: Scene) -> str:
    text = f"{scene.task.suite}/{scene.task.index}/{scene.layout}/{scene.seed}"
    return hashlib.sha256(text.encode()).hexdigest()


def _report(fate: _Fate, log: Path) -> EpisodeReport:
    result = _result(fate)
    return EpisodeReport(
        fate.scene.task.suite, fate.scene.task.index, int(str(fate.scene.layout)), fate.scene.seed,
        fate.policy_seed, fate.scene.task.instruction, result.success, False, result.reason,
        result.ticks, dict(result.sources), result.interventions,
        [dict(to_json(each)) for each in result.recoveries], result.inferences,
        wall_s=result.wall_s, scene_digest=result.scene_digest, log=str(log),
        error=fate.error or None, first_success=result.first_success,
        success_at_end=result.success_at_end,
    )  # fmt: skip


# ------------------------------------------------------------------------------ ticks


def _ticks(fate: _Fate) -> Iterator[Tick]:
    for index in range(fate.ticks):
        called = fate.recoveries[0] if fate.recoveries else None
        skilled = called is not None and called.tick <= index < called.tick + called.ticks
        verdicts: tuple[Verdict, ...] = ()
        signals = _signals(index, fate.ticks, skilled)
        if called is not None and index == called.tick:
            seen = {name: signals[name] for name in ("holding", "ee_speed", "gripper_opening")}
            verdicts = (Verdict("recover", called.reason, called.critic, called.skill, seen),)
        yield Tick(
            index, _proprio(index), np.full(7, 0.1 * np.sin(index / 7)),
            f"skill:{fate.skill}" if skilled else "policy", signals, verdicts,
        )  # fmt: skip


def _proprio(index: int) -> Proprio:
    turn = index / 20
    position = np.array([0.4 * np.cos(turn), 0.4 * np.sin(turn), 0.2 + 0.1 * np.sin(3 * turn)])
    arm = ArmState(position, np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(7), 0.04)
    return Proprio(index / HZ, (arm,))


def _signals(index: int, ticks: int, skilled: bool) -> dict[str, float]:
    share = index / ticks
    return {
        "ee_speed": float(abs(np.sin(index / 9)) * 0.6),
        "ee_z": float(0.2 + 0.1 * np.sin(3 * index / 20)),
        "gripper_opening": 0.08 if share < 0.4 else 0.02,
        "holding": float(share > 0.45 and not skilled),
        "object_distance": float(max(0.0, 0.4 - share)),
        "object_confidence": 0.9,
        "policy_drives": float(not skilled),
        "elapsed": index / HZ,
        "interventions": float(skilled),
        "stalled_for": float(index % 30) / HZ,
    }
