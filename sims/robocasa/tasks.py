"""RoboCasa's tasks as data; no engine is imported.

The 18 tasks are those that the RoboCasa365 benchmark calls `atomic_seen`, with the horizons of its
release 1.0.1. Each suite takes its kitchens and object instances from one of the benchmark's
splits. `robocasa_bundled` is ours and no benchmark: four of RoboCasa's tasks, with its robot,
controller and success code, in a kitchen of the package's own parametric parts with flat colours
and without objects. It needs no download.

RoboCasa words an instruction when it lays a scene out ("Open the left drawer."); what stands here
is what holds for every scene, for lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from zetta.sims.task_lists import TaskLists, suite_of

INIT_COUNT = 50
"""RoboCasa ships no initial states: `Init(k)` is the scene that the k-th of our seeds draws."""
BUNDLED = "robocasa_bundled"
Split: TypeAlias = Literal["bundled", "target", "pretrain", "all"]


@dataclass(frozen=True, slots=True)
class RobocasaTask:
    """One task."""

    name: str
    """As RoboCasa registers it."""
    instruction: str
    max_steps: int


ATOMIC: tuple[RobocasaTask, ...] = (
    RobocasaTask("CloseBlenderLid", "close the blender lid", 900),
    RobocasaTask("CloseFridge", "close the fridge", 900),
    RobocasaTask("CloseToasterOvenDoor", "close the toaster oven door", 450),
    RobocasaTask("CoffeeSetupMug", "put the mug under the coffee machine dispenser", 600),
    RobocasaTask("NavigateKitchen", "go to the named fixture", 450),
    RobocasaTask("OpenCabinet", "open the cabinet", 1050),
    RobocasaTask("OpenDrawer", "open the drawer", 750),
    RobocasaTask("OpenStandMixerHead", "open the stand mixer head", 450),
    RobocasaTask("PickPlaceCounterToCabinet", "put the object in the cabinet", 750),
    RobocasaTask("PickPlaceCounterToStove", "put the object in the pan on the stove", 600),
    RobocasaTask("PickPlaceDrawerToCounter", "put the object on the counter", 750),
    RobocasaTask("PickPlaceSinkToCounter", "put the object on the plate by the sink", 900),
    RobocasaTask("PickPlaceToasterToCounter", "put the toasted item on the plate", 600),
    RobocasaTask("SlideDishwasherRack", "slide the dishwasher rack", 450),
    RobocasaTask("TurnOffStove", "turn off the burner of the stove", 750),
    RobocasaTask("TurnOnElectricKettle", "turn on the electric kettle", 450),
    RobocasaTask("TurnOnMicrowave", "turn on the microwave", 450),
    RobocasaTask("TurnOnSinkFaucet", "turn on the sink faucet", 600),
)
IN_BUNDLED_KITCHENS: tuple[RobocasaTask, ...] = (
    RobocasaTask("OpenDrawer", "open the drawer", 750),
    RobocasaTask("CloseDrawer", "close the drawer", 750),
    RobocasaTask("OpenCabinet", "open the cabinet", 1050),
    RobocasaTask("CloseCabinet", "close the cabinet", 1050),
)
"""The budgets of CloseDrawer and CloseCabinet, which are none of the 18, are those of opening."""
TASKS: Mapping[str, tuple[RobocasaTask, ...]] = {
    BUNDLED: IN_BUNDLED_KITCHENS,
    "robocasa_target": ATOMIC,
    "robocasa_pretrain": ATOMIC,
    "robocasa_all": ATOMIC,
}
"""By suite, in a fixed order: the index of a task is its place here."""
SPLITS: Mapping[str, Split] = {
    BUNDLED: "bundled",
    "robocasa_target": "target",
    "robocasa_pretrain": "pretrain",
    "robocasa_all": "all",
}
"""Whence a suite has its kitchens and objects."""


_LISTS: Final[TaskLists[RobocasaTask]] = TaskLists(
    TASKS,
    lambda suite: suite_of(TASKS, suite, "robocasa"),
    lambda suite, own: own.max_steps,
    {"robocasa_target": ATOMIC},
)
counts, find, number, task = _LISTS.counts, _LISTS.find, _LISTS.number, _LISTS.task


def kitchens(split: Split) -> tuple[tuple[int, int], ...]:
    """Return the numbers of layout and style of every kitchen of a split, as RoboCasa365 has them.

    >>> [len(kitchens(split)) for split in ("bundled", "target", "pretrain", "all")]
    [4, 10, 2500, 3600]
    """
    if split == "bundled":
        return tuple((layout, style) for layout in (1, 2) for style in (1, 2))
    if split == "target":
        return tuple((k, k) for k in range(1, 11))
    numbers = range(11, 61) if split == "pretrain" else range(1, 61)
    return tuple((layout, style) for layout in numbers for style in numbers)
