"""The manner in which a task's objects are usually taken: one for all its init states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.errands import begin
from zetta.sims.libero.expert_grasps import Manner
from zetta.sims.libero.experts import Expert, Habits


def habits(env: LiberoEnv, inits: Sequence[int]) -> Habits:
    """Return for each object the manner that costs least over all `inits`."""
    spent: dict[tuple[str, Manner], list[float]] = defaultdict(list)
    for init in inits:
        for name, cost, grasp in Expert(begin(env, init).world).choices():
            spent[name, grasp.manner].append(cost)
    # A manner that is not possible everywhere is no habit.
    mean = {key: float(np.mean(c)) for key, c in spent.items() if len(c) == len(inits)}
    best = sorted(mean, key=lambda key: -mean[key])  # the cheapest of an object is met last
    return dict(best)
