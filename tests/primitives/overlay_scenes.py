"""A plain picture with a known camera, and what each overlay is to look like in it.

The pictures in `golden/` are drawn anew by `python tests/primitives/overlay_scenes.py`; look at
every one that changes before it is committed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from zetta.primitives.localize.table import Table
from zetta.primitives.overlays import OVERLAY_NAMES, Drawn, Surroundings, draw_overlays
from zetta.primitives.overlays import parse_overlays as parsed
from zetta.runtime.core import ArmState, Array, Camera, Estimate, Image

GOLDEN = Path(__file__).parent / "golden"
SIZE = (256, 192)
"""Width and height."""
TABLE = Table(0.4, (-0.25, -0.25), (0.25, 0.25))
NAMES = (*OVERLAY_NAMES, "all")


def looking(eye: tuple[float, float, float], target: tuple[float, float, float]) -> Array:
    """Return the pose of an optical frame at `eye` that looks at `target`, world z up."""
    forward = np.subtract(target, eye) / np.linalg.norm(np.subtract(target, eye))
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([right, np.cross(forward, right), forward])
    pose[:3, 3] = eye
    return pose


def camera() -> Camera:
    """Return a camera before the table that looks down at it."""
    k = np.array([[330.0, 0.0, SIZE[0] / 2], [0.0, 330.0, SIZE[1] / 2], [0.0, 0.0, 1.0]])
    return Camera("front", k, looking((0.75, 0.1, 1.0), (0.0, 0.0, 0.42)))


def picture() -> Image:
    """Return a plain grey picture."""
    return np.full((SIZE[1], SIZE[0], 3), 120, dtype=np.uint8)


def arm() -> ArmState:
    """Return a hand that points down and a little ahead, its fingers along y."""
    c, s = np.cos(0.1), np.sin(0.1)
    return ArmState(
        np.array([-0.05, 0.08, 0.58]), np.array([c, 0.0, s, 0.0]), np.zeros(7), 0.06
    )  # fmt: skip


def found() -> dict[str, Estimate]:
    """Return two things that stand apart, and one beside the second."""
    places = {
        "red mug": ((0.05, -0.15, 0.45), (0.08, 0.08, 0.10)),
        "plate": ((0.10, 0.12, 0.406), (0.14, 0.14, 0.012)),
        "small can": ((0.11, 0.13, 0.44), (0.03, 0.03, 0.08)),
    }
    return {
        name: Estimate(name, np.array(at), np.array(size), 0.0, 0.9, 0.0, "vision")
        for name, (at, size) in places.items()
    }


def around() -> Surroundings:
    """Return what is known of that world."""
    return Surroundings(TABLE, (arm(),), ("arm",), found())


def drawn(name: str) -> Drawn:
    """Draw one overlay, or `all`."""
    return draw_overlays(picture(), camera(), around(), parsed(name), longest_side=max(SIZE))


def main() -> None:
    """Draw every picture anew."""
    GOLDEN.mkdir(exist_ok=True)
    for name in NAMES:
        Pillow.fromarray(drawn(name).image).save(GOLDEN / f"overlay_{name}.png", optimize=True)


if __name__ == "__main__":
    main()
