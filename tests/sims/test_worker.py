"""An environment in another process: equal results, honest deaths, no remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from zetta.runtime import registry, wire
from zetta.runtime.core import Env, Init, Sampled, Scene, SnapshotEnv
from zetta.runtime.errors import (
    ConfigError,
    InfraError,
    SpecMismatch,
    Timeout,
    WorkerDied,
)
from zetta.sims import remote as remote_module
from zetta.sims import worker
from zetta.sims.remote import RemoteEnv, RemoteSettings
from zetta.sims.toy import ToySimulator

SUITE, TASK = "toy_pick", 0
SCENE = Scene(ToySimulator().task(SUITE, TASK), Init(0), seed=3)


@pytest.fixture(scope="module")
def remote() -> Iterator[RemoteEnv]:
    env = RemoteEnv("toy", SUITE, TASK)
    yield env
    env.close()


@pytest.fixture
def doomed() -> Iterator[RemoteEnv]:
    """A worker that a test may harm."""
    env = RemoteEnv("toy", SUITE, TASK, settings=RemoteSettings(farewell_s=1.0))
    yield env
    os.kill(env.pid, signal.SIGCONT) if is_there(env.pid) else None
    env.close()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_there(pid)


def seen(env: SnapshotEnv, scene: Scene) -> list[Any]:
    """Return everything a run of `scene` shows, in plain form."""
    rng = np.random.default_rng(1)
    shown = [wire.to_wire(env.reset(scene))]
    for _ in range(25):
        shown.append(wire.to_wire(env.step(rng.uniform(-1.0, 1.0, env.spec.action.size))))
    cameras = [camera.name for camera in env.spec.cameras]
    shown.append(wire.to_wire(env.observe(cameras, depth=True)))
    snapshot = env.snapshot()
    shown += [snapshot, env.pose(), wire.to_wire(env.step(np.ones(env.spec.action.size)))]
    return [*shown, wire.to_wire(env.restore(snapshot))]


@pytest.mark.parametrize("layout", [Init(2), Sampled()], ids=str)
def test_results_are_bit_equal_to_those_in_process(
    remote: RemoteEnv, layout: Init | Sampled
) -> None:
    local = ToySimulator().make(SUITE, TASK)
    scene = replace(SCENE, layout=layout)

    there, here = seen(remote, scene), seen(local, scene)

    assert wire.pack(there) == wire.pack(here)
    assert remote.spec == local.spec


def test_snapshots_move_between_processes(remote: RemoteEnv) -> None:
    local = ToySimulator().make(SUITE, TASK)
    remote.reset(SCENE)
    remote.step(np.full(7, 0.5))
    local.restore(remote.snapshot())

    assert local.pose().tobytes() == remote.pose().tobytes()


def test_it_is_an_environment_with_snapshots(remote: RemoteEnv) -> None:
    assert isinstance(remote, Env)
    assert isinstance(remote, SnapshotEnv)


@pytest.mark.parametrize(
    ("sim", "suite", "index", "render", "said"),
    [
        ("toi", SUITE, 0, "fast", "did you mean 'toy'"),
        ("toy", "toy_pikc", 0, "fast", "toy_pick"),
        ("toy", SUITE, 99, "fast", "99"),
        ("toy", SUITE, 0, "pretty", "pretty"),
    ],
)
def test_what_does_not_exist_is_the_same_error_as_in_process(
    sim: str, suite: str, index: int, render: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as there:
        RemoteEnv(sim, suite, index, render)
    with pytest.raises(ConfigError) as here:
        registry.simulator(sim).make(suite, index, render)

    assert str(there.value) == str(here.value)


def test_errors_of_the_environment_keep_their_class_and_the_worker_goes_on(
    remote: RemoteEnv,
) -> None:
    remote.reset(SCENE)
    before = remote.pose().tobytes()
    with pytest.raises(SpecMismatch, match="7 finite numbers"):
        remote.step(np.zeros(6))
    with pytest.raises(ConfigError, match="no camera"):
        remote.observe(["nowhere"])
    with pytest.raises(SpecMismatch):
        remote.restore(b"not a snapshot")

    assert remote.pose().tobytes() == before


def test_a_package_that_is_gone_is_told_with_the_command_that_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> Env:
        raise ModuleNotFoundError("No module named 'mujoco'")

    monkeypatch.setattr(ToySimulator, "make", broken)
    calls = worker.EnvCalls(worker.Served("toy", SUITE, TASK))
    with pytest.raises(InfraError, match=r"No module named 'mujoco'; .*: zetta sims check toy"):
        calls.carry_out(wire.Request(1, "open", {}))


def test_calls_of_another_name_or_shape_end_nothing(remote: RemoteEnv) -> None:
    remote.reset(SCENE)
    with pytest.raises(ConfigError, match="did you mean 'reset'"):
        remote._call("rest")
    with pytest.raises(InfraError, match="unexpected TypeError"):
        remote._call("step", torque=np.zeros(7))
    with pytest.raises(SpecMismatch, match="expected an array"):
        remote._call("step", action="forward")

    assert remote.step(np.zeros(7)).proprio.t > 0


# --------------------------------------------------------------------------- deaths


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
def test_a_dead_worker_is_noticed_at_once_and_named(doomed: RemoteEnv) -> None:
    doomed.reset(SCENE)
    os.kill(doomed.pid, signal.SIGSTOP)  # so that the call is under way when it dies
    killer = subprocess.Popen(
        [sys.executable, "-c", f"import os, time; time.sleep(1); os.kill({doomed.pid}, 9)"]
    )
    begun = time.monotonic()
    with pytest.raises(WorkerDied, match=r"toy_pick#0 ended \(signal SIGKILL\) during step"):
        doomed.step(np.zeros(7))
    killer.wait()

    assert time.monotonic() - begun < RemoteSettings().call_s / 2
    with pytest.raises(WorkerDied):
        doomed.step(np.zeros(7))


def test_a_silent_worker_is_a_timeout_and_its_late_answer_is_dropped() -> None:
    env = RemoteEnv("toy", SUITE, TASK)
    env.reset(SCENE)
    os.kill(env.pid, signal.SIGSTOP)
    env._settings = RemoteSettings(call_s=0.5)
    with pytest.raises(Timeout, match=r"did not answer pose within 0\.5 s"):
        env.pose()
    os.kill(env.pid, signal.SIGCONT)
    env._settings = RemoteSettings()

    # The answer to `pose` comes first, and is not taken for the one to `step`.
    assert env.step(np.zeros(7)).proprio.t == pytest.approx(0.05)
    env.close()


def test_close_ends_a_worker_that_hangs(doomed: RemoteEnv) -> None:
    os.kill(doomed.pid, signal.SIGSTOP)
    doomed.close()

    assert gone_within(doomed.pid, 5)


def test_worker_ends_when_its_owner_is_killed() -> None:
    code = (
        "import os, sys; from zetta.sims.remote import RemoteEnv;"
        f"env = RemoteEnv('toy', {SUITE!r}, {TASK}); print(env.pid, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    owner = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert owner.returncode == -signal.SIGKILL
    assert gone_within(int(owner.stdout), 30)


def test_a_forgotten_worker_keeps_no_process_from_ending() -> None:
    code = (
        "from zetta.sims.remote import RemoteEnv;"
        f"env = RemoteEnv('toy', {SUITE!r}, {TASK}); print(env.pid, flush=True);"
        "env._worker._socket.send(b'nobody answers this')"
    )
    command = [sys.executable, "-c", code]
    owner = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)

    assert owner.returncode == 0
    assert gone_within(int(owner.stdout), 30)


def test_a_worker_that_is_still_at_it_is_not_asked_to_end_but_ended() -> None:
    settings = RemoteSettings(call_s=0.2, farewell_s=3600.0)
    env = RemoteEnv("toy", SUITE, TASK, settings=settings)
    os.kill(env.pid, signal.SIGSTOP)  # as one that draws for minutes
    with pytest.raises(Timeout):
        env.pose()
    env.close()

    assert not is_there(env.pid)


def test_an_interpreter_without_zetta_is_told_by_its_last_words(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'No module named zetta' >&2\nexit 1\n")
    bare.chmod(0o755)

    with pytest.raises(WorkerDied, match=r"exit code 1\) during starting.*No module named zetta"):
        RemoteEnv("toy", SUITE, TASK, settings=RemoteSettings(python=str(bare)))
    with pytest.raises(InfraError, match="cannot start"):
        RemoteEnv("toy", SUITE, TASK, settings=RemoteSettings(python=str(tmp_path / "none")))


def test_failed_starts_leave_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError):
        RemoteEnv("toy", "no such suite", 0)

    assert list(tmp_path.iterdir()) == []


def test_a_deep_temporary_folder_falls_back_to_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    env = RemoteEnv("toy", SUITE, TASK)

    assert env.reset(SCENE).proprio.t == 0.0
    env.close()


@pytest.mark.parametrize("name", ["start_s", "call_s", "farewell_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_deadlines_must_be_more_than_nothing(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match="longer than 0 s"):
        RemoteSettings(**{name: value})


# --------------------------------------------------------------------------- the server


@pytest.mark.parametrize("endpoint", ["tcp://0.0.0.0:6001", "tcp://*:6001", "tcp://10.0.0.1:1"])
def test_only_local_endpoints_are_bound(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="SSH tunnel"):
        worker.bind(endpoint)


def test_a_taken_endpoint_is_one_sentence() -> None:
    first = worker.bind("tcp://127.0.0.1:*")
    taken = first.getsockopt_string(zmq.LAST_ENDPOINT)
    with pytest.raises(InfraError, match="another worker"):
        worker.bind(taken)
    first.close(0)


def test_a_second_client_and_forged_messages_are_answered_and_change_nothing(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-P", "-m", "zetta.sims.worker", "--owned", "--sim", "toy"]
    command += ["--suite", SUITE, "--index", "0", "--bind", f"ipc://{tmp_path}/s"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first, second = (dealer(f"ipc://{tmp_path}/s") for _ in range(2))
        assert "no message" in str(exchange(second, [b"\xc1"]).error)
        version = exchange(second, [wire.pack({"protocol": 2, "id": 1, "do": "open", "given": {}})])
        assert "protocol 2" in str(version.error)
        assert exchange(first, wire.request_frames(wire.Request(1, "open", {}))).error is None
        refused = exchange(second, wire.request_frames(wire.Request(5, "close", {})))
        assert refused.id == 5
        assert "another client" in str(refused.error)
        unmade = exchange(first, wire.request_frames(wire.Request(2, "step", {})))
        assert unmade.id == 2
        assert exchange(first, wire.request_frames(wire.Request(3, "close", {}))).id == 3
        assert process.wait(30) == 0
        first.close(0)
        second.close(0)


def dealer(endpoint: str) -> zmq.Socket[bytes]:
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(endpoint)
    return socket


def exchange(socket: zmq.Socket[bytes], frames: list[Any]) -> wire.Reply:
    socket.send_multipart(frames)
    assert socket.poll(60_000)
    return wire.read_reply(socket.recv_multipart())


def test_nothing_that_a_simulator_prints_meets_the_announcement() -> None:
    code = (
        "from zetta.sims import worker; from zetta.sims.toy import ToySimulator;"
        "make = ToySimulator.make;"
        "ToySimulator.make = lambda self, *a: print('loud') or make(self, *a);"
        "worker.main()"
    )
    command = [sys.executable, "-c", code, "--owned", "--sim", "toy", "--suite", SUITE]
    command += ["--index", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        endpoint = json.loads(process.stdout.readline())["endpoint"]
        client = dealer(endpoint)
        for number, do in enumerate(("open", "close")):
            assert exchange(client, wire.request_frames(wire.Request(number, do, {}))).error is None
        out, err = process.communicate(timeout=60)
        client.close(0)

    assert out == ""
    assert "loud" in err


def test_zetta_is_lent_to_an_interpreter_that_has_none() -> None:
    env = RemoteEnv("toy", SUITE, TASK, settings=RemoteSettings(lent=True))
    try:
        there, here = env.reset(SCENE), ToySimulator().make(SUITE, TASK).reset(SCENE)
        assert wire.pack(wire.to_wire(there)) == wire.pack(wire.to_wire(here))
    finally:
        env.close()


def test_a_lent_interpreter_that_runs_another_zetta_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "zetta").symlink_to(worker.PACKAGE, target_is_directory=True)
    monkeypatch.setattr(remote_module, "PACKAGE", tmp_path / "zetta")
    with pytest.raises(SpecMismatch, match=r"runs the zetta of .* expected the one of"):
        RemoteEnv("toy", SUITE, TASK, settings=RemoteSettings(lent=True))


def test_a_worker_of_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "PROTOCOL", wire.PROTOCOL + 1)
    with pytest.raises(SpecMismatch, match="install the same version"):
        RemoteEnv("toy", SUITE, TASK)


def test_a_worker_tells_the_things_of_its_scene(remote: RemoteEnv) -> None:
    local = ToySimulator().make(SUITE, TASK)
    remote.reset(SCENE)
    local.reset(SCENE)
    assert wire.pack(wire.to_wire(remote.landmarks())) == wire.pack(wire.to_wire(local.landmarks()))
