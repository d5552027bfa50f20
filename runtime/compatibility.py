"""What must agree between a policy and an environment before the first tick."""

from __future__ import annotations

from zetta.runtime.core import EnvSpec, PolicySpec
from zetta.runtime.errors import SpecMismatch, suggest


def check_compatible(
    env: EnvSpec, policy: PolicySpec, instruction: str, any_profile: bool = False
) -> None:
    """Refuse a policy that would be fed or paced otherwise than it was trained.

    Args:
        env: what the environment offers.
        policy: what the policy needs.
        instruction: the sentence that it will be given.
        any_profile: let a policy see pictures of a foreign render profile; for measuring
            what the profile costs, never for a result.

    Raises:
        SpecMismatch: the first thing that does not fit.
    """
    name = f"policy {policy.name!r}"
    if not instruction.strip():
        raise SpecMismatch(f"{name} was given an empty instruction; say what it should do")
    if policy.control_hz != env.control_hz:
        raise SpecMismatch(
            f"{name} acts at {policy.control_hz:g} Hz and {env.name} runs at "
            f"{env.control_hz:g} Hz; choose a policy trained at that rate"
        )
    if not 1 <= policy.replan_steps <= policy.horizon:
        raise SpecMismatch(
            f"{name} uses {policy.replan_steps} rows of chunks that have {policy.horizon}; "
            f"replan_steps must lie between 1 and {policy.horizon}"
        )
    _check_cameras(env, policy)
    foreign = policy.render_profile not in (None, env.render_profile)
    if foreign and not any_profile:
        raise SpecMismatch(
            f"{name} was trained on pictures of the render profile {policy.render_profile!r} "
            f"and {env.name} draws {env.render_profile!r} here; take a policy trained on those, or "
            f"the simulator and --render that draw {policy.render_profile!r}"
        )


def _check_cameras(env: EnvSpec, policy: PolicySpec) -> None:
    offered = {camera.name: camera for camera in env.cameras}
    for wanted in policy.cameras:
        camera = offered.get(wanted.name)
        if camera is None:
            raise SpecMismatch(
                f"policy {policy.name!r} needs the camera {wanted.name!r}, which {env.name} "
                f"has not; {suggest(wanted.name, offered)}"
            )
        if (camera.height, camera.width) != (wanted.height, wanted.width):
            raise SpecMismatch(
                f"policy {policy.name!r} needs {wanted.name!r} at {wanted.height}x{wanted.width} "
                f"pixels and {env.name} gives {camera.height}x{camera.width}"
            )
        if policy.depth and not camera.depth:
            raise SpecMismatch(
                f"policy {policy.name!r} needs depth, which the camera {wanted.name!r} "
                f"of {env.name} does not measure"
            )
