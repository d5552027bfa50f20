"""The forms of commands: how each is written, what it does, and how what follows is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from zetta.primitives.command_texts import (
    ANGLE,
    AXES,
    BASE_ANGLE,
    OPENING,
    OPENINGS,
    SECONDS,
    SHIFT,
    TICKS,
    WAY,
    metres,
    radians,
)
from zetta.primitives.command_words import Words
from zetta.primitives.commands import (
    DIRECTIONS,
    FRAMES,
    TURNS,
    BaseMove,
    BaseTurn,
    Close,
    Command,
    Direction,
    Done,
    Frame,
    GoAbove,
    GoToGrasp,
    Gripper,
    Home,
    Move,
    Open,
    Pick,
    Place,
    PlaceOn,
    Point,
    Push,
    Rotate,
    RunPolicy,
    RunSkill,
    Turn,
    TurnKnob,
    Wait,
)

Reader: TypeAlias = Callable[[Words], Command]
_THING: Final = "the name of a thing"
_PLACE: Final = "the name of a thing or a place"
_PART: Final = "the name of a drawer, a door or a knob"
_HANDS: Final = ("gripper", "hand", "fingers")
_NEAR: Final = ("next", "close", "closest", "nearest", "near", "adjacent")
"""Words before a "to" that says which thing, and not where it goes."""


@dataclass(frozen=True, slots=True)
class Form:
    """One command: how it is written and what it does."""

    words: tuple[str, ...]
    """With which it begins, the arm apart."""
    syntax: str
    """Without the arm."""
    says: str
    """What it does and its limits, one sentence."""
    example: str
    """Without the arm."""
    read: Reader
    """Reads what follows its words; the arm is still empty."""
    armed: bool = True
    """Whether an arm does it."""

    @property
    def usage(self) -> str:
        """Return how it is written, the arm included."""
        return f"[<arm>] {self.syntax}" if self.armed else self.syntax


# --------------------------------------------------------------------------- what follows


def _move(words: Words) -> Move:
    lengths: dict[str, float] = {}
    while not lengths or words.peek() in AXES:
        axis = words.choose("an axis", AXES)
        if axis in lengths:
            words.refuse(f"got the axis {axis!r} twice; expected each once")
        lengths[axis] = metres(words.number(axis, SHIFT))
    frame, camera = _frame(words)
    x, y, z = (lengths.get(axis, 0.0) for axis in AXES)
    return Move((x, y, z), frame, camera, words.skip("until", "contact"))


def _rotate(words: Words) -> Rotate:
    turn = cast(Turn, words.choose("an axis", TURNS))
    angle = radians(words.number(turn, ANGLE))
    return Rotate(turn, angle, *_frame(words))


def _frame(words: Words) -> tuple[Frame, str]:
    if not words.skip("in"):
        return "world", ""
    frame = cast(Frame, words.choose("a frame", FRAMES))
    ends = not words.rest or tuple(map(str.lower, words.rest)) == ("until", "contact")
    return frame, "" if frame != "camera" or ends else words.name("the name of a camera")


def _point(words: Words) -> Point:
    return Point(cast(Direction, words.choose("a direction", DIRECTIONS)))


def _gripper(words: Words) -> Gripper:
    if words.peek()[:1].isalpha():
        return Gripper(OPENINGS[words.choose("an opening from 0 to 1 or a word", tuple(OPENINGS))])
    return Gripper(words.number("the opening", OPENING))


def _home(words: Words) -> Home:
    return Home()


def _wait(words: Words) -> Wait:
    return Wait(words.number("the time", SECONDS)) if words.rest else Wait()


def _done(words: Words) -> Done:
    return Done()


def _above(words: Words) -> GoAbove:
    return GoAbove(words.thing(_THING))


def _to_grasp(words: Words) -> GoToGrasp:
    if not words.rest or words.rest[-1].lower() != "grasp":
        words.refuse("the line does not end with 'grasp'; expected 'go to <thing> grasp'")
    words.rest = words.rest[:-1]
    return GoToGrasp(words.thing(_THING))


def _pick(words: Words) -> Pick:
    words.skip("up")
    return Pick(words.thing(_THING))


def _place(words: Words) -> Place:
    where = cast(PlaceOn, words.choose("how it is to lie", get_args(PlaceOn)))
    return Place(words.thing(_PLACE, place=True), where)


def _open(words: Words) -> Open:
    return Open(_part(words, "open"))


def _close(words: Words) -> Close:
    return Close(_part(words, "close"))


def _part(words: Words, verb: str) -> str:
    part = words.thing(_PART)
    if part in _HANDS:
        words.refuse(f"got {part!r} for a drawer or a door; did you mean 'gripper {verb}'?")
    return part


def _turn_on(words: Words) -> TurnKnob:
    return TurnKnob(words.thing(_PART), on=True)


def _turn_off(words: Words) -> TurnKnob:
    return TurnKnob(words.thing(_PART), on=False)


def _push(words: Words) -> Push:
    lowered = [word.lower() for word in words.rest]
    joints = [
        k
        for k, word in enumerate(lowered)
        if word == "to" and 0 < k < len(lowered) - 1 and lowered[k - 1] not in _NEAR
    ]
    if not joints:
        words.refuse("it does not say where to; expected 'push <thing> to <place>'")
    # "push the bowl to the left of the plate to the bin": a side may say which bowl.
    firm = [k for k in joints if not _is_side(lowered[k + 1 :])]
    joint = (firm or joints)[-1]
    there = Words(words.line, words.rest[joint + 1 :])
    words.rest = words.rest[:joint]
    return Push(words.thing(_THING), there.thing(_PLACE, place=True))


def _is_side(words: Sequence[str]) -> bool:
    rest = [word for word in words if word != "the"]
    return len(rest) > 1 and rest[0] in ("left", "right", "front", "back") and rest[1] == "of"


def _policy(words: Words) -> RunPolicy:
    ticks = int(words.number("the ticks", TICKS))
    if not words.rest:
        return RunPolicy(ticks)
    text = words.take("an instruction")
    if not text.startswith('"'):
        words.refuse(f"got {text!r}; expected the instruction in quotation marks or nothing")
    return RunPolicy(ticks, " ".join(text.strip('"').split()))


def _skill(words: Words) -> RunSkill:
    return RunSkill(words.name("the name of a skill"))


def _base_move(words: Words) -> BaseMove:
    axis = cast(Literal["x", "y"], words.choose("an axis", ("x", "y")))
    return BaseMove(axis, metres(words.number(axis, WAY)))


def _base_turn(words: Words) -> BaseTurn:
    return BaseTurn(radians(words.number("the turn", BASE_ANGLE)))


# --------------------------------------------------------------------------- the table

_FRAMES_SAID: Final = "[in gripper|in camera [<name>]]"

FORMS: Final = (
    Form(
        ("move",), f"move x <cm> y <cm> z <cm> {_FRAMES_SAID} [until contact]",
        "Move the grip site along the axes of the world (z is up), of the gripper or of a "
        "camera, keeping the orientation; axes may be left "
        f"out, each is at most {SHIFT.high:g} cm; with 'until contact' it stops when something "
        "stops the hand.",
        "move x 3 y -2 z -5 until contact", _move,
    ),
    Form(
        ("rotate",), f"rotate {'|'.join(TURNS)} <deg> {_FRAMES_SAID}",
        "Turn the hand about the x, y or z axis through the grip site, at most "
        f"{ANGLE.high:g} deg.",
        "rotate yaw 45", _rotate,
    ),
    Form(
        ("point",), f"point {'|'.join(DIRECTIONS)}",
        "Turn the hand until it points there; a number is the tilt from straight down towards "
        "straight ahead, deg.",
        "point down", _point,
    ),
    Form(
        ("gripper",), f"gripper {'|'.join(OPENINGS)}|<0..1>",
        "Set the gripper to a share of its widest opening and wait until it stands still.",
        "gripper open", _gripper,
    ),
    Form(
        ("home",), "home", "Return to the pose that the arm had when the episode began.",
        "home", _home,
    ),
    Form(
        ("go", "above"), "go above <thing>", "Go over a thing, a hand's breadth above its top.",
        "go above black bowl", _above,
    ),
    Form(
        ("go", "to"), "go to <thing> grasp",
        "Come down onto a thing, lined up as for grasping it, the gripper open.",
        "go to black bowl grasp", _to_grasp,
    ),
    Form(
        ("pick",), "pick <thing>", "Find a thing, grasp it and lift it.",
        "pick black bowl next to the plate", _pick,
    ),
    Form(
        ("place",), "place on|in <thing>",
        "Carry what is held to a thing, set it down, release and retreat.",
        "place on plate", _place,
    ),
    Form(
        ("open",), "open <part>", "Pull a drawer or a door open by its handle.",
        "open top drawer", _open,
    ),
    Form(("close",), "close <part>", "Push a drawer or a door shut.", "close top drawer", _close),
    Form(("turn", "on"), "turn on <part>", "Twist a knob on.", "turn on stove", _turn_on),
    Form(("turn", "off"), "turn off <part>", "Twist a knob off.", "turn off stove", _turn_off),
    Form(
        ("push",), "push <thing> to <place>", "Push a thing along the ground to a place.",
        "push plate to front of the stove", _push,
    ),
    Form(
        ("wait",), "wait [<s>]",
        f"Hold still, {Wait().seconds:g} s unless said, at most {SECONDS.high:g} s.",
        "wait 1", _wait, armed=False,
    ),
    Form(
        ("policy",), 'policy <ticks> ["<instruction>"]',
        f"Let the learned policy drive for 1 to {TICKS.high:g} control ticks, with the task's own "
        "instruction or another.",
        'policy 40 "pick up the black bowl"', _policy, armed=False,
    ),
    Form(
        ("skill",), "skill <name>", "Run a recovery skill of the bundle.", "skill regrasp",
        _skill, armed=False,
    ),
    Form(
        ("base", "move"), "base move x|y <cm>",
        f"Drive the mobile base ahead (x) or to its left (y), at most {WAY.high:g} cm.",
        "base move x 30", _base_move, armed=False,
    ),
    Form(
        ("base", "turn"), "base turn <deg>",
        "Turn the mobile base on the spot, counter-clockwise from above, at most "
        f"{BASE_ANGLE.high:g} deg.",
        "base turn -45", _base_turn, armed=False,
    ),
    Form(
        ("done",), "done", "Say that the task is done; the evidence says whether it is.", "done",
        _done, armed=False,
    ),
)  # fmt: skip
"""Every command but `both`."""
