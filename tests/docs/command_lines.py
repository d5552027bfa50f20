"""Reads commands of the documentation as the real command line would, without carrying them out."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import typer

from tests.docs.blocks import ROOT
from zetta.runtime.cli.main import TOP_OPTIONS, VERBS
from zetta.runtime.cli.tree import USAGE_ERROR, load

WITHIN_S: Final = 120.0
MISSING: Final = re.compile(r"^Missing|requires an argument|^Usage:")
"""What is said where something is left out."""
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
EVERYWHERE: Final = ("--debug",)
"""Taken out before a verb sees its arguments."""
STAND_IN: Final = """#!{python} -I
import json, os, sys
with open({noted!r}, "a") as to:
    to.write(json.dumps([{name!r}, *sys.argv[1:]]) + "\\n")
"""
PROGRAMS: Final = ("zetta", "python", "make")


def typed(script: str, folder: Path) -> list[list[str]]:
    """Return the lines of every program of ours, python and make that a script would start.

    Bash carries it out, with its variables and loops; those programs write down what they are
    given, and every other does nothing.
    """
    programs, work = folder / "programs", folder / "work"
    programs.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    noted = folder / "typed.jsonl"
    noted.write_text("")
    for name in PROGRAMS:
        stand_in = programs / name
        stand_in.write_text(STAND_IN.format(python=sys.executable, noted=str(noted), name=name))
        stand_in.chmod(0o755)
    absent = "command_not_found_handle() { return 0; }\n"
    ended = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", f"{absent}{script}\nwait"],
        cwd=work,
        env={"PATH": str(programs), "HOME": str(work)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert "syntax error" not in ended.stderr, ended.stderr
    return [json.loads(line) for line in noted.read_text().splitlines()]


def complaint(line: Sequence[str], whole: bool = True) -> str:
    """Return what speaks against a line of `typed`; empty when nothing does.

    Args:
        line: program and arguments.
        whole: also what is missing counts.
    """
    program, *arguments = line
    if program == "make":
        targets = [each for each in arguments if "=" not in each]
        absent = [t for t in targets if not re.search(rf"^{re.escape(t)}:", MAKEFILE, re.M)]
        return f"the Makefile makes no {absent[0]}" if absent else ""
    if program == "python":
        module = arguments[1] if arguments[:1] == ["-m"] else "zetta.runtime"
        known = not module.startswith("zetta.") or find_spec(module) is not None
        return "" if known else f"there is no module {module}"
    arguments = [each for each in arguments if each not in EVERYWHERE]
    if not arguments or arguments[0] in TOP_OPTIONS:
        return ""
    verb, *given = arguments
    if verb.isupper() and not whole:
        return ""  # a sentence about any verb
    if verb not in VERBS:
        return f"there is no verb {verb!r}"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            _read(f"zetta {verb}", command_of(verb, verb), given)
    except typer.Exit:  # it was asked for help
        return ""
    except USAGE_ERROR as error:
        said = error.format_message()
        if not whole and MISSING.search(said):
            return ""
        return said and f"zetta {shlex.join(arguments)}: {said}"
    return ""


def _read(name: str, command: Any, given: Sequence[str], above: Any = None) -> None:
    """Let a command take its arguments; nothing is carried out."""
    context = command.make_context(name, list(given), parent=above)
    if not hasattr(command, "resolve_command"):
        return
    rest = [*context._protected_args, *context.args]
    if not rest:
        if not command.invoke_without_command:
            context.fail("Missing command.")
        return
    name, below, rest = command.resolve_command(context, rest)
    _read(name, below, rest, context)


command_of = cache(load)
