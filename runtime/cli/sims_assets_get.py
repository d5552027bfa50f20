"""Getting the assets of a simulator: asked for, downloaded, verified, unpacked, stamped.

Every step can be broken off. A zip on its way is gone on with, a zip that is here is not asked for
again, files go to their places only when all of them are whole, and the stamp comes last.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.byte_progress import byte_progress, in_words
from zetta.runtime.cli.sims_assets import COPIED, MARKS, AssetFolder, PartStamp, assets_of
from zetta.runtime.cli.sims_fetch import Offer, ask, client, drop, fetch, known
from zetta.runtime.cli.sims_lock import alone
from zetta.runtime.cli.sims_unpack import DamagedError, contents, hash_of, settle, unpack
from zetta.runtime.cli.sims_venv import venv_of
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.installs.downloads import MB, AssetPart

SPARE: Final = 200 * MB
"""Room that is left over, bytes."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One part that has to be got."""

    part: AssetPart
    source: str
    """Address, or path of a file that is here."""
    size: int
    """Bytes of the zip."""
    missing: int
    """Bytes of it that are still to be downloaded."""
    sha256: str
    """Published hash; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Got:
    """How an order to get assets ended."""

    fresh: bool
    """Whether anything had to be done."""
    seconds: float


def get_assets(
    folder: AssetFolder,
    parts: Sequence[AssetPart],
    source: str = "",
    again: bool = False,
    agree: Callable[[Sequence[Errand]], None] = lambda errands: None,
) -> Got:
    """Get those of `parts` that are not ready.

    Args:
        folder: where they go.
        parts: which.
        source: folder or address where their zips lie instead of the official places.
        again: get them in any case.
        agree: shown what will be downloaded, before it is; stops it by raising.

    Raises:
        ConfigError: the package whose folder is copied is not installed, or a zip is not there.
        InfraError: no room, no connection, or a zip is damaged or is another one.
    """
    begun = time.monotonic()
    with alone(folder.lock, f"gets the assets of {folder.assets.name}"):
        ready = [part for part in parts if folder.state_of(part) == "ready"]
        for part in ready:
            drop(folder.zip_of(part))  # it was killed before its very last step
        wanted = [part for part in parts if again or part not in ready]
        if not wanted and folder.copied:
            return Got(fresh=False, seconds=0.0)
        bundled = _bundled(folder)
        errands = _errands(folder, wanted, source)
        _check_room(folder, errands)
        agree(errands)
        _copy_bundled(folder, bundled)
        for number, errand in enumerate(errands, 1):
            _carry_out(folder, errand, f"{errand.part.name} ({number} of {len(errands)})")
    return Got(fresh=True, seconds=round(time.monotonic() - begun, 1))


def refresh(name: str) -> None:
    """Bring the files that were copied from a package up to its new version, if any were.

    Raises:
        InfraError: they cannot be copied.
    """
    folder = assets_of(name)
    if folder is not None and (folder.marks / COPIED).exists():
        get_assets(folder, ())


def _errands(folder: AssetFolder, wanted: Sequence[AssetPart], source: str) -> tuple[Errand, ...]:
    """Ask where every part lies and how long it is, so that what is wrong is known at once."""
    with client() as http:
        return tuple(
            _at_home(part, Path(source).expanduser())
            if source and "://" not in source
            else _elsewhere(folder, part, source, lambda url: ask(http, url))
            for part in wanted
        )


def _at_home(part: AssetPart, where: Path) -> Errand:
    if not where.is_dir():
        raise ConfigError(
            f"--from names the folder {where}, which is not there; name the one that holds "
            f"{part.file}, or an address such as https://HOST/PATH"
        )
    path = where / part.file
    if not path.is_file():
        raise ConfigError(f"{path} is missing; download it from {part.url}")
    return Errand(part, str(path), path.stat().st_size, 0, part.sha256)


def _elsewhere(
    folder: AssetFolder, part: AssetPart, source: str, asked: Callable[[str], Offer]
) -> Errand:
    url = f"{source.rstrip('/')}/{part.file}" if source else part.url
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--from takes a folder or an address with http or https, got {source!r}")
    here, before = folder.zip_of(part), known(folder.zip_of(part))
    if here.is_file():
        if before is not None and before.url == url:
            return Errand(part, url, here.stat().st_size, 0, part.sha256 or before.sha256)
        drop(here)
    offer = asked(url)
    if part.size and offer.size and part.size != offer.size:
        raise ConfigError(
            f"{url} has {offer.size} bytes instead of {part.size}: it is another file; give the "
            "right one with --from"
        )
    size = offer.size or part.download_bytes
    missing = max(0, size - folder.fetched(part))
    return Errand(part, url, size, missing, part.sha256 or offer.sha256)


def room_needed(errands: Sequence[Errand]) -> int:
    """Return the most bytes that are taken at once: a zip goes when its files are in place."""
    most = files = 0
    for errand in errands:
        # A list that is wrong about a zip is as wrong about its files.
        growth = max(1.0, errand.part.unpacked_mb / max(errand.part.download_mb, 1))
        files += int(errand.size * growth)
        most = max(most, files + errand.missing)
    return most


def _check_room(folder: AssetFolder, errands: Sequence[Errand]) -> None:
    needed = room_needed(errands) + SPARE
    free = shutil.disk_usage(folder.root.parent).free
    if free < needed:
        raise InfraError(
            f"the assets of {folder.assets.name} need {in_words(needed)} at {folder.root.parent}, "
            f"where {in_words(free)} are free; free some room, get fewer with --part, or set "
            "XDG_DATA_HOME to a folder on another disk"
        )


def _bundled(folder: AssetFolder) -> Path | None:
    """Return the folder of the package that has to be copied first; None where none has."""
    if folder.copied:
        return None
    venv = venv_of(folder.assets.name)
    if venv.state != "ready":
        raise ConfigError(
            f"{folder.assets.name} {venv.why}, and its own assets are copied first; install "
            f"it with: {venv.fix}"
        )
    module, _, below = folder.assets.copies.partition(":")
    found = sorted(venv.folder.glob(f"lib/python*/site-packages/{module}/{below}"))
    if not found:
        raise InfraError(
            f"{venv.folder} has no {module}/{below}; install it with: "
            f"zetta sims install {folder.assets.name} --again"
        )
    return found[0]


def _copy_bundled(folder: AssetFolder, bundled: Path | None) -> None:
    """Copy the package's own assets, but over no file that was downloaded."""
    if bundled is None:
        return
    downloaded: set[str] = set()
    for part in folder.assets.parts:
        if folder.files_path(part).is_file():
            downloaded.update(folder.files_path(part).read_text(encoding="utf-8").splitlines())
    try:
        folder.marks.mkdir(parents=True, exist_ok=True)
        for path in sorted(bundled.rglob("*")):
            name = path.relative_to(bundled)
            if path.is_file() and name.as_posix() not in downloaded:
                (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder.root / name)
    except OSError as error:
        raise InfraError(f"cannot copy {bundled} to {folder.root}: {error.strerror}") from error
    digest = venv_of(folder.assets.name).packages.digest
    _write_last(folder.marks / COPIED, json.dumps({"digest": digest}))


def _carry_out(folder: AssetFolder, errand: Errand, what: str) -> None:
    part, staging = errand.part, folder.staging(errand.part)
    folder.marks.mkdir(parents=True, exist_ok=True)
    folder.stamp_path(part).unlink(missing_ok=True)
    path = _zip_here(folder, errand, what)
    try:
        sha256 = _checked_hash(errand, path, what)
        held = contents(path, part, MARKS)
        _check_room_for(folder, part, held.unpacked)
        with byte_progress(f"unpacking {what}") as reached:
            unpack(path, held, part, staging, reached)
    except DamagedError as error:
        shutil.rmtree(staging, ignore_errors=True)
        if path != folder.zip_of(part):
            raise
        drop(path)
        raise InfraError(f"{error}; it was removed, and the same command gets it anew") from error
    names = settle(staging, folder.root)
    stamp = PartStamp(
        url=part.url,
        source=errand.source,
        sha256=sha256,
        size=path.stat().st_size,
        files=len(names),
        unpacked=held.unpacked,
        verified="sha256" if errand.sha256 else "zip",
    )
    _write_last(folder.files_path(part), "\n".join(names))
    _write_last(folder.stamp_path(part), json.dumps(asdict(stamp)))
    drop(folder.zip_of(part))
    output.note(f"{part.name}: {len(names)} files, {in_words(held.unpacked)}")


def _zip_here(folder: AssetFolder, errand: Errand, what: str) -> Path:
    """Return where the zip lies, once it is here."""
    if "://" not in errand.source:
        return Path(errand.source)
    target = folder.zip_of(errand.part)
    if not target.is_file():
        with client() as http, byte_progress(f"downloading {what}") as reached:
            fetch(http, errand.source, target, reached)
    return target


def _checked_hash(errand: Errand, path: Path, what: str) -> str:
    with byte_progress(f"checking {what}") as reached:
        sha256 = hash_of(path, reached)
    if errand.sha256 and sha256 != errand.sha256:
        raise DamagedError(
            f"the zip of {errand.part.name} has SHA-256 {sha256}, expected {errand.sha256}"
        )
    return sha256


def _check_room_for(folder: AssetFolder, part: AssetPart, unpacked: int) -> None:
    free = shutil.disk_usage(folder.root).free
    if free < unpacked:
        raise InfraError(
            f"the files of {part.name} need {in_words(unpacked)} at {folder.root}, where "
            f"{in_words(free)} are free; free some room: the zip is kept, and the same command "
            "goes on from there"
        )


def _write_last(path: Path, text: str) -> None:
    """Write a file that is there as a whole, or not at all."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
