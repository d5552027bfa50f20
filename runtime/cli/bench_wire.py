"""What a round trip to a served policy costs, against the way most people begin: HTTP and JSON.

Two pictures of 256 x 256 and the state of an arm go to an echo in another process, eight rows come
back. The baseline sends the same as JSON with base64 over one kept connection. The arms take turns
block by block; a round trip is the median of the medians. On a machine that is busy with other
things it says more about them, so the CPU time of both sides is given beside it.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from zetta.runtime.benchmarks import Figure
from zetta.runtime.core import ActionChunk, ArmState, Observation, PolicySpec, Proprio, read_only
from zetta.runtime.errors import WorkerDied
from zetta.runtime.policies.echo import EchoPolicy
from zetta.runtime.policies.served import ServedPolicy, ServedSettings

CALLS: Final = 100
"""Round trips of a block."""
SOCKET_TARGET, MEMORY_TARGET = 8.0, 30.0
"""How many times faster than HTTP with JSON."""
ANSWER_S: Final = 120.0
JSON_SERVER: Final = "from zetta.runtime.cli.bench_wire import serve_json; serve_json()"


def wire_figures(blocks: int) -> list[Figure]:
    """Measure both ways of `zetta serve` against HTTP and JSON."""
    seen = noise_for(EchoPolicy().spec)
    with served_policy("echo") as (endpoint, ours), _json_server() as (port, theirs):
        policies = [_client(endpoint, shared=shared) for shared in (False, True)]
        slow = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        arms = {
            "wire_socket": _Arm(partial(policies[0].infer, seen), ours),
            "wire_shared_memory": _Arm(partial(policies[1].infer, seen), ours),
            "json": _Arm(partial(ask_json, slow, seen), theirs),
        }
        for block in range(blocks + 1):
            for arm in arms.values():
                arm.block(counted=block > 0)  # the first one warms up
        for policy in policies:
            policy.close()
        slow.close()
    base = arms.pop("json")
    targets = {"wire_socket": SOCKET_TARGET, "wire_shared_memory": MEMORY_TARGET}
    figures = []
    for name, arm in arms.items():
        wall, cpu = median(arm.wall_ms), median(arm.cpu_ms)
        wall_base, cpu_base = median(base.wall_ms), median(base.cpu_ms)
        figures.append(Figure(name, wall, "ms", wall_base, wall_base / wall, targets[name]))
        figures.append(Figure(f"{name}_cpu", cpu, "CPU ms", cpu_base, cpu_base / cpu))
    return figures


@dataclass(frozen=True, slots=True)
class _Arm:
    """One way to ask, and what it took block by block."""

    call: Callable[[], object]
    server: int
    """Process id of the other side."""
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def block(self, counted: bool) -> None:
        """Ask so many times."""
        times = []
        cpu = time.process_time() + _cpu_s(self.server)
        for _ in range(CALLS):
            start = time.perf_counter()
            self.call()
            times.append(1000.0 * (time.perf_counter() - start))
        cpu = time.process_time() + _cpu_s(self.server) - cpu
        if counted:
            self.wall_ms.append(median(times))
            self.cpu_ms.append(1000.0 * cpu / CALLS)


def _cpu_s(process: int) -> float:
    """Return the CPU seconds of another process; 0 where the system does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def noise_for(spec: PolicySpec) -> Observation:
    """Return an observation that fits `spec`; noise, so that nothing can be saved on it."""
    rng = np.random.default_rng(0)
    images = {
        c.name: read_only(rng.integers(0, 256, (c.height, c.width, 3)), np.uint8)
        for c in spec.cameras
    }
    arm = ArmState(
        read_only([0.1, 0.2, 0.9]), read_only([0.0, 0.0, 0.0, 1.0]), read_only(np.zeros(7)), 0.06
    )
    return Observation(Proprio(0.0, (arm,)), "lift the cube", images)


@contextmanager
def served_policy(policy: str, *options: str) -> Iterator[tuple[str, int]]:
    """Run `zetta serve` in a process of its own and yield its endpoint and process id."""
    place = ("--policy", policy, "--bind", "tcp://127.0.0.1:*", *options)
    command = [sys.executable, "-m", "zetta.runtime.cli.main", "serve", "--json", *place]
    with ready_child(command) as (line, process):
        yield str(json.loads(line)["endpoint"]), process


@contextmanager
def ready_child(command: list[str]) -> Iterator[tuple[str, int]]:
    """Run a child that says one line when it is ready; yield that and its id, then end it."""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    assert child.stdout is not None
    try:
        line = child.stdout.readline().decode()
        if not line:
            raise WorkerDied(f"{' '.join(command[1:5])} ended with exit code {child.wait()}")
        yield line, child.pid
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


def _client(endpoint: str, shared: bool) -> ServedPolicy:
    policy = ServedPolicy(ServedSettings(endpoint, within_s=ANSWER_S, shared=shared))
    policy.reset("lift the cube", 0)
    return policy


# --------------------------------------------------------------------------- the baseline


@contextmanager
def _json_server() -> Iterator[tuple[int, int]]:
    with ready_child([sys.executable, "-c", JSON_SERVER]) as (line, process):
        yield int(line), process


def ask_json(connection: http.client.HTTPConnection, seen: Observation) -> ActionChunk:
    """Send an observation as JSON and return the chunk of the answer."""
    arm = seen.proprio.arms[0]
    asked = {
        "instruction": seen.instruction,
        "t": seen.proprio.t,
        "ee_pos": arm.ee_pos.tolist(),
        "ee_quat": arm.ee_quat.tolist(),
        "joint_pos": arm.joint_pos.tolist(),
        "gripper_opening": arm.gripper_opening,
        "images": {name: _picture_json(picture) for name, picture in seen.images.items()},
    }
    connection.request("POST", "/infer", json.dumps(asked), {"Content-Type": "application/json"})
    told = json.loads(connection.getresponse().read())
    return ActionChunk(np.array(told["actions"]), told["t_obs"])


def _picture_json(picture: Any) -> dict[str, Any]:
    return {"shape": picture.shape, "data": base64.b64encode(picture).decode("ascii")}


_ECHO: Final = EchoPolicy()
_ECHO.reset("lift the cube", 0)


class JsonEcho(BaseHTTPRequestHandler):
    """Answers with the echo policy."""

    protocol_version = "HTTP/1.1"  # the connection is kept
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body of an answer leave together

    def do_POST(self) -> None:
        """Infer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        images = {
            name: np.frombuffer(base64.b64decode(p["data"]), np.uint8).reshape(p["shape"])
            for name, p in asked["images"].items()
        }
        arm = ArmState(
            np.array(asked["ee_pos"]),
            np.array(asked["ee_quat"]),
            np.array(asked["joint_pos"]),
            asked["gripper_opening"],
        )
        chunk = _ECHO.infer(Observation(Proprio(asked["t"], (arm,)), asked["instruction"], images))
        body = json.dumps({"actions": chunk.actions.tolist(), "t_obs": chunk.t_obs}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Say nothing."""


def serve_json() -> None:
    """Serve the baseline until the process is ended; the first line on stdout is the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), JsonEcho)
    print(server.server_port, flush=True)
    server.serve_forever()
