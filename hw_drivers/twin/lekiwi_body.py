"""The twin behind the wire of LeKiwi: six positions that drive five joints of a Panda and its hand.

A LeKiwi has an arm of another shape, so nothing here says how a LeKiwi moves: it is there to drive
a body with weight through that wire. Which joint is which is `DRIVEN`; the two that are left stay
where they were. The twin has no wheels.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from PIL import Image as Pictures

from zetta.hw_drivers.arm import JointTarget
from zetta.hw_drivers.lekiwi.messages import JOINTS, LekiwiRow
from zetta.hw_drivers.twin.passing import Passing
from zetta.hw_drivers.twin.world import GRIPPER_MAX, TwinWorld
from zetta.runtime.core import Image, read_only

DRIVEN: Final[Mapping[str, int]] = {
    "shoulder_pan": 1,
    "shoulder_lift": 2,
    "elbow_flex": 4,
    "wrist_flex": 6,
    "wrist_roll": 7,
}
"""Number of the Panda's joint, counted from 1. Both count the same way; 0 is where a scene begins,
because a Panda cannot stretch its elbow to its own 0."""
QUALITY: Final = 90
"""Of the JPEGs, as LeRobot's host makes them."""


def plain() -> Mapping[str, Image]:
    """Return one grey picture of a camera called front."""
    return {"front": read_only(np.full((48, 64, 3), 128), np.uint8)}


class TwinLekiwi:
    """A `LekiwiBody` over a `TwinWorld`; one thread calls all of it."""

    def __init__(
        self, world: TwinWorld, pictures: Callable[[], Mapping[str, Image]] = plain
    ) -> None:
        """Begin where the world is.

        Args:
            world: the arm and its table.
            pictures: what the cameras see now, upright RGB.
        """
        self.world, self._pictures = world, pictures
        self._passing = Passing()
        self._which = [DRIVEN[joint] - 1 for joint in JOINTS]
        self._zero = world.home[self._which]
        self._rest = np.array(world.reading(0.0).joint_pos)
        self.followed = 0
        """Commands that were followed."""
        self.base_ignored = 0
        """Commands that wanted to drive the base, which is not there; the arm followed them."""
        self.base_stopped = 0

    def command(self, row: LekiwiRow) -> None:
        """Send the arm there; the base stays."""
        self.followed += 1
        self.base_ignored += any(row.base)
        joints = self._rest.copy()
        joints[self._which] = self._zero + np.array(row.joints)
        self.world.target(JointTarget(read_only(joints), row.gripper * GRIPPER_MAX))

    def stop_base(self) -> None:
        """Count it; the arm keeps its goal, as there."""
        self.base_stopped += 1

    def advance(self, seconds: float) -> None:
        """Let the world go on."""
        passed = self._passing.owed(seconds)
        if passed:
            self.world.advance(passed)

    def row(self) -> LekiwiRow:
        """Return where everything is."""
        seen = self.world.reading(0.0)
        joints = seen.joint_pos[self._which] - self._zero
        share = float(np.clip(seen.gripper_opening / GRIPPER_MAX, 0.0, 1.0))
        return LekiwiRow(tuple(joints.tolist()), share)

    def jpegs(self) -> Mapping[str, bytes]:
        """Return the pictures as LeRobot's host sends them, red and blue swapped."""
        return {camera: _jpeg(image) for camera, image in self._pictures().items()}


def _jpeg(image: Image) -> bytes:
    out = io.BytesIO()
    Pictures.fromarray(np.ascontiguousarray(image[:, :, ::-1])).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()
