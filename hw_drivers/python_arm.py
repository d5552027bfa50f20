"""A user's own arm: `python:MODULE:FACTORY`, or `python:FILE.py:FACTORY`.

The factory takes nothing, or the name as it was typed, and returns a robot side: what reads the
arm, sends it somewhere, holds it and stops it.
"""

from __future__ import annotations

from typing import Final, cast

from zetta.hw_drivers.arm import RobotSide
from zetta.runtime.errors import ConfigError
from zetta.runtime.user_code import factory_of, module_of, takes_a_name, their_errors

SCHEME: Final = "python:"
EXAMPLE: Final = "python:my_package.arms:make or python:./my_arm.py:make"
MEMBERS: Final = ("facts", "read", "send", "hold", "stop", "clear", "close")
"""What a robot side has."""


def load(name: str) -> RobotSide:
    """Return what the user's factory makes, if it is a robot side.

    Raises:
        ConfigError: there is no such module or factory, it fails, or it makes something else.
    """
    where, colon, attribute = name.partition("@")[0].removeprefix(SCHEME).rpartition(":")
    if not colon or not where or not attribute:
        raise ConfigError(f"got the arm {name!r}; expected {EXAMPLE}")
    factory = factory_of(module_of(where, EXAMPLE), attribute, where, "a robot side")
    with their_errors(f"the factory {attribute!r} of {where}"):
        made = factory(name) if takes_a_name(factory) else factory()
    if isinstance(made, type):
        raise ConfigError(f"{name} made the class {made.__name__}; expected an object of it")
    missing = [member for member in MEMBERS if not hasattr(made, member)]
    if missing:
        raise ConfigError(
            f"{name} made a {type(made).__name__} without {', '.join(missing)}; a robot side has "
            f"{', '.join(MEMBERS)}"
        )
    return cast(RobotSide, made)
