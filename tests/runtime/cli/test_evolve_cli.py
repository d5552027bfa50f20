"""`zetta evolve --null`: the gate measured from the command line."""

from __future__ import annotations

import json

import pytest

from zetta.runtime.cli.evolve import _checked
from zetta.runtime.cli.main import main


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["evolve", *words])
    assert isinstance(ended.value.code, int)
    said = capsys.readouterr()
    return ended.value.code, said.out if ended.value.code == 0 else said.err + said.out


def test_worthless_candidates_are_not_promoted_and_planted_fixes_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = typed(capsys, "--null", "100", "--json")
    answer = json.loads(text)

    assert code == 0
    assert answer["candidates"] == 100
    assert answer["planted"] == 20
    assert answer["promoted"] <= 1
    assert answer["planted_promoted"] >= 12
    assert 0 < answer["reached_gate"] < 50


def test_equal_seeds_give_equal_answers_and_others_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, again, other = (
        typed(capsys, "--null", "30", "--seed", seed, "--json")[1] for seed in ("1", "1", "2")
    )

    assert first == again
    assert json.loads(first)["discordant"] != json.loads(other)["discordant"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "zetta evolve --null 2000"),
        (("--null", "0"), "at least one candidate, got 0"),
        (("--null", "5", "--sim", "libero"), "'model' or 'toy', not on 'libero'"),
        (("--null", "0", "--sim", "toy"), "at least one candidate, got 0"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = typed(capsys, *words)

    assert code == 1
    assert said in text


@pytest.mark.parametrize(("suite", "meant"), [(None, "toy_pick"), ("toy_swap", "toy_swap")])
def test_a_campaign_takes_the_suite_of_a_run_where_none_is_named(
    suite: str | None, meant: str
) -> None:
    assert _checked("toy", suite, None, None) == meant
