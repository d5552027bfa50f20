"""Every command explains itself: each option, when it is wanted, examples that can be typed."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from zetta.runtime.cli import main as cli
from zetta.runtime.cli.help import MANY, OTHER, page_of, sections
from zetta.runtime.cli.pages import PAGES
from zetta.runtime.cli.skill_pages import SKILL_PAGES
from zetta.runtime.cli.tree import Root, leaves

ROOT = Root({verb: cli.VERBS[verb] for verb in cli.present_verbs()})
LEAVES = dict(leaves(ROOT))
each_leaf = pytest.mark.parametrize(
    ("path", "command"), [pytest.param(p, c, id=" ".join(p)) for p, c in LEAVES.items()]
)
EXAMPLES = [
    pytest.param(path, line, id=line)
    for path, page in ((path, page_of(path)) for path in LEAVES)
    for line in (page.examples if page else ())
]


def context_of(path: tuple[str, ...], command: Any) -> typer.Context:
    """Return the context in which the help of a command is made."""
    return typer.Context(command, info_name=" ".join(("zetta", *path)))


@each_leaf
def test_every_option_and_argument_says_what_it_is(path: tuple[str, ...], command: Any) -> None:
    context = context_of(path, command)
    silent = [p.name for p in command.get_params(context) if not (p.help or "").strip()]

    assert (command.help or "").strip()
    assert silent == []


@each_leaf
def test_every_command_says_when_it_is_wanted_and_gives_examples(
    path: tuple[str, ...], command: Any
) -> None:
    page = page_of(path)

    assert page is not None, f"write a page for {' '.join(path)} in runtime/cli/pages.py"
    assert page.when.endswith(".")
    assert 1 <= len(page.examples) <= 3
    shown = command.get_help(context_of(path, command))
    assert "Exit codes:" in shown
    assert all(line in shown.splitlines() for line in (f"  {each}" for each in page.examples))


@each_leaf
def test_many_options_are_grouped(path: tuple[str, ...], command: Any) -> None:
    found = [s for s in sections(command, context_of(path, command)) if s.title != "Arguments"]
    if sum(len(section.rows) for section in found) <= MANY:
        assert [section.title for section in found] == [OTHER]
        return
    assert len(found) > 1
    ungrouped = [row[0] for section in found for row in section.rows if section.title == OTHER]
    assert ungrouped == [], "name a panel for them in runtime/cli/help.py"


@pytest.mark.parametrize(("path", "line"), EXAMPLES)
def test_every_example_is_understood(path: tuple[str, ...], line: str) -> None:
    program, *words = shlex.split(line)
    depth = max(n for n in range(1, len(words) + 1) if tuple(words[:n]) in LEAVES)

    assert program == "zetta"
    assert tuple(words[:depth]) == path
    LEAVES[path].make_context(" ".join(path), words[depth:])  # raises where it cannot be parsed


def test_no_page_is_left_over_from_a_command_that_is_gone() -> None:
    written = {tuple(name.split()) for name in (*PAGES, *SKILL_PAGES)}

    assert {p for p in written if p[0] in cli.present_verbs()} <= set(LEAVES)


def test_groups_name_their_commands_without_importing_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["arms", "--help"])

    assert left.value.code == 0
    assert "  estop " in capsys.readouterr().out
