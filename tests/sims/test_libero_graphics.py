"""The probe for a renderer that works: the first real error, not what a destructor says later."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.libero import rendering
from zetta.sims.libero.rendering import choose_gl, probe_gl, profile

pytestmark = [
    pytest.mark.libero,
    pytest.mark.skipif(
        find_spec("mujoco") is None,
        reason="MuJoCo is not installed; install it with: pip install 'zetta[libero]'",
    ),
]


def test_some_backend_draws_here() -> None:
    choice = choose_gl()

    assert choice.backend in rendering.GL_BACKENDS
    assert probe_gl(choice.backend) is None


def test_an_unknown_backend_is_named() -> None:
    error = probe_gl("bogus")

    assert error is not None
    assert "bogus" in error
    assert "\n" not in error


def test_a_failing_backend_tells_its_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere/vendor.json")
    error = probe_gl("egl")

    assert error is not None
    assert "Error" in error
    assert "__del__" not in error
    assert "\n" not in error


def test_osmesa_is_taken_when_egl_fails_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if probe_gl("osmesa") is not None:
        pytest.skip("OSMesa is not installed here; on Debian: apt-get install libosmesa6")
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere/vendor.json")

    choice = choose_gl()

    assert choice.backend == "osmesa"
    assert choice.note.startswith("egl: ")


def test_no_backend_at_all_is_one_sentence_with_the_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendering, "GL_BACKENDS", ("bogus", "worse"))

    with pytest.raises(InfraError, match="libosmesa6") as error:
        choose_gl()

    assert "bogus" in str(error.value)
    assert "worse" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_backend_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_PROBE", "import time; time.sleep(60)")

    assert probe_gl("egl", timeout_s=0.2) == "no picture within 0.2 s"


def test_a_backend_that_dies_without_a_word_gives_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendering, "_PROBE", "import os; os.kill(os.getpid(), 9)")

    assert probe_gl("egl") == "exit code -9"


def test_unknown_profile_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'full'"):
        profile("ful")
