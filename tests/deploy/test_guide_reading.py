"""A guide that cannot be carried out, or is not, must not pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.guide import Guide, GuideError, missing, read_guide, substituted
from tests.deploy.rehearsal import ROOT, rehearsal

TOP = "# A guide\n\n## Names in this guide\n\n| name | what |\n|---|---|\n| `10.77.0.1` | one |\n\n"


def guide_of(folder: Path, text: str) -> Guide:
    path = folder / "guide.md"
    path.write_text(TOP + text)
    return read_guide(path)


def carried_out(folder: Path, text: str) -> None:
    with rehearsal(folder / "computers") as way:
        way.carry_out(guide_of(folder, text))


def test_blocks_keep_host_marks_and_what_they_print(tmp_path: Path) -> None:
    guide = guide_of(
        tmp_path,
        "```sh gpu\nls \\\n  -l\n# why\npwd\n```\n\nYou see:\n\n```text\ntotal …\n```\n"
        "```sh robot by-reader\nsudo apt-get update\n```\n<!-- cable pulled -->\n",
    )
    first, second, cable = guide.blocks
    assert (first.host, first.commands, first.expected) == ("gpu", ("ls -l", "pwd"), ("total …",))
    assert (second.host, second.by_reader, second.expected) == ("robot", True, ())
    assert (cable.host, cable.marks) == ("cable", ("pulled",))
    assert guide.places == ("10.77.0.1",)


@pytest.mark.parametrize(
    "text",
    [
        "```console\nls\n```\n",
        "```sh\nls\n```\n",
        "```sh moon\nls\n```\n",
        "```sh gpu sometimes\nls\n```\n",
        "    zetta run\n",
        "```sh gpu\nls\n",
        "```text\nhello\n```\n",
        "```\nls\n```\n",
    ],
)
def test_command_that_names_no_computer_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(GuideError):
        guide_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```sh gpu\nfalse\n```\n", "exit code 1"),
        ("```sh gpu\nzetta-nothing\n```\n", "exit code 127"),
        ("```sh gpu\necho one\n```\n```text\ntwo\n```\n", "did not print 'two'"),
        ("```sh gpu exit=1\ntrue\n```\n", "exit code 0"),
        ("```sh gpu terminal=two\ntrue\n```\n", "nothing waits for the terminal 'two'"),
        ("```text terminal=two\nhello\n```\n", "nothing runs in the terminal 'two'"),
    ],
)
def test_command_that_does_something_else_fails(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(GuideError, match=why):
        carried_out(tmp_path, text)


def test_command_in_a_second_terminal_runs_beside_the_first(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        "```sh gpu terminal=two\nuntil test -e ~/begun; do sleep 0.01; done\necho seen\n```\n"
        "```sh gpu\ntouch ~/begun\n```\n```text terminal=two\nseen\n```\n",
    )


def test_files_of_one_computer_are_not_on_the_other(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        "```sh gpu\necho hello > ~/letter\nscp ~/letter ada@10.77.0.2:mail\n```\n"
        "```sh robot\ncat ~/mail\ntest ! -e ~/letter\n```\n```text\nhello\n```\n",
    )


def test_addresses_are_those_of_the_cable(tmp_path: Path) -> None:
    assert ROOT.joinpath("docs/deploy.md").exists()
    places = {"10.77.0.1": "127.77.0.1", "/etc/zetta": "/x/etc/zetta"}
    text = "tcp://10.77.0.1:5601 10.77.0.11 keys=/etc/zetta/keys /etc/zetta-old a/etc/zetta"
    assert substituted(text, places) == (
        "tcp://127.77.0.1:5601 10.77.0.11 keys=/x/etc/zetta/keys /etc/zetta-old a/etc/zetta"
    )


def test_expected_lines_must_come_in_their_order() -> None:
    printed = "loading nod\nserving  nod at tcp://1:5601; use it\n"
    assert missing(("loading", "serving nod at …; use it"), printed) == ""
    assert missing(("serving", "loading"), printed) == "loading"
    assert missing(("(sic)",), printed) == "(sic)"
