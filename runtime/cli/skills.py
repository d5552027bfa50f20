"""`zetta skills`: list, show, check, test, write and sign skills; the verbs of the library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zetta.runtime.cli import diagnose, distill, library_commands, output, prune, transfer
from zetta.runtime.cli.home import key_path
from zetta.runtime.errors import ScreenError

if TYPE_CHECKING:
    from zetta.skills.package import SkillPackage
    from zetta.skills.replay import ReplayOutcome

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Skills: write, check, test and sign packages; promote them into a library of your own, "
    "try them elsewhere, and take them back.",
    epilog="How to write one: docs/skills.md.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
app.command("diagnose")(diagnose.command)
app.command("transfer")(transfer.command)
app.command("prune")(prune.command)
app.command("distill")(distill.command)
library_commands.register(app)

Folders = Annotated[
    list[Path] | None,
    typer.Option("--skills", help="Also a folder of your own packages; may be given repeatedly."),
]
Wanted = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME|FOLDER]...", help="Skills; all of them when none is given."),
]
One = Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A skill.")]


@app.command("list")
def list_skills(
    skills: Folders = None, library: library_commands.Where = None, as_json: AsJson = False
) -> None:
    """List the skills that come with zetta, those in your own folders, and your library's."""
    shelf = skill_folders(skills or ())
    rows = [_row(name, shelf[name]) for name in sorted(shelf)]
    own = library_commands.library_at(library)
    promoted = library_commands.library_rows(own)
    if as_json:
        held: dict[str, output.Json] = {"path": str(own.folder), "version": own.current() or None}
        output.emit({"skills": rows, "library": {**held, "skills": promoted}})
        return
    if not rows:
        output.answer("there are no skill packages")
        return
    columns = ["name", "version", "level", "roles", "made by", "signed", "path"]
    keys = ("name", "version", "level", "roles", "made_by", "signed", "path")
    output.answer(output.table(columns, [[_cell(row[key]) for key in keys] for row in rows]))
    for row in rows:
        if row["error"] is not None:
            output.note(f"{row['name']} cannot be used: {row['error']}")
    if promoted:
        output.answer(f"\nyour library {own.folder}, version {own.current()[:12]}:")
        own_keys = ("name", "version", "level", "standing", "signed", "why")
        cells = [[_cell(row[key]) for key in own_keys] for row in promoted]
        output.answer(output.table(own_keys, cells))


@app.command("show")
def show_skill(name: One, skills: Folders = None, as_json: AsJson = False) -> None:
    """Show one skill: what it is for, its numbers, its programs, its evidence."""
    from zetta.skills.package import load_skill

    package = load_skill(find_skill(name, skills))
    if as_json:
        output.emit(_whole(package))
    else:
        output.answer(_page(package))


@app.command("check")
def check_skills(wanted: Wanted = None, skills: Folders = None, as_json: AsJson = False) -> None:
    """Check packages: files, front matter, programs, numbers, signature. Runs nothing."""
    from zetta.skills.package import inspect

    found = {str(folder): inspect(folder) for folder in _folders(wanted, skills)}
    if as_json:
        output.emit(
            {
                "skills": [
                    {
                        "name": Path(folder).name,
                        "path": folder,
                        "ok": not seen.problems,
                        "problems": list(seen.problems),
                        "notices": list(seen.notices),
                    }
                    for folder, seen in found.items()
                ]
            }
        )
    else:
        for folder, seen in found.items():
            for notice in seen.notices:
                output.note(f"note: {notice}")
            output.answer("\n".join(seen.problems) or f"{Path(folder).name}: ok")
    if any(seen.problems for seen in found.values()):
        raise typer.Exit(1)


@app.command("test")
def replay_skills(wanted: Wanted = None, skills: Folders = None, as_json: AsJson = False) -> None:
    """Run the critics on their replay windows; exit 1 when one does not do what it must."""
    from zetta.skills.compiled import run_windows
    from zetta.skills.package import load_skill

    met: list[tuple[str, ReplayOutcome]] = []
    for folder in _folders(wanted, skills):
        package = load_skill(folder)
        met += [(package.name, outcome) for outcome in run_windows(package)]
    failed = sum(not outcome.passed for _, outcome in met)
    if as_json:
        output.emit({"passed": failed == 0, "windows": [_window(n, o) for n, o in met]})
    else:
        rows = [
            [name, o.window, o.expect, "ok" if o.passed else "FAILED", o.said] for name, o in met
        ]
        output.answer(output.table(["skill", "window", "must be", "result", "what it did"], rows))
        output.answer(f"{len(met) - failed} of {len(met)} windows as they must be")
    if failed:
        raise typer.Exit(1)


@app.command("new")
def new_skill(
    name: Annotated[str, typer.Argument(help="Lower-case words joined by hyphens.")],
    out: Annotated[Path, typer.Option(help="Folder that gets the package.")] = Path("skills"),
    as_json: AsJson = False,
) -> None:
    """Write a small skill package that passes `check` and `test`, to be changed."""
    from zetta.skills.template import write_template

    package = write_template(name, out)
    if as_json:
        output.emit({"name": name, "path": str(package)})
        return
    output.answer(f"wrote {package}; now change it, and after each change type:")
    output.answer(
        f"  zetta skills check {_argument(package)} && zetta skills test {_argument(package)}"
    )


@app.command("cut")
def cut_window(
    name: One,
    episode: Annotated[Path, typer.Argument(help="Folder of a logged episode.")],
    ticks: Annotated[str, typer.Option(help="First and last tick, such as 60-120.")],
    expect: Annotated[str, typer.Option(help="fires, silent or disarmed.")],
    window: Annotated[str, typer.Option(help="Name of the window.")] = "",
    skills: Folders = None,
    as_json: AsJson = False,
) -> None:
    """Make a replay window of a skill out of a logged episode."""
    from zetta.skills.package import load_skill
    from zetta.skills.replay_cut import add_window

    package = load_skill(find_skill(name, skills))
    path = add_window(package, episode, ticks, expect, window)
    if as_json:
        output.emit({"name": package.name, "window": path.stem, "path": str(path)})
    else:
        output.answer(f"wrote {path}; now type: zetta skills test {name}")


@app.command("keygen")
def make_key(
    force: Annotated[bool, typer.Option("--force", help="Replace the key there is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the Ed25519 key that you sign skills with; it stays in your configuration folder."""
    from zetta.skills import signatures

    path = key_path()
    key = signatures.make_key(path, force)
    if as_json:
        output.emit({"key": key, "path": str(path)})
    else:
        output.answer(f"made the key {key} in {path}; keep that file to yourself")


@app.command("sign")
def sign_skill(name: One, skills: Folders = None, as_json: AsJson = False) -> None:
    """Sign a package with your key, after checking it."""
    from zetta.skills import signatures
    from zetta.skills.package import sign
    from zetta.skills.shelf import find_package

    folder = find_package(name, skills or ())  # a version of the library never changes
    digest = sign(folder, signatures.read_key(key_path()))
    signed = signatures.id_of(signatures.read_key(key_path()))
    if as_json:
        output.emit({"path": str(folder), "hash": digest, "signed": f"signed by {signed}"})
    else:
        output.answer(f"{folder.name}: signed by {signed} ({digest})")


# ------------------------------------------------------------------------------------- finding


def skill_folders(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the package folder of every name; the current folder is not searched."""
    from zetta.skills.shelf import shelve

    return shelve(folders)


def find_skill(name: str, skills: Sequence[Path] | None = None) -> Path:
    """Return the folder of a package; a name that nobody else has may be of the user's library."""
    from zetta.skills.shelf import find_package

    if "/" not in name and name not in skill_folders(skills or ()):
        own = library_commands.library_at(None)
        version = own.current()
        if name in {standing.part.name for standing in own.standings(version)}:
            return own.path(version) / name
    return find_package(name, skills or ())


def _folders(wanted: list[str] | None, skills: list[Path] | None) -> list[Path]:
    if wanted:
        return list(dict.fromkeys(find_skill(name, skills) for name in wanted))
    shelf = skill_folders(skills or ())
    return [shelf[name] for name in sorted(shelf)]


def _argument(package: Path) -> str:
    """Return how a new package is named on the command line, so that it is a folder."""
    return str(package) if "/" in str(package) else f"./{package}"


# ------------------------------------------------------------------------------------- showing


def _row(name: str, folder: Path) -> dict[str, output.Json]:
    """Return what the list says of a package; a broken one is listed with its error."""
    from zetta.skills.package import load_skill

    row: dict[str, output.Json] = {"name": name, "path": str(folder)}
    try:
        package = load_skill(folder)
    except ScreenError as error:
        unknown = dict.fromkeys(("version", "level", "roles", "made_by", "author", "hash"))
        return {**row, **unknown, "signed": "BROKEN", "error": str(error)}
    return {**row, **_summary(package), "error": None}


def _summary(package: SkillPackage) -> dict[str, output.Json]:
    page = package.page
    return {
        "version": page.version,
        "level": package.level,
        "roles": list(page.roles),
        "made_by": page.provenance.made_by,
        "author": page.provenance.author,
        "signed": str(package.signed),
        "hash": package.digest,
    }


def _cell(value: output.Json) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(str(entry) for entry in value) or "-"
    return str(value)


def _whole(package: SkillPackage) -> dict[str, output.Json]:
    page = package.page
    return {
        "name": package.name,
        "path": str(package.folder),
        **_summary(package),
        "description": page.description,
        "applies": page.applies,
        "uses": list(page.uses),
        "excludes": list(page.excludes),
        "verbs": list(page.verbs),
        "max_ticks": page.max_ticks,
        "date": page.provenance.date.isoformat(),
        "license": page.license or None,
        "parameters": {
            name: {
                "default": p.default, "low": p.low, "high": p.high, "unit": p.unit, "doc": p.doc,
            }
            for name, p in package.parameters.items()
        },
        "signals": list(package.signals),
        "critic": package.critic_source,
        "recovery": package.recovery_source,
        "windows": [w.name for w in package.windows],
        "evidence": package.evidence_records(),
    }  # fmt: skip


def _page(package: SkillPackage) -> str:
    page = package.page
    made = page.provenance
    facts = [
        ["what", page.description],
        ["applies when", page.applies],
        ["roles", ", ".join(page.roles) or "none"],
        ["looks also at", ", ".join(page.uses) or "nothing"],
        ["left out with", ", ".join(page.excludes) or "nothing"],
        ["verbs", ", ".join(page.verbs) or "any"],
        ["sensing level", package.level],
        ["ticks at most", str(page.max_ticks)],
        ["made by", f"{made.made_by}: {made.author}, {made.date.isoformat()}"],
        ["signature", str(package.signed)],
        ["hash", package.digest],
        ["folder", str(package.folder)],
        ["reads", ", ".join(package.signals)],
        ["replay windows", ", ".join(w.name for w in package.windows) or "none"],
        ["evidence", f"{len(package.evidence_records())} records"],
    ]
    numbers = [
        [name, f"{p.default:g}", f"{p.low:g}", f"{p.high:g}", p.unit, p.doc]
        for name, p in package.parameters.items()
    ]
    blocks = [f"{package.name} {page.version}", output.table(["", ""], facts).lstrip("\n")]
    if numbers:
        blocks.append(output.table(["number", "default", "low", "high", "unit", "what"], numbers))
    blocks += ["--- critic.py", package.critic_source.rstrip()]
    blocks += ["--- recovery.py", package.recovery_source.rstrip()]
    return "\n\n".join(blocks)


def _window(skill: str, outcome: ReplayOutcome) -> dict[str, output.Json]:
    return {
        "skill": skill,
        "window": outcome.window,
        "expect": outcome.expect,
        "passed": outcome.passed,
        "said": outcome.said,
    }
