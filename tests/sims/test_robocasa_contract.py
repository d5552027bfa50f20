"""RoboCasa keeps the contract of simulators, in the kitchens of bundled parts."""

from __future__ import annotations

import pytest
from contract import EnvContract, Facts

pytestmark = [pytest.mark.sims, pytest.mark.timeout(300)]


class TestOpenDrawer(EnvContract):
    facts = Facts("robocasa", "robocasa_bundled", 0)


@pytest.mark.slow
class TestCloseCabinet(EnvContract):
    facts = Facts("robocasa", "robocasa_bundled", 3)
