"""How a simulator's pictures are drawn here: the backend is chosen before its engine loads."""

from __future__ import annotations

import os

from zetta.runtime.errors import InfraError

DRAWN_WITH_OPENGL = frozenset({"libero", "robocasa", "robosuite", "twin"})


def choose_graphics(sim: str) -> str:
    """Choose the OpenGL backend of `sim` for this process and its children; say which.

    A backend that the user has set is kept.

    Raises:
        InfraError: no backend draws a picture here, or the one that the user set needs a screen.
    """
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
