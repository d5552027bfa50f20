"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Wall time says nothing on a shared machine, so neither deadline nor slow generation is a failure.
settings.register_profile(
    "house", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
