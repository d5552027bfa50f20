"""The contract of every environment, kept by one that lives in another process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from env_contract import CHECKS, Subject

from zetta.runtime import registry
from zetta.sims.remote import RemoteEnv

ELSEWHERE = {
    "only_observe_draws": "it watches this process, and the drawing is done in another",
    "expert_acts_within_the_spec": "an expert drives the environment itself, in its own process",
}
"""Checks that make no sense from outside, and why."""


@pytest.fixture(scope="module", params=[("toy_pick", 0), ("toy_two_arm", 0)], ids=lambda p: p[0])
def remote_toy(request: pytest.FixtureRequest) -> Iterator[Subject]:
    suite, index = request.param
    env, spare = (RemoteEnv("toy", suite, index) for _ in range(2))
    yield Subject(registry.simulator("toy"), suite, index, env, spare)
    env.close()
    spare.close()


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in ELSEWHERE])
def test_remote_toy_keeps_the_env_contract(remote_toy: Subject, name: str) -> None:
    CHECKS[name](remote_toy)


def test_checks_that_are_left_out_exist() -> None:
    assert set(ELSEWHERE) <= set(CHECKS)
