"""openpi clients find what they expect behind our door: the published one, ours, and bad ones."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.runtime.policy_server.door_parts import LIBERO, SmallEngine, TellingPolicy, sensed, spec
from zetta.runtime.core import ActionChunk, CameraSpec, Observation, Policy
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.foreign import openpi_codec, translate
from zetta.runtime.foreign.addresses import parse
from zetta.runtime.foreign.inspection import resting
from zetta.runtime.foreign.openpi_client import OpenpiPolicy, load
from zetta.runtime.foreign.robots import GR00T_LIBERO, OPENPI_DROID, OPENPI_LIBERO
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.openpi_door import OpenpiDoor
from zetta.runtime.policy_server.visitors import Binding


@pytest.fixture
def engine() -> Iterator[SmallEngine]:
    made = SmallEngine()
    yield made
    made.stop()


@pytest.fixture
def door(engine: SmallEngine) -> Iterator[OpenpiDoor]:
    opened = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    yield opened
    opened.close()


def request(prompt: str = "pick it up", bright: str = "left") -> dict[str, Any]:
    return translate.request(sensed(bright), prompt, OPENPI_LIBERO, "openpi")


def raw(door: OpenpiDoor, **options: Any) -> Any:
    return connect(f"ws://127.0.0.1:{door.port}", compression=None, proxy=None, **options)


# --------------------------------------------------------------------------- the published client


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:openpi_client")
def test_the_published_client_drives_the_policy_as_it_would_drive_upstreams(
    door: OpenpiDoor, engine: SmallEngine
) -> None:
    clients = pytest.importorskip(
        "openpi_client.websocket_client_policy", reason="needs openpi-client, see make setup"
    )
    from openpi_client import action_chunk_broker, image_tools

    client = clients.WebsocketClientPolicy("127.0.0.1", door.port)
    assert client.get_server_metadata()["zetta"]["convention"] == "libero"
    # As openpi's examples/libero/main.py does it with what robosuite hands out.
    upright = np.asarray(sensed("left").images["agentview"])
    rows = upright[::-1]
    picture = image_tools.convert_to_uint8(
        image_tools.resize_with_pad(np.ascontiguousarray(rows[::-1, ::-1]), 224, 224)
    )
    element = {
        "observation/image": picture,
        "observation/wrist_image": picture,
        "observation/state": np.array([0.1, -0.2, 0.3, 3.1, 0.0, 0.0, 0.03, -0.03]),
        "prompt": "pick it up",
    }
    broker = action_chunk_broker.ActionChunkBroker(client, action_horizon=5)
    for _ in range(12):
        action = broker.infer(element)["actions"]
        # The policy saw the bright side where it is: on the left of an upright picture.
        np.testing.assert_allclose(action, [0.1, -0.2, 0.3, 1.0, 0.0, 0.6, -1.0], atol=0.02)
    assert engine.policy.resets == [("pick it up", 0)]
    assert engine.policy.times == [0.0, 0.25, 0.5]
    answer = client.infer(element)
    assert answer["actions"].shape == (10, 7)
    assert answer["server_timing"].keys() == {"infer_ms", "prev_total_ms"}
    client._ws.close()
    assert engine.left_alone()


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:openpi_client")
def test_the_published_client_shows_our_error_in_one_line(door: OpenpiDoor) -> None:
    clients = pytest.importorskip(
        "openpi_client.websocket_client_policy", reason="needs openpi-client, see make setup"
    )
    client = clients.WebsocketClientPolicy("127.0.0.1", door.port)
    with pytest.raises(RuntimeError, match="observation/state"):
        client.infer(request() | {"observation/state": np.zeros(3)})
    client._ws.close()


# --------------------------------------------------------------------------- the protocol


def test_metadata_comes_first_and_an_answer_has_the_published_keys(door: OpenpiDoor) -> None:
    with raw(door) as line:
        assert openpi_codec.decode(line.recv(timeout=5))["zetta"]["pictures"] == {
            "observation/image": "mirror",
            "observation/wrist_image": "mirror",
        }
        line.send(openpi_codec.encode(request()))
        first = openpi_codec.decode(line.recv(timeout=5))
        assert first["actions"].shape == (10, 7)
        assert set(first["server_timing"]) == {"infer_ms"}


def test_health_is_told_without_a_websocket(door: OpenpiDoor) -> None:
    line = http.client.HTTPConnection("127.0.0.1", door.port, timeout=5)
    line.request("GET", "/healthz")
    answer = line.getresponse()
    assert (answer.status, answer.read()) == (200, b"OK\n")
    line.close()


def test_an_error_is_a_short_text_and_the_end_of_the_connection(
    door: OpenpiDoor, engine: SmallEngine
) -> None:
    with raw(door) as line:
        line.recv(timeout=5)
        line.send(openpi_codec.encode(request("nonsense")))
        said = line.recv(timeout=5)
        assert said == "the instruction is nonsense"
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011
    assert engine.left_alone()


def test_another_sentence_begins_another_episode(door: OpenpiDoor, engine: SmallEngine) -> None:
    with raw(door) as line:
        line.recv(timeout=5)
        for prompt in ("first", "first", "second", "first"):
            line.send(openpi_codec.encode(request(prompt)))
            line.recv(timeout=5)
    assert engine.policy.resets == [("first", 0), ("second", 1), ("first", 2)]
    assert engine.policy.times == [0.0, 0.25, 0.0, 0.0]


def test_a_seed_that_comes_with_a_request_begins_an_episode_when_it_changes(
    door: OpenpiDoor, engine: SmallEngine
) -> None:
    with raw(door) as line:
        line.recv(timeout=5)
        for seed in (7, 7, 8):
            line.send(openpi_codec.encode(request("go") | {"seed": seed}))
            line.recv(timeout=5)
    assert engine.policy.resets == [("go", 7), ("go", 8)]


# --------------------------------------------------------------------------- who may come in


def test_a_key_is_needed_where_one_is_set(engine: SmallEngine) -> None:
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding(key="geheim"))
    try:
        for headers in ({}, {"Authorization": "Api-Key wrong"}, {"Authorization": "Bearer geheim"}):
            with pytest.raises(InvalidStatus, match="401"), raw(door, additional_headers=headers):
                pass
        with raw(door, additional_headers={"Authorization": "Api-Key geheim"}) as line:
            assert line.recv(timeout=5)
    finally:
        door.close()


def test_our_client_takes_the_key_from_a_file(engine: SmallEngine, tmp_path: Any) -> None:
    file = tmp_path / "key"
    file.write_text("geheim\n")
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding(key="geheim"))
    try:
        with pytest.raises(ConfigError, match="key_file"):
            load(door.url)
        policy = load(f"{door.url},key_file={file}")
        policy.reset("go", 0)
        assert policy.infer(sensed()).actions.shape == (10, 7)
        assert "geheim" not in repr(policy.address)
        policy.close()
    finally:
        door.close()


def test_a_web_page_is_not_let_in(door: OpenpiDoor) -> None:
    with pytest.raises(InvalidStatus, match="403"), raw(door, origin="http://evil.example"):
        pass


def test_more_visitors_than_places_are_sent_away(engine: SmallEngine) -> None:
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding(max_visitors=1))
    try:
        with raw(door) as line:
            line.recv(timeout=5)
            with pytest.raises(InvalidStatus, match="503"), raw(door):
                pass
    finally:
        door.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "robot.lan"])
def test_a_server_that_others_reach_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="key"):
        Binding(host)
    assert Binding(host, key="k").key == "k"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_a_server_of_this_machine_needs_none(host: str) -> None:
    assert Binding(host).admits(None)


# --------------------------------------------------------------------------- what fits


def test_policies_that_such_clients_cannot_feed_or_follow_are_refused(engine: SmallEngine) -> None:
    def refused(told: Any, convention: Any = OPENPI_LIBERO) -> str:
        with pytest.raises((ConfigError, SpecMismatch)) as error:
            OpenpiDoor(SmallEngine(TellingPolicy(told)), convention, Binding())
        return str(error.value)

    assert "depth" in refused(spec(depth=True))
    assert "front" in refused(spec(cameras=(CameraSpec("front", 256, 256),)))
    assert "64x64" in refused(spec(cameras=(CameraSpec("wrist", 64, 64),)))
    assert "10 Hz" in refused(spec(control_hz=10.0))
    assert "8" in refused(spec(cameras=(), control_hz=15.0), OPENPI_DROID)
    assert "gr00t" in refused(spec(), GR00T_LIBERO)


class Lost(TellingPolicy):
    """Answers with numbers that are none."""

    def infer(self, observation: Observation) -> ActionChunk:
        return ActionChunk(np.full((10, 7), np.nan), observation.proprio.t)


def test_numbers_that_are_not_finite_are_not_sent() -> None:
    engine = SmallEngine(Lost())
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    policy = load(door.url)
    policy.reset("go", 0)
    with pytest.raises(InfraError, match="not finite"):
        policy.infer(sensed())
    policy.close()
    door.close()
    engine.stop()


class Joints(TellingPolicy):
    """Looks at joints only, and answers with velocities."""

    def infer(self, observation: Observation) -> ActionChunk:
        arm = observation.proprio.arms[0]
        row = [*(arm.joint_pos / 4), 1.0 if arm.gripper_opening > 0.04 else 0.0]
        return ActionChunk(np.tile(row, (10, 1)), observation.proprio.t)


def test_a_droid_client_drives_a_policy_of_joints_behind_the_real_engine() -> None:
    cameras = OPENPI_DROID.cameras
    policy = Joints(spec(OPENPI_DROID.action, cameras, control_hz=15.0))
    engine = Engine(cast(Policy, policy))
    door = OpenpiDoor(engine, OPENPI_DROID, Binding())
    client = load(door.url)
    client.reset("go", 0)
    seen = resting(OPENPI_DROID)
    rows = client.infer(seen).actions
    np.testing.assert_allclose(rows[0, :7], seen.proprio.arms[0].joint_pos / 4, atol=1e-6)
    assert (rows[:, 7] == 1.0).all()
    client.close()
    door.close()
    engine.stop()


def test_a_port_that_is_taken_is_said_so(door: OpenpiDoor, engine: SmallEngine) -> None:
    with pytest.raises(InfraError, match="another port"):
        OpenpiDoor(engine, OPENPI_LIBERO, Binding(port=door.port))


# --------------------------------------------------------------------------- waiting


class Slow(TellingPolicy):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = threading.Event(), threading.Event()

    def infer(self, observation: Observation) -> ActionChunk:
        self.asked.set()
        self.let.wait(30)
        return super().infer(observation)


def test_inference_does_not_keep_others_waiting() -> None:
    slow = Slow()
    engine = SmallEngine(slow)
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    try:
        with raw(door) as line:
            line.recv(timeout=5)
            line.send(openpi_codec.encode(request()))
            assert slow.asked.wait(5)
            test_health_is_told_without_a_websocket(door)
            with raw(door) as other:
                assert other.recv(timeout=5)
            assert line.ping().wait(5)
            slow.let.set()
            assert isinstance(line.recv(timeout=5), bytes)
    finally:
        slow.let.set()
        door.close()
        engine.stop()


def test_a_policy_that_takes_too_long_is_an_error(engine: SmallEngine) -> None:
    slow = Slow()
    lame = SmallEngine(slow)
    door = OpenpiDoor(lame, OPENPI_LIBERO, Binding(deadline_s=0.05))
    try:
        policy = OpenpiPolicy(parse(door.url, "openpi"))
        policy.reset("go", 0)
        with pytest.raises(InfraError, match=r"no answer within 0\.05"):
            policy.infer(sensed())
        policy.close()
    finally:
        slow.let.set()
        door.close()
        lame.stop()


def test_closing_a_door_hangs_up_and_closing_it_twice_is_harmless(engine: SmallEngine) -> None:
    door = OpenpiDoor(engine, OPENPI_LIBERO, Binding())
    with raw(door) as line:
        line.recv(timeout=5)
        door.close()
        door.close()
        with pytest.raises(ConnectionClosed):
            line.recv(timeout=5)
    assert not engine.opened


# --------------------------------------------------------------------------- our own client


def test_our_client_and_our_door_agree_on_everything(door: OpenpiDoor, engine: SmallEngine) -> None:
    policy = load(door.url)
    policy.reset("pick it up", 41)
    for bright, seen in (("left", [1.0, 0.0]), ("right", [0.0, 1.0])):
        chunk = policy.infer(sensed(bright, opening=0.02))
        assert chunk.t_obs == 0.25
        np.testing.assert_allclose(chunk.actions[0], [0.1, -0.2, 0.3, *seen, 0.2, 1.0], atol=0.02)
    assert engine.policy.resets == [("pick it up", 41)]
    policy.reset("pick it up", 42)
    policy.infer(sensed())
    assert engine.policy.resets[-1] == ("pick it up", 42)
    policy.close()
    policy.close()
    assert engine.left_alone()
    assert LIBERO["openpi"] is OPENPI_LIBERO
