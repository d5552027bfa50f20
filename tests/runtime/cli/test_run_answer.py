"""The answer of a run as it grows on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from zetta.runtime.cli.run_answer import Answer
from zetta.runtime.cli.run_episodes import RESULT, Facts, blank_report
from zetta.runtime.core import Init, RunSpec


def test_an_episode_is_saved_before_its_pictures_and_counted_once_with_them(tmp_path: Path) -> None:
    spec = RunSpec("toy", "toy_pick", 0, Init(0), 0, policy="toy/reach")
    answer = Answer(tmp_path, spec, "zetta run")
    first = replace(blank_report(spec), log="episodes/000")
    answer.keep(first, Facts())
    assert len(json.loads((tmp_path / RESULT).read_text())["episodes"]) == 1
    answer.keep(replace(first, strip="episodes/000/strip.png"), Facts())
    answer.keep(replace(first, log="episodes/001"), Facts())
    answer.keep(replace(first, log=None), Facts())
    answer.keep(replace(first, log=None), Facts())
    kept = json.loads((tmp_path / RESULT).read_text())["episodes"]
    assert [each["log"] for each in kept] == ["episodes/000", "episodes/001", None, None]
    assert kept[0]["strip"] == "episodes/000/strip.png"


def test_the_line_of_an_episode_says_how_long_each_skill_drove() -> None:
    spec = RunSpec("toy", "toy_pick", 0, Init(0), 0, policy="toy/reach")
    calls = [("regrasp", 20), ("reseat", 7), ("regrasp", 5)]
    recoveries = [{"skill": skill, "ticks": n, "ending": "completed"} for skill, n in calls]
    report = replace(blank_report(spec), ticks=105, success=True, recoveries=recoveries)
    assert "(105 ticks, 0.0 s; skills drove 32: regrasp 25, reseat 7)" in report.verdict


def test_the_line_of_a_shadow_episode_says_what_would_have_been_called() -> None:
    spec = RunSpec("toy", "toy_pick", 0, Init(0), 0, policy="toy/reach")
    recoveries = [{"skill": "regrasp", "ticks": 0, "ending": "shadow"}]
    report = replace(blank_report(spec), recoveries=recoveries)
    assert report.verdict.endswith("; would have called regrasp)")
