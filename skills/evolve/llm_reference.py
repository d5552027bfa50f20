"""The two languages, the primitives and the signals, as a language model is told about them.

Everything is printed from the tables that the checker itself uses, up to one sensing level.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from zetta.critics.documentation import language_documentation, markdown_table
from zetta.primitives.catalogue import PRIMITIVES, ParameterSpec, PrimitiveSpec
from zetta.runtime.core import SENSING_LEVELS, Sensing
from zetta.runtime.signals import SIGNALS, names_up_to
from zetta.skills.evolve.leaks import CLOCKS
from zetta.skills.program import MAX_OPERATIONS, RECOVERY_CONSTANTS

CRITIC_EXAMPLE: Final = '''"""The held object slips slowly through the fingers."""

WINDOW_S = 1.0
SKILL = "hold-tight"
REFRACTORY_S = 2.0


def check(w, p):
    if now(w.holding) > 0.5 and delta(w.slip, 0.5) > p.slip:
        return recover("the object slips")
    return ok()
'''
RECOVERY_EXAMPLE: Final = '''"""Set the object down, and take it again."""


def precondition(w, p):
    return now(w.holding) > 0.5


def recover(robot, w, p):
    yield from robot.until_contact(0.0, 0.0, -p.drop)
    yield from robot.open()
    taken = yield from robot.grasp("object")
    if not taken:
        yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.holding) > 0.5
'''
_CRITIC_RULES: Final = """A critic is a docstring, constants and one function `check(w, p)`. It
returns `recover("reason")` or `ok()` on every way through it. `w.<signal>` is the series of
recent values of a signal, `p.<name>` a number of `params`. Allowed are assignments,
`if`/`elif`/`else`, `and`, `or`, `not`, comparisons, `+ - * /`, numbers, and the operators below;
nothing else: no loops, no imports, no other calls, no `abort`. A signal that is unknown (NaN)
where it is read keeps the critic silent. Whoever wants one number of a series takes it with an
operator: `now(w.slip)`."""
_RECOVERY_RULES: Final = f"""A recovery is a docstring and three functions. `precondition(w, p)`
and `reentry(w, p)` return a condition: may it start, may the policy go on. `recover(robot, w, p)`
runs primitives with `yield from robot.<primitive>(...)`, on a line of its own or as the value of
a name, which is then a condition: whether the primitive completed. Also allowed: `for _ in
range(n)` with n up to 8, at most two within each other, each round with a primitive, and
`return`. Everything else is as in a critic, and nothing may stand in it that a critic may not
hold. Its constants are {" and ".join(RECOVERY_CONSTANTS)}; the work of all its rounds is at most
{MAX_OPERATIONS} units. Things are named by role, `"object"`, `"receptacle"` or `"part"`, never by
what they are; the instruction says what plays the role. Numbers that are written down lie within
the bounds of the primitive."""


def references(sensing: Sensing, logged: Collection[str] = ()) -> str:
    """Return both languages, primitives and signals, in Markdown.

    Args:
        sensing: level above which nothing is shown.
        logged: names of further signals that may be read where they are built in, such as those
            of a second arm.
    """
    parts = (
        f"# The critic language (critic.py)\n\n{_CRITIC_RULES}\n",
        f"```python\n{CRITIC_EXAMPLE}```\n",
        language_documentation(),
        f"# The recovery language (recovery.py)\n\n{_RECOVERY_RULES}\n",
        f"```python\n{RECOVERY_EXAMPLE}```\n",
        f"## Primitives\n\n{primitive_table(sensing)}",
        f"# Signals\n\n{signal_table(sensing, logged)}",
    )
    return "\n".join(parts)


def primitive_table(sensing: Sensing) -> str:
    """Return the primitives that need no more than a sensing level."""
    rows = [
        [f"`{spec.signature}`", _bounds(spec), spec.doc]
        for spec in PRIMITIVES.values()
        if not above(spec.level, sensing)
    ]
    return markdown_table(["primitive", "arguments", "does"], rows)


def signal_table(sensing: Sensing, logged: Collection[str] = ()) -> str:
    """Return name, unit, level and meaning of the signals that a draft may read."""
    rows = [
        [f"`{spec.name}`", spec.unit, spec.level, spec.doc]
        for spec in SIGNALS.values()
        if spec.name in readable_signals(sensing, logged)
    ]
    return markdown_table(["signal", "unit", "level", "what it is"], rows)


def readable_signals(sensing: Sensing, logged: Collection[str] = ()) -> frozenset[str]:
    """Return what a draft may read: nothing above the level, and no clock of the episode."""
    further = {n for n in logged if n in SIGNALS and not above(SIGNALS[n].level, sensing)}
    return (names_up_to(sensing) | further) - CLOCKS


def above(level: Sensing, allowed: Sensing) -> bool:
    """Say whether a level is higher than what is allowed."""
    return SENSING_LEVELS.index(level) > SENSING_LEVELS.index(allowed)


def _bounds(spec: PrimitiveSpec) -> str:
    return "; ".join(map(_argument, spec.parameters))


def _argument(parameter: ParameterSpec) -> str:
    """Return an argument and what it may be.

    >>> _argument(ParameterSpec("seconds", "number", 0.0, 5.0, "s"))
    'seconds: 0 to 5 s'
    """
    if parameter.kind == "role":
        return f"{parameter.name}: " + ", ".join(f'"{role}"' for role in parameter.roles)
    if math.isinf(parameter.low):
        return parameter.name
    return (
        f"{parameter.name}: {parameter.low:.3g} to {parameter.high:.3g} {parameter.unit}".rstrip()
    )
