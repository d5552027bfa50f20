"""The contract of simulators that live in an interpreter of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apart_sims import installed
from env_contract import CHECKS, Subject
from test_remote_env_contract import ELSEWHERE as OUTSIDE

from zetta.runtime.core import SnapshotEnv

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]
ELSEWHERE = set(OUTSIDE) - {"expert_acts_within_the_spec"}
"""What is drawn when is asked inside: `tests/sims/robosuite_child.py`."""
PLACES = (
    ("robosuite", "robosuite_one_arm", 0),
    pytest.param(("robosuite", "robosuite_two_arm", 0), marks=pytest.mark.slow),
)
NO_EXPERT = {("robosuite", "robosuite_two_arm", 0)}


@pytest.fixture(scope="module", params=PLACES, ids=lambda p: f"{p[1]}-{p[2]}")
def remote(request: pytest.FixtureRequest) -> Iterator[Subject]:
    name, suite, index = request.param
    simulator = installed(name)
    env, spare = (simulator.make(suite, index) for _ in range(2))
    assert isinstance(env, SnapshotEnv)
    assert isinstance(spare, SnapshotEnv)
    yield Subject(simulator, suite, index, env, spare)
    env.close()
    spare.close()


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in ELSEWHERE])
def test_a_simulator_apart_keeps_the_env_contract(remote: Subject, name: str) -> None:
    place = (remote.simulator.name, remote.suite, remote.index)
    if name == "expert_acts_within_the_spec" and place in NO_EXPERT:
        pytest.skip(f"no scripted expert covers {place}")
    CHECKS[name](remote)
