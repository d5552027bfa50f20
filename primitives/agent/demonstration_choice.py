"""Which demonstrations fit a new task: by the words of its instruction and by its first picture.

Nothing that only a simulator knows is used: no poses, no names of objects beyond the instruction.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PIL import Image as Pillow

from zetta.primitives.agent.demonstration_messages import ShownLimits, demonstration_messages
from zetta.primitives.agent.demonstrations import Demonstration, SceneKey
from zetta.primitives.agent.prompt import Message
from zetta.primitives.agent.records import Picture, Turn
from zetta.runtime.core import Array
from zetta.runtime.errors import ConfigError
from zetta.runtime.prompt_pictures import read_picture

MOST: Final = 8
WORDS_WEIGHT: Final = 0.7
"""Of the instruction's words; the rest is the picture's. A guess, not tuned on anything."""
GREY: Final = (32, 24)
"""Width and height to which pictures are scaled down before they are compared, pixels."""
_STOP: Final = frozenset(
    {"a", "an", "and", "at", "by", "from", "in", "into", "it", "its", "of", "on", "onto", "or"}
    | {"that", "the", "then", "to", "up", "with"}
)
"""Words that are in every instruction."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A demonstration and how well it fits."""

    demonstration: Demonstration
    words: float
    """Similarity of the instructions, 0 to 1."""
    view: float
    """Similarity of the first pictures, 0 to 1; 0 where there is none to compare."""

    @property
    def score(self) -> float:
        """Both together, 0 to 1."""
        return WORDS_WEIGHT * self.words + (1.0 - WORDS_WEIGHT) * self.view


def choose(
    library: Sequence[Demonstration],
    instruction: str,
    pictures: Sequence[Picture],
    count: int,
    exclude: SceneKey | None = None,
) -> tuple[Ranked, ...]:
    """Return the best fitting demonstrations, best first; equal ones by task and folder.

    Args:
        library: to choose from.
        instruction: of the new task.
        pictures: of its first turn; none compares words alone.
        count: 0 to 8.
        exclude: the scene that is driven: nothing that comes from it is ever shown.

    Raises:
        ConfigError: the count is outside 0 to 8.
    """
    if not 0 <= count <= MOST:
        raise ConfigError(f"got {count} demonstrations; expected 0 to {MOST}")
    fitting = [
        one for one in library
        if one.kind == "task" and not (exclude is not None and one.scene.is_same(exclude))
    ]  # fmt: skip
    if not count or not fitting:
        return ()
    weights = _rarity([one.instruction for one in fitting])
    ranked = [
        Ranked(one, _alike(one.instruction, instruction, weights), _view(one, pictures))
        for one in fitting
    ]
    ranked.sort(key=lambda one: (
        -round(one.score, 9), one.demonstration.task, str(one.demonstration.folder)
    ))  # fmt: skip
    return tuple(ranked[:count])


def chooser(
    library: Sequence[Demonstration],
    count: int,
    exclude: SceneKey | None = None,
    limits: ShownLimits | None = None,
    chosen: Callable[[Sequence[Ranked]], None] = lambda ranked: None,
) -> Callable[[Turn], Sequence[Message]]:
    """Return what an agent calls with its first turn: primers first, then the best fitting ones.

    Args:
        library: to choose from.
        count: of demonstrations, 0 to 8; primers are beside them.
        exclude: the scene that is driven.
        limits: how much of them is shown.
        chosen: told which ones, for the log.

    Raises:
        ConfigError: the count is outside 0 to 8.
    """
    if not 0 <= count <= MOST:
        raise ConfigError(f"got {count} demonstrations; expected 0 to {MOST}")
    primers = [one for one in library if one.kind == "primer"] if count else []

    def messages(turn: Turn) -> Sequence[Message]:
        ranked = choose(library, turn.instruction, turn.pictures, count, exclude)
        chosen(ranked)
        return demonstration_messages([*primers, *(one.demonstration for one in ranked)], limits)

    return messages


# --------------------------------------------------------------------------- words


def words_of(text: str) -> frozenset[str]:
    """Return the words that carry meaning, without plural s.

    >>> sorted(words_of("Put the red blocks into the basket."))
    ['basket', 'block', 'put', 'red']
    """
    found = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in found
        if word not in _STOP
    )


def _rarity(texts: Sequence[str]) -> Mapping[str, float]:
    """Return how much a word tells: rare ones more. Smoothed inverse document frequency."""
    counts = Counter(word for text in texts for word in words_of(text))
    return {word: 1.0 + math.log((1 + len(texts)) / (1 + n)) for word, n in counts.items()}


def _alike(one: str, other: str, weights: Mapping[str, float]) -> float:
    """Return the weight of the common words as a share of all words' weight (weighted Jaccard)."""
    a, b = words_of(one), words_of(other)
    unknown = max(weights.values(), default=1.0)

    def weight(words: frozenset[str]) -> float:
        return math.fsum(weights.get(word, unknown) for word in sorted(words))

    return weight(a & b) / weight(a | b) if a | b else 0.0


# --------------------------------------------------------------------------- pictures


def _view(shown: Demonstration, pictures: Sequence[Picture]) -> float:
    """Compare the first pictures: those of the same view, else the first of each."""
    names = next((frame.images for frame in shown.frames if frame.images), ())
    if not names or not pictures:
        return 0.0
    pairs = [(n, p) for n in names for p in pictures if _view_of(n) == p.name]
    for name, picture in pairs or [(names[0], pictures[0])]:
        kept = read_picture(shown.folder / name)
        if kept is not None:
            return _correlation(_grey(kept), _grey(Pillow.fromarray(picture.image)))
    return 0.0


def _view_of(name: str) -> str:
    """Return the view of a file name.

    >>> _view_of("frame003_agent_camera.jpg")
    'agent_camera'
    """
    return name.rpartition(".")[0].partition("_")[2]


def _grey(picture: Pillow.Image) -> Array:
    """Return the picture as small grey numbers. Shape (24 * 32,), mean 0, length 1."""
    small = picture.convert("L").resize(GREY, Pillow.Resampling.BOX)
    values = np.asarray(small, dtype=np.float64).ravel()
    values -= values.mean()
    values /= max(float(np.linalg.norm(values)), 1e-9)
    return values


def _correlation(one: Array, other: Array) -> float:
    """Return the correlation of two pictures, 0 where they are opposed."""
    return max(0.0, float(one @ other))
