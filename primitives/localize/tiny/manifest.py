"""What is written beside the graphs of a tiny localiser, and checked before they are trusted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from zetta.primitives.localize.tiny.geometry import BOTTOM, CAMERA, PICTURE, TOP
from zetta.primitives.localize.tiny.vocabulary import PARTS, THINGS
from zetta.runtime.errors import ConfigError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
TRUNK: Final = "trunk.onnx"
HEADS: Final = "heads.onnx"
NAMES: Final = "names.onnx"
CROPS: Final = "crops.onnx"
WEIGHTS: Final = "weights.safetensors"
FILES: Final = (TRUNK, HEADS, NAMES, CROPS, WEIGHTS)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How logits become a confidence, fitted on held-out training pictures."""

    crop_share: float = 1.0
    """Weight of the crop network's log-probabilities."""
    dense_share: float = 0.35
    """Weight of the dense network's mean log-probabilities."""
    least: float = 0.5
    """Confidence below which nothing is reported."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a served tiny localiser is, and the pictures that it is bound to."""

    render_profile: str
    mujoco: str
    source: str
    data: tuple[str, ...]
    """Keys of the shards that it learnt from."""
    parameters: int
    calibration: Calibration = field(default_factory=Calibration)
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by file name."""
    camera: str = CAMERA
    picture: int = PICTURE
    """Height and width in pixels."""
    rows: tuple[int, int] = (TOP, BOTTOM)
    things: tuple[str, ...] = THINGS
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(PARTS))
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
        raw = json.loads(path.read_text(encoding="utf-8"))
        manifest = _parse(raw)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no {path}; train the localiser with `zetta train localizer`"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} does not fit: {error!r}; get the weights again") from error
    ours = Manifest("", "", "", (), 0)
    for what in ("format", "camera", "picture", "rows", "things", "parts"):
        found, expected = getattr(manifest, what), getattr(ours, what)
        if found != expected:
            raise ConfigError(
                f"{path} has {what} {found!r} and this version serves {expected!r}; train the "
                "localiser again or install the version that trained it"
            )
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Compare every file with its hash.

    Raises:
        ConfigError: one is missing or differs.
    """
    for name in FILES:
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
    return Manifest(
        render_profile=str(raw["render_profile"]),
        mujoco=str(raw["mujoco"]),
        source=str(raw["source"]),
        data=tuple(map(str, raw["data"])),
        parameters=int(raw["parameters"]),
        calibration=Calibration(**{k: float(v) for k, v in raw["calibration"].items()}),
        files={str(name): str(value) for name, value in dict(raw["files"]).items()},
        camera=str(raw["camera"]),
        picture=int(raw["picture"]),
        rows=(int(raw["rows"][0]), int(raw["rows"][1])),
        things=tuple(map(str, raw["things"])),
        parts={str(k): tuple(map(str, v)) for k, v in raw["parts"].items()},
        format=int(raw["format"]),
    )
