"""Folders that hold one whole bundle: packages, their order and hashes, and what speaks for them.

    <folder>/bundle.json             order and hashes
    <folder>/<skill>/                a package
    <folder>/<skill>.evidence.json   why it was promoted; missing where nothing proves it
    <folder>/calibration.json        thresholds for these critics; optional

A version of a library is such a folder, and so is what `zetta skills distill` writes.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, InfraError, ScreenError, SpecMismatch
from zetta.runtime.records import from_json, to_json
from zetta.skills.package_files import PackageFiles, read_files
from zetta.skills.promotions import (
    EVIDENCE_SUFFIX,
    PromotionEvidence,
    check_proof,
    evidence_text,
    read_evidence,
)
from zetta.skills.signatures import SIGNATURE_NAME

MANIFEST: Final = "bundle.json"
CALIBRATION: Final = "calibration.json"


@dataclass(frozen=True, slots=True)
class Part:
    """One skill of a bundle, by hashes."""

    name: str
    package: str
    """Hash of the package."""
    signature: str = ""
    """SHA-256 of its signature file; empty for an unsigned package."""
    evidence: str = ""
    """SHA-256 of the evidence; empty for a skill that no gate has promoted."""

    @property
    def proven(self) -> bool:
        """Whether a gate has promoted it."""
        return bool(self.evidence)


@dataclass(frozen=True, slots=True)
class BundleManifest:
    """What a folder holds, in the order in which critics are heard."""

    skills: tuple[Part, ...] = ()
    bundle: str = ""
    """Digest of the bundle as episodes and calibrations name it."""
    calibration: str = ""
    """SHA-256 of the calibration; empty where there is none."""

    @property
    def digest(self) -> str:
        """Hash of every byte that the folder vouches for: the name of a version."""
        return hashlib.sha256(_text(self).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Member:
    """One skill that goes into a bundle folder."""

    files: PackageFiles
    evidence: PromotionEvidence | None = None

    @property
    def name(self) -> str:
        """Name of the skill."""
        return self.files.folder.name

    @property
    def part(self) -> Part:
        """Its hashes."""
        signature = self.files.signature
        return Part(
            self.name,
            self.files.digest,
            "" if signature is None else hashlib.sha256(signature).hexdigest(),
            "" if self.evidence is None else self.evidence.digest,
        )


def parts_digest(parts: Sequence[tuple[str, str]]) -> str:
    """Return the digest of a bundle: SHA-256 over names and hashes of its parts, in order."""
    return hashlib.sha256(json.dumps([list(part) for part in parts]).encode()).hexdigest()


def manifest_of(members: Sequence[Member], calibration: bytes | None = None) -> BundleManifest:
    """Return the manifest of a bundle."""
    parts = tuple(member.part for member in members)
    return BundleManifest(
        skills=parts,
        bundle=parts_digest([(part.name, part.package) for part in parts]),
        calibration="" if calibration is None else hashlib.sha256(calibration).hexdigest(),
    )


def write_bundle(
    folder: Path, members: Sequence[Member], calibration: bytes | None = None
) -> BundleManifest:
    """Write a bundle folder that is there whole or not at all; equal bundles give equal bytes.

    Raises:
        ConfigError: the folder exists.
        InfraError: it cannot be written.
    """
    manifest = manifest_of(members, calibration)
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        fresh.mkdir(parents=True)
        for member in members:
            _write_member(fresh, member)
        if calibration is not None:
            _write(fresh / CALIBRATION, calibration)
        _write(fresh / MANIFEST, _text(manifest).encode())
        if folder.exists():
            raise ConfigError(f"{folder} exists already; choose a new folder")
        fresh.rename(folder)
        _sync_folder(folder.parent)
    except OSError as error:
        raise InfraError(f"cannot write the bundle {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return manifest


def is_bundle_folder(folder: Path) -> bool:
    """Say whether a folder has a manifest."""
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> BundleManifest:
    """Return the manifest of a bundle folder, unchecked against the files.

    Raises:
        ConfigError: it cannot be read.
    """
    path = folder / MANIFEST
    try:
        return from_json(BundleManifest, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, SpecMismatch) as error:
        raise ConfigError(f"{path} cannot be read as the manifest of a bundle: {error}") from None


def read_bundle(folder: Path) -> tuple[BundleManifest, tuple[Member, ...]]:
    """Return what a bundle folder holds, after comparing every byte with the manifest.

    Raises:
        ConfigError: something was changed, or is missing.
        ScreenError: a package cannot be read.
    """
    manifest = read_manifest(folder)
    members = tuple(_read_member(folder, part) for part in manifest.skills)
    found = manifest_of(members, calibration_of(folder, manifest))
    if found != manifest:
        names = [p.name for p, q in zip(manifest.skills, found.skills, strict=True) if p != q]
        what = ", ".join(names) or "the manifest"
        raise ConfigError(
            f"{folder} was changed after it was written: {what} is not what {MANIFEST} names; "
            "change a copy of the skill and promote that"
        )
    return manifest, members


def calibration_of(folder: Path, manifest: BundleManifest) -> bytes | None:
    """Return the bytes of the calibration that lies in a bundle folder, or None.

    Raises:
        ConfigError: it should be there and cannot be read.
    """
    if not manifest.calibration:
        return None
    try:
        return (folder / CALIBRATION).read_bytes()
    except OSError as error:
        raise ConfigError(f"{folder / CALIBRATION} cannot be read: {error.strerror}") from None


def renamed(files: PackageFiles, folder: Path) -> PackageFiles:
    """Return the same bytes as if they lay in another folder."""
    return replace(files, folder=folder)


def _read_member(folder: Path, part: Part) -> Member:
    if Path(part.name).name != part.name:
        raise ConfigError(f"{folder / MANIFEST} names the skill {part.name!r}; that is no name")
    try:
        files = read_files(folder / part.name)
    except ScreenError as error:
        raise ConfigError(f"{folder} was changed after it was written: {error}") from None
    if not part.evidence:
        return Member(files)
    evidence = read_evidence(folder / f"{part.name}{EVIDENCE_SUFFIX}")
    if evidence.digest != part.evidence:
        raise ConfigError(
            f"{folder / (part.name + EVIDENCE_SUFFIX)} was changed after it was written: its hash "
            "does not fit; promote the skill again with the evidence of its campaign"
        )
    check_proof(evidence, part.name, part.package)
    return Member(files, evidence)


def _write_member(folder: Path, member: Member) -> None:
    contents = dict(member.files.contents)
    if member.files.signature is not None:
        contents[SIGNATURE_NAME] = member.files.signature
    for path, content in sorted(contents.items()):
        target = folder / member.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, content)
    if member.evidence is not None:
        text = evidence_text(member.evidence)
        _write(folder / f"{member.name}{EVIDENCE_SUFFIX}", text.encode())


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _text(manifest: BundleManifest) -> str:
    return json.dumps(to_json(manifest), indent=1, sort_keys=True) + "\n"
