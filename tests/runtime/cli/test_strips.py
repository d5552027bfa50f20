"""Strips of pictures: told while they are drawn, and left out where that is asked for."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.skills.evolve.made_campaign import made
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.evolve_episodes import Errand, EvolvingEpisodes, sent_on
from zetta.runtime.cli.evolve_rollouts import Nobody
from zetta.runtime.cli.run_answer import _arguments
from zetta.runtime.cli.run_episodes import Manner
from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import RunSpec, Sampled


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def typed(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Run a command that succeeds; return its answer and its notes."""
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    said = capfd.readouterr()
    assert left.value.code == 0, said.err
    return said.out, said.err


def test_each_strip_is_told_by_its_number_while_it_is_drawn(
    capfd: pytest.CaptureFixture[str],
) -> None:
    out, notes = typed(capfd, "run", "--sim", "toy", "--episodes", "2", "--json")

    assert "drawing strip 1/2: 8/8" in notes
    assert "drawing strip 2/2: 8/8" in notes
    assert all(Path(each["strip"]).exists() for each in json.loads(out)["episodes"])


def test_a_run_without_strips_draws_none(capfd: pytest.CaptureFixture[str]) -> None:
    out, notes = typed(capfd, "run", "--sim", "toy", "--no-strip", "--json")

    assert "drawing strip" not in notes
    assert [each["strip"] for each in json.loads(out)["episodes"]] == [None]
    assert not list(Path("runs").rglob("strip.png"))


@pytest.mark.parametrize("strip", [True, False])
def test_the_wish_reaches_the_children_of_several_tasks(strip: bool) -> None:
    specs = plan(Wishes("toy", tasks="0,1"), find_simulator("toy"))

    assert ("--no-strip" in _arguments(specs[0], specs, Manner(strip=strip))) is not strip


def test_a_drive_without_strips_draws_none(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--agent", "scripted", "--no-strip", "--localizer", "geometry")
    out, notes = typed(capfd, "drive", "--sim", "toy", *words, "--json")

    assert "drawing strip" not in notes
    assert [each["strip"] for each in json.loads(out)["episodes"]] == [None]


def test_the_report_of_a_campaign_may_do_without_pictures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    log = tmp_path / "000" / "logs" / "001"
    spec = RunSpec("toy", "toy_pick", 0, Sampled(), seed=1, policy="toy/reach-exact")
    with closing(EvolvingEpisodes()) as here:
        here.run(sent_on(spec, Errand(log=str(log))), Nobody())
    _, without = typed(capfd, "evolve", "--report", str(tmp_path), "--no-strip")
    drawn_without = (tmp_path / "pictures").exists()
    _, notes = typed(capfd, "evolve", "--report", str(tmp_path))

    assert "strip" not in without
    assert not drawn_without
    assert "drawing strip 2/2" in notes
    assert (tmp_path / "pictures" / "000-001.png").exists()


def test_a_campaign_without_strips_draws_none(capfd: pytest.CaptureFixture[str]) -> None:
    words = (
        "evolve", "--sim", "toy", "--suite", "toy_pick", "--tasks", "0", "--policy", "toy/reach",
        "--sensing", "oracle", "--development", "6", "--search", "4", "--seed", "s",
    )  # fmt: skip
    typed(capfd, *words, "--out", "bare", "--no-strip")
    typed(capfd, *words, "--out", "drawn", "--reuse", "bare")

    assert not list(Path("bare").rglob("*.png"))
    assert list(Path("drawn").rglob("*.png"))
