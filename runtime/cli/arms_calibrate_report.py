"""What a calibration came to, for people, for programs, and as notes in its file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from zetta.hw_drivers.calibration_hand import Mount, Placement
from zetta.hw_drivers.calibration_intrinsics import Intrinsics, Rejected
from zetta.hw_drivers.calibration_touch import TouchedPlacement
from zetta.runtime.cli import output
from zetta.runtime.core import Array


def intrinsics_text(found: Intrinsics) -> str:
    """Return the report of `calibrate intrinsics`."""
    rows = [[v.name, str(v.corners), f"{v.rms_px:.2f}"] for v in found.views]
    return "\n".join(
        [
            output.table(["view", "corners", "error px"], rows),
            *_left_out(found.rejected),
            *intrinsics_notes(found)[1:],
        ]
    )


def intrinsics_notes(found: Intrinsics) -> list[str]:
    """Return how good intrinsics are, in lines."""
    fx, fy, cx, cy = found.K[0, 0], found.K[1, 1], found.K[0, 2], found.K[1, 2]
    sx, sy, scx, scy = found.sigma
    lens = f"with lens distortion it would be {found.rms_with_distortion_px:.2f} px"
    return [
        f"intrinsics of {_today()} from {len(found.views)} views",
        f"error {found.rms_px:.2f} px (rms); {lens}, which bends by up to "
        f"{found.distortion_px:.1f} px and is not in the matrix",
        f"fx {fx:.1f} +- {sx:.1f}, fy {fy:.1f} +- {sy:.1f}, cx {cx:.1f} +- {scx:.1f}, "
        f"cy {cy:.1f} +- {scy:.1f} px",
        f"corners were seen in {100 * found.coverage:.0f} % of the picture",
    ]


def intrinsics_json(found: Intrinsics) -> dict[str, output.Json]:
    """Return the same for programs."""
    return {
        "height": found.height,
        "width": found.width,
        "intrinsics": found.K.tolist(),
        "sigma": found.sigma.tolist(),
        "rms_px": found.rms_px,
        "rms_with_distortion_px": found.rms_with_distortion_px,
        "distortion_px": found.distortion_px,
        "coverage": found.coverage,
        "views": [{"name": v.name, "corners": v.corners, "rms_px": v.rms_px} for v in found.views],
        "rejected": _rejected(found.rejected),
    }


def placement_text(found: Placement, T_parent_cam: Array, mount: Mount) -> str:
    """Return the report of `calibrate extrinsics`."""
    rows = [
        [p.name, *(f"{v:.2f}" for v in (p.rms_px, p.rms_mm, p.left_out_px, p.left_out_mm))]
        for p in found.pairs
    ]
    return "\n".join(
        [
            output.table(["picture", "px", "mm", "px left out", "mm left out"], rows),
            *_left_out(found.rejected),
            *placement_notes(found)[1:],
            _where(T_parent_cam, "the hand" if mount == "wrist" else "the world"),
        ]
    )


def placement_notes(found: Placement) -> list[str]:
    """Return how good a placement is, in lines."""
    return [
        f"pose of {_today()} from {len(found.pairs)} pictures and poses of the hand",
        f"error {found.rms_px:.2f} px, {found.rms_mm:.2f} mm at the board (rms); of pictures that "
        f"were left out {found.left_out_px:.2f} px, {found.left_out_mm:.2f} mm",
        f"leaving one picture out moves the camera by up to {found.moves_mm:.1f} mm and "
        f"{found.moves_deg:.2f} degrees",
    ]


def placement_json(found: Placement, T_parent_cam: Array) -> dict[str, output.Json]:
    """Return the same for programs."""
    return {
        "T_parent_cam": T_parent_cam.tolist(),
        "rms_px": found.rms_px,
        "rms_mm": found.rms_mm,
        "left_out_px": found.left_out_px,
        "left_out_mm": found.left_out_mm,
        "moves_mm": found.moves_mm,
        "moves_deg": found.moves_deg,
        "pairs": [
            {
                "name": p.name,
                "rms_px": p.rms_px,
                "rms_mm": p.rms_mm,
                "left_out_px": p.left_out_px,
                "left_out_mm": p.left_out_mm,
            }
            for p in found.pairs
        ],
        "rejected": _rejected(found.rejected),
    }


def touched_text(found: TouchedPlacement, T_world_cam: Array) -> str:
    """Return the report of `calibrate extrinsics --touched`."""
    rows = [[str(t.corner), f"{t.mm:.1f}", f"{t.left_out_mm:.1f}"] for t in found.touches]
    return "\n".join(
        [
            output.table(["corner", "mm", "mm left out"], rows),
            *touched_notes(found)[1:],
            _where(T_world_cam, "the world"),
        ]
    )


def touched_notes(found: TouchedPlacement) -> list[str]:
    """Return how good a placement by touching is, in lines."""
    return [
        f"pose of {_today()} from {len(found.touches)} touched corners",
        f"touches off by {found.rms_mm:.1f} mm (rms), by {found.left_out_mm:.1f} mm when left out; "
        f"the board fits its picture to {found.rms_px:.2f} px",
    ]


def touched_json(found: TouchedPlacement, T_world_cam: Array) -> dict[str, output.Json]:
    """Return the same for programs."""
    return {
        "T_parent_cam": T_world_cam.tolist(),
        "rms_px": found.rms_px,
        "rms_mm": found.rms_mm,
        "left_out_mm": found.left_out_mm,
        "touches": [
            {"corner": t.corner, "mm": t.mm, "left_out_mm": t.left_out_mm} for t in found.touches
        ],
    }


def _where(T: Array, parent: str) -> str:
    x, y, z = (f"{value:.4f}" for value in T[:3, 3])
    towards = ", ".join(f"{value:.3f}" for value in np.asarray(T[:3, 2]))
    return f"the camera is at {x}, {y}, {z} m in the frame of {parent} and looks along {towards}"


def _left_out(rejected: Sequence[Rejected]) -> list[str]:
    return [f"not used: {r.name}: {r.why}" for r in rejected]


def _rejected(rejected: Sequence[Rejected]) -> list[output.Json]:
    return [{"name": r.name, "why": r.why} for r in rejected]


def _today() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d")
