"""What is written beside the graphs of a tiny policy, and checked before they are trusted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.data import HORIZON
from zetta.runtime.policies.tiny.inputs import TOP
from zetta.runtime.policies.tiny.text import ENCODER

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
LOOK: Final = "look.onnx"
ACT: Final = "act.onnx"
WEIGHTS: Final = "weights.safetensors"


@dataclass(frozen=True, slots=True)
class Execution:
    """How a predicted path becomes actions."""

    replan_steps: int = 4
    """Rows used before the policy is asked again."""
    lead: int = 4
    """Rows of the path that a target runs ahead: the arm lags behind what it is told."""
    gripper_lead: int = 4
    """Rows that closing runs ahead; without it the hand hovers above the object for ever."""
    release_lead: int = 2
    """Rows that opening runs ahead."""
    stall_rows: int = 4
    """Further rows that closing runs ahead for each look without progress; 0 switches it off."""
    stall_m: float = 0.005
    """Way between two looks below which the hand makes no progress."""
    stall_phases: tuple[str, ...] = ("approach", "descend", "close")
    """Phases in which standing still is a stall."""
    draws: int = 8
    """Draws from which the dispersion is measured."""
    sigma_cells: float = 2.0
    """Width of the neighbourhood of a drawn cell that attention keeps."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a served tiny policy is."""

    phases: tuple[str, ...]
    instructions: tuple[str, ...]
    render_profile: str
    control_hz: float
    encoder: str
    crop: int
    horizon: int
    grids: tuple[tuple[int, int], ...]
    execution: Execution
    source: str
    data: tuple[str, ...]
    parameters: int
    width: float
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by file name."""
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        """Return the plain values that are written to disk."""
        return asdict(self)


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest and check that this version can serve it.

    Raises:
        ConfigError: it is missing, damaged or of another version.
    """
    path = folder / MANIFEST
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(
            f"there is no trained policy in {folder}: it has no {MANIFEST}; train one with "
            "`zetta train tiny`"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; get the weights again") from error
    try:
        manifest = _parse(raw)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} does not fit: {error!r}; get the weights again") from error
    ours = {"format": FORMAT, "encoder": ENCODER, "crop": TOP, "horizon": HORIZON}
    for what, value in ours.items():
        found = getattr(manifest, what)
        if found != value:
            raise ConfigError(
                f"{path} has {what} {found!r} and this version serves {value!r}; train the "
                "policy again or install the version that trained it"
            )
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Compare every file with its hash.

    Raises:
        ConfigError: one is missing or differs.
    """
    for name in (LOOK, ACT, WEIGHTS):
        path = folder / name
        if not path.is_file():
            raise ConfigError(f"{path} is missing; get the weights again")
        found, expected = digest(path), manifest.files.get(name, "nothing")
        if found != expected:
            raise ConfigError(
                f"{path} is damaged or was changed: its SHA-256 is {found[:12]}… and the "
                f"manifest says {expected[:12]}…; get the weights again"
            )


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _parse(raw: dict[str, Any]) -> Manifest:
    execution = dict(raw["execution"])
    execution["stall_phases"] = tuple(execution["stall_phases"])
    return Manifest(
        phases=tuple(map(str, raw["phases"])),
        instructions=tuple(map(str, raw["instructions"])),
        render_profile=str(raw["render_profile"]),
        control_hz=float(raw["control_hz"]),
        encoder=str(raw["encoder"]),
        crop=int(raw["crop"]),
        horizon=int(raw["horizon"]),
        grids=tuple((int(rows), int(columns)) for rows, columns in raw["grids"]),
        execution=Execution(**execution),
        source=str(raw["source"]),
        data=tuple(map(str, raw["data"])),
        parameters=int(raw["parameters"]),
        width=float(raw["width"]),
        files={str(name): str(value) for name, value in dict(raw["files"]).items()},
        format=int(raw["format"]),
    )
