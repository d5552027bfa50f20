"""The conventions of the documentation are those that the code declares."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.declared import BEGIN, END, tables, with_tables
from zetta.hw_drivers.arm_messages import ARM_PROTOCOL
from zetta.runtime import wire

pytest.importorskip("robosuite", reason="the twin and LIBERO declare themselves with robosuite")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_tables_of_conventions_are_those_of_the_code() -> None:
    assert page("conventions.md") == with_tables(page("conventions.md")), (
        "run python -m tests.docs.declared docs/conventions.md"
    )


def test_page_without_marks_gets_no_tables() -> None:
    with pytest.raises(ValueError, match="lacks"):
        with_tables(f"# Conventions\n\n{BEGIN}\n")


def test_tables_name_every_simulator_that_can_be_asked_without_starting_it() -> None:
    told = tables()
    for name in ("libero", "toy", "twin", "robosuite", "robocasa", "robotwin"):
        assert f"| `{name}` |" in told
    assert END not in told


def test_files_that_conventions_name_exist() -> None:
    named = set(
        re.findall(r"`((?:sims|runtime|hw_drivers|tests)/[\w/]+\.py)`", page("conventions.md"))
    )
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_wire_page_tells_the_calls_and_limits_of_the_code() -> None:
    told = page("wire.md")
    policies, arms = told.partition("## Arms")[::2]
    assert calls(ROOT / "runtime/policy_server/reception.py", "_calls") == rows(policies)
    assert {*cases(ROOT / "hw_drivers/arm_server.py"), "stop"} == rows(arms)
    assert f"{wire.MAX_BODY_BYTES >> 20} MiB" in told
    assert f"{wire.MAX_MESSAGE_BYTES >> 20} MiB" in told
    assert f"| frames | {wire.MAX_FRAMES} |" in told
    assert f"less than {wire.OWN_FRAME_BYTES:,} bytes" in told
    assert f"**Protocol.** {wire.PROTOCOL} at present" in told
    assert f"Version {ARM_PROTOCOL} of its own" in told


def rows(text: str) -> set[str]:
    """Return what the tables of calls name."""
    table = text.partition("| `do` | what |")[2].partition("\n\n")[0]
    return {
        name
        for line in table.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


def calls(path: Path, name: str) -> set[str]:
    """Return the keys of a table of calls in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == f"self.{name}":
            assert isinstance(node.value, ast.Dict)
            return {str(ast.literal_eval(key)) for key in node.value.keys if key is not None}
    raise AssertionError(f"{path.name} has no {name}")


def cases(path: Path) -> set[str]:
    """Return what a server's `match request.do` tells apart."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Match) and ast.unparse(node.subject) == "request.do":
            for case in node.cases:
                if isinstance(case.pattern, ast.MatchValue):
                    found.add(str(ast.literal_eval(case.pattern.value)))
    return found
