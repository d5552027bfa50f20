"""A user's own policy: `python:MODULE:FACTORY`, or `python:FILE.py:FACTORY`.

The factory takes nothing, or the name as it was typed, and returns a `Policy`.
"""

from __future__ import annotations

from typing import Final, cast

from zetta.runtime.core import Policy, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.spec_check import check_spec
from zetta.runtime.user_code import factory_of, module_of, takes_a_name, their_errors

SCHEME: Final = "python:"
EXAMPLE: Final = "python:my_package.policies:make or python:./my_policy.py:make"
MEMBERS: Final = ("spec", "reset", "infer", "close")
"""What a policy has; see `Policy`."""


def load(name: str) -> Policy:
    """Return what the user's factory makes, checked.

    Raises:
        ConfigError: there is no such module or factory, it fails, or it makes something else.
        SpecMismatch: the policy's spec is none, or contradicts itself.
    """
    where, colon, attribute = name.partition("@")[0].removeprefix(SCHEME).rpartition(":")
    if not colon or not where or not attribute:
        raise ConfigError(f"got the policy {name!r}; expected {EXAMPLE}")
    factory = factory_of(module_of(where, EXAMPLE), attribute, where, "a policy")
    with their_errors(f"the factory {attribute!r} of {where}"):
        made = factory(name) if takes_a_name(factory) else factory()
        return _checked(made, name)


def _checked(made: object, name: str) -> Policy:
    if isinstance(made, type):
        raise ConfigError(f"{name} made the class {made.__name__}; expected an object of it")
    missing = [member for member in MEMBERS if not hasattr(made, member)]
    if missing:
        raise ConfigError(
            f"{name} made a {type(made).__name__} without {', '.join(missing)}; a policy has "
            f"{', '.join(MEMBERS)} (see Policy in runtime/core.py)"
        )
    policy = cast(Policy, made)
    spec: object = policy.spec
    if not isinstance(spec, PolicySpec):
        raise SpecMismatch(
            f"the spec of {name} is a {type(spec).__name__}; expected a PolicySpec of "
            "zetta.runtime.core"
        )
    check_spec(spec, f"the spec of {name}")
    return policy
