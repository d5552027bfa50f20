"""Our GR00T client against servers of both generations that are late, rude, or of another robot."""

from __future__ import annotations

import socket
import threading
from typing import Any

import numpy as np
import pytest

from tests.runtime.foreign.foreign_servers import gr00t_server, sensed
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
from zetta.runtime.foreign import gr00t_codec
from zetta.runtime.foreign.gr00t_client import Gr00tPolicy
from zetta.runtime.foreign.gr00t_codec import Generation, Modality

KEYS = ("x", "y", "z", "roll", "pitch", "yaw", "gripper")


class Upstream:
    """Answers as the published servers do, and remembers what it was asked."""

    def __init__(self, generation: Generation, horizon: int = 16, describes: bool = True) -> None:
        self.generation, self.horizon, self.describes = generation, horizon, describes
        self.asked: list[dict[str, Any]] = []
        self.changes: dict[str, Modality] = {}

    def __call__(self, request: dict[str, Any]) -> bytes | None:
        self.asked.append(request)
        return gr00t_codec.encode(self.answer(request), self.generation)

    def answer(self, request: dict[str, Any]) -> Any:
        endpoint = request["endpoint"]
        if endpoint == "ping":
            return {"status": "ok", "message": "Server is running"}
        if endpoint == "get_modality_config":
            return self.modalities() if self.describes else {}
        if endpoint == "reset" and self.generation == "n1.6":
            assert set(request["data"]) == {"options"}
            return {}
        if endpoint == "get_action":
            return self.act(request["data"])
        return {"error": f"Unknown endpoint: {endpoint}"}

    def modalities(self) -> dict[str, Modality]:
        return {
            "video": Modality(("image", "wrist_image")),
            "state": Modality(KEYS),
            "action": Modality(KEYS, tuple(range(self.horizon))),
            "language": Modality(("annotation.human.action.task_description",)),
        } | self.changes

    def act(self, data: Any) -> Any:
        if self.generation == "n1.5":
            assert data["video.image"].shape == (1, 256, 256, 3)
            rows = np.ones(self.horizon, np.float32)
            return {f"action.{k}": rows for k in KEYS}
        assert data["observation"]["state"]["gripper"].shape == (1, 1, 2)
        rows = np.ones((1, self.horizon, 1), np.float32)
        return [dict.fromkeys(KEYS, rows), {}]


def load(port: int, options: str = "") -> Gr00tPolicy:
    policy = registry.policy(f"gr00t://127.0.0.1:{port}@libero,connect_s=2{options}")
    assert isinstance(policy, Gr00tPolicy)
    return policy


@pytest.mark.parametrize("describes", [True, False])
@pytest.mark.parametrize("generation", ["n1.5", "n1.6"])
def test_a_server_of_either_generation_is_a_policy(generation: Generation, describes: bool) -> None:
    server = Upstream(generation, describes=describes)
    with gr00t_server(server) as port:
        policy = load(port)
        assert isinstance(policy, Policy)
        assert policy.generation == generation
        assert policy.spec.horizon == (16 if describes else 8)
        policy.reset("go", 5)
        chunk = policy.infer(sensed())
        assert chunk.actions.shape == (policy.spec.horizon, 7)
        # Their 1 opens, and our LIBERO opens with -1.
        assert chunk.actions[0].tolist() == [1.0] * 6 + [-1.0]
        policy.close()
    resets = [r for r in server.asked if r["endpoint"] == "reset" and r["data"]["options"]]
    told = [r["data"]["options"] for r in resets]
    assert told == ([] if generation == "n1.5" else [{"seed": 5}])


def test_a_late_answer_is_never_taken_for_the_next() -> None:
    late, answered = threading.Event(), []

    class Late(Upstream):
        def act(self, data: Any) -> Any:
            answered.append(1)
            if len(answered) == 2:
                late.wait(10)
            value = -1.0 + 0.25 * len(answered)
            return [{k: np.full((1, 16, 1), value, np.float32) for k in KEYS}, {}]

    with gr00t_server(Late("n1.6")) as port:
        policy = load(port, ",deadline_s=0.2")
        policy.reset("go", 0)
        assert policy.infer(sensed()).actions[0, 0] == -0.75
        with pytest.raises(Timeout, match="closed"):
            policy.infer(sensed())
        late.set()
        assert policy.infer(sensed()).actions[0, 0] == -0.25
        policy.close()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ({"error": "Traceback\nValueError: bad state\n"}, InfraError, "ValueError: bad state$"),
        ({"error": "Unauthorized: Invalid API token"}, ConfigError, "key_file"),
        ([{}, {}], SpecMismatch, "'x'"),
        ({}, SpecMismatch, "list"),
        ("text", SpecMismatch, "list"),
        ([{k: np.zeros((1, 16, 2), np.float32) for k in KEYS}, {}], SpecMismatch, "rows of 1"),
        ([{k: np.zeros((1, 3, 1), np.float32) for k in KEYS}, {}], SpecMismatch, "horizon=3"),
    ],
)
def test_an_answer_that_is_an_error_or_does_not_fit(answer: Any, kind: type, said: str) -> None:
    class Rude(Upstream):
        def act(self, data: Any) -> Any:
            return answer

    with gr00t_server(Rude("n1.6")) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(kind, match=said):
            policy.infer(sensed())
        policy.close()


@pytest.mark.parametrize("raw", [b"ERROR", b"", b"\xc1", b"\x81\xb1__ndarray_class__\xc3"])
def test_bytes_that_are_no_answer_are_an_error(raw: bytes) -> None:
    class Broken(Upstream):
        def __call__(self, request: dict[str, Any]) -> bytes | None:
            if request["endpoint"] == "get_action":
                return raw
            return super().__call__(request)

    with gr00t_server(Broken("n1.6")) as port:
        policy = load(port)
        policy.reset("go", 0)
        with pytest.raises(ZettaError):
            policy.infer(sensed())
        policy.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"video": Modality(("ego_view",))}, "ego_view"),
        ({"state": Modality((*KEYS, "left_leg"))}, "left_leg"),
        ({"video": Modality(("image",), (-1, 0))}, "present"),
        ({"action": Modality(KEYS[:6])}, "gripper"),
    ],
)
def test_a_server_of_another_robot_is_refused_at_once(
    changes: dict[str, Modality], said: str
) -> None:
    server = Upstream("n1.6")
    server.changes = changes
    with gr00t_server(server) as port, pytest.raises(SpecMismatch, match=said):
        load(port)


def test_an_empty_instruction_is_refused() -> None:
    with gr00t_server(Upstream("n1.6")) as port:
        policy = load(port)
        with pytest.raises(ConfigError, match="instruction"):
            policy.reset(" ", 0)
        with pytest.raises(SpecMismatch, match="reset"):
            policy.infer(sensed())
        policy.close()


def attempt(port: int) -> ZettaError:
    with pytest.raises(ZettaError) as error:
        registry.policy(f"gr00t://127.0.0.1:{port}@libero,connect_s=0.3,deadline_s=0.3")
    return error.value


def test_nobody_there_is_said_as_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert isinstance(attempt(port), ConnectionLost)


def test_somebody_silent_is_said_as_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert isinstance(attempt(listening.getsockname()[1]), Timeout)


def test_somebody_else_is_said_as_a_bad_answer() -> None:
    with gr00t_server(lambda request: b"hello") as port:
        assert isinstance(attempt(port), SpecMismatch)
