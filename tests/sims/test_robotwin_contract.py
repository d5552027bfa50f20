"""RoboTwin keeps the contract of simulators, on the tasks and the robot that need no download."""

from __future__ import annotations

import pytest
from contract import EnvContract, Facts

pytestmark = [pytest.mark.sims, pytest.mark.vulkan, pytest.mark.timeout(600)]


class TestStackBlocksTwo(EnvContract):
    facts = Facts("robotwin", "robotwin_blocks", 0)


@pytest.mark.slow
class TestHandoverBlock(EnvContract):
    facts = Facts("robotwin", "robotwin_blocks", 4)
