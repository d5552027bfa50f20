"""What stands where: the highest surface over each cell of the ground, from depth pictures.

What belongs to the robot is left out as far as it can be told without a model of the arm: first
the room that the hand fills at its present pose (`HandShape`), then everything above the palm that
hangs together with it, which is the wrist and the forearm. A cell that only the robot covers is
NaN, like one that nobody saw. What the fingers hold stays in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage
from scipy.spatial.transform import Rotation

from zetta.primitives.localize.clouds import Cloud, HandShape, Mask, clouds
from zetta.runtime.core import ArmState, Array, HeightGrid, Observation, read_only

_VOXEL = 0.03
"""Things nearer than this hang together, metres."""
_PALM_CLEARANCE = 0.02


@dataclass(frozen=True, slots=True)
class Workspace:
    """The box that is looked at. World frame, metres."""

    low: tuple[float, float, float] = (-0.8, -0.8, -0.1)
    high: tuple[float, float, float] = (0.8, 0.8, 2.0)

    def holds(self, points: Array) -> Mask:
        """Return which points lie inside. `points` has the shape (..., 3)."""
        return np.asarray(((points > self.low) & (points < self.high)).all(axis=-1))


def height_grid(
    observation: Observation,
    cell: float = 0.01,
    workspace: Workspace | None = None,
    shape: HandShape | None = None,
) -> HeightGrid | None:
    """Return the highest surface seen over each cell, or None without any depth.

    Args:
        observation: what was sensed; every camera with depth counts.
        cell: side of a cell, metres.
        workspace: only what lies in it is seen; the default is 1.6 m square.
        shape: the room that each hand fills.

    Returns:
        A grid over the workspace that was seen, its cells aligned to multiples of `cell`. Single
        unseen cells among seen ones take the greatest height around: a coarse picture leaves
        such gaps on any surface.
    """
    shape, workspace = shape or HandShape(), workspace or Workspace()
    seen = [cloud.points[cloud.valid] for cloud in clouds(observation, shape)]
    points = np.concatenate(seen) if seen else np.empty((0, 3))
    points = points[workspace.holds(points)]
    for arm in observation.proprio.arms:
        points = points[~_of_the_arm(points, arm, shape)]
    if not len(points):
        return None
    first = np.floor(points[:, :2].min(axis=0) / cell).astype(np.int64)
    cells = np.floor(points[:, :2] / cell).astype(np.int64) - first
    heights = np.full(cells.max(axis=0) + 1, -np.inf)
    np.maximum.at(heights, (cells[:, 0], cells[:, 1]), points[:, 2])
    heights[np.isneginf(heights)] = np.nan
    return HeightGrid(
        read_only(first * cell), cell, read_only(_without_gaps(heights)), observation.proprio.t
    )


def without_arm(cloud: Cloud, arms: Sequence[ArmState], shape: HandShape) -> Cloud:
    """Return a cloud whose pixels of the wrist and the forearm are no longer valid."""
    valid = cloud.valid.copy()
    for arm in arms:
        valid[valid] = ~_of_the_arm(cloud.points[valid], arm, shape)
    return replace(cloud, valid=valid)


def _without_gaps(heights: Array) -> Array:
    """Fill unseen cells that have seen ones on at least five of their eight sides."""
    missing = np.isnan(heights)
    around = ndimage.convolve(
        (~missing).astype(np.int64), np.ones((3, 3), np.int64), mode="constant"
    )
    lowest = np.where(missing, -np.inf, heights)
    highest = ndimage.maximum_filter(lowest, size=3, mode="constant", cval=-np.inf)
    return np.asarray(np.where(missing & (around >= 5), highest, heights))


def _of_the_arm(points: Array, arm: ArmState, shape: HandShape) -> Mask:
    """Return which points hang together with the wrist, above the height of the palm."""
    approach = Rotation.from_quat(arm.ee_quat).as_matrix()[:, 2]
    palm = arm.ee_pos + approach * shape.palm_at
    above = points[:, 2] > max(float(palm[2]), float(arm.ee_pos[2])) + _PALM_CLEARANCE
    result = np.zeros(len(points), dtype=bool)
    high = points[above]
    if not len(high):
        return result
    cells = np.floor((high - high.min(axis=0)) / _VOXEL).astype(np.int64) + 1
    grid = np.zeros(cells.max(axis=0) + 2, dtype=bool)
    grid[tuple(cells.T)] = True
    labels, _ = ndimage.label(grid, structure=np.ones((3, 3, 3)))
    own = labels[tuple(cells.T)]
    # The wrist is what begins within reach of the palm's axis.
    wrist = arm.ee_pos - approach * shape.length
    near = _distance_to_line(high, palm, wrist) < max(shape.palm_half) + _VOXEL
    result[above] = np.isin(own, np.unique(own[near]))
    return result


def _distance_to_line(points: Array, a: Array, b: Array) -> Array:
    """Return the distance of each point to the segment from a to b. Shape (N,)."""
    along = b - a
    share = np.clip((points - a) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
    return np.asarray(np.linalg.norm(points - (a + share[:, None] * along), axis=1))
