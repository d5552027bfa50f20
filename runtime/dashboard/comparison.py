"""Two runs on the same scenes: pairs, what became of each, and the exact test on those that differ.

A pair is the same task, start, seed and policy seed in both. Where both kept a digest of the
settled scene the digests must be equal too; else the pair is shown and not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from zetta.runtime.dashboard.queries import PAGE
from zetta.runtime.dashboard.records import skills_in
from zetta.runtime.dashboard.store import Store
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json
from zetta.runtime.success_rates import mcnemar, newcombe_paired, wilson

Outcome: TypeAlias = Literal["harm", "win", "neither", "both", "unlike", "unscored"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""In the order in which a table is read: what changed first."""
_COLUMNS: Final = (
    "id", "suite", "task", "init", "seed", "policy_seed", "instruction", "success", "error",
    "ticks", "interventions", "skills", "scene", "path", "name",
)  # fmt: skip
_QUERY: Final = (
    f"SELECT {', '.join(_COLUMNS)} FROM episodes WHERE run = ? AND arm = ? ORDER BY name, id"
)

Key: TypeAlias = tuple[str, int, str, int, int, int]
"""Suite, task, start, seed, policy seed, and which repetition of these it is."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a run, or one arm of an evaluation."""

    run: str
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Half:
    """One episode of a pair."""

    id: str
    success: bool | None
    """None where it is no score: an error, or nobody has judged it."""
    error: str
    ticks: int
    interventions: int
    skills: tuple[str, ...]
    logged: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """One scene in both runs."""

    suite: str
    task: int
    init: str
    seed: int
    policy_seed: int
    repetition: int
    instruction: str
    outcome: Outcome
    first: Half
    second: Half


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs of two sides."""

    pairs: tuple[Pair, ...]
    only_first: int
    """Episodes of scenes that the other did not run."""
    only_second: int

    def counts(self) -> dict[Outcome, int]:
        """Return how many pairs came out how."""
        found = Counter(pair.outcome for pair in self.pairs)
        return {outcome: found[outcome] for outcome in OUTCOMES}


def compare_runs(store: Store, first: Side, second: Side) -> Comparison:
    """Pair the episodes of two sides by their scenes.

    Raises:
        ConfigError: a side has no episodes, or both are one.
    """
    if first == second:
        raise ConfigError("a run cannot be compared with itself; choose another one")
    ours, theirs = _by_scene(store, first), _by_scene(store, second)
    pairs = [_pair(key, ours[key], theirs[key]) for key in ours if key in theirs]
    pairs.sort(key=lambda pair: (OUTCOMES.index(pair.outcome), pair.suite, pair.task))
    return Comparison(tuple(pairs), len(ours) - len(pairs), len(theirs) - len(pairs))


def _by_scene(store: Store, side: Side) -> dict[Key, Mapping[str, Any]]:
    found: dict[Key, Mapping[str, Any]] = {}
    seen: Counter[tuple[str, int, str, int, int]] = Counter()
    for row in store.rows(_QUERY, (side.run, side.arm)):
        scene = (row["suite"], row["task"], row["init"], row["seed"], row["policy_seed"])
        found[*scene, seen[scene]] = row
        seen[scene] += 1
    if not found:
        what = f"the arm {side.arm!r} of the run" if side.arm else "the run"
        raise ConfigError(f"{what} {side.run} has no episodes; choose another one")
    return found


def _pair(key: Key, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Pair:
    first, second = _half(ours), _half(theirs)
    digests = {row["scene"] for row in (ours, theirs) if row["scene"]}
    outcome = _outcome(first, second) if len(digests) < 2 else "unlike"
    words = str(ours["instruction"] or theirs["instruction"])
    return Pair(*key, words, outcome, first, second)


def _half(row: Mapping[str, Any]) -> Half:
    success = None if row["error"] or row["success"] is None else bool(row["success"])
    return Half(
        str(row["id"]), success, str(row["error"]), int(row["ticks"]), int(row["interventions"]),
        skills_in(str(row["skills"])), bool(row["path"]),
    )  # fmt: skip


def _outcome(first: Half, second: Half) -> Outcome:
    match first.success, second.success:
        case (None, _) | (_, None):
            return "unscored"
        case True, True:
            return "both"
        case False, True:
            return "win"
        case True, False:
            return "harm"
        case _:
            return "neither"


def arms_of(store: Store, run: str) -> tuple[str, ...]:
    """Return the arms of an evaluation; one empty name for a plain run."""
    rows = store.rows("SELECT DISTINCT arm FROM episodes WHERE run = ? ORDER BY arm", (run,))
    return tuple(str(row["arm"]) for row in rows)


# ------------------------------------------------------------------------------ as an answer


def comparison_json(
    compared: Comparison, wanted: Iterable[str] = (), offset: int = 0, most: int = PAGE
) -> dict[str, Any]:
    """Return counts, the exact test and one page of the pairs.

    Args:
        compared: what was found.
        wanted: outcomes of the pairs that are shown; all when none is given.
        offset: pairs before the page.
        most: pairs on it.
    """
    chosen = set(wanted) or set(OUTCOMES)
    shown = [pair for pair in compared.pairs if pair.outcome in chosen]
    return {
        "counts": compared.counts(),
        "only_first": compared.only_first,
        "only_second": compared.only_second,
        "test": _test(compared),
        "total": len(shown),
        "offset": offset,
        "limit": most,
        "rows": to_json(shown[offset : offset + most]),
    }


def _test(compared: Comparison) -> dict[str, Any] | None:
    """Return rates with intervals and the exact McNemar test; None where no pair is scored."""
    counts = compared.counts()
    both, wins, harms, neither = (counts[o] for o in ("both", "win", "harm", "neither"))
    pairs = both + wins + harms + neither
    if not pairs:
        return None
    test = mcnemar(wins, harms)
    difference, interval = newcombe_paired(both, wins, harms, neither)
    return {
        "pairs": pairs,
        "first": _rate(both + harms, pairs),
        "second": _rate(both + wins, pairs),
        "wins": wins,
        "harms": harms,
        "p_two_sided": test.p_two_sided,
        "p_one_sided": test.p_one_sided,
        "difference": difference,
        "interval": list(interval),
    }


def _rate(successes: int, n: int) -> dict[str, Any]:
    return {"successes": successes, "n": n, "interval": list(wilson(successes, n))}
