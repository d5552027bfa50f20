"""Our openpi client against servers that are late, rude, or something else altogether."""

from __future__ import annotations

import socket
import threading
from typing import Any

import numpy as np
import pytest
from websockets.sync.server import ServerConnection

from tests.runtime.foreign.foreign_servers import openpi_server, sensed, upstream
from zetta.runtime import registry
from zetta.runtime.core import Policy
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
    ZettaError,
)
from zetta.runtime.foreign import openpi_codec
from zetta.runtime.foreign.openpi_client import OpenpiPolicy


def load(port: int, options: str = "") -> OpenpiPolicy:
    policy = registry.policy(f"openpi://127.0.0.1:{port}@libero,connect_s=2{options}")
    assert isinstance(policy, OpenpiPolicy)
    return policy


def test_a_server_of_upstream_is_a_policy() -> None:
    rows = np.linspace(-1, 1, 350).reshape(50, 7).astype(np.float32)
    with openpi_server(lambda line: upstream(line, rows)) as port:
        policy = load(port)
        assert isinstance(policy, Policy)
        assert policy.spec.digest
        policy.reset("go", 0)
        chunk = policy.infer(sensed())
        np.testing.assert_allclose(chunk.actions, rows[:10], atol=1e-6)
        assert chunk.t_obs == 0.25
        assert not chunk.actions.flags.writeable
        policy.close()


def test_the_seed_is_not_sent_to_a_server_that_did_not_ask_for_it() -> None:
    seen: list[dict[str, Any]] = []

    def visit(line: ServerConnection) -> None:
        line.send(openpi_codec.encode({}))
        for message in line:
            assert isinstance(message, bytes)
            seen.append(openpi_codec.decode(message))
            line.send(openpi_codec.encode({"actions": np.zeros((10, 7))}))

    with openpi_server(visit) as port:
        policy = load(port)
        policy.reset("go", 3)
        policy.infer(sensed())
        policy.close()
    assert set(seen[0]) == {
        "observation/image",
        "observation/wrist_image",
        "observation/state",
        "prompt",
    }
    assert seen[0]["observation/image"].shape == (224, 224, 3)
    assert seen[0]["observation/state"].dtype == np.float64


def test_a_late_answer_is_never_taken_for_the_next() -> None:
    late = threading.Event()
    visits = []

    def visit(line: ServerConnection) -> None:
        number = len(visits)
        visits.append(number)
        line.send(openpi_codec.encode({}))
        for count, _ in enumerate(line):
            if number == 1 and count == 1:
                late.wait(10)
            line.send(openpi_codec.encode({"actions": np.full((10, 7), 0.1 * number)}))

    with openpi_server(visit) as port:
        policy = load(port, ",deadline_s=0.2")
        policy.reset("go", 0)
        assert policy.infer(sensed()).actions[0, 0] == pytest.approx(0.1)
        with pytest.raises(Timeout, match="closed"):
            policy.infer(sensed())
        late.set()
        # A connection of its own, so the late 0.1 is nobody's.
        assert policy.infer(sensed()).actions[0, 0] == pytest.approx(0.2)
        policy.close()


def test_a_text_is_an_error_and_only_its_last_line_is_shown() -> None:
    def visit(line: ServerConnection) -> None:
        line.send(openpi_codec.encode({}))
        line.recv()
        line.send("Traceback (most recent call last):\n  File x\nKeyError: 'observation/state'\n")
        line.close(1011)

    with openpi_server(visit) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(InfraError, match=r"KeyError: .observation/state.$") as error:
            policy.infer(sensed())
        assert "Traceback" not in str(error.value)
        policy.close()


@pytest.mark.parametrize(
    "answer",
    [b"", b"\xc1garbage", openpi_codec.encode([1]), openpi_codec.encode({"actions": None})],
)
def test_a_bad_answer_is_a_spec_mismatch(answer: bytes) -> None:
    def visit(line: ServerConnection) -> None:
        line.send(openpi_codec.encode({}))
        line.recv()
        line.send(answer)
        line.recv()

    with openpi_server(visit) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(SpecMismatch):
            policy.infer(sensed())
        policy.close()


def test_a_server_that_hangs_up_is_lost_and_may_come_back() -> None:
    visits = []

    def visit(line: ServerConnection) -> None:
        visits.append(1)
        if len(visits) == 2:
            line.send(openpi_codec.encode({}))
            line.recv()
            return
        upstream(line)

    with openpi_server(visit) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(ConnectionLost, match="hung up"):
            policy.infer(sensed())
        assert policy.infer(sensed()).actions.shape == (10, 7)
        policy.close()


def test_another_server_at_the_same_place_is_noticed() -> None:
    visits = []

    def visit(line: ServerConnection) -> None:
        visits.append(1)
        upstream(line, metadata={"checkpoint": len(visits)})

    with openpi_server(visit) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(SpecMismatch, match="not the one from before"):
            policy.infer(sensed())
        policy.close()


def test_metadata_may_hold_arrays() -> None:
    described = {"reset_pose": np.arange(6.0), "limits": [1, 2.5, "x"]}
    with openpi_server(lambda line: upstream(line, metadata=described)) as port:
        policy = load(port)
        for _ in range(2):
            policy.reset("go", 0)
            assert policy.infer(sensed()).actions.shape == (10, 7)
        policy.close()


def test_fewer_rows_than_expected_name_the_option() -> None:
    with openpi_server(lambda line: upstream(line, np.zeros((6, 7)))) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(SpecMismatch, match="horizon=6"):
            policy.infer(sensed())
        policy.close()
        policy = load(port, ",horizon=6")
        policy.reset("go", 0)
        assert policy.infer(sensed()).actions.shape == (6, 7)
        policy.close()


@pytest.mark.parametrize("instruction", ["", "  "])
def test_an_empty_instruction_is_refused(instruction: str) -> None:
    with openpi_server(upstream) as port:
        policy = load(port)
        with pytest.raises(ConfigError, match="instruction"):
            policy.reset(instruction, 0)
        with pytest.raises(SpecMismatch, match="reset"):
            policy.infer(sensed())
        policy.close()


# --------------------------------------------------------------------------- nobody, or another


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def attempt(port: int) -> ZettaError:
    with pytest.raises(ZettaError) as error:
        registry.policy(f"openpi://127.0.0.1:{port}@libero,connect_s=0.3")
    return error.value


def test_nobody_there_is_said_as_refused() -> None:
    error = attempt(unused_port())
    assert isinstance(error, ConnectionLost)
    assert "nothing listens" in str(error)


def test_somebody_silent_is_said_as_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        error = attempt(listening.getsockname()[1])
    assert isinstance(error, Timeout)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", SpecMismatch),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", SpecMismatch),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", ConfigError),
        (b"", SpecMismatch),
    ],
)
def test_somebody_else_is_said_as_a_bad_answer(said: bytes, kind: type) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            line, _ = listening.accept()
            with line:
                line.recv(4096)
                line.sendall(said)

        thread = threading.Thread(target=greet)
        thread.start()
        error = attempt(listening.getsockname()[1])
        thread.join(5)
    assert isinstance(error, kind), error


def test_a_first_message_that_is_no_map_is_a_bad_answer() -> None:
    def visit(line: ServerConnection) -> None:
        line.send(openpi_codec.encode([1, 2]))
        line.recv()

    with openpi_server(visit) as port:
        assert isinstance(attempt(port), SpecMismatch)


def test_a_server_that_starts_late_is_waited_for() -> None:
    port = unused_port()
    found: list[OpenpiPolicy] = []
    thread = threading.Thread(target=lambda: found.append(load(port, ",connect_s=20")))
    thread.start()
    from websockets.sync.server import serve

    with serve(upstream, "127.0.0.1", port, compression=None) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        thread.join(20)
        found[0].close()
        server.shutdown()
        serving.join(5)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    with openpi_server(upstream) as port:
        load(port).close()
