"""What critics cost: sixteen ordinary ones, and the largest that the language allows.

CPU time, not wall time. Each critic judges windows from many moments of a made-up episode, so that
it takes its short and its long ways as it would in a run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from zetta.critics.critic import Critic, compile_critic
from zetta.critics.language import CheckedCritic, analyse_critic
from zetta.runtime.benchmarks import Figure
from zetta.runtime.core import Array, Window
from zetta.runtime.signals import SIGNALS, SignalHistory

TYPICAL_TARGET_US: Final = 10.0
LARGEST_TARGET_US: Final = 200.0
MOMENTS: Final = 32
CALLS: Final = 100
"""Of each critic on each window."""

_CONDITIONS: Final = (
    "held(w.closed_on_nothing > 0.5, 0.3) and now(w.object_distance) < 0.12",
    "now(w.slip) > 0.004 and once(w.holding > 0.5, 1.0) and now(w.holding) < 0.5",
    "now(w.stalled_for) > 1.5 and now(w.object_distance) < 0.12 and now(w.open_for) > 1.5",
    "now(w.wander) > 8 and now(w.gripper_flips) >= 3",
    "mean(w.chunk_disagreement, 1.0) > 0.06 and now(w.wander) > 5",
    "now(w.holding) > 0.5 and delta(w.object_to_receptacle, 2.0) > -0.02",
    "held(w.object_confidence > 0.5, 1.0) and minimum(w.object_offset, 1.0) > 0.06",
    "rate(w.ee_z, 0.5) < -0.05 and now(w.object_offset) > 0.08",
    "path_length(w.ee_z, 2.0) > 0.2 and spread(w.ee_x, 2.0) < 0.02",
    "count(w.gripper_closing > 0.5, 2.0) > 20 and now(w.holding) < 0.5",
    "since(w.command_gripper > 0.5, w.holding > 0.5, 2.0) and now(w.closed_on_nothing) > 0.5",
    "held(w.command_residual > 0.05, 0.4) and now(w.ee_speed) < 0.01",
    "now(w.hand_tilt) > 0.6 and now(w.object_above) < 0.05",
    "now(w.ee_z) < now(w.object_z) + 0.02 and now(w.object_offset) > 0.05",
    "crossed(w.object_above, 0.05, 1.0) and now(w.open_for) > 1.0",
    "share(w.object_moved > 0.02, 1.0) > 0.8 and now(w.closed_for) > 0.5",
)
_HEAD: Final = '"""{what}"""\n\nWINDOW_S = {window:g}\n\n\ndef check(w, p):\n'


def typical_critics() -> tuple[str, ...]:
    """Return the text of sixteen ordinary critics."""
    return tuple(
        _HEAD.format(what="An ordinary critic.", window=2.0)
        + "    if now(w.policy_drives) < 0.5:\n        return ok()\n"
        + f'    if {condition}:\n        return abort("it happened")\n    return ok()\n'
        for condition in _CONDITIONS
    )


def largest_critic() -> str:
    """Return the text of a critic that has as much work as is allowed and does all of it.

    It walks through costly operators over the longest window until nothing more is allowed.
    """
    costly = (
        "path_length(w.ee_x) < 0",
        "rose(w.ee_z - w.object_z > 100 * w.lift)",
        "crossed(w.ee_speed / w.path_1s, 1e9)",
        "mean(hypot(w.object_offset, w.object_above)) < 0",
    )
    text = _HEAD.format(what="As large as can be.", window=5.0)
    end = "    return ok()\n"
    for k in range(100):
        more = f'    if {costly[k % len(costly)]}:\n        return abort("never")\n'
        if not isinstance(analyse_critic(text + more + end, "largest", SIGNALS, {}), CheckedCritic):
            break
        text += more
    return text + end


def critic_figures(control_hz: float = 20.0) -> list[Figure]:
    """Measure ordinary critics and the largest one.

    Returns the median over the ordinary critics, the slowest of them, and the largest critic, each
    in CPU microseconds for one call.
    """
    windows = moments(control_hz)
    typical = [
        call_us(compile_critic(text, "typical", f"typical-{k}", control_hz), windows)
        for k, text in enumerate(typical_critics())
    ]
    largest = compile_critic(largest_critic(), "largest", "largest", control_hz)
    return [
        Figure("critic_typical_p50", median(typical), "CPU us", target=TYPICAL_TARGET_US),
        Figure("critic_typical_slowest", max(typical), "CPU us"),
        Figure("critic_largest", call_us(largest, windows), "CPU us", target=LARGEST_TARGET_US),
    ]


def call_us(critic: Critic, windows: Sequence[Window]) -> float:
    """Return the CPU time of one call in microseconds: the median over the windows."""
    costs = []
    for window in windows:
        start = time.process_time_ns()
        for _ in range(CALLS):
            critic.judge(window)
        costs.append((time.process_time_ns() - start) / CALLS / 1000)
    return median(costs)


def moments(control_hz: float, seed: int = 0) -> list[Window]:
    """Return windows from different moments of a made-up episode in which all signals wander."""
    names = list(SIGNALS)
    episode = wandering(len(names), int(12 * control_hz), seed)
    low = np.array([SIGNALS[name].low for name in names])
    high = np.array([SIGNALS[name].high for name in names])
    windows: list[Window] = []
    for end in np.linspace(6 * control_hz, len(episode), MOMENTS).astype(int):
        history = SignalHistory(names, control_hz)
        for row in episode[:end]:
            history.push(low + row * (high - low))
        windows.append(history)
    return windows


def wandering(signals: int, ticks: int, seed: int) -> Array:
    """Return reflected random walks. Shape (ticks, signals), in [0, 1]."""
    random = np.random.default_rng(seed)
    walks = random.uniform(0, 1, signals) + random.normal(0, 0.05, (ticks, signals)).cumsum(axis=0)
    reflected: Array = np.abs((walks + 1.0) % 2.0 - 1.0)
    return reflected
