"""Views of a board from a running camera: each one that adds something is taken by itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.calibration_intrinsics import MIN_VIEWS, Gathering, coverage
from zetta.hw_drivers.camera_sources import open_camera
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import client_keys
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.errors import ConfigError

LOOK_EVERY_S: Final = 0.3
"""Between two pictures: who holds the board has to move it meanwhile."""
MAX_AGE_S: Final = 1.0


def views_of(
    setup: ArmSetup, camera: str, gathering: Gathering, wanted: int, within_s: float
) -> None:
    """Take views until there are enough, the time is over, or Ctrl-C.

    Raises:
        ConfigError: a number makes no sense.
        InfraError: the camera gives no pictures.
    """
    if wanted < MIN_VIEWS or not 1.0 <= within_s <= 3600.0:
        raise ConfigError(f"--views is {MIN_VIEWS} or more and --within 1 to 3600 seconds")
    keys = client_keys(Path(setup.keys)) if setup.keys else None
    source = open_camera(camera, setup.cameras[camera], keys)
    deadline, last, looked = time.monotonic() + within_s, "", 0
    try:
        with wish_to_end() as ending:
            output.note(
                f"hold the board before {camera}: near and far, into the corners, tilted; "
                "Ctrl-C ends it with what there is"
            )
            while len(gathering.views) < wanted and time.monotonic() < deadline:
                looked += 1
                why = gathering.add(f"view{looked}", source.latest(MAX_AGE_S).image)
                if not why:
                    share = 100 * coverage(gathering.views)
                    output.note(f"{len(gathering.views)}/{wanted}: {share:.0f} % covered")
                elif why != last:
                    output.note(why)
                last = why
                if ending.stop.wait(LOOK_EVERY_S):
                    break
    finally:
        source.close()
    gathering.rejected.clear()  # most pictures of a stream add nothing, which is no news
