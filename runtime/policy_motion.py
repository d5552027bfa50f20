"""A policy as a motion: it drives for a while, and then whoever called it goes on."""

from __future__ import annotations

from zetta.runtime.core import Env, Look, Motion, Outcome, Policy, Wait
from zetta.runtime.drivers import Late, PolicyDriver
from zetta.runtime.stepping import ACT_WITHIN


def policy_rows(policy: Policy, env: Env, seed: int, ticks: int, instruction: str = "") -> Motion:
    """Let `policy` drive `env` for some ticks.

    The policy is reset when the motion begins; its rows are used and converted as in an episode.
    One that thinks beside the loop is waited for in ticks that hold.

    Args:
        policy: who drives.
        env: what it sees, and whose actions are meant.
        seed: where its draws come from.
        ticks: how long it drives.
        instruction: what it is told; empty for the task's own.

    Raises:
        SpecMismatch: the action conventions cannot be converted.
    """
    driver = PolicyDriver(policy, env, instruction or env.observe().instruction, seed)
    return _rows(driver, ticks, ACT_WITHIN / env.spec.control_hz)


def _rows(driver: PolicyDriver, ticks: int, within_s: float) -> Motion:
    sense = yield Look(())
    driver.reset()
    for _ in range(ticks):
        while isinstance(wish := driver.wish(sense.proprio, lambda: within_s), Late):
            sense = yield Wait((), reason=wish.reason)
        sense = yield wish
    return Outcome(True, f"the policy drove for {ticks} tick{'' if ticks == 1 else 's'}")
