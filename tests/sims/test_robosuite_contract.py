"""robosuite keeps the contract of simulators."""

from __future__ import annotations

import pytest
from contract import EnvContract, Facts

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]


class TestLift(EnvContract):
    facts = Facts("robosuite", "robosuite_one_arm", 0)


@pytest.mark.slow
class TestTwoArmLift(EnvContract):
    facts = Facts("robosuite", "robosuite_two_arm", 0)


@pytest.mark.slow
class TestWipe(EnvContract):
    facts = Facts("robosuite", "robosuite_one_arm", 7, fingers=False)
