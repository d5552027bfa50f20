"""How a simulator's pictures are drawn here: the backend is chosen before its engine loads."""

from __future__ import annotations

import os

DRAWN_WITH_OPENGL = frozenset({"libero"})


def choose_graphics(sim: str) -> str:
    """Choose the OpenGL backend of `sim` for this process and its children; say which.

    A backend that the user has set is kept.

    Raises:
        InfraError: no backend draws a picture here.
    """
    if sim not in DRAWN_WITH_OPENGL:
        return "pictures: drawn without OpenGL"
    given = os.environ.get("MUJOCO_GL")
    if given:
        return f"pictures: {given}, as MUJOCO_GL says"
    from zetta.sims.libero.rendering import choose_gl

    choice = choose_gl()
    os.environ["MUJOCO_GL"] = choice.backend
    os.environ["PYOPENGL_PLATFORM"] = choice.backend
    passed_over = f" ({choice.note})" if choice.note else ""
    return f"pictures: {choice.backend}{passed_over}"
