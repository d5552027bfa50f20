"""A visuomotor policy for the toy world that sees only what a robot senses.

It finds the two things that the instruction names by colour, reaches, closes, carries and lets
go, without ever checking that it holds something: like a frozen VLA it carries an empty gripper
to the plate. How often it errs is a parameter; all chance comes from the seed of `reset`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from zetta.runtime.core import (
    ActionChunk,
    ArmState,
    Array,
    CameraSpec,
    Observation,
    PolicySpec,
)
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.random_actions import ONE_ARM
from zetta.runtime.policies.toy_sight import COLOURS, Blob, blobs
from zetta.runtime.snapshots import generator_from, generator_text

HORIZON, REPLAN = 8, 4
HZ = 20.0
CAMERA = CameraSpec("front", 48, 64)
ERRORS = {"toy/reach": 1.0, "toy/reach-exact": 0.0, "toy/reach-clumsy": 2.0}
"""Size of the errors by the name a policy is loaded under."""
GRASP_SIGMA = 0.005
"""Standard deviation of the grasp point at error 1, metres in x and in y."""
MISS_CHANCE, MISS_M = 0.15, 0.032
"""Chance at error 1 of reaching beside the thing, and how far."""
CONFUSION_CHANCE = 0.10
"""Chance at error 1 of reaching for another standing thing."""
PLACE_SIGMA = 0.006
DRAWS = 8
"""Draws that the dispersion is computed from."""
ABOVE = 0.11
"""Height above the table for reaching and carrying, metres."""
DEPTH = 0.02
"""The fingers close this far below the upper face, metres."""
SPEED = 0.6
"""Largest command of a translation, in [-1, 1] units."""
STEP_M = 0.05
LAG, GAIN = 0.4, 0.7
"""How the arm follows: share of the last motion that persists; share of the way asked for."""
NEAR = 0.005
"""A waypoint is reached within this distance, metres."""
GRIP_TICKS = 13
PATIENCE = 25
"""Ticks after which a stage is given up for the next."""
BLIND_SPREAD = 0.2
"""Dispersion in metres reported while the named things cannot be found."""

Stage: TypeAlias = Literal[
    "reach", "descend", "close", "lift", "carry", "lower", "open", "retreat", "rest"
]
_NEXT: dict[Stage, Stage] = {
    "reach": "descend",
    "descend": "close",
    "close": "lift",
    "lift": "carry",
    "carry": "lower",
    "lower": "open",
    "open": "retreat",
    "retreat": "rest",
    "rest": "rest",
}
_TIMED: frozenset[Stage] = frozenset({"close", "open"})
_CLOSED: frozenset[Stage] = frozenset({"close", "lift", "carry", "lower"})
_THING = re.compile(rf"\b({'|'.join(COLOURS)})\s+(cube|can|ball|plate)\b")


@dataclass(frozen=True, slots=True)
class _Whim:
    """What one draw gets wrong, for a whole episode."""

    grasp: Array
    """Error of the grasp point, metres. Shape (2,)."""
    place: Array
    """Error of the release point, metres. Shape (2,)."""
    confused: float
    """Below 1 it picks one of the other standing things, by its share; 1: no confusion."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """What was last seen of the named things."""

    item: Array
    """Middle of the upper face, world frame. Shape (3,)."""
    target: Array
    table: float
    others: tuple[Array, ...]
    """Upper faces of the other standing things."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """Where the stage machine is."""

    stage: Stage
    ticks: int
    """Ticks spent in this stage."""
    velocity: Array
    """Believed motion per tick of the grip site, metres. Shape (3,)."""


@dataclass(frozen=True, slots=True)
class _Roll:
    """The stages run ahead on a model of the arm."""

    rows: Array
    """Shape (H, 7)."""
    plan: tuple[_Moment, ...]
    """Where the stage machine is after each row."""


@dataclass(frozen=True, slots=True)
class ReachState:
    """What the policy remembers."""

    words: tuple[tuple[str, str], ...]
    generator: str
    whim: _Whim
    now: _Moment
    plan: tuple[_Moment, ...]
    t: float
    scene: _Scene | None


class ToyReach:
    """The policy. One arm, one camera, chunks of eight rows of which four are used."""

    _plan: tuple[_Moment, ...]
    _scene: _Scene | None

    def __init__(self, name: str = "toy/reach", error: float = 1.0) -> None:
        text = f"1 {error} {GRASP_SIGMA} {MISS_CHANCE} {CONFUSION_CHANCE} {SPEED}"
        self._error = error
        self._spec = PolicySpec(
            name=name,
            action=ONE_ARM,
            cameras=(CAMERA,),
            replan_steps=REPLAN,
            horizon=HORIZON,
            control_hz=HZ,
            depth=True,
            render_profile="toy-fast",
            digest=hashlib.sha256(text.encode()).hexdigest(),
        )
        self._words: tuple[tuple[str, str], ...] = ()
        self._begin(np.random.default_rng(0))

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode.

        Raises:
            ConfigError: the instruction is empty or names fewer than two things.
        """
        named = _THING.findall(instruction.lower())
        if len(named) < 2:
            raise ConfigError(
                f"toy/reach does not understand {instruction!r}; say it like "
                "'put the red cube on the green plate'"
            )
        self._words = (named[0], named[1])
        self._begin(np.random.default_rng(seed))

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next eight rows.

        Raises:
            SpecMismatch: `reset` was not called, there is more than one arm, or the picture,
                its depth or its calibration is missing.
        """
        if not self._words:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        proprio = observation.proprio
        if len(proprio.arms) != 1:
            raise SpecMismatch(f"{self._spec.name} drives one arm, not {len(proprio.arms)}")
        arm = proprio.arms[0]
        self._notice(observation, arm)
        draws = [self._draw() for _ in range(DRAWS)]
        if self._scene is None:
            return self._chunk(np.zeros((HORIZON, 7)), proprio.t, BLIND_SPREAD)
        self._pass_time(proprio.t, arm, self._scene)
        roll = self._roll(arm, self._scene)
        self._plan = roll.plan
        return self._chunk(roll.rows, proprio.t, self._spread(draws, self._scene))

    def state(self) -> ReachState:
        """Return all that is remembered."""
        return ReachState(
            self._words, generator_text(self._rng), self._whim, self._now, self._plan, self._t,
            self._scene,
        )  # fmt: skip

    def restore(self, state: ReachState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generator.
        """
        self._rng = generator_from(state.generator)
        self._words, self._whim, self._now = state.words, state.whim, state.now
        self._plan, self._t, self._scene = state.plan, state.t, state.scene

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; what was drawn for this episode stays."""
        self._rng = np.random.default_rng(seed)

    def close(self) -> None:
        """Free nothing."""

    # ------------------------------------------------------------------ chance

    def _begin(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._whim = self._draw()
        self._now = _Moment("reach", 0, np.zeros(3))
        self._plan = ()
        self._t = 0.0
        self._scene = None

    def _draw(self) -> _Whim:
        rng, error = self._rng, self._error
        grasp = rng.normal(0.0, GRASP_SIGMA, 2) * error
        angle, missed, confused, pick = rng.uniform(size=4)
        if missed < MISS_CHANCE * error:
            turn = 2.0 * np.pi * angle
            grasp = MISS_M * np.array([np.cos(turn), np.sin(turn)])
        place = rng.normal(0.0, PLACE_SIGMA, 2) * error
        return _Whim(grasp, place, float(pick) if confused < CONFUSION_CHANCE * error else 1.0)

    # ------------------------------------------------------------------ sight

    def _notice(self, observation: Observation, arm: ArmState) -> None:
        """Look for the named things, unless the arm is already at work between them."""
        if self._now.stage != "reach":
            return
        first = self._scene is None
        self._scene = self._look(observation, first and holding(arm)) or self._scene
        if first and self._scene is not None:
            stage: Stage = "lift" if holding(arm) else "reach"
            self._now, self._t = _Moment(stage, 0, np.zeros(3)), observation.proprio.t

    def _look(self, observation: Observation, held: bool) -> _Scene | None:
        name = CAMERA.name
        for part in (observation.images, observation.depth, observation.cameras):
            if name not in part:
                raise SpecMismatch(
                    f"{self._spec.name} needs picture, depth and calibration of {name!r}; "
                    f"{suggest(name, part)}"
                )
        table, seen = blobs(
            observation.images[name], observation.depth[name], observation.cameras[name]
        )
        item, target = (named(seen, *words) for words in self._words)
        if item is None and held:
            site = observation.proprio.arms[0].ee_pos
            item = Blob("", False, np.array([site[0], site[1], table + 2.0 * DEPTH]), 1)
        if item is None or target is None:
            return None
        others = tuple(b.position for b in seen if not b.flat and b is not item)
        return _Scene(item.position, target.position, table, others)

    # ------------------------------------------------------------------ stages

    def _pass_time(self, t: float, arm: ArmState, scene: _Scene) -> None:
        """Take up the stage that the rows used so far have led to, then look what is reached."""
        used = round((t - self._t) * HZ)
        self._t = t
        if self._plan and used > 0:
            self._now = self._plan[min(used, HORIZON) - 1]
        site = np.asarray(arm.ee_pos)
        while self._now.stage != "rest" and self._reached(self._now, site, scene):
            self._now = _Moment(_NEXT[self._now.stage], 0, self._now.velocity)

    def _reached(self, now: _Moment, site: Array, scene: _Scene) -> bool:
        if now.stage in _TIMED:
            return now.ticks >= GRIP_TICKS
        error = np.abs(waypoint(now.stage, scene, self._whim) - site).max()
        return bool(error < NEAR or (now.ticks > PATIENCE and now.stage != "reach"))

    def _roll(self, arm: ArmState, scene: _Scene) -> _Roll:
        """Run the stages ahead on a model of the arm."""
        now, site = self._now, np.array(arm.ee_pos)
        stay = site.copy()
        rows, plan = np.zeros((HORIZON, 7)), []
        for row in rows:
            still = now.stage in _TIMED or now.stage == "rest"
            goal = stay if still else waypoint(now.stage, scene, self._whim)
            row[:3] = np.clip((goal - site) / STEP_M * GAIN, -SPEED, SPEED)
            row[6] = 1.0 if now.stage in _CLOSED else -1.0
            velocity = LAG * now.velocity + (1.0 - LAG) * STEP_M * row[:3]
            site = site + velocity
            now = _Moment(now.stage, now.ticks + 1, velocity)
            ready = now.ticks >= GRIP_TICKS if still else np.abs(goal - site).max() < NEAR
            if ready and now.stage != "rest":
                now, stay = _Moment(_NEXT[now.stage], 0, velocity), site
            plan.append(now)
        return _Roll(rows, tuple(plan))

    def _spread(self, draws: list[_Whim], scene: _Scene) -> float:
        """Return how far apart the draws would go in the present stage, metres."""
        goals = np.array([waypoint(self._now.stage, scene, whim) for whim in draws])  # (draws, 3)
        apart = goals - goals[0]
        return float(np.sqrt(((apart - apart.mean(axis=0)) ** 2).sum(axis=1).mean()))

    def _chunk(self, rows: Array, t: float, spread: float) -> ActionChunk:
        if self._scene is None:
            rows[:, 6] = -1.0
        rows.flags.writeable = False
        return ActionChunk(rows, t, spread)


def waypoint(stage: Stage, scene: _Scene, whim: _Whim) -> Array:
    """Return where the grip site should be at the end of a stage, world frame. Shape (3,)."""
    item = scene.item
    if whim.confused < 1.0 and scene.others:
        item = scene.others[int(whim.confused * len(scene.others))]
    grasp = np.array([*(item[:2] + whim.grasp), max(item[2] - DEPTH, scene.table + 0.013)])
    place = np.array([*(scene.target[:2] + whim.place), 0.0])
    top = scene.table + ABOVE
    if stage in ("reach", "lift"):
        return np.array([grasp[0], grasp[1], top])
    if stage == "descend":
        return grasp
    if stage == "lower":
        return np.array([place[0], place[1], scene.target[2] + grasp[2] - scene.table + 0.004])
    return np.array([place[0], place[1], max(top, scene.target[2] + ABOVE - 0.03)])


def holding(arm: ArmState) -> bool:
    """Tell whether the fingers stand still around something."""
    return 0.01 < arm.gripper_opening < 0.07 and abs(arm.gripper_velocity) < 1e-3


def named(seen: list[Blob], colour: str, shape: str) -> Blob | None:
    """Return the largest thing of a colour and shape that is seen; None where there is none."""
    fitting = [b for b in seen if b.colour == colour and b.flat == (shape == "plate")]
    return max(fitting, key=lambda blob: blob.pixels, default=None)


def load(name: str) -> ToyReach:
    """Return the policy with the errors that belong to `name`.

    Raises:
        ConfigError: unknown name.
    """
    if name not in ERRORS:
        raise ConfigError(f"unknown policy {name!r}; {suggest(name, ERRORS)}")
    return ToyReach(name, ERRORS[name])
