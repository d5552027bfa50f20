"""The benchmarks of serving compare like with like."""

from __future__ import annotations

import http.client
import threading
from http.server import ThreadingHTTPServer

import numpy as np

from zetta.runtime.cli.bench_batching import CALLS, loaded
from zetta.runtime.cli.bench_wire import JsonEcho, ask_json, noise_for
from zetta.runtime.policies.echo import EchoPolicy


def test_the_baseline_over_json_gives_the_same_answer() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), JsonEcho)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    policy = EchoPolicy()
    policy.reset("lift the cube", 0)
    seen = noise_for(policy.spec)

    for _ in range(2):
        own, theirs = policy.infer(seen), ask_json(connection, seen)
        np.testing.assert_array_equal(own.actions, theirs.actions)
        assert own.t_obs == theirs.t_obs
    connection.close()
    server.shutdown()
    server.server_close()
    thread.join()


def test_every_request_of_a_load_is_counted() -> None:
    load = loaded(EchoPolicy, clients=2, most=8)

    assert load.rate > 0
    assert 0 < load.p50_ms <= load.p99_ms
    assert load.cpu_ms * 2 * CALLS > 0
