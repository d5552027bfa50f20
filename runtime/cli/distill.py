"""`zetta skills distill`: one folder, to be carried to a robot, out of a library or a folder.

Out of the log of an episode that an agent drove it makes a draft of a skill instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zetta.primitives.agent.drive_log import TURNS, is_drive
from zetta.runtime.cli import output
from zetta.runtime.cli.distill_drive import distill_drive
from zetta.runtime.cli.home import home_library
from zetta.runtime.errors import ConfigError
from zetta.skills.bundle_folders import (
    BundleManifest,
    Member,
    calibration_of,
    is_bundle_folder,
    read_bundle,
    read_manifest,
    write_bundle,
)
from zetta.skills.bundles import LIBRARY, LoadedBundle, load_bundle
from zetta.skills.calibrated import read_calibration
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import read_files
from zetta.skills.promotions import EVIDENCE_SUFFIX, read_evidence
from zetta.skills.user_library import is_library


def command(
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="LIBRARY|FOLDER|EPISODE",
            help="library, a folder of one or of skills, or an episode that an agent drove.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="New folder that gets the bundle, or the draft.")],
    version: Annotated[str, typer.Option(help="Of the library; the one in use by default.")] = "",
    calibration: Annotated[
        Path | None, typer.Option(help="File of `zetta critics calibrate` for this bundle.")
    ] = None,
    name: Annotated[str, typer.Option(help="Of the skill made from an episode.")] = "",
    critic: Annotated[
        str, typer.Option(help="Template of its trigger, such as stalled or closed-on-nothing.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make one deployable folder, or a draft of a skill from an episode that an agent drove."""
    if is_drive(Path(wanted)):
        if version or calibration is not None:
            raise ConfigError("--version and --calibration are for bundles, not for an episode")
        distill_drive(Path(wanted), out, name, critic, as_json)
        return
    if name or critic:
        raise ConfigError(
            f"--name and --critic are for the episode of a drive; {wanted} has no {TURNS}"
        )
    bundle = _bundle(wanted, version)
    for notice in bundle.notices:
        output.note(notice)
    if not bundle.packages:
        raise ConfigError(f"{wanted} has no skill to deploy")
    manifest = write_bundle(
        out.absolute(),
        [_member(package) for package in bundle.packages],
        _thresholds(Path(wanted), bundle, calibration),
    )
    read_bundle(out)  # what is handed over can be read back
    _tell(manifest, bundle, out, as_json)


def _bundle(wanted: str, version: str) -> LoadedBundle:
    folder = Path(wanted)
    if wanted == LIBRARY or is_library(folder):
        library = home_library() if wanted == LIBRARY else folder.absolute()
        return load_bundle(f"{LIBRARY}@{version}" if version else LIBRARY, library=library)
    if version:
        raise ConfigError(f"{wanted} is no library, so it has no version {version!r}")
    if not folder.is_dir():
        raise ConfigError(
            f"{wanted} is no folder; give {LIBRARY!r}, or a folder of a library or of skills"
        )
    return load_bundle(str(folder.absolute()))


def _member(package: SkillPackage) -> Member:
    beside = package.folder.with_name(f"{package.name}{EVIDENCE_SUFFIX}")
    proven = is_bundle_folder(package.folder.parent) and beside.exists()
    return Member(read_files(package.folder), read_evidence(beside) if proven else None)


def _thresholds(source: Path, bundle: LoadedBundle, calibration: Path | None) -> bytes | None:
    """Return the bytes of the calibration that goes along.

    Raises:
        ConfigError: it is of other critics.
    """
    if calibration is None:
        return calibration_of(source, read_manifest(source)) if is_bundle_folder(source) else None
    read_calibration(calibration, bundle)
    return calibration.read_bytes()


def _tell(manifest: BundleManifest, bundle: LoadedBundle, out: Path, as_json: bool) -> None:
    if as_json:
        output.emit(
            {
                "out": str(out),
                "digest": manifest.digest,
                "bundle": manifest.bundle,
                "calibration": manifest.calibration or None,
                "skills": [
                    {
                        "name": part.name,
                        "hash": part.package,
                        "signed": bool(part.signature),
                        "proven": part.proven,
                    }
                    for part in manifest.skills
                ],
                "notices": list(bundle.notices),
            }
        )
        return
    rows = [
        [
            part.name,
            part.package[:12],
            "signed" if part.signature else "unsigned",
            "proven" if part.proven else "unproven",
        ]
        for part in manifest.skills
    ]
    output.answer(output.table(["skill", "hash", "signature", "proof"], rows))
    if not manifest.calibration:
        output.note("without a calibration its critics run at their default numbers")
    output.answer(f"bundle {manifest.bundle[:12]}; run it with: --bundle {out}")
