"""ManiSkill keeps the contract of simulators."""

from __future__ import annotations

import pytest
from contract import EnvContract, Facts

pytestmark = [pytest.mark.sims, pytest.mark.vulkan, pytest.mark.timeout(600)]


class TestStackCube(EnvContract):
    facts = Facts("maniskill", "maniskill", 1, turn=0.4)


@pytest.mark.slow
class TestPickCube(EnvContract):
    facts = Facts("maniskill", "maniskill", 0, turn=0.4)
