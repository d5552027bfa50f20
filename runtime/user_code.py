"""A user's own Python, by module or by file: what `python:MODULE:FACTORY` names."""

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
from typing import cast

from zetta.runtime.errors import ConfigError, ZettaError, suggest


def module_of(where: str, example: str) -> ModuleType:
    """Return the user's module, by its name or by its file.

    Args:
        where: a dotted name, or a path that ends in `.py`.
        example: how the whole name looks when it is right.

    Raises:
        ConfigError: there is none, or running it fails.
    """
    if where.endswith(".py"):
        return _module_of_file(Path(where), example)
    with their_errors(f"importing {where}"):
        try:
            return import_module(where)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{where}.".startswith(f"{error.name}."):
                raise  # what is missing is something that the module needs
            file = Path(*where.split(".")).with_suffix(".py")
            advice = (
                f"for the file of this folder write python:./{file}:FACTORY"
                if file.is_file()
                else f"install it, or name a file, as in {example}"
            )
            raise ConfigError(f"there is no module {where!r} to import; {advice}") from None


def _module_of_file(path: Path, example: str) -> ModuleType:
    """Run a file under a private name, so that it hides no other module."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path} in {Path.cwd()}; expected {example}")
    private = f"_zetta_user_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(private, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[private] = module  # dataclasses look their own module up while it is made
    try:
        with their_errors(f"running {path}"):
            spec.loader.exec_module(module)
    except ZettaError:
        del sys.modules[private]
        raise
    return module


def factory_of(module: ModuleType, attribute: str, where: str, what: str) -> Callable[..., object]:
    """Return the factory called `attribute`.

    Args:
        module: the user's module.
        attribute: the name in it.
        where: what the user calls the module.
        what: what the factory is to return, for the message.

    Raises:
        ConfigError: there is none, or it cannot be called.
    """
    found = getattr(module, attribute, None)
    if found is None:
        known = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
        raise ConfigError(f"{where} has no {attribute!r}; {suggest(attribute, known)}")
    if not callable(found):
        raise ConfigError(
            f"{attribute!r} of {where} is a {type(found).__name__}; expected a function that "
            f"returns {what}"
        )
    return cast(Callable[..., object], found)


def takes_a_name(factory: Callable[..., object]) -> bool:
    """Say whether the factory cannot be called without an argument."""
    try:
        inspect.signature(factory).bind()
    except TypeError:
        return True
    except ValueError:  # some built-in callables have no signature
        return False
    return False


@contextmanager
def their_errors(doing: str) -> Iterator[None]:
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
