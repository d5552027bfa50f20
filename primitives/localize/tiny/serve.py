"""Serve the tiny localiser with ONNX Runtime and numpy.

One look at one picture finds everything: pixels that show a thing vote for its centre, votes are
gathered into instances, and each instance is named by the words of its pixels and by a crop. A
part or a place is where the pixels of its fixture say it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from zetta.primitives.localize.sightings import Sighting
from zetta.primitives.localize.tiny import outline
from zetta.primitives.localize.tiny.geometry import (
    CAMERA,
    PICTURE,
    STRIDE,
    Float32,
    View,
    crop,
    planes,
    view,
)
from zetta.primitives.localize.tiny.instances import Instance, Votes, instances
from zetta.primitives.localize.tiny.manifest import (
    CROPS,
    HEADS,
    NAMES,
    TRUNK,
    Calibration,
    Manifest,
    check_files,
    read_manifest,
)
from zetta.primitives.localize.tiny.parts import Thing, part_sightings, sighting
from zetta.primitives.localize.tiny.vocabulary import MOST_PARTS, THINGS, known, owner
from zetta.runtime.core import Array, Observation, Sensing, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch

WEIGHTS_FOLDER: Final = Path(__file__).parent / "weights"
SEEN: Final = 0.5
"""Probability above which a pixel shows a thing."""
NAMED_PIXELS: Final = 40
"""Pixels of an instance whose names are asked for."""
SINGLE: Final = frozenset({"cabinet", "stove", "wine rack", "microwave", "caddy", "basket"})
"""Things of which a scene has one; a second sighting is a fragment."""

ALIKE, BESIDE = 0.07, 0.18
"""Metres of size and of place within which a pixel's votes may still be for a fixture."""


def load(folder: Path = WEIGHTS_FOLDER, render_profile: str | None = None) -> TinyFinder:
    """Load the shipped weights, or those of another folder.

    Args:
        folder: what `export` wrote.
        render_profile: how the pictures will be drawn, where that is known.

    Raises:
        ConfigError: files are missing, damaged, or of another version.
        SpecMismatch: the weights were trained on pictures of another profile.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    if render_profile is not None and render_profile != manifest.render_profile:
        raise SpecMismatch(
            f"the localiser was trained on pictures of the render profile "
            f"{manifest.render_profile!r} and would be shown {render_profile!r}; draw with "
            f"{manifest.render_profile!r} or train it again"
        )
    return TinyFinder(manifest, *(_session(folder / n) for n in (TRUNK, HEADS, NAMES, CROPS)))


class TinyFinder:
    """Finds named things of the LIBERO scenes in one RGB-D picture of the scene camera."""

    level: Sensing = "vision"

    def __init__(
        self,
        manifest: Manifest,
        trunk: onnxruntime.InferenceSession,
        heads: onnxruntime.InferenceSession,
        names: onnxruntime.InferenceSession,
        crops: onnxruntime.InferenceSession,
    ) -> None:
        self.manifest = manifest
        self._trunk, self._heads, self._names, self._crops = trunk, heads, names, crops

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        """Return every instance of each name that is seen.

        Raises:
            SpecMismatch: the scene camera's picture or its depth is missing or of another size.
        """
        asked = [(name, spoken) for name in names if (spoken := known(name)) is not None]
        if not asked:
            return ()
        found: list[Sighting] = []
        for thing in self.look(observation):
            mine = [(n, s) for n, s in dict(asked).items() if owner(s) == thing.name]
            found += _sightings(mine, thing)
        return tuple(found)

    def look(self, observation: Observation) -> tuple[Thing, ...]:
        """Return everything that is seen and known, surest first.

        Raises:
            SpecMismatch: the scene camera's picture or its depth is missing or of another size.
        """
        seen = _view(observation)
        shown = planes(seen)
        features, sure = self._trunk.run(None, {"planes": shown})
        votes = self._votes(seen, shown, features, sure)
        found = instances(votes)
        if not found:
            return ()
        chances = self._chances(seen, features, votes, found)
        best = chances.argmax(axis=1)
        things = [
            _thing(THINGS[b], float(row[b]), one, votes)
            for one, row, b in zip(found, chances, best, strict=True)
            if row[b] >= self.manifest.calibration.least
        ]
        return _without_fragments(sorted(things, key=lambda thing: -thing.confidence))

    def _votes(self, seen: View, shown: Float32, features: Float32, sure: Float32) -> Votes:
        pixels = np.flatnonzero(sure > SEEN)
        points = seen.coarse.reshape(-1, 3)[pixels]
        scaled = shown[3:, STRIDE - 1 :: STRIDE, STRIDE - 1 :: STRIDE].reshape(3, -1).T[pixels]
        both = np.concatenate([features[pixels], scaled], axis=1)
        offset, extent, turn, parts = self._heads.run(None, {"known": both})
        return Votes(
            pixels=pixels,
            points=points,
            centers=points + offset,
            extents=extent,
            turns=turn,
            parts=points[:, None] + parts.reshape(-1, MOST_PARTS, 3),
            weights=sure[pixels],
        )

    def _chances(self, seen: View, features: Float32, votes: Votes, found: list[Instance]) -> Array:
        """Return how likely each instance has each name. Shape (instances, names)."""
        some = [one.members[:: max(1, len(one.members) // NAMED_PIXELS)] for one in found]
        asked = features[votes.pixels[np.concatenate(some)]]
        (by_pixel,) = self._names.run(None, {"features": asked})
        ends = np.cumsum([len(s) for s in some])[:-1]
        dense = np.stack([part.mean(axis=0) for part in np.split(by_pixel, ends)])
        shape = seen.coarse.shape[:2]
        images = []
        for one in found:
            mask = np.zeros(shape[0] * shape[1], bool)
            mask[votes.pixels[one.members]] = True
            images.append(crop(seen.picture, mask.reshape(shape), one.center, seen.camera))
        (by_crop,) = self._crops.run(None, {"crops": np.stack(images)})
        sure = np.array([one.weight for one in found])
        return np.asarray(named(dense, by_crop, self.manifest.calibration) * sure[:, None])


def named(dense: Float32, by_crop: Float32, calibration: Calibration) -> Array:
    """Return the probability of every name from two log-probabilities. Shape (N, Q)."""
    floor = np.log(1e-4)
    logits = calibration.crop_share * by_crop.astype(np.float64)
    logits += calibration.dense_share * np.maximum(dense.astype(np.float64), floor)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _thing(name: str, confidence: float, one: Instance, votes: Votes) -> Thing:
    points = around = votes.points[one.members]
    if name in SINGLE:
        # Pixels of an open drawer vote beside the cluster, but for a thing of the same size.
        alike = np.abs(votes.extents - one.extent).max(axis=1) < ALIKE
        near = np.linalg.norm(votes.centers - one.center, axis=1) < BESIDE
        around = votes.points[alike & near]
    return Thing(name, confidence, one, points, around, votes.parts[one.members])


def _sightings(asked: Sequence[tuple[str, str]], thing: Thing) -> list[Sighting]:
    """Return a sighting for each name, and how the vocabulary has it, of a thing or its part."""
    one, found = thing.instance, []
    wanted = thing.name == "cabinet" or any(spoken not in THINGS for _, spoken in asked)
    placed = part_sightings(thing) if asked and wanted else {}
    for name, spoken in asked:
        if spoken in THINGS:
            center, yaw = one.center, one.yaw
            if spoken not in SINGLE:
                yaw = outline.yaw(thing.points, one.extent, one.yaw)
            if spoken == "cabinet":
                # Its middle is right below that of its top.
                top = placed["top of cabinet"]
                center, yaw = np.array([*top.position[:2], center[2]]), top.yaw
            place, extent = read_only(center), read_only(one.extent)
            found.append(Sighting(name, place, extent, yaw, thing.confidence))
        else:
            found.append(sighting(name, spoken, placed[spoken], thing.confidence))
    return found


def _without_fragments(things: list[Thing]) -> tuple[Thing, ...]:
    kept: list[Thing] = []
    for thing in sorted(things, key=lambda t: -len(t.instance.members)):
        if thing.name not in SINGLE or all(other.name != thing.name for other in kept):
            kept.append(thing)
    return tuple(sorted(kept, key=lambda thing: -thing.confidence))


def _view(observation: Observation) -> View:
    picture, depth = observation.images.get(CAMERA), observation.depth.get(CAMERA)
    camera = observation.cameras.get(CAMERA)
    if picture is None or depth is None or camera is None:
        have = ", ".join(sorted(observation.images)) or "no picture"
        raise SpecMismatch(
            f"the localiser needs picture and depth of the camera {CAMERA!r}, and was given "
            f"{have} with depth of {', '.join(sorted(observation.depth)) or 'none'}; observe "
            f"with cameras=({CAMERA!r},) and depth=True"
        )
    if picture.shape[:2] != (PICTURE, PICTURE) or depth.shape != (PICTURE, PICTURE):
        raise SpecMismatch(
            f"the localiser needs {PICTURE}x{PICTURE} pixels and was given "
            f"{picture.shape[0]}x{picture.shape[1]} with depth of {depth.shape}"
        )
    return view(picture, depth, camera)


def _session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (ort_errors.Fail, ort_errors.InvalidProtobuf, ort_errors.InvalidGraph) as error:
        raise ConfigError(f"{path} is no usable graph: {error}; get the weights again") from error
