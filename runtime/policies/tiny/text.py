"""Instruction to vector: a hashed bag of words and word pairs. No vocabulary, no download.

Every word and every pair of neighbouring words has a fixed random sign pattern, the bits of its
SHA-256; the instruction is their sum. Words that open any instruction are dropped, so "pick the
milk" and "pick up the milk" are the same vector. Pairs carry the order: "bowl on plate" is not
"plate on bowl".
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Final

import numpy as np

from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.inputs import Float32

ENCODER: Final = "sha256-pairs-256/1"
"""Name of this encoding; a model is bound to the one it was trained with."""
SIZE: Final = 256
"""Length of the vector; a SHA-256 has as many bits."""
PAIR_SHARE: Final = 0.5
"""Weight of a pair against a word."""

# "akita" is the name of a bowl's maker, which only some instructions give.
STOP_WORDS: Final = frozenset(
    {"a", "akita", "an", "and", "it", "of", "pick", "place", "put", "the", "up"}
)


def words(instruction: str) -> tuple[str, ...]:
    """Return the words that count, in order.

    >>> words("Pick up the black bowl on the stove and place it on the plate")
    ('black', 'bowl', 'on', 'stove', 'on', 'plate')
    """
    plain = re.sub(r"['’]s\b", "", instruction.lower())
    return tuple(w for w in re.findall(r"[a-z0-9]+", plain) if w not in STOP_WORDS)


def encode(instruction: str) -> Float32:
    """Return the vector of an instruction, of mean square 1. Shape (256,).

    Raises:
        ConfigError: no word of it carries meaning.
    """
    kept = words(instruction)
    if not kept:
        raise ConfigError(
            f"the instruction {instruction!r} names nothing; say what to move and where to"
        )
    total = np.zeros(SIZE, dtype=np.float64)
    for word in kept:
        total += _signs(word)
    for first, second in pairwise(kept):
        total += PAIR_SHARE * _signs(f"{first} {second}")
    length = float(np.sqrt(np.mean(total**2)))
    # Sign patterns of two words could cancel only if they were opposite in every bit.
    return (total / max(length, 1e-6)).astype(np.float32)


def _signs(gram: str) -> Float32:
    bits = np.frombuffer(hashlib.sha256(gram.encode()).digest(), dtype=np.uint8)
    return np.unpackbits(bits).astype(np.float32) * 2.0 - 1.0
