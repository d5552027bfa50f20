"""The names that the tiny localiser knows, as the words of instructions.

Adding a name at the end of `THINGS` keeps weights usable: a name is the mean of its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

THINGS: Final[tuple[str, ...]] = (
    "alphabet soup",
    "cream cheese",
    "salad dressing",
    "bbq sauce",
    "ketchup",
    "tomato sauce",
    "butter",
    "milk",
    "chocolate pudding",
    "orange juice",
    "basket",
    "black bowl",
    "cookie box",
    "ramekin",
    "plate",
    "wine bottle",
    "cabinet",
    "stove",
    "wine rack",
    "white mug",
    "yellow and white mug",
    "red mug",
    "book",
    "caddy",
    "frying pan",
    "moka pot",
    "microwave",
)
_DRAWERS: Final = ("top", "middle", "bottom")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "basket": ("inside of basket",),
    "cabinet": (
        "top of cabinet",
        *(f"inside of {drawer} drawer" for drawer in _DRAWERS),
        *(f"handle of {drawer} drawer" for drawer in _DRAWERS),
    ),
    "stove": ("burner of stove", "knob of stove", "front of stove"),
    "wine rack": ("top of wine rack",),
    "caddy": tuple(f"{side} compartment of caddy" for side in ("back", "front", "left", "right")),
    "microwave": ("inside of microwave", "handle of microwave", "top of microwave"),
}
"""Parts and places by the thing they belong to; the order is that of the network's outputs."""
MOST_PARTS: Final = 7
WORDS: Final[tuple[str, ...]] = tuple(sorted({word for name in THINGS for word in name.split()}))
ALIASES: Final[Mapping[str, str]] = {
    "akita black bowl": "black bowl",
    "bowl": "black bowl",
    "cookies": "cookie box",
    "bottle": "wine bottle",
    "rack": "wine rack",
    "wooden cabinet": "cabinet",
    "white cabinet": "cabinet",
    "porcelain mug": "white mug",
    "white yellow mug": "yellow and white mug",
    "red coffee mug": "red mug",
    "black book": "book",
    "desk caddy": "caddy",
    "pan": "frying pan",
    "frypan": "frying pan",
    "top of stove": "burner of stove",
    "knob": "knob of stove",
    **{f"{drawer} drawer": f"inside of {drawer} drawer" for drawer in _DRAWERS},
}
"""Other ways to ask for a name."""
EXTENTS: Final[Mapping[str, tuple[float, float, float]]] = {
    "inside of basket": (0.122, 0.122, 0.0),
    "top of cabinet": (0.251, 0.189, 0.0),
    **{f"inside of {drawer} drawer": (0.151, 0.204, 0.0) for drawer in _DRAWERS},
    **{f"handle of {drawer} drawer": (0.015, 0.089, 0.016) for drawer in _DRAWERS},
    "burner of stove": (0.15, 0.15, 0.0),
    "knob of stove": (0.025, 0.093, 0.049),
    "front of stove": (0.08, 0.08, 0.0),
    "top of wine rack": (0.202, 0.025, 0.0),
    "back compartment of caddy": (0.056, 0.124, 0.0),
    "front compartment of caddy": (0.056, 0.124, 0.0),
    "left compartment of caddy": (0.124, 0.124, 0.0),
    "right compartment of caddy": (0.124, 0.124, 0.0),
    "inside of microwave": (0.24, 0.167, 0.0),
    "handle of microwave": (0.02, 0.02, 0.15),
    "top of microwave": (0.24, 0.167, 0.0),
}
"""Full sizes of parts in metres, which are the same in every scene; the third axis is vertical."""
_OWNER: Final = {part: thing for thing, parts in PARTS.items() for part in parts}


def known(name: str) -> str | None:
    """Return the name under which the localiser knows what is asked, or None.

    >>> known("Wooden Cabinet"), known("top drawer"), known("spaceship")
    ('cabinet', 'inside of top drawer', None)
    """
    plain = " ".join(name.lower().split())
    plain = ALIASES.get(plain, plain)
    return plain if plain in THINGS or plain in _OWNER else None


def owner(name: str) -> str:
    """Return the thing that a part belongs to, or the thing itself."""
    return _OWNER.get(name, name)
