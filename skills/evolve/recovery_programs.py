"""Recovery programs that a search may choose from: small, and the same for every scene.

Each does one part of a task and hands the robot back, so that what is learnt in one task serves in
another. They are ordered in branches of failed episodes to see where they help, and the one that
does becomes the recovery of a new skill.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.runtime.errors import ConfigError, suggest
from zetta.skills.evolve.skill_texts import Page, critic_text, package_files

RISE: Final = Parameter("rise", 0.10, 0.03, 0.20, "m", "How far to rise.")
SEEN: Final = Parameter(
    "seen", 0.5, 0.3, 0.95, "", "Least confidence of a sighting to act upon."
)  # fmt: skip
HEIGHT: Final = Parameter("height", 0.08, 0.04, 0.15, "m", "How far above its top to stop.")
DROP: Final = Parameter("drop", 0.15, 0.05, 0.30, "m", "How far down to look for support.")


@dataclass(frozen=True, slots=True)
class RecoveryProgram:
    """One recovery: what it does, and the text that does it."""

    name: str
    doc: str
    """What it does, as the end of a sentence that begins with what went wrong."""
    text: str
    """Of `recovery.py`."""
    parameters: tuple[Parameter, ...]
    max_ticks: int
    roles: tuple[str, ...] = ()
    """What the instruction must bind."""
    uses: tuple[str, ...] = ()
    """What it looks at where the instruction binds it."""

    @property
    def statements(self) -> int:
        """How many statements it is written in."""
        return statements_of(self.text)


_RISE: Final = '''"""Let go, rise, and let the policy begin anew."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.closed_for) < 0.01 and now(w.holding) < 0.5
'''
_STAND_ABOVE: Final = '''"""Let go, rise, and stand above the object."""


def precondition(w, p):
    return now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    yield from robot.above("object", p.height)


def reentry(w, p):
    return now(w.object_offset) < 0.05 and now(w.holding) < 0.5
'''
_REGRASP: Final = '''"""Let go, rise, and grasp the object; the policy goes on with it."""


def precondition(w, p):
    return now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if not taken:
        yield from robot.retreat(p.rise)
        yield from robot.grasp("object")


def reentry(w, p):
    return now(w.holding) > 0.5
'''
_FETCH: Final = '''"""Let go, rise, grasp the object and bring it where it belongs."""


def precondition(w, p):
    return now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if not taken:
        yield from robot.retreat(p.rise)
        taken = yield from robot.grasp("object")
    if taken:
        yield from robot.place("receptacle")


def reentry(w, p):
    return now(w.holding) < 0.5 and now(w.closed_for) < 0.01
'''
_DELIVER: Final = '''"""Carry what is held to the receptacle and let it go there."""


def precondition(w, p):
    return now(w.holding) > 0.5 and now(w.receptacle_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.place("receptacle")


def reentry(w, p):
    return now(w.holding) < 0.5
'''
_BRING_OVER: Final = '''"""Rise with what is held and bring it above the receptacle."""


def precondition(w, p):
    return now(w.holding) > 0.5 and now(w.receptacle_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.retreat(p.rise)
    yield from robot.above("receptacle", p.height)


def reentry(w, p):
    return now(w.holding) > 0.5 and now(w.receptacle_offset) < 0.06
'''
_SET_DOWN: Final = '''"""Set down what is held where the hand is, let go and rise."""


def precondition(w, p):
    return now(w.holding) > 0.5


def recover(robot, w, p):
    yield from robot.until_contact(0.0, 0.0, 0.0 - p.drop)
    yield from robot.open()
    yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.holding) < 0.5
'''
_SWAP: Final = '''"""Set down what is held, and bring the named object where it belongs."""


def precondition(w, p):
    return now(w.holding) > 0.5 and now(w.object_confidence) >= p.seen


def recover(robot, w, p):
    yield from robot.until_contact(0.0, 0.0, 0.0 - p.drop)
    yield from robot.open()
    yield from robot.retreat(p.rise)
    taken = yield from robot.grasp("object")
    if taken:
        yield from robot.place("receptacle")


def reentry(w, p):
    return now(w.holding) < 0.5 and now(w.closed_for) < 0.01
'''
_BOTH: Final = ("object", "receptacle")

_ALL: Final = (
    RecoveryProgram("rise", "let go, rise and begin anew", _RISE, (RISE,), 60),
    RecoveryProgram(
        "stand-above", "let go and stand above the object", _STAND_ABOVE, (SEEN, RISE, HEIGHT),
        100, ("object",),
    ),
    RecoveryProgram(
        "regrasp", "grasp the object and go on with it", _REGRASP, (SEEN, RISE), 160, ("object",),
    ),
    RecoveryProgram(
        "fetch", "grasp the object and bring it to the receptacle", _FETCH, (SEEN, RISE), 240,
        _BOTH,
    ),
    RecoveryProgram(
        "deliver", "bring what is held to the receptacle", _DELIVER, (SEEN,), 140, ("receptacle",),
    ),
    RecoveryProgram(
        "bring-over", "bring what is held above the receptacle and go on", _BRING_OVER,
        (SEEN, RISE, HEIGHT), 100, ("receptacle",),
    ),
    RecoveryProgram("set-down", "set down what is held and rise", _SET_DOWN, (DROP, RISE), 100),
    RecoveryProgram(
        "swap", "set down what is held and bring the named object", _SWAP, (SEEN, DROP, RISE), 280,
        _BOTH,
    ),
)  # fmt: skip

PROGRAMS: Final[Mapping[str, RecoveryProgram]] = {program.name: program for program in _ALL}
"""Every recovery program by its name."""


def find_program(name: str) -> RecoveryProgram:
    """Return a program of the catalogue.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in PROGRAMS:
        raise ConfigError(f"there is no recovery program {name!r}; {suggest(name, PROGRAMS)}")
    return PROGRAMS[name]


def program_package(program: RecoveryProgram, name: str) -> Mapping[str, str]:
    """Return a skill package around a program whose critic never fires, to be ordered in branches.

    Args:
        program: what the skill does.
        name: of the skill, and of the folder that the files go into.

    Returns:
        Text by path inside the package.
    """
    page = Page(
        name=name,
        description=f"When it is told to: {program.doc}.",
        applies="it is ordered in a branch of an episode, and never by itself",
        roles=program.roles,
        uses=program.uses,
        max_ticks=program.max_ticks,
        text="Its critic never fires. It is there to see what the recovery would have done.",
    )
    # A share of ticks cannot be negative.
    critic = critic_text(
        "Never fires: the skill is ordered.",
        name,
        '    if now(w.policy_drives) < -1.0:\n        return recover("ordered")\n    return ok()\n',
    )
    return package_files(page, critic, program.text, program.parameters)


def statements_of(*texts: str) -> int:
    """Return how many statements some programs have, docstrings and constants included."""
    return sum(isinstance(n, ast.stmt) for text in texts for n in ast.walk(ast.parse(text)))


def program_of(recovery: str, programs: Sequence[RecoveryProgram] = _ALL) -> str:
    """Return the name of the program that a `recovery.py` holds; empty when it is none of them."""
    return next((program.name for program in programs if program.text == recovery), "")
