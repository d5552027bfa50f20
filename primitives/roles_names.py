"""What things are called: one canonical noun phrase for each thing, fixture, site and part.

Movable things keep the name an instruction gives them ("black bowl"); sites and parts are written
`<part> of <fixture>` ("burner of stove", "handle of top drawer").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

COLOURS = (
    "red", "orange", "yellow", "green", "cyan", "blue", "magenta", "purple", "pink", "brown",
    "black", "white", "grey", "gray",
)  # fmt: skip
DIRECTIONS: Mapping[str, str] = {
    "left": "left", "leftmost": "left", "lefthand": "left",
    "right": "right", "rightmost": "right", "righthand": "right",
    "front": "front", "frontmost": "front", "nearest": "front", "closest": "front",
    "back": "back", "rear": "back", "farthest": "back", "furthest": "back",
    "middle": "middle", "center": "middle", "centre": "middle", "central": "middle",
}  # fmt: skip
"""What an adjective says about which of several twins is meant."""

SYNONYMS: Mapping[str, str] = {
    "akita black bowl": "black bowl",
    "cookies box": "cookie box",
    "box of cookies": "cookie box",
    "cookies": "cookie box",
    "cream cheese box": "cream cheese",
    "box of cream cheese": "cream cheese",
    "yellow-white mug": "yellow and white mug",
    "white and yellow mug": "yellow and white mug",
    "white yellow mug": "yellow and white mug",
    "porcelain mug": "white mug",
    "red coffee mug": "red mug",
    "pan": "frying pan",
    "skillet": "frying pan",
    "soup": "alphabet soup",
    "barbecue sauce": "bbq sauce",
    "pudding": "chocolate pudding",
    "desk caddy": "caddy",
    "rack": "wine rack",
    "flat stove": "stove",
    "stovetop": "stove",
    "cooktop": "stove",
    "wooden tray": "tray",
    "cabinet shelf": "shelf",
    "shelf of cabinet": "shelf",
    "wooden two layer shelf": "shelf",
    "ramekin bowl": "ramekin",
    "cylinder": "can",
    "tin": "can",
    "sphere": "ball",
    "dish": "plate",
}
"""Other ways to say a canonical name."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "bowl": ("black bowl", "white bowl", "red bowl"),
    "mug": ("red mug", "white mug", "yellow and white mug"),
    "cup": ("red mug", "white mug", "yellow and white mug", "mug"),
    "sauce": ("tomato sauce", "bbq sauce"),
    "book": ("black book", "yellow book"),
    "bottle": ("wine bottle",),
    "cabinet": ("wooden cabinet", "white cabinet"),
    "tray": ("wooden tray",),
    "shelf": ("wooden two layer shelf",),
}
"""What a general word means: any of these is one."""
OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "black bowl": ("bowl",),
    "white bowl": ("bowl",),
    "wooden cabinet": ("cabinet",),
    "white cabinet": ("cabinet",),
    "top of cabinet": ("top of shelf",),
}
"""What is meant where the thing named is not there."""

CONTAINERS = frozenset(
    {
        "basket", "tray", "microwave", "drawer", "cabinet", "caddy", "oven", "fridge",
        "refrigerator", "freezer", "dishwasher", "sink", "bin", "bucket", "crate", "shelf",
    }
)  # fmt: skip
"""Things with an inside that is a place of its own."""
PARTS = frozenset(
    {"drawer", "layer", "door", "compartment", "burner", "knob", "handle", "button", "shelf"}
)
"""Nouns of which a direction is the name and not a choice among twins: "top drawer"."""

_DETERMINER = re.compile(
    r"^(?:(?:the|a|an|this|that|these|those|some|your|my|its|their|both|all|two|of|each|one|either)\s+)+"
)
_LEVEL = {
    "upper": "top", "uppermost": "top", "topmost": "top", "lower": "bottom", "lowest": "bottom",
    "bottommost": "bottom", "center": "middle", "centre": "middle",
}  # fmt: skip
SIZES: Mapping[str, str] = {
    "big": "big", "bigger": "big", "biggest": "big", "large": "big", "larger": "big",
    "largest": "big", "small": "small", "smaller": "small", "smallest": "small",
    "little": "small", "tiny": "small",
}  # fmt: skip
"""Words for size, which only mean something among several things."""
_PLURALS = {"shelves": "shelf", "boxes": "box", "dishes": "dish", "knives": "knife"}


def bare(text: str) -> str:
    """Return `text` without its articles and other determiners.

    >>> bare("both of the moka pots")
    'moka pots'
    """
    return _DETERMINER.sub("", text.strip() + " ").strip()


def noun(text: str) -> tuple[str, str | None]:
    """Return the canonical name of a noun phrase and the direction that chooses among twins.

    >>> noun("the middle black bowl")
    ('black bowl', 'middle')
    >>> noun("the top layer of the drawer")
    ('top drawer', None)
    """
    words = [SIZES.get(word, word) for word in bare(text).replace(" & ", " and ").split()]
    direction = None
    if len(words) > 1 and words[0] in DIRECTIONS and not PARTS & set(words[1:3]):
        direction, words = DIRECTIONS[words[0]], words[1:]
    name = " ".join(words)
    name = SYNONYMS.get(name, name)
    name = _part(SYNONYMS.get(singular(name), singular(name)))
    return name, direction


def singular(name: str) -> str:
    """Return the name of one thing of a plural.

    >>> singular("moka pots")
    'moka pot'
    """
    *rest, last = name.split() or [""]
    if last in _PLURALS:
        last = _PLURALS[last]
    elif last.endswith("s") and not last.endswith(("ss", "us", "cookies")) and len(last) > 3:
        last = last[:-1]
    return " ".join([*rest, last])


def _part(name: str) -> str:
    """Return the name of a part the way the whole project writes it."""
    if match := re.fullmatch(r"(?:(\w+) )?(drawer|layer)(?: of (?:the )?(.*))?", name):
        level = match.group(1)
        return f"{_LEVEL.get(level, level)} drawer" if level else "drawer"
    if match := re.fullmatch(r"(?:(\w+) )?drawer (?:in|from|on) (?:the )?.*", name):
        return f"{match.group(1)} drawer" if match.group(1) else "drawer"
    if match := re.fullmatch(r"(\w+) compartment(?: of (?:the )?(.*))?", name):
        return f"{match.group(1)} compartment of caddy"
    if match := re.fullmatch(r"(.+?) of (?:the )?(.+)", name):
        whole, _ = noun(match.group(2))
        return f"{match.group(1)} of {whole}"
    return name


def alternatives(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the names under which what `name` means may be known, best first.

    All names of one group are equally good; a later group counts where the earlier are not there.

    >>> alternatives("bowl")
    (('bowl', 'black bowl', 'white bowl', 'red bowl'),)
    >>> alternatives("wooden cabinet")
    (('wooden cabinet',), ('cabinet',))
    """
    same = (name, *KINDS.get(name, ()))
    return (same, OTHERWISE[name]) if name in OTHERWISE else (same,)


def is_drawer(name: str) -> bool:
    """Say whether `name` is a drawer."""
    return name.split()[-1:] == ["drawer"]


def place_on(name: str, on_top: bool = False) -> str:
    """Return the name of the place where something lies that was put on `name`.

    >>> place_on("stove"), place_on("wooden cabinet"), place_on("plate")
    ('burner of stove', 'top of cabinet', 'plate')
    """
    if name == "stove":
        return "burner of stove"
    if name == "shelf":
        return "top of shelf" if on_top else "board of shelf"
    if is_drawer(name):
        return "top of cabinet" if on_top else f"inside of {name}"
    if name.endswith("cabinet"):
        return "top of cabinet"
    if name in ("microwave", "wine rack"):
        return f"top of {name}"
    return name


def place_in(name: str) -> str:
    """Return the name of the place where something lies that was put into `name`.

    >>> place_in("top drawer"), place_in("bowl")
    ('inside of top drawer', 'bowl')
    """
    if CONTAINERS.intersection(name.split()[-1:]) and " of " not in name:
        return "inside of cabinet" if name.endswith("cabinet") else f"inside of {name}"
    return name


def place_under(name: str) -> str:
    """Return the name of the place under `name`."""
    return "bottom of shelf" if name == "shelf" else name


def grip_of(name: str) -> str:
    """Return the name of the part by which `name` is opened and closed.

    >>> grip_of("top drawer")
    'handle of top drawer'
    """
    if name.endswith(" handle") or name.startswith("handle of "):
        return (
            name if name.startswith("handle of ") else f"handle of {name.removesuffix(' handle')}"
        )
    if name.endswith(" door") and name.split()[0] not in DIRECTIONS:
        name = name.removesuffix(" door")
    return f"handle of {name.removeprefix('door of ')}"


def switch_of(name: str) -> str:
    """Return the name of the part by which `name` is turned on and off."""
    if name.startswith(("burner of ", "knob of ")):
        name = name.partition(" of ")[2]
    return f"knob of {name}"
