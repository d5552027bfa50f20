"""Draws the replay windows of the skills that come with zetta.

    python tests/skills/library_windows.py

writes them anew into `skills/library/*/replay/` and `critics/library/replay/`. Each is a rehearsal:
ordinary pick-and-place, with pauses, rims, closed hands and hidden objects, on which a critic stays
silent, and the failure that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import part_windows

from zetta.skills.package import load_skill
from zetta.skills.package_files import REPLAY
from zetta.skills.rehearsals import TABLE_Z, Rehearsal, Thing
from zetta.skills.replay import Expectation, window_text

LIBRARY = Path(__file__).parents[2] / "skills" / "library"
CAN = Thing(0.12, -0.10, (0.06, 0.06, 0.09))
BOX = Thing(0.10, 0.08, (0.04, 0.08, 0.03))
BOWL = Thing(0.05, 0.12, (0.107, 0.107, 0.05))
PLATE = Thing(-0.05, -0.18, (0.16, 0.16, 0.02))
BASKET = Thing(0.02, 0.26, (0.18, 0.18, 0.10))
BOTTLE = Thing(-0.10, 0.20, (0.05, 0.05, 0.20))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rehearsal and what a critic must do on it."""

    name: str
    expect: Expectation
    what: str
    rehearsal: Rehearsal
    span: tuple[int, int] | None = None


def scene(
    object_: Thing = CAN, receptacle: Thing = BASKET, seed: int = 0, pace: float = 1.0
) -> Rehearsal:
    """Return a hand above a table with an object and a receptacle."""
    return Rehearsal({"object": object_, "receptacle": receptacle}, seed=seed, pace=pace)


# ------------------------------------------------------------------------- ordinary pieces


def approach(r: Rehearsal, aside: tuple[float, float] = (0.0, 0.0), depth: float = -0.02) -> None:
    """Go over the object and down onto it."""
    r.wait(0.3)
    r.to("object", 0.10, 1.6, aside)
    r.to("object", depth, 0.8, aside)


def take(r: Rehearsal, width: float = 0.055, hidden: bool = True, wait: float = 0.2) -> None:
    """Close on the object."""
    r.wait(wait)
    r.close(0.7, width, hold="object")
    if hidden:
        r.hidden.add("object")


def carry(r: Rehearsal, seconds: float = 1.8) -> None:
    """Lift, and bring the object over the receptacle."""
    r.move(r.hand[0], r.hand[1], 0.22, 1.0)
    r.to("receptacle", 0.16, seconds)


def let_go(r: Rehearsal, wait: float = 0.2) -> None:
    """Lower, open and rise."""
    r.to("receptacle", 0.06, 0.8)
    r.wait(wait)
    r.open(0.5)
    r.hidden.discard("object")
    r.to("receptacle", 0.18, 0.8)


def ordinary(seed: int = 0) -> Rehearsal:
    """Return a can that goes into a basket."""
    r = scene(seed=seed)
    approach(r)
    take(r)
    carry(r)
    let_go(r)
    return r


def brisk() -> Rehearsal:
    """Return a can that goes into a basket within four seconds."""
    r = scene(seed=8, pace=0.45)
    approach(r)
    take(r, wait=0.0)
    r.move(r.hand[0], r.hand[1], 0.20, 0.8)
    r.to("receptacle", 0.12, 1.6)
    let_go(r, wait=0.0)
    return r


def careful() -> Rehearsal:
    """Return a box that is taken slowly, with pauses before closing and before letting go."""
    r = scene(BOX, PLATE, seed=1)
    r.wait(0.5)
    r.to("object", 0.10, 2.2)
    r.wait(0.8)
    r.to("object", 0.0, 1.5)
    take(r, 0.04, wait=0.8)
    r.move(r.hand[0], r.hand[1], 0.22, 1.6)
    r.to("receptacle", 0.14, 1.8)
    r.wait(0.4)
    let_go(r, wait=0.2)
    return r


def by_the_rim(hidden: bool = False) -> Rehearsal:
    """Return a bowl that is taken by its thin rim and seen in the hand."""
    r = scene(BOWL, PLATE, seed=2)
    approach(r, aside=(0.0, 0.047), depth=-0.01)
    take(r, 0.0042, hidden=hidden)
    carry(r, 2.2)
    let_go(r)
    return r


def after_work() -> Rehearsal:
    """Return a delivery after which the hand closes, goes home and waits."""
    r = ordinary(seed=3)
    r.close(0.6)
    r.move(0.0, 0.0, 0.3, 1.5)
    r.wait(2.0)
    return r


def lingering() -> Rehearsal:
    """Return a delivery after which the open hand stays where it let go."""
    r = scene(BOX, PLATE, seed=4)
    approach(r, depth=0.0)
    take(r, 0.04)
    carry(r)
    r.to("receptacle", 0.03, 0.8)
    r.open(0.5)
    r.hidden.discard("object")
    r.wait(4.0)
    return r


def second_try() -> Rehearsal:
    """Return a policy that misses, opens at once by itself, and takes the can."""
    r = scene(seed=5)
    approach(r, aside=(0.0, 0.05))
    r.wait(0.2)
    r.close(0.7)
    r.open(0.4)
    r.to("object", 0.06, 0.7)
    r.to("object", -0.02, 0.7)
    take(r)
    carry(r)
    return r


def unseen() -> Rehearsal:
    """Return an ordinary run in which the object is never seen."""
    r = scene(seed=6)
    r.hidden.add("object")
    approach(r)
    take(r)
    carry(r)
    return r


SILENT: Mapping[str, tuple[Callable[[], Rehearsal], str]] = {
    "silent-ordinary": (ordinary, "a can is taken, carried and put into a basket"),
    "silent-brisk": (brisk, "a can is put into a basket within four seconds"),
    "silent-careful": (careful, "a box is taken slowly, with pauses"),
    "silent-rim": (by_the_rim, "a bowl is taken by its thin rim"),
    "silent-after-work": (after_work, "after a delivery the hand closes, goes home and waits"),
    "silent-lingering": (lingering, "after a delivery the open hand stays where it let go"),
    "silent-second-try": (second_try, "a miss that the policy corrects at once by itself"),
}


def silent(*but: str) -> Iterator[Drawn]:
    """Yield the ordinary windows, except those named."""
    for name, (make, what) in SILENT.items():
        if name not in but:
            yield Drawn(name, "silent", what, make())


# ------------------------------------------------------------------------- regrasp


def missed(seed: int, aside: float, thing: Thing, lift: bool, pace: float = 1.0) -> Rehearsal:
    """Return a hand that closes beside the object and, perhaps, goes on as if it had it."""
    r = scene(thing, seed=seed, pace=pace)
    approach(r, aside=(0.0, aside))
    r.wait(0.2)
    r.close(0.6)
    if lift:
        carry(r)
    else:
        r.wait(1.5)
    return r


def restless() -> Rehearsal:
    """Return a miss after which the gripper flips, so that it never comes to rest."""
    r = scene(BOWL, PLATE, seed=15, pace=0.5)
    approach(r, aside=(0.0, 0.07), depth=-0.01)
    r.close(0.6)
    for k in range(40):
        r.closes = k % 3 > 0
        r.move(r.hand[0], r.hand[1] - 0.006, r.hand[2] - TABLE_Z + 0.004, 0.1)
    return r


def pantomime() -> Rehearsal:
    """Return a policy that closes far from the can and carries nothing to the basket."""
    r = scene(seed=14)
    r.move(-0.05, -0.05, 0.08, 1.0)
    r.close(0.6)
    r.move(-0.05, -0.05, 0.22, 0.8)
    r.wait(1.0)
    r.to("receptacle", 0.12, 1.2)
    r.wait(1.0)
    return r


def pushed_closed() -> Rehearsal:
    """Return a plate that a closed hand pushes along."""
    r = Rehearsal({"object": PLATE, "receptacle": Thing(0.15, -0.18, (0.05, 0.05, 0.01))}, seed=7)
    r.close(0.8)
    r.to("object", 0.10, 1.5, aside=(-0.06, 0.0))
    r.to("object", 0.0, 0.8, aside=(-0.06, 0.0))
    for _ in range(10):
        r.places["object"][0] += 0.015
        r.move(r.hand[0] + 0.015, r.hand[1], 0.02, 0.2)
    r.wait(1.0)
    return r


def regrasp() -> Iterator[Drawn]:
    """Yield the windows of `regrasp`."""
    yield Drawn("fires-and-lifts", "fires", "closed beside a can, lifts as if it had it",
                missed(10, 0.055, CAN, lift=True))  # fmt: skip
    yield Drawn("fires-and-waits", "fires", "closed beside a box, stays there",
                missed(11, 0.06, BOX, lift=False))  # fmt: skip
    yield Drawn("fires-brisk", "fires", "a fast hand closes beside a can",
                missed(13, 0.055, CAN, lift=True, pace=0.45))  # fmt: skip
    yield Drawn("fires-restless", "fires", "misses, flips the gripper and goes away", restless())
    yield Drawn("fires-pantomime", "fires", "an empty hand, closed long ago, comes to the basket",
                pantomime())  # fmt: skip
    yield Drawn("silent-push", "silent", "a plate is pushed with a closed hand", pushed_closed())
    yield Drawn("disarmed-unseen", "disarmed", "the object is never seen", never_seen_miss())
    yield from silent()


def never_seen_miss() -> Rehearsal:
    """Return a miss at an object that no camera sees."""
    r = scene(seed=12)
    r.hidden.add("object")
    approach(r, aside=(0.0, 0.055))
    r.close(0.6)
    r.wait(2.0)
    return r


# ------------------------------------------------------------------------- pick-up-again


def dropped(seed: int, share: float) -> Rehearsal:
    """Return a can that falls out of the closed hand on the way."""
    r = scene(seed=seed)
    approach(r)
    take(r)
    r.move(r.hand[0], r.hand[1], 0.22, 1.0)
    goal, start = r.places["receptacle"], r.hand.copy()
    x, y, _ = start + share * (goal - start)
    r.move(float(x), float(y), 0.24, 1.0)
    r.hidden.discard("object")
    r.drop()
    r.move(goal[0], goal[1], 0.24, 1.4)
    r.wait(0.5)
    return r


def let_go_early() -> Rehearsal:
    """Return a box that is let go where the plate used to be."""
    r = scene(BOX, PLATE, seed=22)
    approach(r, depth=0.0)
    take(r, 0.04)
    r.move(r.hand[0], r.hand[1], 0.20, 1.0)
    r.move(0.25, -0.02, 0.18, 1.5)
    r.move(0.25, -0.02, 0.03, 0.8)
    r.open(0.5)
    r.hidden.discard("object")
    r.move(0.25, -0.02, 0.15, 0.8)
    r.wait(1.0)
    return r


def put_down_to_adjust() -> Rehearsal:
    """Return a can that is let go where it was taken, to be taken better."""
    r = scene(seed=23)
    approach(r)
    take(r)
    r.wait(0.4)
    r.open(0.4)
    r.hidden.discard("object")
    r.to("object", 0.04, 0.6)
    r.wait(0.4)
    r.to("object", -0.02, 0.6)
    take(r)
    carry(r)
    let_go(r)
    return r


def pick_up_again() -> Iterator[Drawn]:
    """Yield the windows of `pick-up-again`."""
    yield Drawn("fires-halfway", "fires", "a can falls out of the hand halfway", dropped(20, 0.4))
    yield Drawn("fires-at-once", "fires", "a can falls out of the hand after lifting",
                dropped(21, 0.0))  # fmt: skip
    yield Drawn("fires-astray", "fires", "a box is let go far from the plate", let_go_early())
    yield Drawn("silent-adjusting", "silent", "a can is let go and taken better",
                put_down_to_adjust())  # fmt: skip
    yield Drawn("silent-miss", "silent", "closed on nothing; nothing was ever held",
                missed(24, 0.055, CAN, lift=True))  # fmt: skip
    yield Drawn("disarmed-unseen", "disarmed", "the object is never seen", unseen_drop(), None)
    yield from silent("silent-second-try")


def unseen_drop() -> Rehearsal:
    """Return a loss of an object that no camera sees."""
    r = scene(seed=25)
    r.hidden.add("object")
    approach(r)
    r.close(0.7, 0.055)
    r.width = None
    r.wait(1.2)
    return r


# ------------------------------------------------------------------------- restage


def stalled(seed: int) -> Rehearsal:
    """Return an open hand that presses against something beside the can."""
    r = scene(seed=seed)
    approach(r, aside=(0.045, 0.0), depth=0.01)
    r.wait(3.0, asked=(0.0, 0.0, -0.01))
    return r


def hovering(seed: int) -> Rehearsal:
    """Return an open hand that sways above the box and does not go down."""
    r = scene(BOX, PLATE, seed=seed)
    r.to("object", 0.06, 1.8)
    r.shiver(4.0, 0.012, period=1.6)
    return r


def restage() -> Iterator[Drawn]:
    """Yield the windows of `restage`."""
    yield Drawn("fires-stalled", "fires", "the open hand presses against an edge", stalled(30))
    yield Drawn("fires-hovering", "fires", "the open hand sways above the box", hovering(31))
    yield Drawn("fires-finished", "fires", "the policy rests, and the can stands untouched",
                finished())  # fmt: skip
    yield Drawn("silent-elsewhere", "silent", "the hand waits far from the object", waiting())
    yield Drawn("disarmed-unseen", "disarmed", "the object is never seen", unseen_stall())
    yield from silent()


def finished() -> Rehearsal:
    """Return a policy that has carried something else to the basket, and rests."""
    r = elsewhere(34, CAN, (-0.05, 0.10), 0.05)
    r.to("receptacle", 0.10, 1.5)
    r.open(0.5)
    r.move(0.0, 0.0, 0.3, 1.0)
    r.wait(4.0)
    return r


def waiting() -> Rehearsal:
    """Return a hand that waits at home, as before a policy's first chunk."""
    r = scene(seed=32)
    r.wait(2.5)
    approach(r)
    take(r)
    return r


def unseen_stall() -> Rehearsal:
    """Return a stall at an object that no camera sees."""
    r = scene(seed=33)
    r.hidden.add("object")
    approach(r)
    r.wait(3.0)
    return r


# ------------------------------------------------------------------------- wrong-object


def elsewhere(
    seed: int, thing: Thing, at: tuple[float, float], closes: float | None, pace: float = 1.0
) -> Rehearsal:
    """Return a hand that goes down where the object used to be."""
    r = scene(thing, seed=seed, pace=pace)
    r.wait(0.2)
    r.move(*at, 0.14, 1.6)
    r.move(*at, 0.03, 0.9)
    if closes is None:
        r.wait(1.0)
    else:
        r.close(0.8, closes)
        r.move(*at, 0.20, 1.0)
    return r


def from_beside() -> Rehearsal:
    """Return a hand that begins above the can, and takes a neighbour at once."""
    r = Rehearsal({"object": CAN, "receptacle": BASKET}, (0.10, -0.08, 0.25), seed=46, pace=0.4)
    r.move(-0.05, 0.05, 0.10, 1.2)
    r.move(-0.05, 0.05, 0.03, 0.6)
    r.close(0.7, 0.05)
    r.move(-0.05, 0.05, 0.20, 1.0)
    return r


def on_a_shelf() -> Rehearsal:
    """Return a twin that is taken from a shelf while the object stands on the table."""
    r = scene(BOWL, PLATE, seed=42)
    r.wait(0.2)
    r.move(-0.15, -0.05, 0.33, 1.6)
    r.move(-0.15, -0.05, 0.25, 0.8)
    r.wait(0.3)
    r.close(0.7, 0.004)
    r.move(-0.15, -0.05, 0.33, 1.0)
    return r


def from_the_side() -> Rehearsal:
    """Return a hand that comes to the bottle low, from the side."""
    r = scene(BOTTLE, seed=43)
    r.wait(0.2)
    r.move(0.02, 0.06, 0.12, 1.2)
    r.move(BOTTLE.x, BOTTLE.y, 0.10, 1.8)
    take(r, 0.05)
    r.move(BOTTLE.x, BOTTLE.y, 0.20, 1.0)
    return r


def high_object() -> Rehearsal:
    """Return a bowl on a cabinet, higher than the hand at first."""
    r = scene(Thing(-0.12, -0.2, BOWL.size, base=0.24), PLATE, seed=44)
    r.wait(1.0)
    r.move(-0.05, -0.1, 0.42, 1.2)
    r.to("object", 0.08, 1.0, aside=(0.0, 0.047))
    r.to("object", -0.01, 0.8, aside=(0.0, 0.047))
    take(r, 0.0042)
    carry(r, 2.4)
    let_go(r)
    return r


def wrong_object() -> Iterator[Drawn]:
    """Yield the windows of `wrong-object`."""
    yield Drawn("fires-empty-place", "fires", "the hand goes down where nothing stands",
                elsewhere(40, CAN, (-0.05, 0.10), None))  # fmt: skip
    yield Drawn("fires-neighbour", "fires", "the hand goes down onto another thing",
                elsewhere(41, BOX, (0.12, -0.12), 0.05))  # fmt: skip
    yield Drawn("fires-shelf", "fires", "the hand takes a twin from a shelf", on_a_shelf())
    yield Drawn("fires-brisk", "fires", "a fast hand takes another thing",
                elsewhere(45, BOX, (0.12, -0.12), 0.05, pace=0.45))  # fmt: skip
    yield Drawn("fires-at-once", "fires", "a hand that began near the can takes a neighbour",
                from_beside())  # fmt: skip
    yield Drawn("silent-side", "silent", "the hand comes low, from the side", from_the_side())
    yield Drawn("silent-high", "silent", "the object stands on a cabinet", high_object())
    yield Drawn("disarmed-unseen", "disarmed", "the object is never seen", unseen())
    yield from silent()


# ------------------------------------------------------------------------- reseat


def held_still(over: bool) -> Rehearsal:
    """Return a hand that has the can and stands still, over the basket or halfway."""
    r = scene(seed=50)
    approach(r)
    take(r)
    r.move(r.hand[0], r.hand[1], 0.22, 1.0)
    if over:
        r.to("receptacle", 0.12, 1.8)
    else:
        r.move(0.07, 0.05, 0.22, 1.0)
    r.wait(3.0)
    return r


def hesitant() -> Rehearsal:
    """Return a hand that sways over the basket with the can."""
    r = scene(seed=55)
    approach(r)
    take(r)
    carry(r)
    r.shiver(4.0, 0.02, period=1.5)
    return r


def carried_astray(pace: float = 1.0) -> Rehearsal:
    """Return a box that is carried to where the plate used to be."""
    r = scene(BOX, PLATE, seed=51, pace=pace)
    approach(r, depth=0.0)
    take(r, 0.04)
    r.move(r.hand[0], r.hand[1], 0.20, 1.0)
    r.move(0.28, 0.15, 0.20, 1.8)
    r.move(0.28, 0.15, 0.04, 0.8)
    return r


def put_down_astray() -> Rehearsal:
    """Return a can that is lowered beside the basket."""
    r = scene(seed=52)
    approach(r)
    take(r)
    r.move(r.hand[0], r.hand[1], 0.22, 1.0)
    r.move(0.26, 0.19, 0.22, 1.6)
    r.move(0.26, 0.19, 0.05, 1.0)
    return r


def round_about() -> Rehearsal:
    """Return a can that is carried round an obstacle."""
    r = scene(seed=53)
    approach(r)
    take(r)
    r.move(r.hand[0] + 0.03, r.hand[1], 0.22, 1.2)
    r.move(0.22, 0.02, 0.28, 1.0)
    r.to("receptacle", 0.16, 1.4)
    let_go(r)
    return r


def reseat() -> Iterator[Drawn]:
    """Yield the windows of `reseat`."""
    yield Drawn("fires-over", "fires", "the hand stands still over the basket", held_still(True))
    yield Drawn("fires-halfway", "fires", "the hand stands still halfway", held_still(False))
    yield Drawn("fires-astray", "fires", "the hand carries away from the plate", carried_astray())
    yield Drawn("fires-brisk", "fires", "a fast hand carries away from the plate",
                carried_astray(0.45))  # fmt: skip
    yield Drawn("fires-beside", "fires", "the hand goes down beside the basket", put_down_astray())
    yield Drawn("fires-hesitant", "fires", "the hand sways over the basket and does not let go",
                hesitant())  # fmt: skip
    yield Drawn("silent-round", "silent", "the hand goes round an obstacle", round_about())
    yield Drawn("disarmed-unseen", "disarmed", "the receptacle is never seen", no_receptacle())
    yield from silent()


def no_receptacle() -> Rehearsal:
    """Return a hand that stands still with the can; no camera sees the basket."""
    r = scene(seed=54)
    r.hidden.add("receptacle")
    approach(r)
    take(r)
    carry(r)
    r.wait(3.0)
    return r


# ------------------------------------------------------------------------- fresh-sample


def to_and_fro() -> Rehearsal:
    """Return a hand that swings between two places."""
    r = scene(seed=60)
    r.to("object", 0.10, 1.6)
    r.shiver(3.0, 0.025, period=0.8)
    return r


def flipping() -> Rehearsal:
    """Return a gripper that opens and closes again and again."""
    r = scene(seed=61)
    approach(r)
    for _ in range(10):
        r.close(0.1)
        r.open(0.1)
    return r


def torn() -> Rehearsal:
    """Return plans that point to two places by turns, while the hand sways."""
    r = scene(seed=62)
    r.to("object", 0.10, 1.6)
    r.torn = 0.10
    r.shiver(3.0, 0.02, period=1.2)
    return r


def by_a_motion() -> Rehearsal:
    """Return a swinging hand that a skill drives, not the policy."""
    r = scene(seed=63)
    r.to("object", 0.10, 1.6)
    r.driving = "skill:restage"
    r.shiver(3.0, 0.025, period=0.8)
    return r


def fresh_sample() -> Iterator[Drawn]:
    """Yield the windows of `fresh-sample`."""
    yield Drawn("fires-to-and-fro", "fires", "the hand swings between two places", to_and_fro())
    yield Drawn("fires-flipping", "fires", "the gripper flips", flipping())
    yield Drawn("fires-torn", "fires", "plans point to two places by turns", torn())
    yield Drawn("silent-motion", "silent", "a skill drives the swinging hand", by_a_motion())
    yield from silent()


# ------------------------------------------------------------------------- parts


def open_drawer() -> Iterator[Drawn]:
    """Yield the windows of `open-drawer`."""
    yield Drawn("fires-old-place", "fires", "the hand goes where the cabinet used to be",
                part_windows.goes_to_old_place(72))  # fmt: skip
    yield Drawn("fires-brisk", "fires", "a fast hand goes where the cabinet used to be",
                part_windows.goes_to_old_place(73, 0.6))  # fmt: skip
    yield Drawn("fires-air", "fires", "the hand closes where no handle is",
                part_windows.pulls_air())  # fmt: skip
    yield Drawn("fires-resting", "fires", "the policy rests before it is at the handle",
                part_windows.rests(part_windows.HANDLE, 75))  # fmt: skip
    yield Drawn("fires-in-vain", "fires", "the fingers slip off again and again",
                part_windows.in_vain())  # fmt: skip
    yield Drawn("fires-too-long", "fires", "the hand sways at the handle",
                part_windows.too_long(part_windows.HANDLE, 77))  # fmt: skip
    yield Drawn("silent-ordinary", "silent", "the drawer is opened, and the hand rests at home",
                part_windows.opens())  # fmt: skip
    yield Drawn("silent-brisk", "silent", "a fast hand opens the drawer",
                part_windows.opens(78, 0.5, 0.0))  # fmt: skip
    yield Drawn("silent-late", "silent", "the hand waits at the handle, then opens",
                part_windows.opens(79, 1.0, 1.2))  # fmt: skip
    yield Drawn("silent-second-try", "silent", "the fingers slip off once",
                part_windows.opens_second_try())  # fmt: skip
    yield Drawn("silent-waits", "silent", "the hand waits at home before it comes",
                part_windows.waits_first(part_windows.drawer(87)))  # fmt: skip
    yield Drawn("disarmed-unseen", "disarmed", "the handle is never seen",
                part_windows.unseen(part_windows.HANDLE))  # fmt: skip


def close_drawer() -> Iterator[Drawn]:
    """Yield the windows of `close-drawer`."""
    yield Drawn("fires-old-place", "fires", "the hand goes where the cabinet used to be",
                part_windows.goes_to_old_place(82))  # fmt: skip
    yield Drawn("fires-resting", "fires", "the policy rests before it is at the handle",
                part_windows.rests(part_windows.HANDLE, 83))  # fmt: skip
    yield Drawn("fires-too-long", "fires", "the hand sways at the handle",
                part_windows.too_long(part_windows.HANDLE, 84))  # fmt: skip
    yield Drawn("silent-ordinary", "silent", "the drawer is shut, and the hand rests at home",
                part_windows.shuts())  # fmt: skip
    yield Drawn("silent-brisk", "silent", "a fast hand shuts the drawer",
                part_windows.shuts(85, 0.5))  # fmt: skip
    yield Drawn("silent-slowly", "silent", "a slow hand shuts the drawer",
                part_windows.shuts(86, 1.4))  # fmt: skip
    yield Drawn("silent-waits", "silent", "the hand waits at home before it comes",
                part_windows.waits_first(part_windows.drawer(87)))  # fmt: skip
    yield Drawn("disarmed-unseen", "disarmed", "the handle is never seen",
                part_windows.unseen(part_windows.HANDLE))  # fmt: skip


def turn_knob() -> Iterator[Drawn]:
    """Yield the windows of `turn-knob`."""
    yield Drawn("fires-old-place", "fires", "the hand goes where the stove used to be",
                part_windows.from_knob(92))  # fmt: skip
    yield Drawn("fires-brisk", "fires", "a fast hand goes where the stove used to be",
                part_windows.from_knob(94, 0.6))  # fmt: skip
    yield Drawn("fires-other-thing", "fires", "the hand takes a thing where no knob is",
                part_windows.takes_something())  # fmt: skip
    yield Drawn("fires-resting", "fires", "the policy rests before it is at the knob",
                part_windows.rests(part_windows.KNOB, 95))  # fmt: skip
    yield Drawn("fires-too-long", "fires", "the hand sways at the knob",
                part_windows.too_long(part_windows.KNOB, 98))  # fmt: skip
    yield Drawn("silent-ordinary", "silent", "the knob is turned", part_windows.turns())
    yield Drawn("silent-brisk", "silent", "a fast hand turns the knob",
                part_windows.turns(99, 0.5, 0.0))  # fmt: skip
    yield Drawn("silent-late", "silent", "the hand waits at the knob, then turns it",
                part_windows.turns(89, 1.0, 1.0))  # fmt: skip
    yield Drawn("silent-second-try", "silent", "the knob is let go and taken better",
                part_windows.turns_second_try())  # fmt: skip
    yield Drawn("silent-waits", "silent", "the hand waits at home before it comes",
                part_windows.waits_first(part_windows.stove(88)))  # fmt: skip
    yield Drawn("disarmed-unseen", "disarmed", "the knob is never seen",
                part_windows.unseen(part_windows.KNOB))  # fmt: skip


# ------------------------------------------------------------------------- all

WINDOWS: Mapping[str, Callable[[], Iterator[Drawn]]] = {
    "regrasp": regrasp,
    "pick-up-again": pick_up_again,
    "restage": restage,
    "wrong-object": wrong_object,
    "reseat": reseat,
    "open-drawer": open_drawer,
    "close-drawer": close_drawer,
    "turn-knob": turn_knob,
    "fresh-sample": fresh_sample,
}
"""The windows of each skill of the library."""


def write_all() -> None:
    """Write every window of the library anew."""
    for name, draw in WINDOWS.items():
        package = load_skill(LIBRARY / name)
        folder = LIBRARY / name / REPLAY
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for drawn in draw():
            window = drawn.rehearsal.window(
                drawn.name, drawn.expect, package.signals, drawn.what, drawn.span
            )
            (folder / f"{drawn.name}.json").write_text(window_text(window), encoding="utf-8")


if __name__ == "__main__":
    write_all()
