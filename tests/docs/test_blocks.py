"""Every block and every command of the documentation is run, or read by the real command line."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.docs.blocks import DATA, OWN_RUNNER, Block, PageError, blocks_of, pages, spans_of
from tests.docs.command_lines import complaint, typed
from tests.docs.session import BlockFailed, session

PAGES: Final = {page: blocks_of(page) for page in pages() if page.name not in OWN_RUNNER}
REASONS: Final = (
    "an arm", "a browser", "a camera", "a GPU", "a download", "a key", "a server of yours",
    "another machine", "a quiet machine", "LeRobot", "your own", "hours", "a simulator",
)  # fmt: skip
"""What a test does not have; every `needs` begins with one of them."""
ENDS: Final = ("…", "|", "&", ";", ">", "[")
"""With one of these a command ends, or what may be left out begins."""

WRITES: Final = {"run", "drive", "eval", "evolve"}
"""Verbs that refuse a folder that holds something."""
ON_THE_WAY: Final = (
    "start.md", "own-policy.md", "first-critic.md", "first-skill.md", "replay.md", "export.md",
    "reports.md", "dashboard.md", "dashboard-campaigns.md",
)  # fmt: skip
"""Pages that a reader works through in one folder, one after the other."""


def those(slow: bool) -> list[Any]:
    """Return the pages whose blocks a test runs, with the marks that they need."""
    chosen = []
    for page, blocks in PAGES.items():
        if any(block.is_run and block.slow is slow for block in blocks):
            needs_libero = slow and any("libero" in block.words for block in blocks)
            marks = [pytest.mark.libero] if needs_libero else []
            chosen.append(pytest.param(page, id=page.name, marks=marks))
    return chosen


def each_page() -> list[Any]:
    """Return every page that is read here."""
    return [pytest.param(page, id=page.name) for page in PAGES]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", those(slow=False))
def test_quick_blocks_of_a_page_do_what_they_say(page: Path, tmp_path: Path) -> None:
    with session(tmp_path) as reader:
        for block in PAGES[page]:
            if not block.slow:
                reader.carry_out(block)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("page", those(slow=True))
def test_every_block_of_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    with session(tmp_path) as reader:
        for block in PAGES[page]:
            reader.carry_out(block)


@pytest.mark.parametrize("page", each_page())
def test_command_line_takes_every_command_of_a_page(page: Path, tmp_path: Path) -> None:
    wrong = []
    for block in PAGES[page]:
        for command in commands_in(block, tmp_path):
            if said := complaint(command):
                wrong.append(f"{block.where}: {said}")
    for line, span in spans_of(page):
        if span.startswith("zetta ") and (said := complaint(words_of(span), whole=False)):
            wrong.append(f"{page.name}:{line}: {said}")
    assert wrong == []


@pytest.mark.parametrize("page", each_page())
def test_programs_and_files_of_a_page_can_be_read(page: Path) -> None:
    for block in PAGES[page]:
        if block.language == "python":
            check_program(block)
        elif block.language in DATA:
            check_data(block)


def test_no_block_escapes_both_running_and_reading() -> None:
    """What is neither run nor read by a program is what a command printed, and holds none."""
    quick, slow = ({p.values[0] for p in those(slow)} for slow in (False, True))
    for page, blocks in PAGES.items():
        for block in blocks:
            run = block.is_run and page in (slow if block.slow else quick)
            read = block.is_shell or block.language in DATA or block.language == "python"
            told = block.language == "text" or block.kind in ("output", "file")
            assert run or read or told, block.where
            if told and not read:
                assert not re.search(r"^(\$ )?zetta ", block.text, re.M), f"{block.where}: run it"


def test_only_what_a_test_cannot_have_is_left_to_the_reader() -> None:
    for blocks in PAGES.values():
        for block in blocks:
            if block.kind == "needs":
                assert block.said.startswith(REASONS), f"{block.where}: {block.said}"


def test_pages_that_are_read_in_a_row_write_different_folders(tmp_path: Path) -> None:
    written: dict[str, str] = {}
    twice = []
    for page, blocks in PAGES.items():
        for block in blocks if page.name in ON_THE_WAY else ():
            for command in commands_in(block, tmp_path):
                if not WRITES.intersection(command[:2]) or "--out" not in command:
                    continue
                out = command[command.index("--out") + 1]
                if out in written:
                    twice.append(f"{block.where} writes {out}, as {written[out]}")
                written[out] = block.where
    assert twice == []


# ------------------------------------------------------------------------------- what is read


def commands_in(block: Block, folder: Path) -> Sequence[Sequence[str]]:
    """Return every command of a block, also those of ours that it only shows."""
    if block.is_shell:
        return typed(block.text, folder)
    shown = re.findall(r"^\s*(?:\$ )?(zetta [a-z].*)$", block.text, re.M)
    return [words_of(line) for line in shown if block.language not in ("python", *DATA)]


def words_of(line: str) -> list[str]:
    """Split a command of ours; a comment, a pipe or `…` ends it."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    ends = (n for n, word in enumerate(words) if word.startswith(ENDS))
    return words[: next(ends, len(words))]


def check_program(block: Block) -> None:
    """Compile a program, and look whether what it takes from zetta exists."""
    source = "\n".join(line for line in block.text.splitlines() if not line.startswith("%"))
    for node in ast.walk(ast.parse(source, block.where)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("zetta"):
            module = import_module(node.module or "")
            for name in node.names:
                assert hasattr(module, name.name), (
                    f"{block.where}: {node.module} has no {name.name}"
                )
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("zetta"):
                    import_module(name.name)


def check_data(block: Block) -> None:
    """Read a file's content as the program does that it is for."""
    match block.language:
        case "toml":
            tomllib.loads(block.text)
        case "json":
            json.loads(block.text)
        case _:
            list(yaml.safe_load_all(block.text))


# ------------------------------------------------------------------- a page that lies does not pass


def page_of(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_annotation_says_how_a_block_is_taken(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        "<!-- run: libero exit=1 -->\n\n    zetta run\n\n"
        "- a list\n\n    <!-- file: a/b.py -->\n    ```python\n    x = 1\n    ```\n\n"
        "<!-- needs: an arm -->\n```sh\nzetta arms list\n```\n",
    )
    run, file, arm = blocks_of(page)
    assert (run.slow, run.is_run, run.value("exit"), run.text) == (True, True, "1", "zetta run\n")
    assert (file.kind, file.said, file.text) == ("file", "a/b.py", "x = 1\n")
    assert (arm.is_run, arm.is_shell, arm.where) == (False, True, "docs/page.md:13")


@pytest.mark.parametrize(
    "text",
    [
        "<!-- run: slow -->\n\nNo block.\n",
        "<!-- run: sometimes -->\n```sh\nls\n```\n",
        "<!-- run: slow -->\n```toml\na = 1\n```\n",
        "<!-- needs: an arm -->\n```text\nzetta arms list\n```\n",
        "<!-- file -->\n```python\nx = 1\n```\n",
        "```cobol\nSTOP RUN.\n```\n",
    ],
)
def test_block_that_no_test_would_look_at_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(PageError):
        blocks_of(page_of(tmp_path, text))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("zetta fly", "no verb"),
        ("zetta run --sim toy --to-the-moon", "to-the-moon"),
        ("zetta skills polish regrasp", "polish"),
        ("O='--simm toy'; zetta run $O", "simm"),
        ("for n in 1; do zetta skills show; done", "Missing"),
        ("python -m zetta.nothing", "no module"),
        ("make gold", "no gold"),
    ],
)
def test_command_that_does_not_exist_is_named(command: str, why: str, tmp_path: Path) -> None:
    (line,) = typed(command, tmp_path)
    assert why in complaint(line)


def test_commands_are_read_and_not_carried_out(tmp_path: Path) -> None:
    script = "A=toy\nrm -rf .; ssh robot zetta\nzetta run --sim $A | tee x && zetta --help &\n"
    seen = typed(script, tmp_path)
    assert sorted(seen) == [["zetta", "--help"], ["zetta", "run", "--sim", "toy"]]
    assert [complaint(line) for line in seen] == ["", ""]
    board = tmp_path / "board.pdf"
    assert complaint(["zetta", "arms", "calibrate", "board", "--out", str(board)]) == ""
    assert not board.exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("    false\n", "exit code 1"),
        ("<!-- run: exit=3 -->\n\n    true\n", "expected 3"),
        ("```python\nraise SystemExit('no')\n```\n", "no"),
        ("    test -e ../../README.md\n", "exit code 1"),
    ],
)
def test_block_that_fails_is_named_with_what_it_said(text: str, why: str, tmp_path: Path) -> None:
    with session(tmp_path) as reader, pytest.raises(BlockFailed, match=why):
        reader.carry_out(*blocks_of(page_of(tmp_path, text)))


def test_blocks_build_on_each_other_and_on_what_stays(tmp_path: Path) -> None:
    text = (
        "<!-- file: told.txt -->\n```text\nhello\n```\n<!-- run: terminal=ready -->\n\n"
        "    cat told.txt > seen; echo ready; sleep 60\n\nThen:\n\n    test $(cat seen) = hello\n"
    )
    with session(tmp_path) as reader:
        for block in blocks_of(page_of(tmp_path, text)):
            reader.carry_out(block)
    assert (tmp_path / "work/seen").read_text() == "hello\n"
