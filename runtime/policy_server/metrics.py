"""What a policy server counts, for Prometheus: read from the engine and the door when asked.

Listens on loopback only: figures say who runs what, and when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from zetta.runtime.errors import cannot_listen
from zetta.runtime.policy_server.doors import Door
from zetta.runtime.policy_server.engine import Engine

HOST: Final = "127.0.0.1"
COUNTERS: Final = {
    "inferences": "chunks that were given",
    "batches": "calls of the policy",
    "padded": "rows that were computed for nobody",
    "failed": "requests at which the policy raised",
    "resets": "episodes that were begun",
}
"""Counters of the engine."""
DOOR_COUNTERS: Final = {
    "requests": "messages that came in",
    "malformed": "messages that were no request",
    "repeated": "requests that came a second time",
    "expired": "sessions that were silent for too long",
    "late": "answers that were too late",
}


class Figures(Collector):
    """The figures of one engine and one door."""

    def __init__(self, engine: Engine, door: Door) -> None:
        self._engine, self._door = engine, door

    def collect(self) -> Iterator[Metric]:
        """Yield the present figures."""
        stats, counts = self._engine.stats, self._door.counts
        for name, what in COUNTERS.items():
            yield CounterMetricFamily(f"zetta_serve_{name}", what, getattr(stats, name))
        for name, what in DOOR_COUNTERS.items():
            yield CounterMetricFamily(f"zetta_serve_{name}", what, getattr(counts, name))
        yield GaugeMetricFamily("zetta_serve_sessions", "sessions now", stats.sessions)
        yield GaugeMetricFamily("zetta_serve_waiting", "requests that wait", stats.waiting)
        seconds = GaugeMetricFamily(
            "zetta_serve_infer_seconds", "time of the latest calls of the policy", labels=["q"]
        )
        for quantile, value in (("0.5", stats.infer_p50_ms), ("0.99", stats.infer_p99_ms)):
            if not math.isnan(value):
                seconds.add_metric([quantile], value / 1000.0)
        yield seconds


class MetricsServer:
    """Answers Prometheus in a thread of its own."""

    def __init__(self, engine: Engine, door: Door, port: int) -> None:
        """Listen at `port` of loopback; 0 takes any free one.

        Raises:
            ConfigError: it is no port.
            InfraError: the port is taken.
        """
        registry = CollectorRegistry()
        registry.register(Figures(engine, door))
        try:
            self._server, self._thread = start_http_server(port, HOST, registry)
        except (OSError, OverflowError) as error:
            where = f"{HOST}:{port} for metrics"
            raise cannot_listen(where, error, "choose another port") from error
        self.port = self._server.server_port

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
