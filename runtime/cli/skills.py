"""`zetta skills`: which skill packages there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.runtime.cli import output

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Skill packages.")

PAGE = "SKILL.md"
"""A folder with this file is a skill package."""


@app.command("list")
def list_skills(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the skill packages that come with zetta."""
    library = library_folder()
    names = skill_names(library)
    if as_json:
        output.emit({"skills": [{"name": n, "path": str(library / n)} for n in names]})
    elif names:
        output.answer(output.table(["name", "path"], [[n, str(library / n)] for n in names]))
    else:
        output.answer(f"no skill packages yet in {library}")


def library_folder() -> Path:
    """Return the folder of the skills that come with zetta."""
    return Path(__file__).parents[2] / "skills" / "library"


def skill_names(library: Path) -> tuple[str, ...]:
    """Return the names of the skill packages in `library`, sorted."""
    return tuple(sorted(page.parent.name for page in library.glob(f"*/{PAGE}")))
