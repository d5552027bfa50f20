"""Whatever comes over the link, what the robot's side is told keeps every limit."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from tests.hw_drivers.safe_runs import TOLERANCE
from tests.hw_drivers.server_storm import LIMITS, ServerStorm, assert_recorded, worst
from zetta.hw_drivers.arm_limits import KeepOut
from zetta.runtime.workspace import Box

POST = KeepOut("post", Box((0.46, 0.08, 0.0), (0.52, 0.14, 0.5)))
WITH_POST = replace(LIMITS, keep_out=(*LIMITS.keep_out, POST))


def weather(seed: int, commands: int) -> ServerStorm:
    storm = ServerStorm(seed, WITH_POST if seed % 2 else LIMITS)
    with contextlib.closing(storm):
        storm.run(commands)
    return storm


def assert_weathered(storm: ServerStorm) -> None:
    used = worst(storm)
    assert used.pop("walls") <= 1e-8
    assert used.pop("keep-out") == 0
    assert max(used.values()) <= 1.0 + TOLERANCE, used
    assert_recorded(storm)


@pytest.mark.parametrize("seed", range(3))
def test_side_is_told_nothing_beyond_its_limits_whatever_comes(seed: int) -> None:
    storm = weather(seed, 600)
    assert_weathered(storm)
    counts = storm.server.counts
    for name in ("sent", "changed", "declined", "refused", "expired", "clock", "latched", "stops"):
        assert counts[name] > 0, name


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_hundred_thousand_hostile_commands_over_the_link_leave_no_limit(seed: int) -> None:
    storm = weather(seed, 5000)
    assert_weathered(storm)
    used = worst(storm)
    print(f"seed {seed}: { ({k: round(v, 4) for k, v in used.items()}) } {storm.server.counts}")
