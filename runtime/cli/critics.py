"""`zetta critics`: list critics, check programs, print what the language offers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from zetta.critics.critic import name_of, parameters_beside
from zetta.critics.documentation import documentation, markdown_table
from zetta.critics.language import analyse_critic
from zetta.critics.parameters import parse_parameters
from zetta.critics.problems import Problem, read_program
from zetta.primitives.catalogue import PRIMITIVES
from zetta.runtime import registry
from zetta.runtime.cli import calibrate, judge, output, record_triggers, replay_critics
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SignalSpec
from zetta.runtime.signals_source import signals_with
from zetta.skills.program import analyse_program

HELP: Final = (
    "Critics: the small programs that watch a policy; list and check them, let them judge logs, "
    "and set their thresholds."
)
app = typer.Typer(add_completion=False, rich_markup_mode=None, help=HELP)

app.command("calibrate")(calibrate.command)
app.command("judge")(judge.command)
app.command("replay")(replay_critics.command)
app.command("triggers")(record_triggers.command)

Kind: TypeAlias = Literal["critic", "recovery"]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

CRITIC, RECOVERY = "critic.py", "recovery.py"
MARKER: Final = "<!-- below: zetta critics docs -->"
"""In a document, what follows this line is printed by `zetta critics docs`."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What the check of one program came to."""

    path: Path
    kind: Kind
    problems: tuple[Problem, ...]
    name: str = ""
    level: str = ""
    window_s: float = 0.0
    skill: str | None = None


@app.command("list")
def list_critics(as_json: AsJson = False) -> None:
    """List the critics that come with zetta, those of its skills included."""
    signals = known_signals()
    reports = [report_on(path, "critic", signals) for path in library_critics()]
    if as_json:
        output.emit({"critics": [_listed(report) for report in reports]})
        return
    rows = [
        [r.name, r.level or "?", f"{r.window_s:g} s", r.skill or "(aborts)", str(r.path)]
        for r in reports
    ]
    if not rows:
        output.answer("there are no critics in the library")
        return
    output.answer(output.table(["name", "level", "window", "skill", "path"], rows))
    for report in reports:
        for problem in report.problems:
            output.note(f"cannot be used: {problem}")


@app.command("check")
def check(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="critic.py, recovery.py, or the folder of a skill."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check programs against their language; exit 1 when anything is wrong.

    Parameters are read from <name>.toml or params.toml beside a program.
    """
    signals = known_signals()
    programs = [each for file in files for each in programs_at(file)]
    reports = [report_on(path, kind, signals) for path, kind in programs]
    problems = list(dict.fromkeys(p for report in reports for p in report.problems))
    if as_json:
        output.emit({"ok": not problems, "files": [_checked(report) for report in reports]})
    else:
        output.answer("\n".join(map(str, problems)) if problems else "ok")
    if problems:
        raise typer.Exit(1)


@app.command("docs")
def docs(
    into: Annotated[
        Path | None,
        typer.Option(help="Rewrite what follows the marker in this document instead of printing."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the reference of the language: operators, limits, rules."""
    text = f"{documentation()}\n{primitives()}"
    if into is not None:
        write_below_marker(into, text)
        text = ""
    if as_json:
        output.emit({"written": None if into is None else str(into), "text": text})
    elif into is None:
        output.answer(text.rstrip("\n"))
    else:
        output.note(f"wrote {into}")


# --------------------------------------------------------------------------- what is checked


def known_signals() -> Mapping[str, SignalSpec]:
    """Return every signal, the installed ones included."""
    return signals_with(registry.installed_signals())


def library_critics() -> tuple[Path, ...]:
    """Return the programs of the critics that come with zetta."""
    root = Path(__file__).parents[2]
    alone = sorted((root / "critics" / "library").glob("[a-z]*.py"))
    of_skills = sorted((root / "skills" / "library").glob(f"*/{CRITIC}"))
    return (*alone, *of_skills)


def programs_at(path: Path) -> tuple[tuple[Path, Kind], ...]:
    """Return the programs that a file or the folder of a skill stands for.

    Raises:
        ConfigError: there is no such file, or the folder holds no program.
    """
    if not path.is_dir():
        return ((path, kind_of(path)),)
    kinds: tuple[tuple[str, Kind], ...] = ((CRITIC, "critic"), (RECOVERY, "recovery"))
    found = tuple((path / name, kind) for name, kind in kinds if (path / name).exists())
    if not found:
        raise ConfigError(
            f"{path} is a folder without {CRITIC} and {RECOVERY}; name a program, or the folder "
            "of a skill"
        )
    return found


def kind_of(path: Path) -> Kind:
    """Return whether a file holds a critic or a recovery: by what it defines, else by its name.

    Raises:
        ConfigError: the file cannot be read.
    """
    source = read_program(path)
    if re.search(rb"^def check\b", source, re.M):
        return "critic"
    if path.name == RECOVERY or re.search(rb"^def (precondition|recover|reentry)\b", source, re.M):
        return "recovery"
    return "critic"


def report_on(path: Path, kind: Kind, signals: Mapping[str, SignalSpec]) -> FileReport:
    """Return what the check of a program and its parameters comes to.

    Raises:
        ConfigError: a file cannot be read.
    """
    source, beside = read_program(path), parameters_beside(path)
    parameters, problems = (
        parse_parameters(read_program(beside), str(beside)) if beside else ({}, ())
    )
    if problems:  # a parameter that is missing for that reason is no problem of the program
        return FileReport(path, kind, problems, name_of(path))
    if kind == "recovery":
        program = analyse_program(source, str(path), signals, parameters)
        if isinstance(program, tuple):
            return FileReport(path, kind, program, name_of(path))
        return FileReport(path, kind, (), name_of(path), program.level, program.window_s)
    critic = analyse_critic(source, str(path), signals, parameters)
    if isinstance(critic, tuple):
        return FileReport(path, kind, critic, name_of(path))
    return FileReport(path, kind, (), name_of(path), critic.level, critic.window_s, critic.skill)


def primitives() -> str:
    """Return what a recovery may run, in Markdown."""
    rows = [[f"`{spec.signature}`", spec.level, spec.doc] for spec in PRIMITIVES.values()]
    return "## Primitives of a recovery\n\n" + markdown_table(["primitive", "level", "does"], rows)


def write_below_marker(document: Path, text: str) -> None:
    """Replace what follows the marker in a document.

    Raises:
        ConfigError: the document cannot be read or has no marker.
    """
    try:
        before, marker, _ = document.read_text(encoding="utf-8").partition(MARKER)
        if not marker:
            raise ConfigError(f"{document} has no line {MARKER!r}, below which to write")
        document.write_text(f"{before}{marker}\n\n{text}", encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{document} cannot be rewritten: {error}") from error


# --------------------------------------------------------------------------- answers


def _listed(report: FileReport) -> dict[str, output.Json]:
    return {
        "name": report.name,
        "level": report.level or None,
        "window_s": report.window_s or None,
        "skill": report.skill,
        "path": str(report.path),
        "problems": _problems(report.problems),
    }


def _checked(report: FileReport) -> dict[str, output.Json]:
    return {
        "path": str(report.path),
        "kind": report.kind,
        "level": report.level or None,
        "problems": _problems(report.problems),
    }


def _problems(problems: Sequence[Problem]) -> list[output.Json]:
    return [{"path": p.path, "line": p.line, "reason": p.reason} for p in problems]
