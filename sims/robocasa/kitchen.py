"""Kitchens of RoboCasa's own parametric parts, written to disk at first use.

The package brings cabinets, drawers, counters, handles, walls and an arena, and none of the 465
pictures that its styles paint them with. Here those become flat colours, two small layouts and two
styles are written for the parts that there are, and everything together makes a folder of assets.
Layouts are files and no objects in memory, because RoboCasa looks their cameras up by number.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_VERSION: Final = 1
"""Of what is written; another one is written anew, beside the old."""
_COPIED: Final = ("arenas", "fixtures")
_NAMED: Final = re.compile(r"textures/[A-Za-z0-9_/.-]+\.png")
_BESIDE: Final = ("fixtures/cabinets/visuals/wood1.png", "fixtures/handles/visuals/brass_ambra.png")
"""Pictures that parts name relative to themselves."""
_PIXELS: Final = 16
_COLOURS: Final[Mapping[str, tuple[int, int, int]]] = {
    "metals": (40, 44, 56),
    "handles": (40, 44, 56),
    "dark_blue": (38, 56, 96),
    "blue_gray": (110, 126, 148),
    "light_blue": (150, 180, 205),
    "light_green": (165, 195, 165),
    "dark_gray": (85, 85, 88),
    "black": (30, 30, 32),
    "gray": (140, 140, 142),
    "dark_wood": (95, 65, 45),
    "light_wood": (205, 175, 135),
    "wood": (165, 125, 85),
    "marble": (205, 200, 195),
    "brick": (170, 95, 80),
    "tile": (190, 190, 185),
    "concrete": (150, 148, 145),
    "white": (232, 230, 224),
}
"""By the first of these words that stands in the path of a picture."""
_STYLES: Final[Mapping[int, Mapping[str, Any]]] = {
    1: {
        "cabinet": {"default": ["white", "slab"]},
        "counter": "default",
        "floor": "wood",
        "wall": "red_bricks",
    },
    2: {
        "cabinet": {"default": ["light_blue", "slab"]},
        "counter": "gray_base_marble_top",
        "floor": "dark_wood",
        "wall": "white_tiles",
    },
}
_DEPTH: Final = 3.0


def assets(package: Path, home: Path) -> Path:
    """Return the folder of assets of the bundled kitchens, which is made when it is missing.

    Args:
        package: RoboCasa's own folder of assets.
        home: where the folder may lie.
    """
    folder = home / f"bundled-kitchens-{_VERSION}"
    if folder.is_dir():
        return folder
    home.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".bundled-kitchens-", dir=home))
    try:
        _fill(package, made)
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.is_dir():  # else another process was first
            raise
    return folder


def _fill(package: Path, folder: Path) -> None:
    import yaml  # late: only RoboCasa's own interpreter has it

    for name in _COPIED:
        shutil.copytree(package / name, folder / name)
    named = set(_BESIDE)
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".xml", ".yaml"):
            named |= set(_NAMED.findall(path.read_text(encoding="utf-8")))
    for name in sorted(named):
        _paint(folder / name, colour(name))
    scenes = folder / "scenes"
    for number, layout in ((1, _layout(mirrored=False)), (2, _layout(mirrored=True))):
        path = scenes / "kitchen_layouts" / "test" / f"layout{number:03d}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(layout, sort_keys=False), encoding="utf-8")
    for number, style in _STYLES.items():
        path = scenes / "kitchen_styles" / "test" / f"style{number:03d}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(style), sort_keys=False), encoding="utf-8")


def colour(path: str) -> tuple[int, int, int]:
    """Return the flat colour of a picture: by a word in its path, else any quiet one.

    >>> colour("textures/flat/white.png")
    (232, 230, 224)
    """
    for word, rgb in _COLOURS.items():
        if word in path:
            return rgb
    red, green, blue = (120 + byte // 3 for byte in hashlib.sha256(path.encode()).digest()[:3])
    return red, green, blue


def _paint(path: Path, rgb: tuple[int, int, int]) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        Image.new("RGB", (_PIXELS, _PIXELS), rgb).save(path)


def _layout(mirrored: bool) -> dict[str, Any]:
    """Return a kitchen of one row along the back wall: drawers, wide doors, drawers.

    The room is `wide` across and 3 m deep; x runs along the wall, y out of it is negative.
    """
    wide = 4.4 if mirrored else 4.0
    half = wide / 2
    widths = (0.6, 0.9, 0.5) if mirrored else (0.5, 1.0, 0.5)
    first = half - sum(widths) / 2 + widths[0] / 2
    sides = ("right", "left") if mirrored else ("left", "right")
    return {
        "room": {
            "walls": [_wall("wall", wide), _wall("wall_backing", wide)],
            "floor": [_floor("floor", half), _floor("floor_backing", half)],
        },
        "main_group": {
            "bottom_row": [
                {
                    "name": "counter_main",
                    "type": "counter",
                    "size": [sum(widths) + 0.9, 0.65, 0.92],
                    "pos": [half, -0.325, 0.46],
                    "obj_x_percent": 0.4,
                    "obj_y_percent": 0.01,
                }
            ],
            "top_row": _top_row(widths, first, sides),
            "bottom_row_cabinets": _bottom_row(widths, first),
        },
    }


def _wall(name: str, wide: float) -> dict[str, Any]:
    backing = name.endswith("backing")
    wall: dict[str, Any] = {
        "name": name,
        "type": "wall",
        "size": [wide / 2, 1.5, 0.1 if backing else 0.02],
        "pos": [wide / 2, 0, 1.5],
    }
    return {**wall, "backing": True, "backing_extended": [True, True]} if backing else wall


def _floor(name: str, half: float) -> dict[str, Any]:
    backing = name.endswith("backing")
    size = [half, _DEPTH / 2, 0.1 if backing else 0.02]
    floor = {"name": name, "type": "floor", "size": size, "pos": [half, -_DEPTH / 2, 0]}
    return {**floor, "backing": True} if backing else floor


def _top_row(
    widths: tuple[float, float, float], first: float, sides: tuple[str, str]
) -> list[dict[str, Any]]:
    """Return a cabinet of one door, one of two and one of one, side by side."""
    cabinets: list[dict[str, Any]] = [
        {
            "name": "cab_1",
            "type": "single_cabinet",
            "orientation": sides[0],
            "size": [widths[0], 0.4, 0.92],
            "pos": [first, -0.2, 1.85],
        },
        {"name": "cab_2", "type": "hinge_cabinet", "size": [widths[1], 0.4, 0.92]},
        {
            "name": "cab_3",
            "type": "single_cabinet",
            "orientation": sides[1],
            "size": [widths[2], 0.4, 0.92],
        },
    ]
    for before, cabinet in itertools.pairwise(cabinets):
        cabinet.update(align_to=before["name"], side="right")
    return cabinets


def _bottom_row(widths: tuple[float, float, float], first: float) -> list[dict[str, Any]]:
    """Return two stacks of four drawers, with doors between them."""
    drawers = {"type": "stack", "levels": ["drawer"] * 4, "percentages": [0.25] * 4}
    return [
        {"name": "stack_1", **drawers, "size": [widths[0], 0.6, 0.84], "pos": [first, -0.3, 0.47]},
        {
            "name": "stack_2",
            "type": "stack",
            "levels": ["hinge_cabinet", "panel_cabinet"],
            "percentages": [0.75, 0.25],
            "size": [widths[1], 0.6, 0.84],
            "align_to": "stack_1",
            "side": "right",
            "configs": {"hinge_cabinet": {"open_top": True}},
        },
        {
            "name": "stack_3",
            **drawers,
            "size": [widths[2], 0.6, 0.84],
            "align_to": "stack_2",
            "side": "right",
        },
    ]
