"""Settings of all tests."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# Wall time says nothing on a shared machine, so neither deadline nor slow generation is a failure.
settings.register_profile(
    "house", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make test` draws the same examples in every run, so that a change fails by itself and not by the
# draw; `make test-slow` draws new ones.
settings.register_profile("repeatable", settings.get_profile("house"), derandomize=True)


# Suites that several modules run are no test modules, and their assertions are to speak as well.
pytest.register_assert_rewrite("contract", "contract_world", "env_contract")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the examples, and the OpenGL backend before anything loads the engine."""
    without_slow = "not slow" in config.getoption("markexpr")
    settings.load_profile("repeatable" if without_slow else "house")
    if find_spec("mujoco") is None or os.environ.get("MUJOCO_GL"):
        return
    from zetta.runtime.errors import InfraError
    from zetta.sims.libero.rendering import choose_gl

    try:
        backend = choose_gl().backend
    except InfraError:
        return  # the tests that draw will say so
    os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = backend
