"""A scripted policy for the twin's table: it looks once, and then does what it has in mind.

Where the named things stand is read from the first picture after a reset, by colour and depth;
from then on only the arm's own pose is minded. Like a frozen VLA it never asks whether it holds
anything, and carries an empty hand to the plate. It is a stand-in for a policy, to measure critics
and skills on: it has learned nothing, and can do nothing but put one coloured thing on another.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from zetta.runtime.core import ActionChunk, ArmState, Array, CameraSpec, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.random_actions import ONE_ARM
from zetta.runtime.policies.toy_reach import holding, named
from zetta.runtime.policies.toy_sight import blobs

HORIZON, REPLAN = 8, 4
HZ: Final = 20.0
CAMERA: Final = CameraSpec("agentview", 256, 256)
MISSES: Final = {"twin/reach": 0.0, "twin/reach-clumsy": 0.5}
"""Chance that an episode's grasp goes beside the thing, by the name a policy is loaded under."""
MISS_M: Final = 0.045
"""How far, across the way of the fingers, metres: they close beside the thing and not on it."""
SIGMA_M: Final = 0.002
"""Standard deviation of where it grasps and lets go, metres."""
ABOVE_M: Final = 0.14
"""Height of the grip site over the table for reaching and carrying."""
DEPTH_M: Final = 0.024
"""The fingers close so far below the upper face."""
LEAST_M: Final = 0.014
"""They keep so far from the table."""
LOOSE_M: Final = 0.004
"""What is let go falls so far."""
STEP_M: Final = 0.05
SPEED: Final = 0.5
"""Largest command of a translation, in [-1, 1] units."""
FOLLOWS: Final = 0.3
"""Share of a command that the arm is believed to make in its tick."""
NEAR_M: Final = 0.006
GRIP_TICKS: Final = 14
PATIENCE: Final = 50
"""Ticks after which a stage is given up for the next."""

Stage: TypeAlias = Literal[
    "reach", "descend", "close", "lift", "carry", "lower", "open", "retreat", "rest"
]
_ORDER: Final[tuple[Stage, ...]] = (
    "reach", "descend", "close", "lift", "carry", "lower", "open", "retreat", "rest",
)  # fmt: skip
_CLOSED: Final[frozenset[Stage]] = frozenset({"close", "lift", "carry", "lower"})
_TIMED: Final[frozenset[Stage]] = frozenset({"close", "open"})
_COLOURS: Final = {"purple": "magenta"}
"""What a colour word is called where pictures are read."""
_THING = re.compile(r"\b(red|green|blue|yellow|purple)\s+(cube|can|plate)\b")


@dataclass(frozen=True, slots=True)
class Whim:
    """What an episode gets wrong: all its chance, drawn when it begins. Metres, shapes (2,)."""

    grasp: Array
    place: Array
    missed: bool


@dataclass(frozen=True, slots=True)
class Aims:
    """Where the grip site goes, as it was seen when the episode began. World, metres, (3,)."""

    grasp: Array
    place: Array | None
    """None where the thing is only picked up."""
    table: float


@dataclass(frozen=True, slots=True)
class TwinReachState:
    """What the policy remembers between two chunks."""

    words: tuple[tuple[str, str], ...]
    seed: int
    aims: Aims | None
    stage: Stage
    since: float


class TwinReach:
    """The policy. One arm, one camera, chunks of eight rows of which four are used."""

    _aims: Aims | None
    _stage: Stage
    _since: float

    def __init__(self, name: str, miss_chance: float) -> None:
        text = f"1 {miss_chance} {MISS_M} {SIGMA_M} {SPEED} {ABOVE_M}"
        self._miss_chance = miss_chance
        self._spec = PolicySpec(
            name=name,
            action=ONE_ARM,
            cameras=(CAMERA,),
            replan_steps=REPLAN,
            horizon=HORIZON,
            control_hz=HZ,
            depth=True,
            digest=hashlib.sha256(text.encode()).hexdigest(),
        )
        self._words: tuple[tuple[str, str], ...] = ()
        self._seed = 0
        self._begin()

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode.

        Raises:
            ConfigError: the instruction names no coloured thing.
        """
        self._words = tuple((c, s) for c, s in _THING.findall(instruction.lower()))
        if not self._words:
            raise ConfigError(
                f"{self._spec.name} does not understand {instruction!r}; say it like "
                "'put the red cube on the yellow plate'"
            )
        self._seed = seed
        self._begin()

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next eight rows.

        Raises:
            SpecMismatch: `reset` was not called, or the picture, its depth or its calibration is
                missing.
        """
        if not self._words:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        arm, t = observation.proprio.arms[0], observation.proprio.t
        if self._aims is None:
            self._aims = self._look(observation, arm)
            self._stage = "lift" if self._holds(arm) else "reach"
            self._since = t
        if self._aims is None:  # nothing is seen: stay, and look again
            return ActionChunk(np.tile([0.0] * 6 + [-1.0], (HORIZON, 1)), t)
        return ActionChunk(self._rows(np.array(arm.ee_pos), t, self._aims), t)

    def state(self) -> TwinReachState:
        """Return all that is remembered."""
        return TwinReachState(self._words, self._seed, self._aims, self._stage, self._since)

    def restore(self, state: TwinReachState) -> None:
        """Continue from `state`."""
        self._words, self._seed, self._aims = state.words, state.seed, state.aims
        self._stage, self._since = state.stage, state.since

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; what was aimed at when it looked stays."""
        self._seed = seed

    def close(self) -> None:
        """Free nothing."""

    def _holds(self, arm: ArmState) -> bool:
        return holding(arm)

    def _begin(self) -> None:
        self._aims, self._stage, self._since = None, "reach", 0.0

    # ------------------------------------------------------------------ sight

    def _look(self, observation: Observation, arm: ArmState) -> Aims | None:
        name, luck = CAMERA.name, whim(self._seed, self._miss_chance)
        for part in (observation.images, observation.depth, observation.cameras):
            if name not in part:
                raise SpecMismatch(
                    f"{self._spec.name} needs picture, depth and calibration of {name!r}; "
                    f"{suggest(name, part)}"
                )
        table, seen = blobs(
            observation.images[name], observation.depth[name], observation.cameras[name]
        )
        found = [named(seen, _COLOURS.get(c, c), shape) for c, shape in self._words[:2]]
        if self._holds(arm):
            grasp = np.array(arm.ee_pos)
            grasp[2] = table + DEPTH_M
        elif found[0] is None:
            return None
        else:
            top = found[0].position
            grasp = np.array([*(top[:2] + luck.grasp), max(top[2] - DEPTH_M, table + LEAST_M)])
        place = None
        if len(found) == 2:
            if found[1] is None:
                return None
            plate = found[1].position
            release = plate[2] + grasp[2] - table + LOOSE_M
            place = np.array([*(plate[:2] + luck.place), release])
        return Aims(grasp, place, table)

    # ------------------------------------------------------------------ stages

    def _rows(self, site: Array, t: float, aims: Aims) -> Array:
        """Go on to the next stage where this one is over, and aim at its end. Shape (H, 7)."""
        while self._stage != "rest" and _over(self._stage, site, t - self._since, aims):
            self._stage, self._since = _after(self._stage, aims), t
        still = self._stage in _TIMED or self._stage == "rest"
        goal = site if still else waypoint(self._stage, aims)
        rows = np.zeros((HORIZON, 7))
        rows[:, 6] = 1.0 if _closed(self._stage, aims) else -1.0
        for row in rows:
            row[:3] = np.clip((goal - site) / STEP_M, -SPEED, SPEED)
            site = site + FOLLOWS * STEP_M * row[:3]
        rows.flags.writeable = False
        return rows


def whim(seed: int, miss_chance: float) -> Whim:
    """Return what an episode of this seed gets wrong.

    >>> [whim(seed, 0.5).missed for seed in range(6)]
    [True, True, False, True, False, True]
    """
    rng = np.random.default_rng([0x2EAC, seed])
    missed = bool(rng.uniform() < miss_chance)
    side = 1.0 if rng.uniform() < 0.5 else -1.0
    grasp, place = rng.normal(0.0, SIGMA_M, (2, 2))
    return Whim(grasp + np.array([side * MISS_M * missed, 0.0]), place, missed)


def waypoint(stage: Stage, aims: Aims) -> Array:
    """Return where the grip site should be at the end of a stage, world frame. Shape (3,)."""
    target = (
        aims.grasp if stage in ("reach", "descend", "lift") or aims.place is None else aims.place
    )
    if stage in ("descend", "lower"):
        return target
    return np.array([target[0], target[1], aims.table + ABOVE_M])


def _over(stage: Stage, site: Array, seconds: float, aims: Aims) -> bool:
    ticks = round(seconds * HZ)
    if stage in _TIMED:
        return ticks >= GRIP_TICKS
    return ticks >= PATIENCE or float(np.abs(waypoint(stage, aims) - site).max()) < NEAR_M


def _after(stage: Stage, aims: Aims) -> Stage:
    if stage == "lift" and aims.place is None:
        return "rest"
    return _ORDER[_ORDER.index(stage) + 1]


def _closed(stage: Stage, aims: Aims) -> bool:
    return stage in _CLOSED or (stage == "rest" and aims.place is None)


def load(name: str) -> TwinReach:
    """Return the policy with the misses that belong to `name`.

    Raises:
        ConfigError: unknown name.
    """
    if name not in MISSES:
        raise ConfigError(f"unknown policy {name!r}; {suggest(name, MISSES)}")
    return TwinReach(name, MISSES[name])
