"""Outcomes of episodes that nobody ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from zetta.runtime.core import Init, Recovery, RunSpec
from zetta.runtime.evaluation_plan import Arm, Planned
from zetta.runtime.evaluation_results import Row
from zetta.runtime.reporting.outcomes import Episode, Kind, Outcomes
from zetta.runtime.rollouts.factory import EpisodeRecord

CALLED = Recovery("regrasp", "slip", "it slips", 40, 12, True, "done")


def record(success: bool, recoveries: tuple[Recovery, ...] = ()) -> EpisodeRecord:
    """Return the record of an episode."""
    return EpisodeRecord(
        success=success, success_at_reset=False, reason="success" if success else "truncated",
        ticks=50 if success else 160, inferences=10, interventions=len(recoveries),
        sources={"policy": 40, "skill:regrasp": 10}, scene_digest="d", wall_s=1.0,
        recoveries=recoveries, first_success=50 if success else None,
    )  # fmt: skip


def episode(
    arm: str, place: int, success: bool | None, called: bool = False, tasks: int = 2,
    strip: Path | None = None, instruction: str = "",
) -> Episode:  # fmt: skip
    """Return one; without a success the machinery failed."""
    spec = RunSpec("toy", "suite", place % tasks, Init(place // tasks))
    found = None if success is None else record(success, (CALLED,) if called else ())
    row = Row(Planned(f"{arm}/{place}", arm, spec), found, 1, "" if found else "it broke")
    return Episode(row, f"{place:03d}", instruction, strip=strip)


def outcomes(
    arms: Mapping[str, Sequence[bool | None]], kind: Kind = "runs", called: str = ""
) -> Outcomes:
    """Return arms on the same scenes; the one that is `called` had a skill in every episode."""
    return Outcomes(
        kind=kind, title="made", arms=tuple(Arm(name, "p", name) for name in arms),
        episodes=tuple(
            episode(name, place, success, name == called)
            for name, own in arms.items()
            for place, success in enumerate(own)
        ),
        facts={name: {"policy": "p"} for name in arms}, sensing=("vision",),
    )  # fmt: skip
