"""The limits of one arm, read strictly from TOML: each number has a unit and a source."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.core import Array, read_only
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.workspace import Box

SHIPPED: Final = Path(__file__).parent / "limits"
ENTRY: Final = ("value", "unit", "source")
DRIVERS: Final = ("person", "policy", "skill", "agent")

SCALARS: Final[Mapping[str, Mapping[str, str]]] = {
    "timing": {"tick": "s", "jitter": "1", "stale": "s"},
    "translation": {"velocity": "m/s", "acceleration": "m/s^2", "jerk": "m/s^3"},
    "rotation": {"velocity": "rad/s", "acceleration": "rad/s^2", "jerk": "rad/s^3"},
    "share": {"velocity": "1", "acceleration": "1", "jerk": "1"},
    "drivers": dict.fromkeys(DRIVERS, "1"),
    "jump": {"translation": "m", "rotation": "rad", "joint": "rad"},
    "following": {"translation": "m", "rotation": "rad", "joint": "rad"},
    "overshoot": {"translation": "m", "rotation": "rad", "joint": "rad"},
    "gripper": {"opening": "m", "speed": "m/s", "force": "N"},
    "clearance": {"keep_out": "m"},
}
"""Unit of each single number, all finite and above 0."""
JOINT: Final = {
    "low": "rad",
    "high": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s^2",
    "jerk": "rad/s^3",
}
CORNERS: Final = {"low": "m", "high": "m"}
SECTIONS: Final = ("arm", "joints", *SCALARS, "joint", "workspace", "keep_out")
MAX_STALE_S: Final = 1.0
"""As long as a watchdog waits at most (`ServerSettings`). An arm that was not heard of for longer
is not watched: at 0.5 m/s it has gone half a metre, and no check of joints or following saw it."""
SHARES: Final = ("share", "drivers")
"""Sections whose numbers are shares, above 0 and at most 1."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast something may change, the share that is used already taken. Shape (1,) or (J,)."""

    velocity: Array
    acceleration: Array
    jerk: Array


@dataclass(frozen=True, slots=True)
class Timing:
    """When a tick is a tick, and when a reading is too old. Seconds; `jitter` is a share."""

    tick: float
    jitter: float
    stale: float


@dataclass(frozen=True, slots=True)
class Distances:
    """A distance of each kind: metres, radians, radians."""

    translation: float
    rotation: float
    joint: float


@dataclass(frozen=True, slots=True)
class GripperLimits:
    """The gripper: metres, m/s, newtons."""

    opening: float
    speed: float
    force: float


@dataclass(frozen=True, slots=True)
class KeepOut:
    """A box that the grip site must not enter, its clearance included."""

    name: str
    box: Box


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of one arm in its cell."""

    arm: str
    joints: tuple[str, ...]
    timing: Timing
    translation: Rates
    rotation: Rates
    joint: Rates
    joint_low: Array
    """Radians. Shape (J,)."""
    joint_high: Array
    joint_speed: Array
    """As published, without a share: what a measured joint must not exceed, rad/s. Shape (J,)."""
    drivers: Mapping[str, float]
    """Share of the velocity limits by kind of driver."""
    jump: Distances
    """A target farther from the last one that was sent is refused."""
    following: Distances
    """An arm farther from the last target that was sent is stopped."""
    overshoot: Distances
    """A step is gone as asked only if the way to rest after it is no longer than this."""
    gripper: GripperLimits
    workspace: Box
    keep_out: tuple[KeepOut, ...]


def shipped_limits() -> tuple[str, ...]:
    """Return the names of the arms whose limits come with zetta."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def load_limits(source: str | Path) -> Limits:
    """Return the limits in a file, or of a shipped arm by its name.

    >>> load_limits("panda").timing.tick
    0.05

    Raises:
        ConfigError: no such file or arm; or something in it is missing, unknown, without unit or
            source, not finite, not above 0, or the wrong way round.
    """
    path = Path(source)
    if isinstance(source, str) and path.suffix != ".toml":
        path = SHIPPED / f"{source}.toml"
        if source not in shipped_limits():
            raise ConfigError(
                f"no limits of an arm {source!r} come with zetta; "
                f"{suggest(source, shipped_limits())}; a file of your own ends in .toml"
            )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    return parse_limits(text, str(path))


def parse_limits(text: str, path: str = "limits.toml") -> Limits:
    """Return the limits in a TOML text; `path` is for messages.

    Raises:
        ConfigError: as `load_limits`.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from None
    return _Reader(path).limits(tables)


class _Reader:
    """Reads one file; every complaint names it and the entry."""

    def __init__(self, path: str) -> None:
        self._path = path

    def limits(self, tables: Mapping[str, object]) -> Limits:
        self._same_keys(tables, SECTIONS, "")
        joints = self._names(tables["joints"])
        one = {name: self._scalars(name, tables[name], units) for name, units in SCALARS.items()}
        joint = self._vectors("joint", tables["joint"], JOINT, len(joints))
        share, timing = one["share"], one["timing"]
        if timing["jitter"] >= 0.5:
            raise self._wrong("timing.jitter", "is below 0.5, so that a tick is told from the next")
        if timing["stale"] > MAX_STALE_S:
            raise self._wrong(
                "timing.stale",
                f"is at most {MAX_STALE_S:g} s, the longest watchdog, got {timing['stale']:g}: "
                "whether an arm follows is seen in its readings alone",
            )
        return Limits(
            arm=self._text(tables["arm"], "arm"),
            joints=joints,
            timing=Timing(**timing),
            translation=_rates({k: [v] for k, v in one["translation"].items()}, share),
            rotation=_rates({k: [v] for k, v in one["rotation"].items()}, share),
            joint=_rates(joint, share),
            joint_low=read_only(joint["low"]),
            joint_high=read_only(joint["high"]),
            joint_speed=read_only(joint["velocity"]),
            drivers=one["drivers"],
            jump=Distances(**one["jump"]),
            following=Distances(**one["following"]),
            overshoot=Distances(**one["overshoot"]),
            gripper=GripperLimits(**one["gripper"]),
            workspace=self._box("workspace", tables["workspace"], 0.0),
            keep_out=self._keep_outs(tables["keep_out"], one["clearance"]["keep_out"]),
        )

    def _wrong(self, entry: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}: {entry} {expected} (docs/safety.md)")

    def _same_keys(self, table: object, known: Sequence[str], entry: str) -> Mapping[str, object]:
        where = entry or "the file"
        if not isinstance(table, dict):
            raise self._wrong(where, f"is a table with {', '.join(known)}")
        for key in table:
            if key not in known:
                raise self._wrong(where, f"has the unknown key {key!r}; {suggest(key, known)}")
        for key in known:
            if key not in table:
                raise self._wrong(where, f"lacks {key!r}; a limit that is missing is not assumed")
        return table

    def _text(self, value: object, entry: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(entry, f"is a text that is not empty, got {value!r:.60}")
        return value

    def _names(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
            raise self._wrong("joints", "is a list of names, each once")
        return tuple(self._text(name, "joints") for name in value)

    def _entry(self, entry: str, table: object, unit: str) -> object:
        """Return the value of an entry whose unit and source are as they must be."""
        known = self._same_keys(table, ENTRY, entry)
        if known["unit"] != unit:
            raise self._wrong(entry, f"is in {unit!r}, got the unit {known['unit']!r:.40}")
        self._text(known["source"], f"{entry}.source")
        return known["value"]

    def _number(self, entry: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(entry, f"is a number, got {value!r:.60}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(entry, f"is a finite number, got {number}")
        return number

    def _positive(self, entry: str, value: object) -> float:
        number = self._number(entry, value)
        if number <= 0.0:
            raise self._wrong(entry, f"is above 0, got {number:g}")
        return number

    def _scalars(self, section: str, table: object, units: Mapping[str, str]) -> dict[str, float]:
        known = self._same_keys(table, tuple(units), section)
        numbers = {}
        for key, unit in units.items():
            entry = f"{section}.{key}"
            numbers[key] = self._positive(entry, self._entry(entry, known[key], unit))
            if section in SHARES and numbers[key] > 1.0:
                raise self._wrong(entry, f"is a share, at most 1, got {numbers[key]:g}")
        return numbers

    def _vectors(
        self, section: str, table: object, units: Mapping[str, str], size: int
    ) -> dict[str, list[float]]:
        """Return vectors by key; all but `low` and `high` are above 0, and low is below high."""
        known = self._same_keys(table, tuple(units), section)
        vectors = {}
        for key, unit in units.items():
            entry = f"{section}.{key}"
            value = self._entry(entry, known[key], unit)
            if not isinstance(value, list) or len(value) != size:
                raise self._wrong(entry, f"is a list of {size} numbers, got {value!r:.60}")
            read = self._number if key in CORNERS else self._positive
            vectors[key] = [read(entry, number) for number in value]
        for low, high in zip(vectors["low"], vectors["high"], strict=True):
            if low >= high:
                raise self._wrong(section, f"has low {low:g}, which is not below high {high:g}")
        return vectors

    def _box(self, entry: str, table: object, clearance: float) -> Box:
        corners = self._vectors(entry, table, CORNERS, 3)
        x, y, z = (low - clearance for low in corners["low"])
        u, v, w = (high + clearance for high in corners["high"])
        return Box((x, y, z), (u, v, w))

    def _keep_outs(self, tables: object, clearance: float) -> tuple[KeepOut, ...]:
        if not isinstance(tables, list):
            raise self._wrong("keep_out", "is written as [[keep_out]] tables, or keep_out = []")
        boxes = []
        for number, table in enumerate(tables):
            entry = f"keep_out {number}"
            known = self._same_keys(table, ("name", *CORNERS), entry)
            name = self._text(known["name"], f"{entry}.name")
            corners = {key: known[key] for key in CORNERS}
            boxes.append(KeepOut(name, self._box(f"keep_out {name!r}", corners, clearance)))
        return tuple(boxes)


def _rates(published: Mapping[str, Sequence[float]], share: Mapping[str, float]) -> Rates:
    used = {key: read_only([share[key] * number for number in published[key]]) for key in share}
    return Rates(**used)
