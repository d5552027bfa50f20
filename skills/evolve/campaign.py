"""A campaign on disk: a sealed manifest, the scenes of its blocks, and one record for each stage.

    <campaign>/manifest.json
    <campaign>/<generation>/<stage>.json

The manifest is written once. A stage is a function from inputs to one record; its file is written
once, holds the hash of its content and of the records it was made from, and the campaign goes on
at the first stage whose file is missing. There is no other state.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from zetta.runtime.core import Sensing
from zetta.runtime.errors import ConfigError, GateError, SpecMismatch
from zetta.runtime.records import from_json, read_object, to_json

Block: TypeAlias = Literal["development", "calibration", "regression", "confirmation", "report"]
BLOCKS: Final[tuple[Block, ...]] = get_args(Block)
Stage: TypeAlias = Literal[
    "development", "diagnosis", "branches", "candidate", "screen", "shadow", "arms", "no_harm",
    "confirmation", "controls", "verdict", "report",
]  # fmt: skip
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
"""In the order in which a generation passes them."""
AFTER_CANDIDATE: Final[frozenset[Block]] = frozenset({"regression", "confirmation", "report"})
"""Blocks whose scenes follow from the candidate's hash, so that nobody knows them before."""
MANIFEST: Final = "manifest.json"
SEED_BITS: Final = 62
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a campaign is about; sealed before its first rollout."""

    sim: str
    suite: str
    tasks: tuple[int, ...]
    policy: str
    bundle: str
    """The parent that the first generation begins with."""
    bundle_digest: str
    """Empty for none."""
    author: str
    generations: int
    rollouts: int
    """Most rollouts of the whole campaign."""
    plan: str
    """Digest of the gate plan."""
    sensing: Sensing
    render_profile: str
    key: str
    """Hexadecimal; scenes and policy seeds are derived from it."""
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    """Of every episode."""

    @property
    def digest(self) -> str:
        """Hash of everything in it."""
        return digest_of(to_json(self))


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What one stage found, as it lies on disk."""

    stage: Stage
    generation: int
    inputs: Mapping[str, str]
    """Hashes of the records that it was made from, by stage; of the manifest for the first."""
    content: Mapping[str, Any]
    digest: str
    """Hash of the four fields above."""


class Campaign:
    """The folder of one campaign."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Seal a new campaign, or open one that was sealed with the same manifest.

        Raises:
            ConfigError: `folder` holds a campaign with another manifest, or a damaged one.
        """
        self.folder, self.manifest = folder, manifest
        path = folder / MANIFEST
        if path.exists():
            _check_same(path, read_manifest(folder), manifest)
            return
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _write_once(path, _text(to_json(manifest)))
        except FileExistsError:
            _check_same(path, read_manifest(folder), manifest)

    def seeds(self, generation: int, block: Block, count: int, candidate: str = "") -> list[int]:
        """Return the scene seeds of a block; equal arguments give equal seeds.

        Seeds are HMAC-SHA-256 of the block's name under the campaign's key, so blocks do not
        overlap beyond chance (62 bits), and nobody can choose them.

        Raises:
            GateError: the block follows from a candidate whose record is not yet written.
        """
        if block in AFTER_CANDIDATE:
            self._check_committed(generation, block, candidate)
        elif candidate:
            raise GateError(f"the block {block!r} does not depend on a candidate")
        key = bytes.fromhex(self.manifest.key)
        name = f"{self.manifest.suite}/{generation}/{block}/{candidate}"
        drawn = (hmac.new(key, f"{name}/{k}".encode(), hashlib.sha256) for k in range(count))
        return [int.from_bytes(d.digest()[:8], "big") >> (64 - SEED_BITS) for d in drawn]

    def next_stage(self, generation: int) -> Stage | None:
        """Return the first stage without a record; None when the generation is complete."""
        return next((s for s in STAGES if not self._path(generation, s).exists()), None)

    def has(self, generation: int, stage: Stage) -> bool:
        """Say whether a stage has its record."""
        return self._path(generation, stage).exists()

    def is_skipped(self, generation: int, stage: Stage) -> bool:
        """Say whether a stage was not reached."""
        return "skipped" in self.read(generation, stage).content

    def write(self, generation: int, stage: Stage, content: object) -> StageRecord:
        """Write the record of the next stage.

        Args:
            generation: from 0.
            stage: the next one.
            content: a frozen record, or plain JSON values.

        Raises:
            GateError: another stage is next, or the record exists already.
        """
        expected = self.next_stage(generation)
        if stage != expected:
            raise GateError(
                f"stage {stage!r} of generation {generation} is not next; "
                + (f"{expected!r} is" if expected else "the generation is complete")
            )
        body = {
            "stage": stage,
            "generation": generation,
            "inputs": self._inputs(generation, stage),
            "content": to_json(content),
        }
        plain = {**body, "digest": digest_of(body)}
        path = self._path(generation, stage)
        path.parent.mkdir(exist_ok=True)
        try:
            _write_once(path, _text(plain))
        except FileExistsError as error:
            raise GateError(f"{path} exists already; a stage is written once") from error
        return from_json(StageRecord, plain)

    def read(self, generation: int, stage: Stage) -> StageRecord:
        """Return a stage's record after checking it and its links to those before.

        Raises:
            ConfigError: it is missing, damaged, or made from other records than those here.
        """
        path = self._path(generation, stage)
        plain = read_object(path)
        body = {name: plain.get(name) for name in ("stage", "generation", "inputs", "content")}
        if plain.get("digest") != digest_of(body):
            raise ConfigError(f"{path} was changed after it was written: its hash does not fit")
        if body["inputs"] != self._inputs(generation, stage):
            raise ConfigError(f"{path} was made from other records than those that lie beside it")
        return from_json(StageRecord, plain)

    def content(self, generation: int, stage: Stage, kind: type[T]) -> T:
        """Return what a stage found, as the record that was written.

        Raises:
            ConfigError: see `read`; or it is no such record.
        """
        try:
            return from_json(kind, self.read(generation, stage).content)
        except SpecMismatch as error:
            raise ConfigError(f"{self._path(generation, stage)} holds something else") from error

    # ------------------------------------------------------------------ inside

    def _path(self, generation: int, stage: Stage) -> Path:
        return self.folder / f"{generation:03d}" / f"{stage}.json"

    def _inputs(self, generation: int, stage: Stage) -> dict[str, str]:
        """Return the hash of what comes right before: every record vouches for all before it."""
        at = STAGES.index(stage)
        if at:
            before, of = STAGES[at - 1], generation
        elif generation:
            before, of = STAGES[-1], generation - 1
        else:
            return {"manifest": self.manifest.digest}
        return {before: str(read_object(self._path(of, before)).get("digest"))}

    def _check_committed(self, generation: int, block: Block, candidate: str) -> None:
        if not self._path(generation, "candidate").exists():
            raise GateError(
                f"the scenes of the block {block!r} are revealed after the candidate's hash is "
                "committed; write the record of the stage 'candidate' first"
            )
        committed = self.read(generation, "candidate").content.get("digest")
        if committed != candidate:
            raise GateError(
                f"the scenes of the block {block!r} are those of candidate {committed}, not of "
                f"{candidate or 'none'}"
            )


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a campaign.

    Raises:
        ConfigError: there is none, or it is damaged.
    """
    path = folder / MANIFEST
    try:
        return from_json(Manifest, read_object(path))
    except SpecMismatch as error:
        raise ConfigError(f"{path} is no manifest of a campaign: {error}") from error


def digest_of(plain: object) -> str:
    """Return the SHA-256 of JSON values, whatever the order of their keys.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _check_same(path: Path, sealed: Manifest, wanted: Manifest) -> None:
    differing = [
        f.name
        for f in fields(Manifest)
        if to_json(getattr(sealed, f.name)) != to_json(getattr(wanted, f.name))
    ]
    if differing:
        first = differing[0]
        raise ConfigError(
            f"{path} was sealed with another {' and '.join(differing)} "
            f"({first}: {getattr(sealed, first)!r}, now {getattr(wanted, first)!r}); a campaign "
            "cannot change; begin another one in another folder"
        )


def _write_once(path: Path, text: str) -> None:
    """Write a file that either is there whole or is not there, and never replace one.

    Raises:
        FileExistsError: it is there.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    finally:
        fresh.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _text(plain: object) -> str:
    return json.dumps(plain, indent=1, sort_keys=True) + "\n"


def manifest_key(words: Sequence[str]) -> str:
    """Return a campaign's key from words, for campaigns that shall be repeated exactly."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()
