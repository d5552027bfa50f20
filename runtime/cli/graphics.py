"""How a simulator's pictures are drawn here: chosen before its engine loads, in any process."""

from __future__ import annotations

import os

from zetta.runtime.cli.vulkan import draws_with_vulkan, named_driver, variables
from zetta.runtime.errors import InfraError

DRAWN_WITH_OPENGL = frozenset({"libero", "robocasa", "robosuite", "twin"})


def choose_graphics(sim: str) -> str:
    """Choose the OpenGL backend or Vulkan device of `sim` for this process and its children.

    What the user has set is kept.

    Returns:
        What was chosen, in a few words.

    Raises:
        InfraError: no backend draws a picture here, or the one that the user set needs a screen.
    """
    if draws_with_vulkan(sim):
        # Only children read these: no engine that draws with Vulkan loads in this process.
        os.environ.update(variables())
        fetched = os.environ.get("VK_DRIVER_FILES") == str(named_driver())
        device = "the fetched device" if fetched else "the system's device, if it has one"
        return f"pictures: Vulkan, {device}"
    if sim not in DRAWN_WITH_OPENGL:
        return "pictures: drawn without OpenGL"
    from zetta.sims.libero.rendering import GL_BACKENDS, choose_gl

    given = os.environ.get("MUJOCO_GL")
    if given and given not in GL_BACKENDS:
        raise InfraError(
            f"MUJOCO_GL is {given!r}, which draws only on a screen; leave it out, or set it to "
            f"{' or '.join(GL_BACKENDS)}"
        )
    if given:
        return f"pictures: {given}, as MUJOCO_GL says"
    choice = choose_gl(python=_interpreter(sim))
    os.environ["MUJOCO_GL"] = choice.backend
    os.environ["PYOPENGL_PLATFORM"] = choice.backend
    passed_over = f" ({choice.note})" if choice.note else ""
    return f"pictures: {choice.backend}{passed_over}"


def _interpreter(sim: str) -> str | None:
    """Return the Python that draws for `sim`; None for the running one."""
    from zetta.runtime.cli.sims_venv import lives_apart, venv_of

    return str(venv_of(sim).python) if lives_apart(sim) else None
