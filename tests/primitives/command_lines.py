"""Commands on the grid of the grammar, and lines that nobody would write, for tests."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st

from zetta.primitives.command_forms import FORMS
from zetta.primitives.command_words import LINE_MOST, noun_phrase
from zetta.primitives.commands import (
    DIRECTIONS,
    MOVE_MOST,
    POLICY_TICKS_MOST,
    TURN_MOST_DEG,
    TURNS,
    ArmCommand,
    BaseMove,
    BaseTurn,
    Both,
    Close,
    Command,
    Done,
    GoAbove,
    GoToGrasp,
    Gripper,
    Home,
    Move,
    Open,
    Pick,
    Place,
    Point,
    Push,
    Rotate,
    RunPolicy,
    RunSkill,
    TurnKnob,
    Wait,
)
from zetta.runtime.errors import ConfigError

ARMS = ("left", "right")

# --------------------------------------------------------------------------- on the grid

_WORDS = (
    "bowl", "black", "up", "grasp", "on", "in", "off", "plate", "top", "drawer", "next", "left",
    "of", "to", "move", "x", "3", "until", "contact", "cm", "both", "wine-rack", "arm", "done", "a",
)  # fmt: skip


def _is_name(text: str, place: bool) -> bool:
    try:
        return noun_phrase(text.split(" "), place) == text
    except ConfigError:
        return False


def _phrases(place: bool = False, words: Sequence[str] = _WORDS) -> st.SearchStrategy[str]:
    texts = st.lists(st.sampled_from(words), min_size=1, max_size=5).map(" ".join)
    return texts.filter(lambda text: _is_name(text, place))


def _hundredths(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(100 * low, 100 * high).map(lambda n: n / 100)


_lengths = _hundredths(-20, 20).map(lambda cm: cm / 100.0)
_angles = st.integers(-900, 900).map(lambda n: math.radians(n / 10))
_names = st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_./-]{0,20}[A-Za-z0-9_/-])?", fullmatch=True)
_frames = st.one_of(
    st.sampled_from([("world", ""), ("gripper", ""), ("camera", ""), ("camera", "until")]),
    st.tuples(st.just("camera"), _names),
)
_untold = _phrases(words=[word for word in _WORDS if word != "to"]).filter(
    lambda text: not text.endswith("next")  # "push next to plate" says no place
)
_told = st.one_of(
    _phrases(place=True, words=[word for word in _WORDS if word != "to"]),
    st.just("next to plate"),
)
_instructions = st.text(
    st.characters(exclude_characters='"', exclude_categories=("C", "Z")) | st.just(" "), max_size=60
).map(lambda text: " ".join(text.split()))


def arm_commands(arm: str = "") -> st.SearchStrategy[ArmCommand]:
    """Return commands of one arm."""
    things, named = _phrases(), st.just(arm)
    parts = things.filter(lambda text: text not in ("gripper", "hand", "fingers"))
    shifts = st.tuples(_lengths, _lengths, _lengths)
    return st.one_of(
        st.builds(lambda d, f, u: Move(d, *f, u, arm), shifts, _frames, st.booleans()),
        st.builds(lambda t, a, f: Rotate(t, a, *f, arm), st.sampled_from(TURNS), _angles, _frames),
        st.builds(Point, st.sampled_from(DIRECTIONS), named),
        st.builds(Gripper, _hundredths(0, 1), named),
        st.builds(Home, named),
        st.builds(GoAbove, things, named),
        st.builds(GoToGrasp, things, named),
        st.builds(Pick, things, named),
        st.builds(Place, _phrases(place=True), st.sampled_from(["on", "in"]), named),
        st.builds(Open, parts, named),
        st.builds(Close, parts, named),
        st.builds(TurnKnob, things, st.booleans(), named),
        st.builds(Push, _untold, _told, named),
    )


def other_commands() -> st.SearchStrategy[Command]:
    """Return commands that no arm does."""
    return st.one_of(
        st.builds(Wait, _hundredths(0, 5)),
        st.just(Done()),
        st.builds(RunPolicy, st.integers(1, POLICY_TICKS_MOST), _instructions),
        st.builds(RunSkill, _names),
        st.builds(
            BaseMove, st.sampled_from(["x", "y"]), _hundredths(-50, 50).map(lambda cm: cm / 100.0)
        ),
        st.builds(BaseTurn, _angles),
    )


def commands(arms: Sequence[str]) -> st.SearchStrategy[Command]:
    """Return any command of a robot with one or two arms."""
    if len(arms) == 1:
        return st.one_of(arm_commands(), other_commands())
    first, second = map(arm_commands, arms)
    both = st.one_of(st.builds(Both, first, second), st.builds(Both, second, first))
    return st.one_of(first, second, both, other_commands())


# --------------------------------------------------------------------------- off the grid

_PIECES = (
    *_WORDS, *ARMS, "in camera front", "in gripper", "until contact", "deg", "s", "ticks", "the",
    '"', '"put it away"', "#", "|", ":", ".", ",", "-", "nan", "inf", "-inf", "1e999", "0x10",
    "9" * 40, "-0.0", "1_000", "٣", "½", "−5", "\u200b", "\x00", "\x1b[2J", "\n", "\t", "ﬁ",
    "\ud800", "-3.14159", "35", "+7", "0.5", ".5", "5.", "5cm", "90deg", "1.5 s",
)  # fmt: skip


def strange_line(draw: random.Random) -> str:
    """Return a line that may or may not be a command."""
    kind = draw.randrange(4)
    if kind == 0:
        return _mutated(draw, _written(draw))
    if kind == 1:
        heads = [form.syntax.split(" ")[0] for form in FORMS] + ["both:"]
        words = [draw.choice(_PIECES) for _ in range(draw.randrange(8))]
        arm = [draw.choice([*ARMS, "arm", ""])]
        return " ".join([*arm, draw.choice(heads), *words])
    if kind == 2:
        return draw.randbytes(draw.randrange(40)).decode("utf-8", "surrogateescape")
    return _mutated(draw, f"both: left {_written(draw)} | right {_written(draw)}")


def _written(draw: random.Random) -> str:
    form = draw.choice(FORMS)
    arm = draw.choice(["", "left ", "right ", "arm "]) if form.armed else ""
    return arm + form.example


def _mutated(draw: random.Random, line: str) -> str:
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(line) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            line = line[:at] + draw.choice(_PIECES) + line[at:]
        elif kind == 1:
            line = line[:at] + line[at + draw.randrange(4) :]
        elif kind == 2:
            line = (
                line[:at]
                + chr(draw.choice([draw.randrange(128), draw.randrange(0x3000)]))
                + line[at:]
            )
        elif kind == 3:
            words = line.split(" ")
            draw.shuffle(words)
            line = " ".join(words)
        else:
            line = line.replace(draw.choice(["3", "5", "45", "1", "30"]), draw.choice(_PIECES))
    return line


# --------------------------------------------------------------------------- limits


def problem_of(command: Command) -> str:
    """Return which limit a command exceeds; empty when none."""
    match command:
        case Both(first, second):
            return problem_of(first) or problem_of(second) or (
                "one arm" if first.arm == second.arm else ""
            )  # fmt: skip
        case Move(displacement):
            return "" if all(abs(length) <= MOVE_MOST for length in displacement) else "move"
        case Rotate(_, angle):
            return "" if abs(angle) <= math.radians(TURN_MOST_DEG) else "rotate"
        case Gripper(opening):
            return "" if 0.0 <= opening <= 1.0 else "gripper"
        case Wait(seconds):
            return "" if 0.0 <= seconds <= 5.0 else "wait"
        case RunPolicy(ticks):
            return "" if 1 <= ticks <= POLICY_TICKS_MOST and type(ticks) is int else "policy"
        case BaseMove(_, distance):
            return "" if abs(distance) <= 0.5 else "base move"
        case BaseTurn(angle):
            return "" if abs(angle) <= math.radians(90.0) else "base turn"
        case Push(thing, to):
            return "" if _is_name(thing, False) and _is_name(to, True) else "push"
        case Place(thing):
            return "" if _is_name(thing, True) else "place"
        case GoAbove(name) | GoToGrasp(name) | Pick(name) | Open(name) | Close(name):
            return "" if _is_name(name, False) else "thing"
        case TurnKnob(part):
            return "" if _is_name(part, False) else "part"
        case RunSkill(name):
            return "" if name and len(name) <= LINE_MOST else "skill"
        case _:
            return ""


def kinds() -> set[type]:
    """Return every record that is a command."""
    return set(get_args(Command))
