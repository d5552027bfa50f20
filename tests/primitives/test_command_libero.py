"""The checks of `command_libero_checks.py`, in a process of their own: one draws one world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.libero, pytest.mark.timeout(300)]
pytest.importorskip("libero", reason="needs LIBERO: pip install 'zetta[libero]'")
CHECKS = Path(__file__).with_name("command_libero_checks.py")


def test_commands_do_in_libero_what_they_say() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKS)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert child.returncode == 0, child.stdout[-4000:]
    assert " passed" in child.stdout
