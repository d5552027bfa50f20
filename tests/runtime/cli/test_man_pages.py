"""There is a manual page for every command, and `man` reads it without a complaint."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from zetta.runtime.cli import main as cli
from zetta.runtime.cli import man_pages
from zetta.runtime.cli.help import page_of
from zetta.runtime.cli.tree import Root, leaves


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Return the manual pages, written once."""
    return man_pages.write(tmp_path_factory.mktemp("man"))


def test_every_command_has_a_manual_page_with_all_its_parts(written: tuple[Path, ...]) -> None:
    texts = {path.stem: path.read_text() for path in written}
    verbs = {verb: cli.VERBS[verb] for verb in cli.present_verbs()}

    assert all(verb in texts["zetta"] for verb in verbs)
    for path, command in leaves(Root(verbs)):
        text = texts["-".join(("zetta", *path))]
        page = page_of(path)
        assert page is not None
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", '"EXIT STATUS"', "EXAMPLES"):
            assert f".SH {heading}\n" in text
        flags = [flag for p in command.params for flag in p.opts if flag.startswith("--")]
        assert all(flag.replace("-", "\\-") in text for flag in flags)


def test_man_reads_a_page_as_it_was_meant(written: tuple[Path, ...]) -> None:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("needs groff")
    page = next(path for path in written if path.stem == "zetta-run")
    ended = subprocess.run(
        [program, "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True
    )

    assert ended.stderr == ""
    assert "zetta run --sim toy --policy-seed 1" in ended.stdout.replace("‐", "-")
