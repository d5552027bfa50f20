"""Wrong usage exits 2, says what was wrong, and names what was probably meant."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.tree import Root, leaves

ROOT = Path(__file__).parents[3]
LEAVES = dict(leaves(Root({verb: cli.VERBS[verb] for verb in cli.present_verbs()})))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("skils", "did you mean 'skills'"),
        ("--vesion", "did you mean '--version'"),
        ("skills lst", "Did you mean 'list'"),
        ("arms stpo", "Did you mean 'estop'"),
        ("arms calibrate bord", "Did you mean 'board'"),
        ("run --sut toy_pick", "--suite"),
        ("eval --suits toy_pick", "--suites"),
        ("drive --tokns 3", "--tokens"),
        ("run --episodes many", "integer"),
        ("eval", "Missing option '--sim'"),
        ("sims install", "Missing argument 'name'"),
        ("doctor police", "policy"),
    ],
)
def test_what_was_probably_meant_is_named(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(line.split())
    shown = capsys.readouterr()

    assert left.value.code == 2
    assert said in shown.err
    assert shown.out == ""


def test_a_word_that_stands_for_a_command_in_haste_is_understood(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["arms", "stop", "--help"])

    assert left.value.code == 0
    assert "Stop arms at once" in capsys.readouterr().out


def readme_commands() -> list[str]:
    """Return the commands of the README that stand in backticks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"`(zetta [^`]+)`", text)
    assert len(found) > 20
    return [line for line in dict.fromkeys(found) if not line.endswith("…")]


@pytest.mark.parametrize("line", readme_commands())
def test_every_command_of_the_readme_is_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    depths = [n for n in range(1, len(words) + 1) if tuple(words[:n]) in LEAVES]
    if not depths:
        groups = {path[:n] for path in LEAVES for n in range(1, len(path))}
        assert tuple(words) in groups or words[0].startswith("--")
        return
    path = tuple(words[: max(depths)])
    if path == tuple(words):  # a verb is named, not typed
        return
    LEAVES[path].make_context(" ".join(path), words[max(depths) :])
