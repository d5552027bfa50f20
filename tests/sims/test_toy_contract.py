"""The toy keeps the contract of simulators, from another process."""

from __future__ import annotations

from contract import EnvContract, Facts


class TestToyPick(EnvContract):
    facts = Facts("toy", "toy_pick", 0)


class TestToyTwoArms(EnvContract):
    facts = Facts("toy", "toy_two_arm", 0)
