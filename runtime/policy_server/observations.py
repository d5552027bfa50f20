"""What an observation must hold before it reaches a policy that others share.

One bad request must not spoil a batch, so it is refused alone, before it joins one.
"""

from __future__ import annotations

import numpy as np

from zetta.runtime.core import ArmState, CameraSpec, Observation, PolicySpec
from zetta.runtime.errors import SpecMismatch, suggest


def check_observation(spec: PolicySpec, observation: Observation) -> None:
    """Refuse an observation that the policy of `spec` cannot take.

    Raises:
        SpecMismatch: no arm, a shape that is none, a number that is not finite, or a picture or
            depth that is missing or of another size.
    """
    proprio = observation.proprio
    if not proprio.arms or not np.isfinite(proprio.t):
        raise SpecMismatch(
            f"got {len(proprio.arms)} arms at the time {proprio.t}, expected at least one arm and "
            "a finite time"
        )
    for arm in proprio.arms:
        _check_arm(arm)
    if proprio.base is not None and not _fits(proprio.base, (3,)):
        raise SpecMismatch("the base is not three finite numbers: x, y, yaw")
    for camera in spec.cameras:
        _check_camera(spec, camera, observation)


def _check_arm(arm: ArmState) -> None:
    joints = (arm.joint_pos.size,)
    pose = _fits(arm.ee_pos, (3,)) and _fits(arm.ee_quat, (4,))
    # Some foreign protocols carry joints and no pose; the pose is then NaN as a whole.
    unknown = joints != (0,) and _missing(arm.ee_pos, (3,)) and _missing(arm.ee_quat, (4,))
    fits = (pose or unknown) and _fits(arm.joint_pos, joints)
    if not fits or not np.isfinite([arm.gripper_opening, arm.gripper_velocity]).all():
        raise SpecMismatch(
            f"got an arm with a position of shape {arm.ee_pos.shape}, an orientation of "
            f"{arm.ee_quat.shape} and joints of {arm.joint_pos.shape}; expected (3,), (4,) and "
            "(J,), all finite"
        )


def _fits(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], shape: tuple[int, ...]) -> bool:
    return array.shape == shape and bool(np.isfinite(array).all())


def _missing(
    array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], shape: tuple[int, ...]
) -> bool:
    return array.shape == shape and bool(np.isnan(array).all())


def _check_camera(spec: PolicySpec, camera: CameraSpec, observation: Observation) -> None:
    size = (camera.height, camera.width)
    picture = observation.images.get(camera.name)
    if picture is None:
        raise SpecMismatch(
            f"policy {spec.name!r} needs the picture {camera.name!r}; "
            f"{suggest(camera.name, observation.images)}"
        )
    if picture.shape != (*size, 3):
        raise SpecMismatch(
            f"policy {spec.name!r} needs {camera.name!r} of shape {(*size, 3)}, got {picture.shape}"
        )
    if not spec.depth:
        return
    depth = observation.depth.get(camera.name)
    if depth is None or depth.shape != size:
        got = "none" if depth is None else f"one of shape {depth.shape}"
        raise SpecMismatch(
            f"policy {spec.name!r} needs depth of {camera.name!r} of shape {size}, got {got}"
        )
