"""Which skill to call for, when several could: learning by trying, and deploying what is sure.

Two things are credited apart. *Selection*: was it right to call, compared with doing nothing on the
same scene or branch? *Execution*: did the skill do what it is for, by its own re-entry condition? A
skill that does its job where there was no need earns execution credit and no selection credit.

Pure: a router is a record, every function returns another, draws come from the generator given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from scipy.special import xlogy

from zetta.runtime.success_rates import lower_bound, upper_bound

NOOP: Final = "none"
"""The arm that calls no skill; it is always there and never quarantined."""
HALVINGS: Final = 50
"""Of the interval in which an index is sought; more change no digit."""


@dataclass(frozen=True, slots=True)
class HarmLimits:
    """How much harm an arm may do."""

    share: float = 0.1
    """Of its compared calls; an arm whose lower bound is above it is not chosen."""
    confidence: float = 0.95
    most: int = 3
    """Harms; one more and the arm is quarantined at once, for good."""


@dataclass(frozen=True, slots=True)
class Credit:
    """What is known of one arm in one context."""

    calls: int = 0
    solved: int = 0
    """Calls after which the episode was solved."""
    compared: int = 0
    """Calls whose scene or branch was run without a skill as well."""
    wins: int = 0
    """Of those, solved with the skill alone: selection credit."""
    harms: int = 0
    """Of those, solved without it alone."""
    executions: int = 0
    """Calls that the skill itself judged."""
    completed: int = 0
    """Of those, its re-entry condition held: execution credit."""


@dataclass(frozen=True, slots=True)
class Call:
    """One choice and what came of it."""

    context: str
    """Kind of task or cluster of failures."""
    arm: str
    """A skill, or `none`."""
    solved: bool
    solved_without: bool | None = None
    """The same scene or branch without a skill; None where it was not run."""
    completed: bool | None = None
    """The skill's own word; None for `none`."""


@dataclass(frozen=True, slots=True)
class Router:
    """Arms and their credit, by context."""

    skills: tuple[str, ...]
    limits: HarmLimits = HarmLimits()
    credits: Mapping[str, Mapping[str, Credit]] = field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm; doing nothing is the first."""
        return (NOOP, *self.skills)

    def credit(self, context: str, arm: str) -> Credit:
        """Return what is known of an arm in a context."""
        return self.credits.get(context, {}).get(arm, Credit())


def learn(router: Router, call: Call) -> Router:
    """Return the router with one more call.

    A run without a skill beside it also counts as a call of `none`, for it is one.

    Raises:
        ValueError: there is no such arm.
    """
    if call.arm not in router.arms:
        raise ValueError(f"no arm {call.arm!r} here; there are {', '.join(router.arms)}")
    known = dict(router.credits.get(call.context, {}))
    known[call.arm] = _credited(known.get(call.arm, Credit()), call)
    if call.arm != NOOP and call.solved_without is not None:
        beside = Call(call.context, NOOP, call.solved_without)
        known[NOOP] = _credited(known.get(NOOP, Credit()), beside)
    return replace(router, credits={**router.credits, call.context: known})


def quarantined(router: Router) -> tuple[str, ...]:
    """Return the arms that did more harm than is forgiven, over all contexts."""
    return tuple(
        arm
        for arm in router.skills
        if sum(known.get(arm, Credit()).harms for known in router.credits.values())
        > router.limits.most
    )


def allowed(router: Router, context: str) -> tuple[str, ...]:
    """Return the arms that may be chosen in a context; `none` is always among them.

    Left out are quarantined arms, and those whose share of harm has a one-sided lower bound
    (Clopper and Pearson 1934) above the limit.
    """
    out = quarantined(router)
    return tuple(
        arm
        for arm in router.arms
        if arm == NOOP or (arm not in out and not _harmful(router, router.credit(context, arm)))
    )


def thompson(router: Router, context: str, generator: np.random.Generator) -> str:
    """Return the arm whose rate of success, drawn from its posterior, is the highest.

    Thompson 1933 (Biometrika 25, 285), with a uniform prior on each rate (Agrawal and Goyal 2012,
    COLT, algorithm 1). A skill is preferred only when it is drawn above `none`.
    """
    arms = allowed(router, context)
    known = [router.credit(context, arm) for arm in arms]
    drawn = [generator.beta(1 + c.solved, 1 + c.calls - c.solved) for c in known]
    return arms[int(np.argmax(drawn))]


def kl_ucb(router: Router, context: str) -> str:
    """Return the arm whose rate of success could be the highest.

    Garivier and Cappe 2011 (COLT, "The KL-UCB algorithm for bounded stochastic bandits and
    beyond"), algorithm 1 with c = 0, as they advise: the index of an arm of rate p after n of t
    calls is the greatest q with n kl(p, q) <= log t. An arm without a call goes first.
    """
    arms = allowed(router, context)
    known = [router.credit(context, arm) for arm in arms]
    budget = math.log(max(1, sum(credit.calls for credit in known)))
    indices = [kl_index(credit.solved, credit.calls, budget) for credit in known]
    return arms[int(np.argmax(indices))]


def kl_index(solved: int, calls: int, budget: float) -> float:
    """Return the greatest rate q with `calls` times kl(solved / calls, q) at most `budget`.

    Infinite without calls. kl is the divergence of Bernoulli distributions, in nats.

    >>> round(kl_index(0, 10, 1.0), 6) == round(1 - math.exp(-0.1), 6)
    True
    """
    if calls == 0:
        return math.inf
    rate = solved / calls
    low, high = rate, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if calls * _divergence(rate, middle) <= budget:
            low = middle
        else:
            high = middle
    return low


def greedy(router: Router, context: str, confidence: float = 0.95) -> str:
    """Return what to deploy: the skill whose gain is surest, or `none`.

    A skill is called for only when the lower bound of its gain over doing nothing, on the same
    scenes, is above zero; what was never compared is never deployed.
    """
    arms = allowed(router, context)
    bounds = [
        0.0 if arm == NOOP else gain_bound(router.credit(context, arm), confidence) for arm in arms
    ]
    return arms[int(np.argmax(bounds))]  # `none` is the first and wins ties


def gain_bound(credit: Credit, confidence: float = 0.95) -> float:
    """Return the lower bound of an arm's gain: of its share of wins minus that of harms.

    The exact one-sided bounds of both shares (Clopper and Pearson 1934), each at half the risk
    (Bonferroni). -1 where nothing was compared.

    >>> gain_bound(Credit()) == -1.0
    True
    >>> gain_bound(Credit(compared=20, wins=15)) > 0.3
    True
    """
    if credit.compared == 0:
        return -1.0
    each = 1 - (1 - confidence) / 2
    won = lower_bound(credit.wins, credit.compared, each)
    return won - upper_bound(credit.harms, credit.compared, each)


def execution_rate(credits: Sequence[Credit]) -> float | None:
    """Return how often a skill did what it is for, over contexts; None where it never ran."""
    executions = sum(credit.executions for credit in credits)
    return sum(credit.completed for credit in credits) / executions if executions else None


def _credited(credit: Credit, call: Call) -> Credit:
    compared = call.arm != NOOP and call.solved_without is not None
    return Credit(
        calls=credit.calls + 1,
        solved=credit.solved + call.solved,
        compared=credit.compared + compared,
        wins=credit.wins + (compared and call.solved and not call.solved_without),
        harms=credit.harms + (compared and bool(call.solved_without) and not call.solved),
        executions=credit.executions + (call.completed is not None),
        completed=credit.completed + (call.completed is True),
    )


def _harmful(router: Router, credit: Credit) -> bool:
    limits = router.limits
    return lower_bound(credit.harms, credit.compared, limits.confidence) > limits.share


def _divergence(p: float, q: float) -> float:
    """Return kl(p, q) of Bernoulli distributions in nats; 0 log 0 is 0."""
    if (q <= 0.0 and p > 0.0) or (q >= 1.0 and p < 1.0):
        return math.inf
    return float(xlogy(p, p) - xlogy(p, q) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - q))
