"""GR00T clients of both generations find what they expect behind our door, and bad ones nothing."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq

from tests.runtime.policy_server.door_parts import SmallEngine, TellingPolicy, sensed, spec
from zetta.runtime.core import ActionChunk, Observation
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.foreign import gr00t_codec, translate
from zetta.runtime.foreign.addresses import parse
from zetta.runtime.foreign.gr00t_client import Gr00tPolicy, load
from zetta.runtime.foreign.robots import GR00T_LIBERO, GR00T_ROBOCASA, OPENPI_LIBERO
from zetta.runtime.policy_server.gr00t_door import Gr00tDoor
from zetta.runtime.policy_server.visitors import Binding


@pytest.fixture
def engine() -> Iterator[SmallEngine]:
    made = SmallEngine()
    yield made
    made.stop()


@pytest.fixture
def door(engine: SmallEngine) -> Iterator[Gr00tDoor]:
    opened = Gr00tDoor(engine, GR00T_LIBERO, Binding())
    yield opened
    opened.close()


def plain_array(array: Any) -> Any:
    """Write an array as the published clients do."""
    if not isinstance(array, np.ndarray):
        raise TypeError(type(array))
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


def rich_array(items: dict[str, Any]) -> Any:
    """Read an array as the published clients do."""
    if "__ndarray_class__" in items:
        return np.load(io.BytesIO(items["as_npy"]), allow_pickle=False)
    return items


class PublishedClient:
    """Sends and receives as `gr00t/eval/service.py` and `gr00t/policy/server_client.py` do."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.REQ)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, 5000)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.token = token

    def call(self, endpoint: str, data: Any = None, requires_input: bool = True) -> Any:
        request: dict[str, Any] = {"endpoint": endpoint}
        if requires_input:
            request["data"] = data
        if self.token:
            request["api_token"] = self.token
        return self.send(msgpack.packb(request, default=plain_array))

    def send(self, message: bytes) -> Any:
        self.socket.send(message)
        return msgpack.unpackb(self.socket.recv(), object_hook=rich_array)

    def __enter__(self) -> PublishedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.context.term()


def libero_n15(bright: str = "left", prompt: str = "pick it up") -> dict[str, Any]:
    """Build a request as Isaac-GR00T's LIBERO evaluation does, from what robosuite hands out."""
    rows = np.asarray(sensed(bright).images["agentview"])[::-1]
    turned = np.ascontiguousarray(rows[::-1, ::-1])
    xyz, rpy = [0.1, -0.2, 0.3], [3.1, 0.0, 0.0]
    return {
        "video.image": turned[None],
        "video.wrist_image": turned[None],
        **{f"state.{k}": np.array([[v]]) for k, v in zip(("x", "y", "z"), xyz, strict=True)},
        **{
            f"state.{k}": np.array([[v]])
            for k, v in zip(("roll", "pitch", "yaw"), rpy, strict=True)
        },
        "state.gripper": np.array([[0.03, -0.03]]),
        "annotation.human.action.task_description": [prompt],
    }


TOLD = {"x": 0.1, "y": -0.2, "z": 0.3, "roll": 1.0, "pitch": 0.0, "yaw": 0.6, "gripper": 1.0}
"""What the policy answers to that: the bright side is seen on the left; their 1 opens."""


def test_a_client_of_the_older_generation_gets_flat_actions(
    door: Gr00tDoor, engine: SmallEngine
) -> None:
    with PublishedClient(door.port) as client:
        assert client.call("ping", requires_input=False)["status"] == "ok"
        answer = client.call("get_action", libero_n15())
        assert {k: v.shape for k, v in answer.items()} == {f"action.{k}": (10, 1) for k in TOLD}
        for key, value in TOLD.items():
            np.testing.assert_allclose(answer[f"action.{key}"], value, atol=1e-6)
    assert engine.policy.resets == [("pick it up", 0)]


def test_a_client_of_the_newer_generation_gets_actions_and_information(
    door: Gr00tDoor, engine: SmallEngine
) -> None:
    asked = translate.request(sensed(), "pick it up", GR00T_LIBERO, "n1.6")
    with PublishedClient(door.port) as client:
        assert client.call("reset", {"options": None}) == {}
        actions, told = client.call("get_action", {"observation": asked, "options": None})
        assert told == {}
        assert {k: v.shape for k, v in actions.items()} == dict.fromkeys(TOLD, (1, 10, 1))
        assert {v.dtype for v in actions.values()} == {np.dtype("float32")}
        np.testing.assert_allclose(actions["gripper"], 1.0)


def test_a_client_behind_the_simulation_wrapper_gets_flat_keys_in_the_newer_envelope(
    door: Gr00tDoor,
) -> None:
    asked = translate.request(sensed(), "pick it up", GR00T_LIBERO, "n1.6-flat")
    with PublishedClient(door.port) as client:
        actions, _ = client.call("get_action", {"observation": asked, "options": None})
        assert actions["action.x"].shape == (1, 10, 1)


def test_reset_begins_an_episode_with_the_seed_it_brings(
    door: Gr00tDoor, engine: SmallEngine
) -> None:
    asked = {"observation": translate.request(sensed(), "go", GR00T_LIBERO, "n1.6")}
    with PublishedClient(door.port) as client:
        for options in ({"seed": 9}, None, {}):
            client.call("reset", {"options": options})
            client.call("get_action", asked)
            client.call("get_action", asked)
    assert engine.policy.resets == [("go", 9), ("go", 1), ("go", 2)]
    assert engine.policy.times == [0.0, 0.4] * 3


@pytest.mark.parametrize("generation", ["n1.5", "n1.6"])
def test_modalities_take_the_form_of_the_chosen_generation(
    engine: SmallEngine, generation: gr00t_codec.Generation
) -> None:
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding(), generation)
    try:
        with PublishedClient(door.port) as client:
            answer = client.call("get_modality_config", requires_input=False)
        described = answer["action"]["as_json"]
        assert isinstance(described, str) == (generation == "n1.5")
        record = json.loads(described) if isinstance(described, str) else described
        assert record["modality_keys"] == list(TOLD)
        assert record["delta_indices"] == list(range(10))
    finally:
        door.close()


def test_kill_is_answered_and_not_obeyed(door: Gr00tDoor) -> None:
    with PublishedClient(door.port) as client:
        assert "not stopped over the wire" in client.call("kill", requires_input=False)["error"]
        assert client.call("ping", requires_input=False)["status"] == "ok"


def test_a_token_is_needed_where_one_is_set(engine: SmallEngine, tmp_path: Any) -> None:
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding(key="geheim"))
    file = tmp_path / "token"
    file.write_text("geheim")
    try:
        for token in (None, "wrong"):
            with PublishedClient(door.port, token) as client:
                answer = client.call("get_action", libero_n15())
                assert answer == {"error": "Unauthorized: Invalid API token"}
        with pytest.raises(ConfigError, match="key_file"):
            load(door.url)
        with PublishedClient(door.port, "geheim") as client:
            assert "action.x" in client.call("get_action", libero_n15())
        policy = load(f"{door.url},key_file={file}")
        policy.close()
    finally:
        door.close()


def test_errors_are_one_line_and_the_client_may_go_on(door: Gr00tDoor) -> None:
    with PublishedClient(door.port) as client:
        broken = libero_n15()
        del broken["state.x"]
        assert "state/x" in client.call("get_action", broken)["error"]
        assert "nonsense" in client.call("get_action", libero_n15(prompt="nonsense"))["error"]
        assert "Unknown endpoint" in client.call("dance")["error"]
        assert "data" in client.call("get_action", requires_input=False)["error"]
        assert "seed" in client.call("reset", {"options": {"seed": -1}})["error"]
        assert "action.x" in client.call("get_action", libero_n15())


def test_the_longest_silent_client_makes_room(engine: SmallEngine) -> None:
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding(max_visitors=2))
    try:
        for _ in range(6):
            with PublishedClient(door.port) as client:
                assert "action.x" in client.call("get_action", libero_n15())
        assert door.visitors == 2
        assert engine.most <= 3
    finally:
        door.close()
    assert not engine.opened


class Slow(TellingPolicy):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = threading.Event(), threading.Event()

    def infer(self, observation: Observation) -> ActionChunk:
        self.asked.set()
        self.let.wait(30)
        return super().infer(observation)


def test_inference_does_not_keep_others_waiting_and_a_second_question_is_refused() -> None:
    slow = Slow()
    engine = SmallEngine(slow)
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding())
    context = zmq.Context()
    pushy = context.socket(zmq.DEALER)
    pushy.setsockopt(zmq.RCVTIMEO, 5000)
    pushy.connect(f"tcp://127.0.0.1:{door.port}")
    question = msgpack.packb({"data": libero_n15()}, default=plain_array)
    try:
        pushy.send_multipart([b"", question])
        assert slow.asked.wait(5)
        with PublishedClient(door.port) as client:
            assert client.call("ping", requires_input=False)["status"] == "ok"
        pushy.send_multipart([b"", question])
        assert "one request at a time" in msgpack.unpackb(pushy.recv_multipart()[1])["error"]
        slow.let.set()
        assert "action.x" in msgpack.unpackb(pushy.recv_multipart()[1])
    finally:
        slow.let.set()
        pushy.close(linger=0)
        context.term()
        door.close()
        engine.stop()


def test_policies_that_such_clients_cannot_feed_or_follow_are_refused() -> None:
    with pytest.raises(ConfigError, match="depth"):
        Gr00tDoor(SmallEngine(TellingPolicy(spec(depth=True))), GR00T_LIBERO, Binding())
    with pytest.raises(ConfigError, match="agentview"):
        Gr00tDoor(SmallEngine(), GR00T_ROBOCASA, Binding())
    with pytest.raises(ConfigError, match="openpi"):
        Gr00tDoor(SmallEngine(), OPENPI_LIBERO, Binding())


def test_a_port_that_is_taken_is_said_so(door: Gr00tDoor, engine: SmallEngine) -> None:
    with pytest.raises(InfraError, match="another port"):
        Gr00tDoor(engine, GR00T_LIBERO, Binding(port=door.port))


@pytest.mark.parametrize(
    ("generation", "option", "form"),
    [("n1.5", "", "n1.5"), ("n1.6", "", "n1.6"), ("n1.6", ",flat=1", "n1.6-flat")],
)
def test_our_client_tells_the_generation_and_agrees_with_our_door(
    engine: SmallEngine, generation: gr00t_codec.Generation, option: str, form: str
) -> None:
    door = Gr00tDoor(engine, GR00T_LIBERO, Binding(), generation)
    try:
        policy = Gr00tPolicy(parse(door.url + option, "gr00t"))
        assert policy.form == form
        assert policy.spec.horizon == 10
        assert policy.spec.replan_steps == 8
        policy.reset("pick it up", 41)
        for bright, seen in (("left", [1.0, 0.0]), ("right", [0.0, 1.0])):
            chunk = policy.infer(sensed(bright, opening=0.02))
            np.testing.assert_allclose(
                chunk.actions[0], [0.1, -0.2, 0.3, *seen, 0.2, 1.0], atol=1e-6
            )
        seed = 0 if generation == "n1.5" else 41
        assert engine.policy.resets == [("pick it up", seed)]
        policy.reset("pick it up", 41)
        policy.infer(sensed())
        assert len(engine.policy.resets) == 2  # the same sentence, and yet another episode
        policy.reset("nonsense", 0)
        with pytest.raises(InfraError, match="nonsense"):
            policy.infer(sensed())
        policy.close()
        policy.close()
    finally:
        door.close()
