"""What follows the `@` of a policy's name: `SCHEME:WHERE@key=value,key=value`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zetta.runtime.errors import ConfigError, suggest


def split_options(name: str, known: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return what stands before the `@`, and the options after it.

    Args:
        name: as the user typed it; `;` separates options as well as `,`, for lists of policies
            are split at commas.
        known: what may be set, each with an example of a value.

    >>> split_options("pi0:weights@device=cuda:0,samples=4", {"device": "cpu", "samples": "1"})
    ('pi0:weights', {'device': 'cuda:0', 'samples': '4'})

    Raises:
        ConfigError: an option is unknown, given twice, or has no value.
    """
    base, at, text = name.partition("@")
    given: dict[str, str] = {}
    for part in re.split("[,;]", text) if at else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            can = suggest(key, known) if known else "it has none"
            raise ConfigError(f"the policy {name!r} has the unknown option {key!r}; {can}")
        if not value or key in given:
            raise ConfigError(
                f"the policy {name!r} gives {key!r} {'twice' if key in given else 'no value'}; "
                f"expected for example {base}@{key}={known[key]}"
            )
        given[key] = value
    return base, given
