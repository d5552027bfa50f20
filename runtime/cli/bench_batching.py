"""What batching brings, and what it costs those who gain nothing from it.

The engine is measured in this process, with a thread for each client, so that the figures are about
its decisions and not about sockets. A policy that sleeps stands for a network on a device. What a
machine makes of a sleep is measured too: the ideal is the same policy called directly, in turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from zetta.runtime import registry
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_wire import noise_for
from zetta.runtime.core import Policy
from zetta.runtime.policies.echo import Cost, EchoPolicy
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.limits import ServingLimits

CLIENTS: Final = 8
NETWORK: Final = Cost(fixed_ms=20.0, row_ms=1.0)
SMALL: Final = Cost(fixed_ms=5.0)
CALLS: Final = 25
"""Requests of each client in a block."""
ALONE_TARGET, SHARE_TARGET, P99_TARGET, EMBEDDED_TARGET = 0.95, 0.85, 2.2, 0.95
ANSWER_S: Final = 120.0
EMBEDDED: Final = "zetta/tiny"
SENTENCE: Final = "put the bowl on the plate"


@dataclass(frozen=True, slots=True)
class Load:
    """What clients that ask without pause saw."""

    rate: float
    """Chunks a second."""
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """CPU time of the process for a chunk."""


def batching_figures(blocks: int) -> list[Figure]:
    """Measure one client alone, eight clients of a network, and eight of the embedded policy."""
    return [*_alone(blocks), *_network(blocks), *_embedded(blocks)]


def _alone(blocks: int) -> list[Figure]:
    on, off = _in_turns(
        lambda: loaded(lambda: EchoPolicy("echo", SMALL), 1, 8).p50_ms,
        lambda: loaded(lambda: EchoPolicy("echo", SMALL), 1, 1).p50_ms,
        blocks,
    )
    return [Figure("batching_one_client", on, "ms", off, off / on, ALONE_TARGET)]


def _network(blocks: int) -> list[Figure]:
    loads: list[Load] = []

    def served() -> float:
        loads.append(loaded(lambda: EchoPolicy("echo", NETWORK), CLIENTS, 8))
        return loads[-1].rate

    rate, ideal = _in_turns(served, _direct_rate, blocks)
    batch_ms = 1000.0 * CLIENTS / ideal
    p99 = median(load.p99_ms for load in loads[1:]) / batch_ms
    return [
        Figure("batching_eight_clients", rate, "chunks/s", ideal, rate / ideal, SHARE_TARGET, True),
        Figure("batching_eight_clients_p99", p99, "batches", target=P99_TARGET),
    ]


def _embedded(blocks: int) -> list[Figure]:
    on, off = _in_turns(
        lambda: loaded(lambda: registry.policy(EMBEDDED), CLIENTS, 8).cpu_ms,
        lambda: loaded(lambda: registry.policy(EMBEDDED), CLIENTS, 1).cpu_ms,
        blocks,
    )
    return [Figure("batching_embedded", on, "CPU ms", off, off / on, EMBEDDED_TARGET)]


def _in_turns(
    own: Callable[[], float], other: Callable[[], float], blocks: int
) -> tuple[float, float]:
    """Return the medians of two measurements taken in turns; the first of each warms up."""
    pairs = [(own(), other()) for _ in range(blocks + 1)][1:]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _direct_rate() -> float:
    """Return the chunks a second of full batches with nothing in between."""
    policy = EchoPolicy("echo", NETWORK)
    seen = [noise_for(policy.spec)] * CLIENTS
    episodes = [policy.begin(SENTENCE, k) for k in range(CLIENTS)]
    start = time.perf_counter()
    for _ in range(CALLS):
        policy.infer_batch(episodes, seen, CLIENTS)
    return CALLS * CLIENTS / (time.perf_counter() - start)


def loaded(make: Callable[[], Policy], clients: int, most: int) -> Load:
    """Return what `clients` see that ask an engine again and again, each as soon as it is answered.

    Args:
        make: makes the policy.
        clients: how many.
        most: rows of the largest batch; 1 is without batching.
    """
    engine = Engine(make, ServingLimits(max_sessions=clients, max_rows=most))
    seen = noise_for(engine.spec)
    together = threading.Barrier(clients + 1)
    times: list[float] = []

    def ask(seed: int) -> None:
        session = engine.open(f"client {seed}")
        engine.reset(session, SENTENCE, seed).result(ANSWER_S)
        engine.infer(session, seen, None).result(ANSWER_S)
        together.wait()
        for _ in range(CALLS):
            start = time.perf_counter()
            engine.infer(session, seen, None).result(ANSWER_S)
            times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    together.wait()
    start, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    engine.stop()
    p50, p99 = 1000.0 * np.quantile(times, (0.5, 0.99))
    return Load(len(times) / took, float(p50), float(p99), 1000.0 * cpu / len(times))
