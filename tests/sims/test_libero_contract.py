"""LIBERO keeps the contract of simulators."""

from __future__ import annotations

import pytest
from contract import EnvContract, Facts

pytestmark = [pytest.mark.libero, pytest.mark.timeout(900)]


class TestLiberoObject(EnvContract):
    facts = Facts("libero", "libero_object", 0)
