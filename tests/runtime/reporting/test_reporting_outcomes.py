"""What a report of episodes says, held against other people's statistics."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binom, binomtest
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.proportion import proportion_confint

from tests.report_page import check_page, table
from tests.runtime.reporting.made_outcomes import episode, outcomes
from zetta.runtime.reporting import outcome_document as documents
from zetta.runtime.reporting.document import Picture, RateCell, Table
from zetta.runtime.reporting.outcome_document import outcome_document
from zetta.runtime.reporting.outcomes import Outcomes, false_alarms, tables_of, worth_showing
from zetta.runtime.reporting.page import render
from zetta.runtime.success_rates import chance_gain

FIRST = [True] * 15 + [False] * 34 + [True]
SECOND = [True] * 15 + [True] * 21 + [False] * 13 + [False]


def cell(found: Table, row: int, column: str) -> object:
    return found.rows[row][found.columns.index(column)]


def test_counts_and_intervals_are_those_of_statsmodels() -> None:
    document = outcome_document(outcomes({"a": FIRST, "b": SECOND}), 0)
    for row, own in enumerate((FIRST, SECOND)):
        rate = cell(table(document, "Episodes solved"), row, "solved")
        assert isinstance(rate, RateCell)
        low, high = proportion_confint(sum(own), len(own), method="wilson")
        assert (rate.successes, rate.runs) == (sum(own), len(own))
        assert (rate.low, rate.high) == pytest.approx((low, high), abs=1e-9)


def test_the_paired_test_is_the_exact_one_of_statsmodels_and_scipy() -> None:
    found = table(outcome_document(outcomes({"a": FIRST, "b": SECOND}), 0), "Paired comparisons")
    expected = mcnemar_of_statsmodels([[15, 1], [21, 13]], exact=True).pvalue
    one = binomtest(21, 22, 0.5, alternative="greater").pvalue

    assert [cell(found, 0, c) for c in ("pairs", "both", "wins", "harms", "neither")] == [
        "50", "15", "21", "1", "13",
    ]  # fmt: skip
    assert float(str(cell(found, 0, "p, exact McNemar"))) == pytest.approx(expected, rel=5e-3)
    assert float(str(cell(found, 0, "p, one-sided"))) == pytest.approx(one, rel=5e-3)
    # Newcombe's method 10 for (15, 21, 1, 13), from the reference table.
    assert cell(found, 0, "difference, points") == "+40.0"
    assert cell(found, 0, "95 % (Newcombe)") == "+23.6 to +53.0"


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_null_of_a_gain_is_the_quantile_of_a_coin(differing: int, others: int) -> None:
    pairs = differing + others
    if pairs == 0:
        with pytest.raises(ValueError, match="at least one pair"):
            chance_gain(0, 0)
        return
    wins = binom.ppf(0.95, differing, 0.5) if differing else 0
    assert chance_gain(differing, pairs) == pytest.approx((2 * wins - differing) / pairs)


def test_every_comparison_has_its_null_beside_it() -> None:
    found = table(outcome_document(outcomes({"a": FIRST, "b": SECOND}), 0), "Paired comparisons")

    assert cell(found, 0, "null: gain of equal arms, at most") == "+16.0"


def test_errors_of_machinery_are_no_score() -> None:
    made = outcomes({"a": [True, None, False, None]}, "run")
    document = outcome_document(made, 0)
    rate = cell(table(document, "Episodes solved"), 0, "solved")

    assert isinstance(rate, RateCell)
    assert (rate.successes, rate.runs) == (1, 2)
    assert cell(table(document, "Episodes solved"), 0, "not run") == "2"
    assert len(table(document, "could not carry out").rows) == 2
    assert len(table(document, "Every episode").rows) == 4


def test_interventions_where_the_baseline_solved_are_false_alarms() -> None:
    made = outcomes({"a": [True, True, False, False], "b": [True, False, True, False]}, called="b")
    (found,) = false_alarms(made, tables_of(made).comparisons)

    assert (found.solved, found.alarmed, found.lost) == (2, 2, 1)
    assert table(outcome_document(made, 0), "False alarms").rows[0][1:] == (
        "2",
        "2",
        "100.0 %",
        "1",
    )


def test_several_runs_are_all_compared_with_the_first() -> None:
    made = outcomes({"a": FIRST, "b": SECOND, "c": FIRST})
    pairs = [(each.baseline, each.arm) for each in tables_of(made).comparisons]

    assert pairs == [("a", "b"), ("a", "c")]


def test_strips_begin_with_interventions_and_take_turns_over_tasks() -> None:
    plain = [episode("a", place, False, tasks=3) for place in range(9)]
    called = episode("a", 9, True, called=True, tasks=3)
    solved = episode("a", 10, True, tasks=3)
    made = replace(outcomes({"a": []}, "run"), episodes=(*plain, called, solved))
    chosen, wanted = worth_showing(made, 4)

    assert wanted == 10
    assert chosen[0] is called
    assert sorted(each.row.planned.spec.task for each in chosen[1:]) == [0, 1, 2]


def pictured(folder: Path, count: int) -> Outcomes:
    path = folder / "strip.png"
    Image.effect_noise((900, 360), 90).save(path)
    own = tuple(episode("a", place, False, strip=path) for place in range(count))
    return replace(outcomes({"a": []}, "run"), episodes=own)


def test_a_report_of_two_hundred_episodes_stays_below_ten_megabytes(tmp_path: Path) -> None:
    document = outcome_document(pictured(tmp_path, 200), 200)
    pictures = [block for block in document.blocks() if isinstance(block, Picture)]
    page = check_page(render(document))

    assert 20 < len(pictures) < 200
    assert len(page.text) < 10_000_000
    assert f"{len(pictures)} of 200 episodes with an intervention or a failure" in page.words


def test_a_strip_that_is_no_picture_is_counted_and_left_out(tmp_path: Path) -> None:
    broken = tmp_path / "strip.png"
    broken.write_bytes(b"no picture")
    made = replace(outcomes({"a": []}, "run"), episodes=(episode("a", 0, False, strip=broken),))
    strips = documents.strips_of(made, 5, {})

    assert (strips.shown, strips.undrawn) == ((), 1)


def test_equal_outcomes_give_equal_pages_with_the_hash_of_the_page() -> None:
    made = outcomes({"a": FIRST, "b": SECOND}, called="b")
    text = render(outcome_document(made, 0))

    assert render(outcome_document(made, 0)) == text
    (digest,) = set(re.findall(r"\b[0-9a-f]{64}\b", text))
    assert text.count(digest) == 2
    assert render(outcome_document(outcomes({"a": FIRST}, "run"), 0)).count(digest) == 0


HOSTILE = "<script>alert('x')</script> $\\frac{a}{b}$ </style> &amp; \x07"


def test_whatever_somebody_else_wrote_is_text() -> None:
    own = episode("a", 0, False, called=True, instruction=HOSTILE)
    assert own.record is not None
    called = replace(own.recoveries[0], reason=HOSTILE, skill=HOSTILE, critic=HOSTILE)
    kept = replace(own.record, detail=HOSTILE, recoveries=(called,), sources={HOSTILE: 3})
    arm = HOSTILE
    row = replace(own.row, record=kept, planned=replace(own.row.planned, arm=arm))
    made = outcomes({arm: [], "b": [True, True]})
    made = replace(made, episodes=(replace(own, row=row), *made.episodes), title=HOSTILE,
                   alarms=(HOSTILE,), missing=(HOSTILE,), commands={HOSTILE: HOSTILE})  # fmt: skip
    text = render(outcome_document(made, 3))
    page = check_page(text)

    assert "<script" not in text
    assert page.words.count("<script>alert('x')</script>") >= 9


def test_nothing_at_all_is_a_report_too() -> None:
    page = check_page(render(outcome_document(outcomes({"a": []}, "run"), 3)))

    assert "0 of 0 solved" in page.words


def test_an_oracle_is_marked() -> None:
    made = replace(outcomes({"a": [True]}, "run"), sensing=("oracle",))

    assert (
        "nothing here is a headline number" in check_page(render(outcome_document(made, 0))).words
    )
    assert "headline" not in render(outcome_document(outcomes({"a": [True]}, "run"), 0))


def test_a_table_with_a_cell_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells, 2 columns"):
        Table("caption", ("a", "b"), (("x",),))
