"""Manual pages, written from the same records as `--help`: `make man`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from zetta.runtime.cli.help import EVERYWHERE, exits, page_of, sections
from zetta.runtime.cli.installation import own_version
from zetta.runtime.cli.main import VERBS, present_verbs
from zetta.runtime.cli.tree import Root, leaves

SECTION: Final = "man1"


def manual(path: Sequence[str], command: Any, version: str) -> str:
    """Return the manual page of a command, in the language of `man`."""
    context = typer.Context(command, info_name=" ".join(("zetta", *path)))
    page = page_of(path)
    usage = " ".join(command.collect_usage_pieces(context))
    text = " ".join((command.help or "").split())
    lines = [
        f'.TH "{"-".join(("ZETTA", *path)).upper()}" 1 "" "zetta {version}"',
        ".SH NAME",
        f"{_escaped('-'.join(('zetta', *path)))} \\- {_escaped(text.partition('. ')[0])}",
        ".SH SYNOPSIS",
        f".B {_escaped(' '.join(('zetta', *path)))}",
        _escaped(usage),
        ".SH DESCRIPTION",
        _escaped(text),
    ]
    if page is not None:
        lines += [".PP", _escaped(page.when)]
    for section in sections(command, context):
        lines += _terms(section.title, section.rows)
    if page is not None:
        lines += _terms("EXIT STATUS", exits(page))
        lines += [".SH EXAMPLES", ".nf", *(_escaped(line) for line in page.examples), ".fi"]
    lines += [".SH NOTES", _escaped(EVERYWHERE)]
    return "\n".join(lines) + "\n"


def overview(verbs: Mapping[str, str], version: str) -> str:
    """Return the manual page of `zetta` itself."""
    lines = [
        f'.TH "ZETTA" 1 "" "zetta {version}"',
        ".SH NAME",
        "zetta \\- make a frozen robot policy reliable without retraining it",
        ".SH SYNOPSIS",
        ".B zetta",
        "VERB [OPTIONS]",
        *_terms("VERBS", tuple(verbs.items())),
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> tuple[Path, ...]:
    """Write every manual page below a folder for `man -M FOLDER`; return the files."""
    place = folder / SECTION
    place.mkdir(parents=True, exist_ok=True)
    verbs, version = {verb: VERBS[verb] for verb in present_verbs()}, own_version()
    pages = {"zetta": overview(verbs, version)}
    for path, command in leaves(Root(verbs)):
        pages["-".join(("zetta", *path))] = manual(path, command, version)
    for name, text in pages.items():
        (place / f"{name}.1").write_text(text, encoding="utf-8")
    return tuple(place / f"{name}.1" for name in pages)


def _terms(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f'.SH "{_escaped(title.upper())}"'
    for term, said in rows:
        yield from (".TP", f"\\fB{_escaped(term)}\\fR", _escaped(" ".join(said.split())))


def _escaped(text: str) -> str:
    """Return text as `man` prints it literally.

    >>> print(_escaped(".a -b \\\\"), _escaped("plain"))
    \\&.a \\-b \\e plain
    """
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


if __name__ == "__main__":
    written = write(Path(sys.argv[1]))
    print(f"{len(written)} manual pages; read one with: man -M {sys.argv[1]} zetta-run")
