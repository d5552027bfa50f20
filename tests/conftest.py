"""Settings of all tests."""

from __future__ import annotations

import os
from importlib.util import find_spec

from hypothesis import HealthCheck, settings

# Wall time says nothing on a shared machine, so neither deadline nor slow generation is a failure.
settings.register_profile(
    "house", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def pytest_configure() -> None:
    """Choose the OpenGL backend before anything loads the engine, as every command does."""
    if find_spec("mujoco") is None or os.environ.get("MUJOCO_GL"):
        return
    from zetta.runtime.errors import InfraError
    from zetta.sims.libero.rendering import choose_gl

    try:
        backend = choose_gl().backend
    except InfraError:
        return  # the tests that draw will say so
    os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = backend
