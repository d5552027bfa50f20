"""Critics read off a small decision tree: what tells a failing hand from one that succeeds.

The tree (CART, Breiman et al. 1984, from scikit-learn) is grown on windowed signals of one half of
the episodes, with equal weight for failing and other moments. It is written as nested if and else
with a number for each split, so that a person can read it and a search can move its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from zetta.critics.parameters import Parameter
from zetta.critics.values import axis_of
from zetta.runtime.core import SENSING_LEVELS, Array, Sensing
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import OTHER, ROLES, SIGNALS
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.evolve.critic_arrays import Corpus, expression_values
from zetta.skills.evolve.critic_templates import CriticTemplate
from zetta.skills.evolve.window_arrays import Flags, Ticks

LEAVES: Final = (8, 4)
STRIDE: Final = 4
"""Every so many ticks of an episode are looked at: neighbours are alike."""
SMALLEST_LEAF: Final = 20
FAILING_S: Final = 4.0
"""How long after its divergence a failure still shows what was wrong, and not how it ended."""
LAST_SHARE: Final = 0.4
"""Share of a failure that is taken for failing where its divergence is unknown."""
LEAST_KNOWN: Final = 0.9
"""Share of moments at which a signal must be known to be used."""
FEATURES: Final = ("now(w.{})", "mean(w.{}, 0.5)", "minimum(w.{}, 1.0)", "maximum(w.{}, 1.0)",
                   "delta(w.{}, 1.0)")  # fmt: skip
CLOCKS: Final = (
    "elapsed", "budget_used", "skill_share", "since_handback", "policy_drives", "interventions",
    "open_for", "chunk_age",
)  # fmt: skip
"""They tell how late it is or who drives, not what the hand does."""
SCENE: Final = ("height", "age", "confidence")
"""What is known of a role that belongs to the scene or to the eye."""


@dataclass(frozen=True, slots=True)
class _Moments:
    """What the tree is grown from."""

    texts: tuple[str, ...]
    """Of each feature, in the critic language."""
    features: Array
    """Shape (M, F)."""
    failing: Flags
    """Shape (M,)."""
    episodes: Ticks
    """Of each moment. Shape (M,)."""


def usable_signals(corpus: Corpus, sensing: Sensing) -> tuple[str, ...]:
    """Return the signals that a tree may split on: no clocks, no places, nothing of the scene."""
    allowed = SENSING_LEVELS[: SENSING_LEVELS.index(sensing) + 1]
    found = []
    for name, column in corpus.columns.items():
        spec = SIGNALS.get(name)
        if spec is None or spec.level not in allowed or spec.level == "oracle":
            continue
        role = any(name.startswith(f"{r}_") and name.endswith(SCENE) for r in ROLES)
        place = bool(axis_of(spec)) or name.startswith(OTHER)
        known = np.isfinite(column).sum() >= LEAST_KNOWN * corpus.lengths.sum()
        if not (role or place) and name not in CLOCKS and known:
            found.append(name)
    return tuple(found)


def tree_templates(
    corpus: Corpus,
    episodes: Sequence[WatchedEpisode],
    of_cluster: int,
    half: Ticks,
    sensing: Sensing,
    seed: int,
) -> Iterator[CriticTemplate]:
    """Yield critics read off trees of one half of the episodes.

    Args:
        corpus: all episodes.
        episodes: the failures of the group, then other failures, then successes.
        of_cluster: how many belong to the group.
        half: episodes that the trees are grown on.
        sensing: highest level of a signal.
        seed: of ties between splits.

    Raises:
        ConfigError: scikit-learn is missing.
    """
    moments = _moments(corpus, episodes, of_cluster, sensing)
    mine = np.isin(moments.episodes, half)
    failing = moments.failing[mine]
    if not moments.texts or min(failing.sum(), (~failing).sum()) < 2 * SMALLEST_LEAF:
        return
    for leaves in LEAVES:
        tree = _grown(moments.features[mine], failing, leaves, seed)
        template = _Writer(moments, tree).template()
        if template is not None:
            yield template


def _grown(features: Array, failing: Flags, leaves: int, seed: int) -> Any:
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise ConfigError(
            "a search needs scikit-learn, which is not installed; pip install 'zetta[evolve]'"
        ) from None
    grown = DecisionTreeClassifier(
        max_leaf_nodes=leaves, min_samples_leaf=SMALLEST_LEAF, class_weight="balanced",
        random_state=seed,
    )  # fmt: skip
    return grown.fit(features, failing).tree_


def _moments(
    corpus: Corpus, episodes: Sequence[WatchedEpisode], of_cluster: int, sensing: Sensing
) -> _Moments:
    rows, failing, owner = [], [], []
    for k, episode in enumerate(episodes):
        ticks = np.arange(0, len(episode.ticks), STRIDE)
        first = episode.divergence
        if first is None:
            first = round((1.0 - LAST_SHARE) * len(episode.ticks))
        late = ticks >= first
        if k < of_cluster:
            keep = ~late | (ticks < first + FAILING_S * corpus.control_hz)
        else:  # how other failures go on says nothing about this group
            keep = np.ones(len(ticks), np.bool_) if episode.success else ~late
        rows.append(corpus.starts[k] + ticks[keep])
        failing.append(late[keep] & (k < of_cluster))
        owner.append(np.full(int(keep.sum()), k))
    at = np.concatenate(rows)
    texts = [f.format(s) for s in usable_signals(corpus, sensing) for f in FEATURES]
    columns = [expression_values(corpus, text) for text in texts]
    features = np.array([values[at] for values, _ in columns]).T.reshape(len(at), len(texts))
    known = np.array([k[at] for _, k in columns]).all(axis=0) if texts else np.zeros(len(at), bool)
    return _Moments(
        tuple(texts), features[known], np.concatenate(failing)[known], np.concatenate(owner)[known]
    )


@dataclass(slots=True)
class _Writer:
    """Writes a tree as a critic."""

    moments: _Moments
    tree: Any
    parameters: list[Parameter] = field(default_factory=list)

    def template(self) -> CriticTemplate | None:
        """Return the critic, or None when the tree tells nothing."""
        if self._verdict(0) is not None:
            return None
        lines = self._lines(0, 1, "")
        signals = [_signal(self.moments.texts[k]) for k in self._features()]
        roles = tuple(r for r in ROLES if any(r in s.split("_") for s in signals))
        root = signals[0]
        return CriticTemplate(
            f"unlike-{root.replace('_', '-')}",
            f"The hand does what it did in failures and not in successes; see {root} first.",
            "\n".join(lines) + "\n",
            tuple(self.parameters),
            roles,
            1.0,
        )

    def _features(self) -> list[int]:
        return [int(k) for k in self.tree.feature if k >= 0]

    def _verdict(self, node: int) -> bool | None:
        """Say whether everything below a node is failing, or nothing; None when it is mixed."""
        left, right = self.tree.children_left[node], self.tree.children_right[node]
        if left < 0:
            shares = self.tree.value[node][0]
            return bool(shares[1] > shares[0])
        one, other = self._verdict(left), self._verdict(right)
        return one if one == other else None

    def _lines(self, node: int, depth: int, reason: str) -> list[str]:
        step = "    " * depth
        verdict = self._verdict(node)
        if verdict is not None:
            return [f'{step}return recover("{reason}")' if verdict else f"{step}return ok()"]
        text = self.moments.texts[int(self.tree.feature[node])]
        parameter = self._parameter(int(self.tree.feature[node]), float(self.tree.threshold[node]))
        words = _signal(text).replace("_", " ")
        return [
            f"{step}if {text} <= p.{parameter.name}:",
            *self._lines(self.tree.children_left[node], depth + 1, f"{words} is low, as it fails"),
            f"{step}else:",
            *self._lines(self.tree.children_right[node], depth + 1,
                         f"{words} is high, as it fails"),
        ]  # fmt: skip

    def _parameter(self, feature: int, threshold: float) -> Parameter:
        text, column = self.moments.texts[feature], self.moments.features[:, feature]
        spec = SIGNALS[_signal(text)]
        reach = max(0.25 * float(np.ptp(np.quantile(column, (0.05, 0.95)))), 1e-3)
        value = float(f"{threshold:.4g}")
        parameter = Parameter(
            f"{spec.name[:34]}_{len(self.parameters) + 1}", value,
            float(f"{value - reach:.4g}"), float(f"{value + reach:.4g}"), spec.unit,
            f"Where {text.replace('w.', '')} tells failures from successes.",
        )  # fmt: skip
        self.parameters.append(parameter)
        return parameter


def _signal(text: str) -> str:
    return text.partition("w.")[2].split(",")[0].rstrip(")")
