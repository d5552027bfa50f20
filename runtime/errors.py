"""Every error a user can meet. A message says what was got, what was expected and what to do."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class ZettaError(Exception):
    """Base of all errors that are explained in one sentence, without a traceback."""


class ConfigError(ZettaError):
    """The user asked for something that does not exist or does not fit."""


class InfraError(ZettaError):
    """The machinery failed; never a score."""


class Timeout(InfraError):
    """Nothing came back in time."""


class ConnectionLost(InfraError):
    """The other side went away."""


class WorkerDied(InfraError):
    """A worker process ended without a result."""


class SpecMismatch(ZettaError):
    """Two parts disagree about a convention, a shape, a version or a profile."""


class SafetyStop(ZettaError):
    """The robot was stopped to keep it safe."""


class ScreenError(ZettaError):
    """A critic or a skill was refused by the static checks."""


class GateError(ZettaError):
    """The promotion gate cannot open."""


def cannot_listen(where: str, error: Exception, advice: str) -> ConfigError | InfraError:
    """Return why nobody listens there. A place that is taken may be free in a moment.

    >>> type(cannot_listen("tcp://127.0.0.1:5701", OSError(98, "in use"), "wait")).__name__
    'InfraError'
    >>> str(cannot_listen("tcp://10.0.0.9:1", OSError(99, "no such address"), "take another"))
    'cannot listen at tcp://10.0.0.9:1: no such address; take another'
    """
    number, said = getattr(error, "errno", None), getattr(error, "strerror", None) or str(error)
    said = said.partition(" (addr=")[0]  # ZMQ says it again
    kind = InfraError if number == errno.EADDRINUSE else ConfigError
    return kind(f"cannot listen at {where}: {said}; {advice}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint naming the nearest known names, or else all of them, or a dozen.

    >>> suggest("objct", ["object", "goal"])
    "did you mean 'object'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    if len(names) <= 12:
        return "known: " + ", ".join(names)
    return f"known: {', '.join(names[:12])} and {len(names) - 12} more"
