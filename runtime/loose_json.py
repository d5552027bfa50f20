"""JSON objects that stand somewhere in a plain text, as language models write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

OPENINGS_MOST: Final = 50
"""How many braces in a plain text are tried as the beginning of an object."""


def objects_in(text: str, openings: int = OPENINGS_MOST) -> Iterator[object]:
    """Yield the outermost JSON objects of a text, in order; whatever stands around them is left.

    >>> list(objects_in('Here {it} is: ```json {"a": {"b": 1}}``` and {"c": 2}'))
    [{'a': {'b': 1}}, {'c': 2}]
    """
    decoder = json.JSONDecoder()
    at, end = -1, 0
    for _ in range(openings):
        at = text.find("{", max(at + 1, end))
        if at < 0:
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield found
