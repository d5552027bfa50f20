"""What an agent is shown in a turn: pictures with overlays, and the state in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from zetta.primitives.agent.records import Picture, Turn
from zetta.primitives.command_results import GraspEvidence
from zetta.primitives.localize.table import Table
from zetta.primitives.motions_frames import matrix_of
from zetta.primitives.overlays import Drawn, Overlays, Surroundings, draw_overlays
from zetta.primitives.overlays_things import marks_of
from zetta.runtime.core import ArmState, Array, Estimate, Observation

_STRAIGHT_DEG = 8.0
"""A hand that is tilted by less than this points straight down, degrees."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known beside what the cameras see."""

    grasps: Mapping[str, GraspEvidence] = field(default_factory=dict)
    """By arm; an arm without is not spoken of."""
    home: Mapping[str, Array] = field(default_factory=dict)
    """Grip site of each arm when the episode began, by arm. Shape (3,)."""
    ticks: int = 0
    """Control ticks used."""
    ticks_limit: int = 0
    """0 for no limit."""


def compose(
    observation: Observation,
    arms: Sequence[str],
    table: Table,
    estimates: Mapping[str, Estimate] | None = None,
    overlays: Overlays | None = None,
    progress: Progress | None = None,
) -> tuple[tuple[Picture, ...], str]:
    """Return what an agent is shown: the pictures, and the text for `Turn.state`.

    Args:
        observation: what was sensed; every picture in it is shown.
        arms: names of the arms, in the order of `observation.proprio.arms`.
        table: see `table_in` and `declared_table`.
        estimates: what was found, by the name that the agent is to read.
        overlays: what is drawn; all by default.
        progress: what else the text tells.
    """
    found = estimates or {}
    around = Surroundings(table, observation.proprio.arms, arms, found)
    wanted = overlays or Overlays()
    pictures = tuple(_picture(observation, name, around, wanted) for name in observation.images)
    text = state_text(observation, arms, table, found, progress or Progress())
    return pictures, text


def _picture(
    observation: Observation, name: str, around: Surroundings, overlays: Overlays
) -> Picture:
    image, camera = observation.images[name], observation.cameras.get(name)
    if camera is None:
        return Picture(name, image, f"{name}: no calibration came with it, nothing is drawn in")
    drawn = draw_overlays(image, camera, around, overlays, observation.depth.get(name))
    return Picture(name, drawn.image, caption_of(name, drawn, around, overlays))


# --------------------------------------------------------------------------- captions


def caption_of(name: str, drawn: Drawn, around: Surroundings, overlays: Overlays) -> str:
    """Return what a picture shows and what is drawn into it."""
    parts = list(_ground_words(around, overlays))
    parts += list(_hand_words(overlays)) if drawn.hand else _no_hand(around, overlays)
    if drawn.rulers:
        parts.append("yellow rulers: height above the table beside a thing, ticks 1 cm")
    if drawn.marks:
        parts.append("marks: " + ", ".join(mark.legend for mark in drawn.marks))
    return f"{name}: {'; '.join(parts) or 'nothing is drawn in'}"


def _ground_words(around: Surroundings, overlays: Overlays) -> Iterator[str]:
    if overlays.grid:
        faint = ", faint ones half way between" if overlays.fine_grid else ""
        yield f"lines every 10 cm on the table (z {_cm(around.table.height)}){faint}; labels in cm"
    elif overlays.fine_grid:
        yield "faint lines half way between multiples of 10 cm on the table"


def _no_hand(around: Surroundings, overlays: Overlays) -> list[str]:
    asked = around.arms and (overlays.cross or overlays.axes or overlays.jaw)
    return ["the grip site is not in this picture"] if asked else []


def _hand_words(overlays: Overlays) -> Iterator[str]:
    if overlays.cross:
        yield "white + at the grip site, its dashed line ends in an x on the table straight below"
    if overlays.axes:
        yield "arrows +x red, +y green, +z blue: 5 cm, ticks 1 cm"
    if overlays.jaw:
        yield "cyan: the line along which the fingers close, a bar at each finger"


# --------------------------------------------------------------------------- state


def state_text(
    observation: Observation,
    arms: Sequence[str],
    table: Table,
    estimates: Mapping[str, Estimate],
    progress: Progress,
) -> str:
    """Return arms, table, found things and steps used, one on each line."""
    lines = [
        _arm_line(name, state, table, progress)
        for name, state in zip(arms, observation.proprio.arms, strict=True)
    ]
    if observation.proprio.base is not None:
        x, y, yaw = (float(v) for v in observation.proprio.base)
        lines.append(f"base: x {_cm(x)}, y {_cm(y)}, turned {math.degrees(yaw):.0f} deg")
    lines.append(_table_line(table))
    lines += list(_thing_lines(estimates, table))
    limit = f" of {progress.ticks_limit}" if progress.ticks_limit else ""
    lines.append(f"control steps used: {progress.ticks}{limit}")
    return "\n".join(lines)


def _arm_line(name: str, state: ArmState, table: Table, progress: Progress) -> str:
    rotation = matrix_of(state.ee_quat)
    height = 100.0 * (float(state.ee_pos[2]) - table.height)
    parts = [
        f"{name}: grip site {_place(state.ee_pos)}, {height:.1f} cm above the table",
        f"hand {direction_words(rotation[:, 2])} (approach {_vector(rotation[:, 2])})",
        f"fingers close {axis_words(rotation[:, 1])} (axis {_vector(rotation[:, 1])})",
        f"opening {_cm(state.gripper_opening)}",
    ]
    grasp = progress.grasps.get(name)
    if grasp is not None:
        parts.append(f"gripper {grasp.text}")
    home = progress.home.get(name)
    if home is not None:
        away = 100.0 * float(np.linalg.norm(state.ee_pos - home))
        parts.append("at home" if away < 1.0 else f"{away:.1f} cm from home ({_place(home)})")
    return "; ".join(parts)


def _table_line(table: Table) -> str:
    how = "seen in depth" if table.source == "depth" else "as declared"
    (x0, y0), (x1, y1) = table.low, table.high
    return (
        f"table: z {_cm(table.height)} ({how}); grid drawn for x {100 * x0:.0f} to {100 * x1:.0f}, "
        f"y {100 * y0:.0f} to {100 * y1:.0f} cm"
    )


def _thing_lines(estimates: Mapping[str, Estimate], table: Table) -> Iterator[str]:
    if not estimates:
        yield "things found: none"
        return
    yield "things found (middle; size along own axes):"
    for mark in marks_of(estimates):
        one = mark.estimate
        size = " x ".join(f"{100.0 * float(v):.1f}" for v in one.extent)
        turn = math.degrees(one.yaw)
        top = 100.0 * (mark.top - table.height)
        yield (
            f"  {mark.legend}, size {size} cm, turned {_rounded(turn, 0):.0f} deg, "
            f"top {top:.1f} cm above the table, confidence {one.confidence:.2f} ({one.level})"
        )


def direction_words(approach: Array) -> str:
    """Return where a hand points, in words.

    >>> direction_words(np.array([0.0, 0.0, -1.0])), direction_words(np.array([0.5, 0.0, -0.866]))
    ('points straight down', 'points down, tilted 30 deg towards +x')
    """
    tilt = math.degrees(math.acos(float(np.clip(-approach[2], -1.0, 1.0))))
    if tilt < _STRAIGHT_DEG:
        return "points straight down"
    if tilt > 180.0 - _STRAIGHT_DEG:
        return "points straight up"
    way = _compass(approach)
    if abs(tilt - 90.0) < _STRAIGHT_DEG:
        return f"points level towards {way}"
    if tilt < 90.0:
        return f"points down, tilted {tilt:.0f} deg towards {way}"
    return f"points up, {tilt - 90.0:.0f} deg above level, towards {way}"


def axis_words(travel: Array) -> str:
    """Return along which axis fingers close, in words; either way along it is the same.

    >>> axis_words(np.array([0.0, -1.0, 0.0])), axis_words(np.array([0.71, 0.71, 0.0]))
    ('along y', 'between x and y')
    """
    share = np.abs(travel)
    first, second = (int(i) for i in np.argsort(share)[::-1][:2])
    names = "xyz"
    if share[first] > math.cos(math.radians(15.0)):
        return f"along {names[first]}"
    low, high = sorted((first, second))
    sign = "-" if float(travel[low] * travel[high]) < 0.0 else ""
    return f"between {names[low]} and {sign}{names[high]}"


def _compass(direction: Array) -> str:
    """Return the nearest of eight horizontal directions, such as `+x` or `+x -y`."""
    turn = round(math.atan2(float(direction[1]), float(direction[0])) / (math.pi / 4.0)) % 8
    return ("+x", "+x +y", "+y", "-x +y", "-x", "-x -y", "-y", "+x -y")[turn]


def _place(point: Array) -> str:
    x, y, z = (_rounded(100.0 * float(v)) for v in point)
    return f"x {x:.1f}, y {y:.1f}, z {z:.1f} cm"


def _vector(vector: Array) -> str:
    return ", ".join(f"{_rounded(float(v), 2):.2f}" for v in vector)


def _cm(metres: float) -> str:
    return f"{_rounded(100.0 * metres):.1f} cm"


def _rounded(value: float, digits: int = 1) -> float:
    return round(value, digits) + 0.0  # no -0.0


# --------------------------------------------------------------------------- the whole turn


def turn_text(turn: Turn) -> str:
    """Return all of a turn but its pictures, as text for a prompt.

    The present turn counts among `turn.turns_left`. Sections with nothing to say are left out; the
    captions of pictures are not, so that they can be sent beside them or, to an agent that does not
    look, not at all.
    """
    sections = [
        ("TASK", turn.instruction),
        ("TURN", f"{turn.index + 1} of {turn.index + turn.turns_left}"),
        ("RESULTS OF THE LAST COMMANDS", _bullets([r.summary for r in turn.results])),
        ("REMARKS", _bullets(turn.remarks)),
        ("STATE", turn.state),
        ("MEMORY", turn.memory),
        ("HISTORY", _bullets(turn.history)),
        ("PICTURES", _bullets([picture.caption or picture.name for picture in turn.pictures])),
        (
            "BUDGET",
            f"turns left, this one included: {turn.turns_left}; "
            f"commands in this answer: at most {turn.commands_left}",
        ),
    ]
    return "\n\n".join(_section(name, text) for name, text in sections if text.strip())


def _section(name: str, text: str) -> str:
    return f"{name}\n{text}" if "\n" in text or text.startswith("- ") else f"{name}: {text}"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
