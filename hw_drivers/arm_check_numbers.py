"""Numbers of an arm that cannot be what they should be: other units, other clocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmReading

FARTHEST_M: Final = 3.0
"""No table-top arm reaches so far; a pose beyond it is in other units."""
LARGEST_RAD: Final = 4.0 * math.pi
WIDEST_M: Final = 0.5
SLACK_RAD, SLACK_M = 0.1, 0.01
"""How far a reading may be beyond what the arm says of itself."""
OUTSIDE_M: Final = 0.5
"""A hand that is so far outside its workspace is in other units, or in another frame."""
NEAR_M: Final = 0.2
RUNS_APART: Final = 0.1
"""Share by which a clock may seem fast or slow while it is watched for a second."""
AHEAD_S: Final = 0.01


def wrong_numbers(reading: ArmReading, facts: ArmFacts) -> list[str]:
    """Say which numbers of a reading cannot be in the units that they should be in."""
    wrong = []
    norm = float(np.linalg.norm(reading.ee_quat))
    if not abs(norm - 1.0) < 1e-2:
        wrong.append(f"the quaternion has length {norm:g}")
    if len(reading.joint_pos) != len(facts.joints):
        wrong.append(f"{len(reading.joint_pos)} joints report, {len(facts.joints)} have names")
    else:
        wrong += _joints(reading, facts)
    wrong += _hand(reading, facts)
    opening = float(reading.gripper_opening)
    if not -SLACK_M <= opening < WIDEST_M or opening > facts.gripper_max + SLACK_M:
        guess = _in_other_units(lambda share: 0.0 <= opening * share <= facts.gripper_max)
        wrong.append(
            f"the gripper is open by {opening:g} of {facts.gripper_max:g}: metres are wanted{guess}"
        )
    return wrong


def outside(reading: ArmReading, facts: ArmFacts) -> float:
    """Return how far the hand is outside the workspace, metres; 0 inside and where none is told."""
    if len(facts.workspace_low) != 3 or len(facts.workspace_high) != 3:
        return 0.0
    nearest = np.clip(reading.ee_pos, facts.workspace_low, facts.workspace_high)
    return float(np.linalg.norm(reading.ee_pos - nearest))


def wrong_clock(passed_s: float, t_passed_s: float, age_s: float, bound_s: float) -> str:
    """Say what is wrong with the times of readings; empty if nothing is.

    Args:
        passed_s: between two states, by our clock.
        t_passed_s: between their readings, by their own times.
        age_s: of the newest reading.
        bound_s: how wrong the age may be.

    >>> wrong_clock(1.0, 0.995, 0.004, 0.001)
    ''
    >>> wrong_clock(1.0, 0.0, 0.004, 0.001)
    'the driver gives the same reading again and again'
    """
    if passed_s > 0.2 and t_passed_s == 0.0:
        return "the driver gives the same reading again and again"
    if age_s < -bound_s - AHEAD_S:
        return (
            f"readings come {-1000.0 * age_s:.0f} ms from the future: the driver stamps them by "
            "another clock than the server's"
        )
    if passed_s > 0.2 and abs(t_passed_s / passed_s - 1.0) > RUNS_APART:
        return (
            f"times of readings run at {t_passed_s / passed_s:.2f} of our clock; the driver must "
            "stamp them by a monotonic clock, in seconds"
        )
    return ""


def _joints(reading: ArmReading, facts: ArmFacts) -> Iterator[str]:
    low, high = facts.joint_low, facts.joint_high
    told = len(low) == len(high) == len(facts.joints)
    if told and max(map(abs, (*low, *high)), default=0.0) > LARGEST_RAD:
        yield f"the joint limits reach {max(map(abs, (*low, *high))):g}: radians are wanted"
        return
    for index, value in enumerate(reading.joint_pos.tolist()):
        least, most = (low[index], high[index]) if told else (-LARGEST_RAD, LARGEST_RAD)
        if least - SLACK_RAD <= value <= most + SLACK_RAD:
            continue
        degrees = abs(value) > 2.0 and least <= math.radians(value) <= most
        yield (
            f"{facts.joints[index]} stands at {value:.4g}, beyond {least:.3g} to {most:.3g}: "
            f"radians are wanted{'; are these degrees?' if degrees else ''}"
        )
        return  # one is enough: where one is in degrees, all are


def _hand(reading: ArmReading, facts: ArmFacts) -> Iterator[str]:
    far = outside(reading, facts)
    if float(np.linalg.norm(reading.ee_pos)) < FARTHEST_M and far < OUTSIDE_M:
        return

    def fits(share: float) -> bool:
        place = np.asarray(reading.ee_pos) * share
        if facts.workspace_low and facts.workspace_high:
            low, high = np.array(facts.workspace_low), np.array(facts.workspace_high)
            return bool(np.maximum(low - place, place - high).max() < NEAR_M)
        return 0.05 < float(np.linalg.norm(place)) < 1.5

    guess = _in_other_units(fits) if float(np.linalg.norm(reading.ee_pos)) > FARTHEST_M else ""
    yield (
        f"the hand is at {np.asarray(reading.ee_pos).round(2).tolist()}: metres are wanted, in the "
        f"arm's base frame{guess}"
    )


def _in_other_units(fits: Callable[[float], bool]) -> str:
    for name, share in (("centimetres", 0.01), ("millimetres", 0.001)):
        if fits(share):
            return f"; are these {name}?"
    return ""
