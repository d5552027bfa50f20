"""Transfer: who belongs where, what counts as a pair, and a verdict for each task."""

from __future__ import annotations

from zetta.primitives.roles import roles_or_none
from zetta.runtime.core import Recovery, RunSpec, Sampled
from zetta.runtime.evaluation_plan import Arm, Evaluation, Planned
from zetta.runtime.evaluation_results import Row
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.skills.evolve.transfer import (
    CellCounts,
    count_cells,
    fresh_seeds,
    judge_cells,
    why_not,
)
from zetta.skills.package import load_skill
from zetta.skills.shelf import library_folder


def row(
    arm: str, seed: int, success: bool | None, skills: tuple[str, ...] = (), begun: bool = False
) -> Row:
    spec = RunSpec("toy", "toy_slip", 1, Sampled(), seed=seed)
    record = None
    if success is not None:
        recoveries = tuple(Recovery(skill, skill, "", 3) for skill in skills)
        record = EpisodeRecord(success, begun, "success", 9, 1, len(skills), {}, "d", 0.1,
                               recoveries=recoveries)  # fmt: skip
    return Row(Planned(f"{arm}{seed}", arm, spec), record, 1)


def test_pairs_are_counted_and_errors_are_no_scores() -> None:
    rows = [
        row("parent", 0, False), row("with", 0, True, ("regrasp",)),
        row("parent", 1, True), row("with", 1, False, ("regrasp", "reseat")),
        row("parent", 2, True), row("with", 2, True),
        row("parent", 3, False), row("with", 3, True),  # nobody intervened
        row("parent", 4, None), row("with", 4, True),
        row("parent", 5, True), row("with", 5, None),
        row("parent", 6, True, begun=True), row("with", 6, True, begun=True),
        row("parent", 7, False), row("with", 7, False, ("reseat",)),
    ]  # fmt: skip
    (cell,) = count_cells(rows, "parent", "with", "regrasp")

    assert cell == CellCounts("toy_slip", 1, both=1, wins=2, harms=1, neither=1, called=2,
                              unattributed=1, errors=3)  # fmt: skip
    assert cell.pairs == 5


def test_one_gain_among_many_tasks_needs_more_than_one_alone() -> None:
    gain = CellCounts("s", 0, wins=5, neither=15, called=9)
    quiet = [CellCounts("s", k, both=20) for k in range(1, 8)]
    (alone,) = judge_cells([gain])
    among = judge_cells([gain, *quiet])

    assert (alone.decision, alone.p, alone.p_adjusted) == ("TRANSFERS", 0.03125, 0.03125)
    assert among[0].decision == "UNDECIDED"
    assert among[0].p_adjusted == 0.25
    assert {each.decision for each in among[1:]} == {"QUIET"}


def test_harm_is_told_and_bounds_hold_the_estimate() -> None:
    harm, none, empty = judge_cells([
        CellCounts("s", 0, harms=9, both=11, called=12),
        CellCounts("s", 1, both=59, called=4),
        CellCounts("s", 2, errors=20),
    ])  # fmt: skip
    assert harm.decision == "HARMS"
    assert harm.difference == -0.45
    assert harm.low < harm.difference
    assert harm.harm_high > 0.45
    assert none.decision == "UNDECIDED"
    assert none.harm_high <= 0.05  # 0 of 59
    assert empty.decision == "NOT RUN"


def test_seeds_follow_from_key_and_package_and_are_all_different() -> None:
    first = fresh_seeds("00" * 32, "p", "scene", 200)
    assert first == fresh_seeds("00" * 32, "p", "scene", 200)
    others = [fresh_seeds("01" * 32, "p", "scene", 200), fresh_seeds("00" * 32, "q", "scene", 200),
              fresh_seeds("00" * 32, "p", "policy", 200)]  # fmt: skip
    assert len(set(first).union(*others)) == 800
    assert first[:5] == fresh_seeds("00" * 32, "p", "scene", 5)


def test_a_start_has_its_own_policy_seed() -> None:
    evaluation = Evaluation("toy", (("s", 0), ("s", 1)), ((Sampled(), 5), (Sampled(), 6)),
                            (Arm("a", "p"),), (7, 8), own_seeds=True)  # fmt: skip
    specs = [spec for _, spec in evaluation.specs()]
    assert [(s.task, s.seed, s.policy_seed) for s in specs] == [
        (0, 5, 7), (0, 6, 8), (1, 5, 7), (1, 6, 8),
    ]  # fmt: skip
    assert evaluation.episodes == len(specs)


def test_a_task_that_lacks_a_role_is_left_out_with_its_reason() -> None:
    regrasp = load_skill(library_folder() / "regrasp")
    drawer = load_skill(library_folder() / "open-drawer")
    pick = roles_or_none("put the red cube on the green plate")
    assert why_not(regrasp, pick) == ""
    assert why_not(drawer, pick) == "its instruction binds no part"
    assert why_not(regrasp, None) == "its instruction is not understood"
    opening = roles_or_none("open the top drawer of the cabinet")
    assert why_not(load_skill(library_folder() / "close-drawer"), opening).startswith("its instr")
