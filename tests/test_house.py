"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("runtime", "critics", "primitives", "skills", "sims", "hw_drivers")
FILE_LINES, FUNCTION_LINES = 400, 50
VOCABULARY = (ROOT / "runtime" / "core.py",)
"""Declarations without logic, which are read best in one place."""
SKILL_LIBRARIES = (ROOT / "skills" / "library", ROOT / "critics" / "library")
"""Programs in our own languages: data that is checked by other means."""


def modules() -> Iterator[Path]:
    """Yield every Python file of the project that is code."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(path.is_relative_to(library) for library in SKILL_LIBRARIES):
                yield path


MODULES = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in modules()]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of code of a function: what is done, not what is declared or explained."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


TOLD_BY_VARIABLE = tuple(ROOT / "sims" / name / "engine.py" for name in ("robocasa", "robotwin"))
"""They run beside packages of others that are told in no other way where their assets lie."""


def environment_reads(tree: ast.AST) -> list[int]:
    """Return the lines that read one environment variable; handing all to a child is none."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            if text in ("os.getenv", "os.environ.get", "getenv", "environ.get"):
                lines.append(node.lineno)
        elif (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and ast.unparse(node.value) in ("os.environ", "environ")
        ):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", MODULES)
def test_file_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {f.name: body_lines(f) for f in functions if body_lines(f) > FUNCTION_LINES}

    assert path in VOCABULARY or len(text.splitlines()) <= FILE_LINES
    assert long == {}


@pytest.mark.parametrize("path", MODULES)
def test_environment_variables_are_read_only_by_the_command(path: Path) -> None:
    if path.is_relative_to(ROOT / "runtime" / "cli") or path in TOLD_BY_VARIABLE:
        return
    assert environment_reads(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", MODULES)
def test_nothing_unpickles(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert not re.search(r"^\s*(import|from) (pickle|dill|cloudpickle|shelve)\b", text, re.M)
    assert not re.search(r"allow_pickle\s*=\s*True", text)


@pytest.mark.parametrize("path", MODULES)
def test_no_module_takes_a_standard_name_or_one_that_says_nothing(path: Path) -> None:
    if path.stem == "__init__":
        return
    top_level = path.parent.parent == ROOT
    assert not (top_level and path.stem in sys.stdlib_module_names)
    assert path.stem not in ("utils", "helper", "helpers", "manager", "misc", "common")


def test_every_folder_with_modules_is_a_package_that_import_linter_sees() -> None:
    folders = {path.parent for path in modules()}

    assert [f for f in sorted(folders) if not (f / "__init__.py").exists()] == []


def test_every_top_level_folder_is_linked_into_the_namespace_and_typed() -> None:
    for folder in FOLDERS:
        link = ROOT / ".namespace" / "zetta" / folder
        assert link.readlink() == Path("..") / ".." / folder
        assert (ROOT / folder / "py.typed").exists()


def documented() -> Iterator[str]:
    """Yield the modules whose docstrings hold examples."""
    for path in modules():
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(("zetta", *path.relative_to(ROOT).with_suffix("").parts))


@pytest.mark.parametrize("name", list(documented()))
def test_examples_in_docstrings_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))

    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_readme_names_its_two_commands_and_only_verbs_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = importlib.import_module("zetta.runtime.cli.main").VERBS
    targets = set(re.findall(r"\bmake ([a-z-]+)", readme))

    assert re.search(r"```\nmake run\nmake test\n```", readme)
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
    assert set(re.findall(r"`zetta ([a-z]+)", readme)) <= set(verbs)
