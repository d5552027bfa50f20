"""Rehearsals: pick-and-place drawn by hand, as ticks that the runtime's own signals are made of.

A skill needs windows to be tested on before anybody has logged its failure. A rehearsal moves an
imaginary hand the way real ones move (smooth paths, fingers that take time, sensors that shake)
and records what the robot would have felt, commanded and seen. It is no physics: what touches what
is told, not simulated. A window made from one says so in its `source`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.runtime.core import (
    Action,
    ActionChunk,
    ActionSpec,
    ArmState,
    Array,
    EnvSpec,
    Estimate,
    Init,
    PolicySpec,
    Proprio,
    Scene,
    Task,
    read_only,
)
from zetta.runtime.signals_source import Signals
from zetta.skills.replay import Expectation, ReplayWindow

HZ: Final = 20.0
TABLE_Z: Final = 0.9
OPEN_M: Final = 0.08
SHUT_M: Final = 0.0015
FINGER_SPEED: Final = 0.2
"""m/s, both fingers together."""
SHAKE_M: Final = 0.00003
"""Standard deviation of the sensed position of the hand."""
SIGHT_M: Final = 0.003
"""Standard deviation of a sighting along each axis."""
LOOK_EVERY: Final = 10
HORIZON, REPLAN = 16, 8
STEP_M: Final = 0.05
ACTION: Final = ActionSpec(
    kind="delta_pose",
    names=("dx", "dy", "dz", "rx", "ry", "rz", "gripper"),
    low=(-1.0,) * 7,
    high=(1.0,) * 7,
    scale=(STEP_M,) * 3 + (0.5,) * 3 + (1.0,),
)
SPEC: Final = EnvSpec("rehearsal", HZ, ACTION, ())
POLICY: Final = PolicySpec("rehearsal", ACTION, (), REPLAN, HORIZON, HZ, sensing="vision")
DOWN: Final = (1.0, 0.0, 0.0, 0.0)
"""Orientation of a hand that points straight down, xyzw."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something on the table."""

    x: float
    y: float
    size: tuple[float, float, float] = (0.05, 0.05, 0.06)
    """Full size, metres."""
    base: float = 0.0
    """Height of its bottom above the table, metres."""

    @property
    def centre(self) -> Array:
        """World position of its centre. Shape (3,)."""
        return np.array([self.x, self.y, TABLE_Z + self.base + self.size[2] / 2.0])


@dataclass(slots=True)
class _Moment:
    """What is true after one tick."""

    hand: Array
    opening: float
    closes: bool
    asked: Array
    """Displacement asked for by the action of this tick. Shape (3,)."""
    seen: Mapping[str, Array]
    """Where each visible role is."""
    torn: float
    """How far successive plans lie apart, metres."""
    driving: str


class Rehearsal:
    """A hand above a table with things on it; each verb adds ticks."""

    def __init__(
        self,
        things: Mapping[str, Thing],
        start: tuple[float, float, float] = (0.0, 0.0, 0.3),
        seed: int = 0,
        confidence: float = 0.9,
        pace: float = 1.0,
    ) -> None:
        """`start` is the hand's place, its height above the table; `things` by role.

        Each move takes `pace` times as long as it is told to.
        """
        self._pace = pace
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._sizes = {role: read_only(thing.size) for role, thing in things.items()}
        self.places = {role: thing.centre for role, thing in things.items()}
        """Where things are now, by role; a held object moves along."""
        self.hand = np.array([start[0], start[1], TABLE_Z + start[2]])
        self.opening, self.closes = OPEN_M, False
        self.held: Array | None = None
        """From the hand to the held object's centre."""
        self.width: float | None = None
        """Opening at which the fingers meet something; None for nothing between them."""
        self.hidden: set[str] = set()
        """Roles that no camera sees now."""
        self.torn = 0.0
        """How far successive plans of the policy lie apart, metres."""
        self.driving = "policy"
        self.confidence = confidence
        self._moments: list[_Moment] = []

    @property
    def now(self) -> int:
        """How many ticks there are."""
        return len(self._moments)

    # ------------------------------------------------------------------------- verbs

    def move(self, x: float, y: float, z: float, seconds: float) -> None:
        """Go somewhere on a smooth path; `z` is above the table."""
        start, goal = self.hand.copy(), np.array([x, y, TABLE_Z + z])
        for share in np.linspace(0.0, 1.0, round(seconds * self._pace * HZ) + 1)[1:]:
            eased = share * share * (3.0 - 2.0 * share)
            self._tick(start + eased * (goal - start))

    def to(
        self, role: str, above: float, seconds: float, aside: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Go over a thing, so many metres above its top, `aside` of its centre."""
        place = self.places[role]
        top = place[2] + self._sizes[role][2] / 2.0 - TABLE_Z
        self.move(place[0] + aside[0], place[1] + aside[1], top + above, seconds)

    def wait(self, seconds: float, asked: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> None:
        """Stand still, though `asked` to move by so many metres in each tick."""
        for _ in range(round(seconds * HZ)):
            self._tick(self.hand.copy(), np.array(asked))

    def shiver(self, seconds: float, reach: float, period: float = 0.4) -> None:
        """Go to and fro along x, `reach` metres to each side."""
        centre = self.hand.copy()
        for k in range(round(seconds * HZ)):
            side = reach * np.sin(2.0 * np.pi * (k + 1) / HZ / period)
            self._tick(centre + np.array([side, 0.0, 0.0]))

    def close(self, seconds: float = 0.6, width: float | None = None, hold: str = "") -> None:
        """Close the hand; `width` is what it meets, `hold` the role that it then carries."""
        self.closes, self.width = True, width
        self.wait(seconds)
        if hold:
            self.held = self.places[hold] - self.hand

    def open(self, seconds: float = 0.4) -> None:
        """Open the hand; what it carried drops onto the table."""
        self.closes, self.width = False, None
        self.drop()
        self.wait(seconds)

    def drop(self, onto: float = 0.0) -> None:
        """Lose what is held, without a command: it falls to `onto` metres above the table."""
        if self.held is not None:
            self.places["object"][2] = TABLE_Z + onto + self._sizes["object"][2] / 2.0
        self.held, self.width = None, None

    # ------------------------------------------------------------------------- ticks

    def _tick(self, hand: Array, asked: Array | None = None) -> None:
        """Add one tick that ends with the hand at `hand`."""
        moved = hand - self.hand
        self.hand = hand
        if self.held is not None:
            self.places["object"] = hand + self.held
        meets = SHUT_M if self.width is None else self.width
        goal = max(meets, SHUT_M) if self.closes else OPEN_M
        step = FINGER_SPEED / HZ
        self.opening += float(np.clip(goal - self.opening, -step, step))
        seen = {r: p.copy() for r, p in self.places.items() if r not in self.hidden}
        self._moments.append(
            _Moment(
                hand.copy(), self.opening, self.closes, moved if asked is None else moved + asked,
                seen, self.torn, self.driving,
            )
        )  # fmt: skip

    def signals(self) -> dict[str, Array]:
        """Return every signal of every tick, as the runtime computes them. Shape (T,) each."""
        self._rng = np.random.default_rng(self._seed)  # the same noise however often it is asked
        looks = _Looks(self, self._rng)
        source = Signals(
            SPEC, max_level="vision", policy=POLICY, look=looks, oracle=None, look_every=LOOK_EVERY
        )
        source.begin(Scene(Task("rehearsal", 0, "rehearsal", 300), Init(0)))
        rows: list[dict[str, float]] = []
        chunk: ActionChunk | None = None
        for index, moment in enumerate(self._moments):
            looks.index = index
            if index % REPLAN == 0:
                chunk = self._chunk(index)
            drives = moment.driving == "policy"
            action = _action(moment) if index else None
            rows.append(
                dict(
                    source.update(
                        index, self._proprio(index), action, chunk if drives else None,
                        moment.driving,
                    )
                )
            )  # fmt: skip
        return {name: read_only([row[name] for row in rows]) for name in rows[0]}

    def window(
        self,
        name: str,
        expect: Expectation,
        signals: Iterable[str],
        source: str,
        span: tuple[int, int] | None = None,
    ) -> ReplayWindow:
        """Return the named signals as a replay window; `span` is its first tick and its end."""
        computed = self.signals()
        first, end = span or (0, self.now)
        kept = {s: read_only(computed[s][first:end]) for s in sorted(signals)}
        return ReplayWindow(name, HZ, expect, None, f"rehearsal: {source}", kept)

    def _proprio(self, index: int) -> Proprio:
        moment = self._moments[index]
        shaken = moment.hand + self._rng.normal(0.0, SHAKE_M, 3)
        arm = ArmState(read_only(shaken), read_only(DOWN), read_only(np.zeros(7)), moment.opening)
        return Proprio(index / HZ, (arm,))

    def _chunk(self, index: int) -> ActionChunk:
        """Return the plan at a tick: what will be asked for, torn to one side and the other."""
        coming = [_action(m) for m in self._moments[index + 1 : index + 1 + HORIZON]]
        coming += [coming[-1] if coming else np.zeros(7)] * (HORIZON - len(coming))
        actions = np.array(coming)  # (H, A)
        side = 1.0 if (index // REPLAN) % 2 else -1.0
        actions[:, 1] += side * self._moments[index].torn / HORIZON / STEP_M
        return ActionChunk(read_only(actions), index / HZ)


class _Looks:
    """Answers a look with what is visible at the present tick."""

    def __init__(self, rehearsal: Rehearsal, rng: np.random.Generator) -> None:
        self._of, self._rng = rehearsal, rng
        self.index = 0

    def __call__(self) -> Mapping[str, Estimate]:
        of = self._of
        return {
            role: Estimate(
                role,
                read_only(place + self._rng.normal(0.0, SIGHT_M, 3)),
                of._sizes[role],
                0.0,
                of.confidence,
                self.index / HZ,
                "vision",
            )
            for role, place in of._moments[self.index].seen.items()
        }


def _action(moment: _Moment) -> Action:
    return np.array([*(moment.asked / STEP_M), 0.0, 0.0, 0.0, 1.0 if moment.closes else -1.0])
