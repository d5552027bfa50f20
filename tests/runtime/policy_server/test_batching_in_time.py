"""The rule over time, on a clock of its own: what a busy machine does to threads is not in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from zetta.runtime.policy_server.batching import Pace, Waiting, decide, measured, waited

MAX_WAIT_S = 0.05
ACTIVE_S = 2.0


@dataclass
class World:
    """Clients that ask again some time after they were answered, and one policy."""

    cost_s: Callable[[int], float]
    pause_s: Callable[[int], float]
    """Time from an answer to the next request of a client."""
    clients: int
    most: int = 8
    now: float = 0.0
    pace: Pace = field(default_factory=Pace)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    served: list[int] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> World:
        """Let time pass as the engine does."""
        coming = {n: self.pause_s(n) for n in range(self.clients)}
        asked: dict[int, float] = {}
        idle_since = last_arrival = 0.0
        self.served = [0] * self.clients
        while self.now < seconds:
            for n in sorted(coming, key=coming.__getitem__):
                if coming[n] <= self.now:
                    at = coming.pop(n)
                    self.pace = waited(self.pace, max(0.0, at - max(last_arrival, idle_since)))
                    last_arrival = asked[n] = at
                    self.waiting[n] = Waiting(n, at)
            active = sum(self.now - at <= ACTIVE_S for at in asked.values())
            decision = decide(
                list(self.waiting.values()), active, idle_since, self.now, self.pace, self.most,
                MAX_WAIT_S,
            )  # fmt: skip
            if not decision.take:
                next_one = min(coming.values(), default=seconds)
                self.now = min(self.now + decision.wait_s, max(next_one, self.now + 1e-9))
                continue
            kept = self.now - max(last_arrival, idle_since)
            if len(self.waiting) < min(active, self.most) and kept > self.pace.gap_s:
                self.pace = waited(self.pace, kept)
            took = self.cost_s(decision.rows)
            self.now = idle_since = self.now + took
            self.pace = measured(self.pace, decision.rows, took)
            for n in decision.take:
                self.delays_s.append(self.now - self.waiting.pop(n).arrived)
                self.served[n] += 1
                coming[n] = self.now + self.pause_s(n)
        return self


def network(rows: int) -> float:
    """20 ms and 1 ms for a row."""
    return 0.020 + 0.001 * rows


def linear(rows: int) -> float:
    """A batch is its rows one by one."""
    return 0.010 * rows


def prompt(seed: int) -> Callable[[int], float]:
    rng = np.random.default_rng(seed)
    return lambda n: float(rng.uniform(0.0003, 0.003))


def thinking(seed: int, mean_s: float) -> Callable[[int], float]:
    rng = np.random.default_rng(seed)
    return lambda n: float(rng.uniform(0.5, 1.5) * mean_s)


@pytest.mark.parametrize("seed", range(5))
def test_eight_prompt_clients_of_a_network_get_nearly_all_it_can_give(seed: int) -> None:
    world = World(network, prompt(seed), 8).run(20.0)

    rate, ideal = sum(world.served) / world.now, 8 / network(8)
    assert rate >= 0.85 * ideal
    assert np.quantile(world.delays_s, 0.99) <= 2.2 * network(8)
    assert max(world.served) - min(world.served) <= 2


@pytest.mark.parametrize("pause_s", [0.0005, 0.05])
def test_a_client_alone_gets_what_it_would_get_without_batching(pause_s: float) -> None:
    on = World(network, lambda n: pause_s, 1).run(10.0)
    off = World(network, lambda n: pause_s, 1, most=1).run(10.0)

    assert on.served == off.served
    assert max(on.delays_s) == pytest.approx(network(1))


@pytest.mark.parametrize("seed", range(3))
def test_a_policy_that_gains_nothing_from_company_loses_nothing(seed: int) -> None:
    on = World(linear, prompt(seed), 8).run(20.0)
    off = World(linear, prompt(seed), 8, most=1).run(20.0)

    assert sum(on.served) >= 0.95 * sum(off.served)
    assert max(on.served) - min(on.served) <= 8


@pytest.mark.parametrize("mean_s", [0.1, 0.4])
@pytest.mark.parametrize("clients", [2, 5, 8])
def test_clients_that_think_are_not_kept_waiting_for_one_another(
    clients: int, mean_s: float
) -> None:
    on = World(network, thinking(1, mean_s), clients).run(20.0)
    off = World(network, thinking(1, mean_s), clients, most=1).run(20.0)

    assert np.mean(on.delays_s) <= np.mean(off.delays_s) + 0.25 * network(1)


def test_twelve_clients_are_served_alike() -> None:
    world = World(network, prompt(0), 12).run(20.0)

    assert min(world.served) >= 0.95 * max(world.served)
