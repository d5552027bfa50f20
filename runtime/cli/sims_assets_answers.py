"""What `zetta sims assets` says and asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.byte_progress import in_words
from zetta.runtime.cli.sims_assets import AssetFolder, assets_state, own_root
from zetta.runtime.cli.sims_assets_get import Errand, get_assets
from zetta.runtime.errors import ConfigError
from zetta.sims.installs.downloads import MB, AssetPart

ASKED_FROM: Final = 100 * MB
"""Bytes to download from which on it is asked first."""


@dataclass(frozen=True, slots=True)
class Order:
    """What was typed."""

    source: str
    again: bool
    yes: bool


def bundled(name: str, as_json: bool) -> None:
    """Say that there is nothing to get."""
    if as_json:
        output.emit({"sim": name, "state": "bundled", "fresh": False, "parts": []})
    else:
        output.answer(f"{name} needs no download: its packages bundle all of it")


def listed(folder: AssetFolder, as_json: bool) -> None:
    """Say what parts there are, and which lie here."""
    if as_json:
        output.emit({**_whole(folder), "parts": [_part(folder, p) for p in folder.assets.parts]})
        return
    rows = [
        [
            part.name,
            _state(folder, part),
            "yes" if part.needed else "no",
            in_words(part.download_bytes),
            in_words(part.unpacked_mb * MB),
            part.about,
        ]
        for part in folder.assets.parts
    ]
    columns = ["part", "state", "needed", "download", "unpacked", "what"]
    output.answer(output.table(columns, rows))
    output.answer(f"{assets_state(folder.assets.name)}: {_where(folder)}")


def gotten(folder: AssetFolder, parts: Sequence[AssetPart], order: Order, as_json: bool) -> None:
    """Get the parts and say how it went.

    Raises:
        ConfigError: it is much to download, and nobody can be asked; and as `get_assets` does.
    """
    own = own_root(folder.assets)
    if own is not None:
        output.note(
            f"{folder.assets.variable} is set to {own}, and counts before what is got here; unset "
            "it to use this"
        )
    asked = lambda errands: _agree(folder, errands, order.yes, as_json)  # noqa: E731
    got = get_assets(folder, parts, order.source, order.again, asked)
    if as_json:
        rows = [_part(folder, part) for part in parts]
        output.emit({**_whole(folder), "fresh": got.fresh, "seconds": got.seconds, "parts": rows})
        return
    names = ", ".join(part.name for part in parts)
    how = f"got in {got.seconds:.0f} s" if got.fresh else "here already"
    output.answer(f"{names}: {how}; {folder.root}")
    absent = ", ".join(part.name for part in folder.absent)
    name = folder.assets.name
    output.answer(
        f"{name} needs {absent} as well: zetta sims assets {name}"
        if absent
        else f"try: zetta sims check {name}"
    )


def _agree(folder: AssetFolder, errands: Sequence[Errand], yes: bool, as_json: bool) -> None:
    """Ask before gigabytes are downloaded."""
    size = sum(errand.missing for errand in errands)
    if yes or size < ASKED_FROM:
        return
    parts = ", ".join(f"{e.part.name} {in_words(e.missing)}" for e in errands if e.missing)
    what = f"{in_words(size)} to {folder.root} ({parts})"
    if as_json or not sys.stdin.isatty():
        raise ConfigError(f"this downloads {what}; add --yes to agree, or choose with --part")
    if not typer.confirm(f"download {what}?", err=True):
        raise typer.Exit(1)


def _state(folder: AssetFolder, part: AssetPart) -> str:
    state, fetched = folder.state_of(part), folder.fetched(part)
    return f"{state}, {in_words(fetched)} here" if state == "incomplete" and fetched else state


def _where(folder: AssetFolder) -> str:
    own = own_root(folder.assets)
    return str(folder.root) if own is None else f"{own}, as {folder.assets.variable} says"


def _whole(folder: AssetFolder) -> dict[str, output.Json]:
    return {
        "sim": folder.assets.name,
        "state": assets_state(folder.assets.name),
        "folder": str(own_root(folder.assets) or folder.root),
        "variable": folder.assets.variable,
    }


def _part(folder: AssetFolder, part: AssetPart) -> dict[str, output.Json]:
    stamp = folder.stamp(part)
    return {
        "name": part.name,
        "state": folder.state_of(part),
        "needed": part.needed,
        "about": part.about,
        "url": part.url,
        "download_bytes": stamp.size if stamp is not None else part.download_bytes,
        "fetched_bytes": stamp.size if stamp is not None else folder.fetched(part),
        "unpacked_bytes": stamp.unpacked if stamp is not None else part.unpacked_mb * MB,
        "files": stamp.files if stamp is not None else None,
        "sha256": (stamp.sha256 if stamp is not None else part.sha256) or None,
        "verified": stamp.verified if stamp is not None else None,
    }
