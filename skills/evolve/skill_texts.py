"""The files of a skill package, written as a person would write them."""

from __future__ import annotations

import datetime
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.skills.evolve.candidates import NO_EVIDENCE
from zetta.skills.package_files import CRITIC, EVIDENCE, PAGE, PARAMETERS, RECOVERY
from zetta.skills.package_page import MadeBy

REFRACTORY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Page:
    """What `SKILL.md` says."""

    name: str
    description: str
    applies: str
    roles: tuple[str, ...]
    max_ticks: int
    text: str
    uses: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    author: str = "zetta search"
    made_by: MadeBy = "search"
    version: str = "0.1.0"


def critic_text(doc: str, skill: str, body: str, window_s: float = 1.0) -> str:
    """Return a `critic.py`: docstring, constants and the body of `check`, which is indented."""
    return (
        f'"""{doc}"""\n\nWINDOW_S = {window_s:.1f}\nSKILL = "{skill}"\n'
        f"REFRACTORY_S = {REFRACTORY_S}\n\n\ndef check(w, p):\n{body}"
    )


def parameters_text(parameters: Sequence[Parameter]) -> str:
    """Return a `params.toml`."""
    return "\n".join(map(_table, parameters))


def page_text(page: Page) -> str:
    """Return a `SKILL.md` with today's date."""
    uses = f"uses: [{', '.join(page.uses)}]\n" if page.uses else ""
    verbs = f"verbs: [{', '.join(page.verbs)}]\n" if page.verbs else ""
    return (
        f"---\nname: {page.name}\nversion: {page.version}\n"
        f"description: {json.dumps(page.description)}\napplies: {json.dumps(page.applies)}\n"
        f"roles: [{', '.join(page.roles)}]\n{uses}{verbs}max_ticks: {page.max_ticks}\n"
        f"provenance:\n  author: {page.author}\n  made_by: {page.made_by}\n"
        f"  date: {datetime.date.today().isoformat()}\n---\n\n# {page.name}\n\n"
        f"{textwrap.fill(page.text, 100)}\n"
    )


def package_files(
    page: Page, critic: str, recovery: str, parameters: Sequence[Parameter]
) -> Mapping[str, str]:
    """Return the files of a package, without replay windows."""
    return {
        PAGE: page_text(page),
        CRITIC: critic,
        RECOVERY: recovery,
        PARAMETERS: parameters_text(parameters),
        EVIDENCE: NO_EVIDENCE,
    }


def _table(parameter: Parameter) -> str:
    lines = [f"[{parameter.name}]"]
    for key in ("default", "low", "high"):
        lines.append(f"{key} = {float(getattr(parameter, key))!r}")
    for key in ("unit", "doc", "stricter"):
        text = getattr(parameter, key)
        if text:
            lines.append(f"{key} = {json.dumps(text)}")
    return "\n".join(lines) + "\n"
