"""Shuffled layouts for training data: the same things at other places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zetta.runtime.core import Array, Init, Scene, Step
from zetta.sims.libero.env import LiberoEnv

JITTER = 0.02
"""Spread around a permuted place, metres."""
SPACING = 0.115
"""Wanted distance between object origins, metres; relaxed when it does not fit."""
RECEPTACLE_GAP = 0.15
MARGIN = 0.03
RECEPTACLES = ("basket", "tray", "caddy")


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Which init state is rearranged, and how."""

    init: int
    seed: int


def reset_shuffled(env: LiberoEnv, shuffle: Shuffle) -> Step:
    """Reset to an init state, move its loose objects about and settle.

    Half of the layouts permute the objects' own places; the others draw new ones.
    """
    rng = np.random.default_rng([shuffle.seed, shuffle.init, 7])

    def rearrange() -> None:
        movable, fixed = _split(env)
        places = np.array([_place(env, name) for name in movable])
        keep_off = np.array([_place(env, name) for name in fixed]).reshape(-1, 2)
        if rng.random() < 0.5:
            spots = places[rng.permutation(len(movable))]
            spots = spots + rng.uniform(-JITTER, JITTER, spots.shape)
        else:
            spots = spread(places, keep_off, rng)
        for name, spot in zip(movable, spots, strict=True):
            _put(env, name, spot)

    return env.reset_rearranged(Scene(env.task, Init(shuffle.init), 0), rearrange)


def spread(places: Array, keep_off: Array, rng: np.random.Generator) -> Array:
    """Draw new places in the bounding box of the old ones, apart from each other.

    Args:
        places: present places. Shape (N, 2), metres.
        keep_off: centres of receptacles. Shape (M, 2).
        rng: generator.

    Returns:
        New places. Shape (N, 2).
    """
    low, high = places.min(0) - MARGIN, places.max(0) + MARGIN
    spacing = SPACING
    while True:
        spots: list[Array] = []
        for _ in range(400):
            spot = rng.uniform(low, high)
            apart = all(np.linalg.norm(spot - other) > spacing for other in spots)
            clear = not len(keep_off) or np.abs(keep_off - spot).max(axis=1).min() > RECEPTACLE_GAP
            if apart and clear:
                spots.append(spot)
            if len(spots) == len(places):
                return np.array(spots)
        spacing *= 0.93


def loose_objects(env: LiberoEnv) -> tuple[str, ...]:
    """Return the names of the objects that are shuffled."""
    return tuple(_split(env)[0])


def _split(env: LiberoEnv) -> tuple[list[str], list[str]]:
    names = list(env.control.env.objects_dict)
    fixed = [n for n in names if n.startswith(RECEPTACLES)]
    return [n for n in names if n not in fixed], fixed


def _place(env: LiberoEnv, name: str) -> Array:
    return np.array(env.control.sim.data.get_joint_qpos(_joint(env, name))[:2])


def _put(env: LiberoEnv, name: str, spot: Array) -> None:
    qpos = np.array(env.control.sim.data.get_joint_qpos(_joint(env, name)))
    qpos[:2] = spot
    env.control.sim.data.set_joint_qpos(_joint(env, name), qpos)


def _joint(env: LiberoEnv, name: str) -> str:
    return str(env.control.env.objects_dict[name].joints[-1])
