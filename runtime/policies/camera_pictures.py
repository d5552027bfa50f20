"""The pictures of a policy's cameras, checked against its spec."""

from __future__ import annotations

from zetta.runtime.core import CameraSpec, Image, Observation
from zetta.runtime.errors import SpecMismatch, suggest


def picture_of(observation: Observation, camera: CameraSpec) -> Image:
    """Return the picture of a camera. Shape (height, width, 3).

    Raises:
        SpecMismatch: it is missing or of another size.
    """
    picture = observation.images.get(camera.name)
    if picture is None:
        raise SpecMismatch(
            f"the observation holds no picture of the camera {camera.name!r}; "
            f"{suggest(camera.name, observation.images)}"
        )
    if picture.shape != (camera.height, camera.width, 3):
        raise SpecMismatch(
            f"the picture of {camera.name!r} has the shape {picture.shape}; "
            f"expected ({camera.height}, {camera.width}, 3)"
        )
    return picture
