"""Suites, tasks and layouts of the toy world.

Every layout puts things into slots of a 2 x 4 grid and shakes them a little, so that no layout
overlaps and none has to be rejected. In `toy_pick` each thing has a slot of its own, as in
benchmarks whose layouts a policy can learn by heart; `toy_swap` gives the same instructions with
the slots permuted.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from zetta.runtime.core import Array, Init, Layout, Task
from zetta.runtime.errors import ConfigError, suggest

Shape: TypeAlias = Literal["cube", "can", "ball", "plate"]

TABLE_Z = 0.40
"""Height of the table top in metres."""
TABLE_HALF = (0.24, 0.34)
"""Half extent of the table in x and y."""
INIT_COUNT = 10
"""`Init` layouts that ship with each task."""
SLOTS: tuple[tuple[float, float], ...] = tuple(
    itertools.product((-0.09, 0.09), (-0.21, -0.07, 0.07, 0.21))
)
"""Slot centres `(x, y)`; 0-3 are near the robot, each row runs from its right to its left."""
JITTER = 0.022
"""Things lie within this distance of their slot in x and in y: they never touch."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a scene. Contact geometry is the upright cylinder of radius and height."""

    colour: str
    shape: Shape
    radius: float
    """Metres; half the edge of a cube."""
    half_height: float
    slipperiness: float = 1.0
    """Scales the chance per tick that a held thing slips; at 5 a perfect grasp may slip too."""

    @property
    def name(self) -> str:
        """Name such as `red_cube`."""
        return f"{self.colour}_{self.shape}"

    @property
    def words(self) -> str:
        """Name as an instruction says it."""
        return f"{self.colour} {self.shape}"

    @property
    def fixed(self) -> bool:
        """Receptacles do not move when they are touched."""
        return self.shape == "plate"


@dataclass(frozen=True, slots=True)
class On:
    """A goal predicate: `item` lies on `target`, released and at rest."""

    item: str
    target: str

    def __str__(self) -> str:
        return f"on {self.item} {self.target}"


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """Where an arm starts and what it can reach. World frame, metres."""

    name: str
    home: tuple[float, float, float]
    low: tuple[float, float, float]
    high: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ToyTask:
    """A task with everything its world is made of."""

    task: Task
    things: tuple[Thing, ...]
    home_slots: tuple[int, ...]
    goals: tuple[On, ...]
    arms: tuple[ArmPlan, ...]
    permuted: bool
    names: tuple[str, ...] = field(init=False)
    """Names of the things."""
    goal_pairs: tuple[tuple[str, int, int], ...] = field(init=False)
    """Text, item and target of every goal; the latter two count things."""

    def __post_init__(self) -> None:
        names = tuple(thing.name for thing in self.things)
        pairs = tuple((str(g), names.index(g.item), names.index(g.target)) for g in self.goals)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "goal_pairs", pairs)

    def index_of(self, name: str) -> int:
        """Return the position of the thing called `name`.

        Raises:
            ConfigError: no such thing.
        """
        if name not in self.names:
            raise ConfigError(f"this toy task has no {name!r}; {suggest(name, self.names)}")
        return self.names.index(name)


_FLOOR = TABLE_Z + 0.012
_CEILING = TABLE_Z + 0.34
ONE_ARM = (
    ArmPlan("arm", (-0.10, 0.0, TABLE_Z + 0.24), (-0.2, -0.3, _FLOOR), (0.2, 0.3, _CEILING)),
)
TWO_ARMS = (
    ArmPlan("left", (-0.10, 0.17, TABLE_Z + 0.24), (-0.2, -0.05, _FLOOR), (0.2, 0.3, _CEILING)),
    ArmPlan("right", (-0.10, -0.17, TABLE_Z + 0.24), (-0.2, -0.3, _FLOOR), (0.2, 0.05, _CEILING)),
)


def cube(colour: str, slipperiness: float = 1.0) -> Thing:
    """Return a cube of 4 cm."""
    return Thing(colour, "cube", 0.02, 0.02, slipperiness)


def can(colour: str) -> Thing:
    """Return a cylinder of 3.6 cm by 6 cm."""
    return Thing(colour, "can", 0.018, 0.03, 1.5)


def ball(colour: str) -> Thing:
    """Return a ball of 4.4 cm; round things slip more easily."""
    return Thing(colour, "ball", 0.022, 0.022, 2.0)


def plate(colour: str) -> Thing:
    """Return a flat receptacle of 10 cm."""
    return Thing(colour, "plate", 0.05, 0.006)


_PAIRS = (("red", "green"), ("blue", "green"), ("red", "yellow"), ("blue", "yellow"))


def _pick(suite: str, index: int, slipperiness: float = 1.0) -> ToyTask:
    item, target = _PAIRS[index]
    things = (
        cube("red", slipperiness),
        cube("blue", slipperiness),
        plate("green"),
        plate("yellow"),
    )
    text = f"put the {item} cube on the {target} plate"
    goals = (On(f"{item}_cube", f"{target}_plate"),)
    return ToyTask(
        Task(suite, index, text, 160), things, (2, 1, 4, 7), goals, ONE_ARM, suite == "toy_swap"
    )


def _slip(suite: str, index: int) -> ToyTask:
    return _pick(suite, index, slipperiness=8.0)


def _distractors(suite: str, index: int) -> ToyTask:
    item, target = (
        (cube("red"), "green"), (can("cyan"), "green"), (ball("magenta"), "yellow"),
        (can("cyan"), "yellow"),
    )[index]  # fmt: skip
    things = (
        cube("red"), can("cyan"), ball("magenta"), cube("blue"), plate("green"), plate("yellow"),
        can("orange"),
    )  # fmt: skip
    text = f"put the {item.words} on the {target} plate"
    goals = (On(item.name, f"{target}_plate"),)
    return ToyTask(
        Task(suite, index, text, 160), things, (0, 1, 2, 3, 4, 7, 6), goals, ONE_ARM, True
    )


def _stack(suite: str, index: int) -> ToyTask:
    item, target = (("red", "blue"), ("blue", "red"), ("yellow", "blue"))[index]
    text = f"stack the {item} cube on the {target} cube"
    goals = (On(f"{item}_cube", f"{target}_cube"),)
    things = (cube("red"), cube("blue"), cube("yellow"))
    return ToyTask(Task(suite, index, text, 160), things, (1, 6, 3), goals, ONE_ARM, False)


def _two_arm(suite: str, index: int) -> ToyTask:
    red, blue = On("red_cube", "green_plate"), On("blue_cube", "yellow_plate")
    far = On("red_cube", "yellow_plate")
    text, goals = (
        ("put the red cube on the green plate and the blue cube on the yellow plate", (red, blue)),
        ("put the red cube on the yellow plate", (far,)),
        ("put the blue cube on the yellow plate", (blue,)),
    )[index]
    things = (cube("red"), cube("blue"), plate("green"), plate("yellow"))
    return ToyTask(Task(suite, index, text, 320), things, (3, 0, 6, 5), goals, TWO_ARMS, False)


_SUITES = {
    "toy_pick": (_pick, 4),
    "toy_swap": (_pick, 4),
    "toy_slip": (_slip, 4),
    "toy_distractors": (_distractors, 4),
    "toy_stack": (_stack, 3),
    "toy_two_arm": (_two_arm, 3),
}


def suites() -> dict[str, int]:
    """Return the number of tasks by suite."""
    return {name: count for name, (_, count) in _SUITES.items()}


def toy_task(suite: str, index: int) -> ToyTask:
    """Return a task of the toy.

    Raises:
        ConfigError: unknown suite or index.
    """
    if suite not in _SUITES:
        raise ConfigError(f"the toy has no suite {suite!r}; {suggest(suite, _SUITES)}")
    build, count = _SUITES[suite]
    if not 0 <= index < count:
        raise ConfigError(f"suite {suite!r} has tasks 0 to {count - 1}, not {index}")
    return build(suite, index)


def scene_generator(task: Task, layout: Layout, seed: int, purpose: str) -> np.random.Generator:
    """Return the generator of one scene; equal arguments give equal draws in any process.

    An `Init` layout does not depend on the seed; what happens later in the episode does.
    """
    used = 0 if isinstance(layout, Init) and purpose == "layout" else seed
    text = f"{task.suite}/{task.index}/{layout}/{used}/{purpose}"
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def places(toy: ToyTask, layout: Layout, seed: int) -> list[tuple[float, float, float]]:
    """Return `x y yaw` of every thing.

    Raises:
        ConfigError: the task has no such `Init` layout.
    """
    if isinstance(layout, Init) and not 0 <= layout.k < INIT_COUNT:
        raise ConfigError(
            f"{toy.task.suite} task {toy.task.index} has init layouts 0 to {INIT_COUNT - 1}, "
            f"not {layout.k}"
        )
    rng = scene_generator(toy.task, layout, seed, "layout")
    slots = list(toy.home_slots)
    if toy.permuted:
        slots = _deranged(slots, rng)
    centres = np.array([SLOTS[slot] for slot in slots])
    spots = centres + rng.uniform(-JITTER, JITTER, size=(len(slots), 2))
    while _touching(spots, toy.things):
        spots = centres + rng.uniform(-JITTER, JITTER, size=(len(slots), 2))
    yaws = rng.uniform(-0.3, 0.3, size=len(slots))
    return [(float(x), float(y), float(yaw)) for (x, y), yaw in zip(spots, yaws, strict=True)]


def _touching(spots: Array, things: Sequence[Thing]) -> bool:
    """Say whether any two things overlap; `spots` has the shape (N, 2)."""
    radii = np.array([thing.radius for thing in things])
    gaps = np.linalg.norm(spots[:, None] - spots[None], axis=-1) - radii[:, None] - radii[None]
    return bool((gaps[np.triu_indices(len(radii), 1)] <= 0).any())


def _deranged(slots: list[int], rng: np.random.Generator) -> list[int]:
    """Permute `slots` so that nothing keeps its own."""
    while True:
        order = rng.permutation(len(slots))
        if all(int(k) != i for i, k in enumerate(order)):
            return [slots[int(k)] for k in order]
