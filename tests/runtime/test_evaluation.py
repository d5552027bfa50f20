"""Whole evaluations on the toy: workers, kills, resumption and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.core import Init
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.evaluation import run_plan
from zetta.runtime.evaluation_plan import Evaluation, Plan, arms_of, make_plan
from zetta.runtime.evaluation_reports import RESULTS_FILE, TABLES_FILE, write_reports
from zetta.runtime.evaluation_results import Row, complete_rows, open_results
from zetta.runtime.evaluation_tables import tabulate
from zetta.runtime.rollouts.factory import Identity
from zetta.runtime.rollouts.pool import Pool, PoolSettings

FACTORY = "faulty_episodes:make"
"""Beside this file: toy episodes that fail in asked-for ways; the bundle `weak` is a weak arm."""
IDENTITY = Identity(render_profiles={"fast": "toy-fast"}, versions={"toy": "1"})
COMMAND = "zetta eval"


def evaluation(arms: tuple[str, ...] = ("none", "weak"), fault: str = "") -> Evaluation:
    return Evaluation(
        sim="toy",
        tasks=(("toy_pick", 0), ("toy_slip", 1)),
        starts=tuple((Init(k), 0) for k in range(3)),
        arms=arms_of(["oracle/expert"], list(arms)),
        sensing="oracle",
        options={"fault": fault} if fault else {},
    )


def evaluate(
    plan: Plan,
    out: Path,
    workers: int = 2,
    resume: bool = False,
    attempts: int = 2,
    advance: Callable[[int, Row | None], None] = lambda finished, row: None,
) -> tuple[Row, ...]:
    out.mkdir(exist_ok=True)
    used = PoolSettings(FACTORY, out / "logs", workers, stagger_s=0.0, attempts=attempts)
    shards = open_results(plan, out, resume, COMMAND)
    try:
        with Pool(used) as pool:
            rows = run_plan(plan, shards, pool, advance)
    finally:
        shards.close()
    write_reports(out, plan, tabulate(rows, plan.evaluation.arms), rows, COMMAND)
    return rows


def reports(out: Path) -> tuple[str, str]:
    """Return both reports without the timing."""
    results = json.loads((out / RESULTS_FILE).read_text())
    del results["timing"]
    return (out / TABLES_FILE).read_text(), json.dumps(results)


PLAN = make_plan(evaluation(), IDENTITY)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished evaluation, made by one worker."""
    out = tmp_path_factory.mktemp("evaluation") / "out"
    evaluate(PLAN, out, workers=1)
    return out


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copied"))


def shard_of(out: Path) -> Path:
    return next(PLAN.folder(out).glob("episodes-*.jsonl"))


def test_three_workers_write_the_very_tables_of_one(finished: Path, tmp_path: Path) -> None:
    evaluate(PLAN, tmp_path / "many", workers=3)
    assert reports(tmp_path / "many") == reports(finished)


def test_weak_arm_is_found_weaker_on_the_same_scenes(finished: Path) -> None:
    results = json.loads((finished / RESULTS_FILE).read_text())
    arms = results["arms"]
    assert arms["none"]["successes"] == arms["none"]["n"] == arms["weak"]["n"] == 6
    assert arms["weak"]["successes"] < 6
    (total, *_) = results["comparisons"]
    assert total["harms"] == 6 - arms["weak"]["successes"]
    assert total["wins"] == 0


def test_interrupted_evaluation_continues_where_it_was_with_a_torn_line(
    copied: Path, finished: Path
) -> None:
    shard = shard_of(copied)
    lines = shard.read_bytes().splitlines(keepends=True)
    shard.write_bytes(b"".join(lines[:8]) + lines[8][:70])
    (copied / RESULTS_FILE).unlink()
    told: list[int] = []
    evaluate(PLAN, copied, resume=True, advance=lambda count, _: told.append(count))
    assert told == list(range(7, 13))
    assert reports(copied) == reports(finished)


def test_finished_evaluation_is_not_run_again(copied: Path) -> None:
    before = shard_of(copied).read_bytes()
    shutil.rmtree(copied / "logs")
    evaluate(PLAN, copied, resume=True)
    assert shard_of(copied).read_bytes() == before
    assert not (copied / "logs").exists()


def test_folder_in_use_needs_resume(finished: Path) -> None:
    with pytest.raises(ConfigError, match="already holds 12 of 12 episodes; add --resume"):
        open_results(PLAN, finished, False, COMMAND)


def test_other_evaluation_in_the_folder_is_refused_naming_what_differs(finished: Path) -> None:
    upgraded = make_plan(evaluation(), replace(IDENTITY, versions={"toy": "2"}))
    with pytest.raises(ConfigError, match=r"another evaluation .* differing in versions"):
        open_results(upgraded, finished, True, COMMAND)


def test_incomplete_shards_make_no_tables(copied: Path) -> None:
    shard = shard_of(copied)
    shard.write_bytes(b"".join(shard.read_bytes().splitlines(keepends=True)[:-1]))
    shards = open_results(PLAN, copied, True, COMMAND)
    with pytest.raises(ConfigError, match="incomplete: 11 of 12 episodes"):
        complete_rows(PLAN, shards)


@pytest.mark.parametrize(
    "change",
    [
        {"key": "0" * 64},
        {"arm": "weak"},
        {"spec": {}},
        {"record": {"success": True}},
    ],
)
def test_foreign_row_is_refused(copied: Path, change: dict[str, object]) -> None:
    shard = shard_of(copied)
    head, first, *rest = shard.read_text().splitlines()
    shard.write_text("\n".join([head, json.dumps({**json.loads(first), **change}), *rest]) + "\n")
    shards = open_results(PLAN, copied, True, COMMAND)
    with pytest.raises(ConfigError, match=r"not of this plan|cannot be read"):
        complete_rows(PLAN, shards)


def test_two_results_of_one_episode_must_agree(copied: Path) -> None:
    shard = shard_of(copied)
    first = json.loads(shard.read_text().splitlines()[1])
    with shard.open("a") as file:
        file.write(json.dumps(first) + "\n")
    shards = open_results(PLAN, copied, True, COMMAND)
    assert len(complete_rows(PLAN, shards)) == 12
    first["record"]["ticks"] += 1
    with shard.open("a") as file:
        file.write(json.dumps(first) + "\n")
    with pytest.raises(SpecMismatch, match="made by another build"):
        complete_rows(PLAN, shards)


def test_arms_that_start_from_different_worlds_are_not_compared(tmp_path: Path) -> None:
    plan = make_plan(evaluation(arms=("none", "moved")), IDENTITY)
    with pytest.raises(SpecMismatch, match="toy_pick/0 init 0 started differently"):
        evaluate(plan, tmp_path / "out", workers=1)


def test_evaluation_of_errors_alone_is_an_error_and_resume_tries_them_again(
    tmp_path: Path,
) -> None:
    small = replace(evaluation(arms=("none",)), tasks=(("toy_pick", 0),), starts=((Init(0), 0),))
    plan = make_plan(replace(small, options={"fault": f"infra all {tmp_path / 'mark'}"}), IDENTITY)
    with pytest.raises(InfraError, match=r"not one of the 1 episodes .* the camera went away"):
        evaluate(plan, tmp_path / "out", attempts=1)
    assert not (tmp_path / "out" / RESULTS_FILE).exists()
    (row,) = evaluate(plan, tmp_path / "out", resume=True)
    assert row.record is not None


def test_error_is_reported_apart_and_its_pair_is_left_out(tmp_path: Path) -> None:
    asked = replace(evaluation(fault="infra toy_pick/0/1"), tasks=(("toy_pick", 0),))
    plan = make_plan(asked, IDENTITY)
    rows = evaluate(plan, tmp_path / "out", attempts=1)
    assert [row.record is None for row in rows] == [False, False, True, True, False, False]
    results = json.loads((tmp_path / "out" / RESULTS_FILE).read_text())
    assert results["arms"]["none"]["errors"] == 1
    assert results["arms"]["none"]["n"] == 2
    assert results["comparisons"][0]["pairs"] == 2
    assert results["errors"][0]["scene"] == "toy_pick/0 init 1"
