"""A user's own policy: `python:MODULE:FACTORY`, or `python:FILE.py:FACTORY`.

The factory takes nothing, or the name as it was typed, and returns a `Policy`.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from zetta.runtime.core import Policy, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch, ZettaError, suggest
from zetta.runtime.policies.spec_check import check_spec

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
    factory = _factory(_module(where), attribute, where)
    with _their_errors(f"the factory {attribute!r} of {where}"):
        made = factory(name) if _takes_a_name(factory) else factory()
        return _checked(made, name)


def _module(where: str) -> ModuleType:
    if where.endswith(".py"):
        return _module_of_file(Path(where))
    with _their_errors(f"importing {where}"):
        try:
            return import_module(where)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{where}.".startswith(f"{error.name}."):
                raise  # what is missing is something that the module needs
            file = Path(*where.split(".")).with_suffix(".py")
            advice = (
                f"for the file of this folder write python:./{file}:FACTORY"
                if file.is_file()
                else f"install it, or name a file, as in {EXAMPLE}"
            )
            raise ConfigError(f"there is no module {where!r} to import; {advice}") from None


def _module_of_file(path: Path) -> ModuleType:
    """Run a file under a private name, so that it hides no other module."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path} in {Path.cwd()}; expected {EXAMPLE}")
    private = f"_zetta_policy_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(private, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[private] = module  # dataclasses look their own module up while it is made
    with _their_errors(f"running {path}"):
        spec.loader.exec_module(module)
    return module


def _factory(module: ModuleType, attribute: str, where: str) -> Callable[..., object]:
    found = getattr(module, attribute, None)
    if found is None:
        known = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
        raise ConfigError(f"{where} has no {attribute!r}; {suggest(attribute, known)}")
    if not callable(found):
        raise ConfigError(
            f"{attribute!r} of {where} is a {type(found).__name__}; expected a function that "
            "returns a policy"
        )
    return cast(Callable[..., object], found)


def _takes_a_name(factory: Callable[..., object]) -> bool:
    """Say whether the factory cannot be called without an argument."""
    try:
        inspect.signature(factory).bind()
    except TypeError:
        return True
    except ValueError:  # some built-in callables have no signature
        return False
    return False


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


@contextmanager
def _their_errors(doing: str) -> Iterator[None]:
    """Turn whatever the user's code raises into one sentence; the traceback stays behind it."""
    try:
        yield
    except ZettaError:
        raise
    except (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError,
            RuntimeError, SyntaxError, TypeError, ValueError) as error:  # fmt: skip
        raise ConfigError(
            f"{doing} failed with {type(error).__name__}: {error} (--debug shows where)"
        ) from error
