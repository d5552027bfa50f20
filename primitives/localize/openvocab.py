"""A finder for any noun phrase: an open-vocabulary detector read from a local folder.

Grounding DINO, OWL-ViT or OWLv2 gives boxes, SAM where it is given outlines, and depth turns both
into sightings. Weights are never downloaded: a folder holds what `save_pretrained` wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from zetta.primitives.localize.clouds import Cloud, HandShape, Mask, clouds
from zetta.primitives.localize.geometry_segments import Support, find_support, segment_of
from zetta.primitives.localize.geometry_solids import fit
from zetta.primitives.localize.heights import Workspace, without_arm
from zetta.primitives.localize.openvocab_boxes import Box, Detector, Segmenter, suppressed
from zetta.primitives.localize.sightings import Sighting
from zetta.runtime.core import Observation, Sensing, read_only
from zetta.runtime.errors import ConfigError

_INSTALL = "pip install 'zetta[openvocab]'"
_SAME = 0.04
"""Things of one name that two cameras see nearer than this, metres, are one thing."""
_MIN_PIXELS = 6
_RISE = 0.008
_DEEP = 0.06
"""Without an outline, what lies further behind the nearest part of a box than this, metres, plus
the width of the box, is background."""


def check_folder(folder: Path, what: str) -> None:
    """Check that a model can be read from `folder`.

    Raises:
        ConfigError: transformers or torch is not installed, or the folder holds no model.
    """
    missing = [name for name in ("transformers", "torch") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{what} needs {' and '.join(missing)}; {_INSTALL}")
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"{folder} holds no {what} (no config.json); download one where there is a network, "
            "with save_pretrained of model and processor, and name its folder"
        )


class OpenVocabFinder:
    """Finds whatever a detector can name."""

    level: Sensing = "vision"

    def __init__(
        self,
        detector: Detector,
        segmenter: Segmenter | None = None,
        cameras: tuple[str, ...] = (),
        threshold: float = 0.25,
        workspace: Workspace | None = None,
        shape: HandShape | None = None,
    ) -> None:
        """Take the models.

        Args:
            detector: gives boxes.
            segmenter: gives outlines; without one depth has to separate thing and background.
            cameras: the cameras that are used; none named means all that come with depth.
            threshold: weaker detections do not count.
            workspace: what lies outside is not seen.
            shape: the room that each hand fills.
        """
        self._detector = detector
        self._segmenter = segmenter
        self._cameras = cameras
        self._threshold = threshold
        self._workspace = workspace or Workspace()
        self._shape = shape or HandShape()

    @classmethod
    def from_folders(
        cls, detector: str | Path, segmenter: str | Path | None = None, threshold: float = 0.25
    ) -> OpenVocabFinder:
        """Read detector and segmenter from folders on this machine.

        Raises:
            ConfigError: a package or a folder is missing, or the folder holds another model.
        """
        check_folder(Path(detector), "detector")
        if segmenter is not None:
            check_folder(Path(segmenter), "segmenter")
        from zetta.primitives.localize.openvocab_models import load_detector, load_segmenter

        outlines = load_segmenter(Path(segmenter)) if segmenter is not None else None
        return cls(load_detector(Path(detector)), outlines, threshold=threshold)

    def find(self, observation: Observation, names: Sequence[str]) -> tuple[Sighting, ...]:
        """Return what the detector finds, where depth says that it is."""
        asked = list(dict.fromkeys(names))
        if not asked:
            return ()
        found: list[Sighting] = []
        for cloud in clouds(observation, self._shape, self._cameras):
            if cloud.name not in observation.images:
                continue
            boxes = self._detector.detect(cloud.image, asked)
            strong = [box for box in boxes if box.score >= self._threshold]
            clean = without_arm(cloud, observation.proprio.arms, self._shape)
            found += self._placed(clean, suppressed(strong))
        return _once(found)

    def _placed(self, cloud: Cloud, boxes: Sequence[Box]) -> list[Sighting]:
        support = find_support(cloud, self._workspace)
        if support is None:
            return []
        inside = self._workspace.holds(cloud.points)
        placed = []
        for box in boxes:
            mask = self._mask(cloud, box, support) & inside
            if (mask & cloud.valid).sum() >= _MIN_PIXELS:
                placed.append(_sighting(box, mask, cloud, support))
        return placed

    def _mask(self, cloud: Cloud, box: Box, support: Support) -> Mask:
        if self._segmenter is not None:
            return self._segmenter.outline(cloud.image, box.corners) & _within(box, cloud.valid)
        return foreground(cloud, box, support)


def foreground(cloud: Cloud, box: Box, support: Support) -> Mask:
    """Return what stands out in a box: above the support and not far behind its near part."""
    risen = support.height(cloud.points) > max(_RISE, 3.0 * support.noise)
    inside = _within(box, cloud.valid) & cloud.valid
    mask = inside & risen
    if mask.sum() < _MIN_PIXELS:
        # Something flat: all of the box that lies on the support.
        return inside
    distance = np.linalg.norm(cloud.points - cloud.eye, axis=-1)
    near = float(np.percentile(distance[mask], 10))
    width = float(box.corners[2] - box.corners[0]) * cloud.pitch * near
    return np.asarray(mask & (distance < near + width + _DEEP))


def _within(box: Box, like: Mask) -> Mask:
    left, top, right, bottom = (round(float(v)) for v in box.corners)
    mask = np.zeros(like.shape, dtype=bool)
    mask[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = True
    return mask


def _sighting(box: Box, mask: Mask, cloud: Cloud, support: Support) -> Sighting:
    segment = segment_of(mask, cloud, support)
    solid = min((fit(segment, form) for form in ("box", "cylinder")), key=lambda s: s.misfit)
    position = read_only([solid.x, solid.y, (solid.low + solid.high) / 2.0])
    extent = read_only([solid.width, solid.depth, solid.high - solid.low])
    return Sighting(box.name, position, extent, solid.yaw, float(np.clip(box.score, 0.0, 1.0)))


def _once(sightings: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Return each thing once that several cameras or boxes show."""
    kept: list[Sighting] = []
    for sighting in sorted(sightings, key=lambda s: -s.confidence):
        if not any(
            k.name == sighting.name
            and float(np.linalg.norm(k.position - sighting.position)) < _SAME
            for k in kept
        ):
            kept.append(sighting)
    return tuple(kept)
