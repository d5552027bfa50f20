"""One arm of a benchmark in a process of its own, because a process draws one environment."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from zetta.runtime import registry
from zetta.runtime.benchmarks import (
    pictures_cpu_s,
    policy_latency,
    record_actions,
    replay_cpu_s,
    replay_wall_s,
)
from zetta.runtime.core import Env, Init, Scene, Simulator
from zetta.runtime.errors import InfraError, Timeout, WorkerDied, ZettaError
from zetta.sims.remote import RemoteEnv

ANSWER_WITHIN_S = 900.0
"""A block takes seconds; building an environment on a busy machine can take minutes."""


@dataclass(frozen=True, slots=True)
class ArmPlace:
    """The environment that an arm is measured in."""

    sim: str
    suite: str
    task: int
    render: str
    init: int = 0
    worker: bool = False
    """Whether the environment lives in yet another process."""


class ArmProcess:
    """A child that holds one environment and carries out one request at a time."""

    def __init__(self, place: ArmPlace) -> None:
        """Start the child; it builds its environment with the first request."""
        spawn = multiprocessing.get_context("spawn")
        self._here, there = spawn.Pipe()
        self._process = spawn.Process(
            target=serve_arm, args=(there, json.dumps(asdict(place))), daemon=True
        )
        self._process.start()
        there.close()

    def __enter__(self) -> ArmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._here.close()

    def ask(self, what: str, **arguments: object) -> Any:
        """Return the child's answer.

        Raises:
            ZettaError: what went wrong there.
            WorkerDied: it ended without an answer.
            Timeout: it did not answer in time.
        """
        try:
            self._here.send_bytes(json.dumps({"what": what, **arguments}).encode())
            if not self._here.poll(ANSWER_WITHIN_S):
                raise Timeout(f"a benchmark process gave no answer within {ANSWER_WITHIN_S:.0f} s")
            answer = json.loads(self._here.recv_bytes())
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self._process.join(timeout=5)
            code = self._process.exitcode
            raise WorkerDied(f"a benchmark process ended with exit code {code}") from error
        if "error" in answer:
            raise InfraError(answer["error"])
        return answer["value"]


@dataclass(frozen=True, slots=True)
class ReplayArm:
    """Logged actions replayed with a look every so many ticks."""

    process: ArmProcess
    actions: list[list[float]]
    cameras: list[str]
    look_every: int

    def block(self) -> float:
        """Return the CPU seconds of one replay."""
        return float(
            self.process.ask(
                "replay", actions=self.actions, cameras=self.cameras, look_every=self.look_every
            )
        )


@dataclass(frozen=True, slots=True)
class PictureArm:
    """Pictures of one moment."""

    process: ArmProcess
    cameras: list[str]
    pictures: int

    def block(self) -> float:
        """Return the CPU seconds of one block of pictures."""
        answer = self.process.ask("pictures", cameras=self.cameras, pictures=self.pictures)
        return float(answer)


# --------------------------------------------------------------------------- in the child


def serve_arm(pipe: Connection, place_json: str) -> None:
    """Answer requests until the other side goes away."""
    arm = _Arm(ArmPlace(**json.loads(place_json)))
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            answer = {"value": arm.answer(request)}
        except ZettaError as error:
            answer = {"error": f"{error}"}
        pipe.send_bytes(json.dumps(answer).encode())


class _Arm:
    def __init__(self, place: ArmPlace) -> None:
        self._place = place
        self._simulator: Simulator | None = None
        self._env: Env | None = None

    def answer(self, request: Mapping[str, Any]) -> object:
        """Carry out one request."""
        simulator, env, scene = self._built()
        match request["what"]:
            case "cameras":
                return [camera.name for camera in env.spec.cameras]
            case "record":
                return record_actions(simulator, env, scene, request["most"])
            case "replay":
                actions = list(np.asarray(request["actions"], dtype=np.float64))
                cameras, every = request["cameras"], request["look_every"]
                return replay_cpu_s(env, scene, actions, cameras, every)
            case "replay_wall":
                actions = list(np.asarray(request["actions"], dtype=np.float64))
                cameras, every = request["cameras"], request["look_every"]
                return replay_wall_s(env, scene, actions, cameras, every)
            case "pictures":
                return pictures_cpu_s(env, request["cameras"], request["pictures"])
            case "reset":
                env.reset(scene)
                env.observe([camera.name for camera in env.spec.cameras])
                return env.spec.render_profile
            case "policy":
                policy = registry.policy(request["policy"])
                return asdict(policy_latency(policy, env, scene, request["calls"]))
            case "sight":
                from zetta.runtime.cli.bench_sight import look_at

                return look_at(simulator, env, self._place, request)
            case "overlays":
                from zetta.runtime.cli.bench_overlays import read_pictures

                return read_pictures(simulator, env, self._place, request)
            case "dry run":
                from zetta.runtime.cli.bench_dry_run import try_commands

                return try_commands(simulator, env, self._place, request)
            case other:
                raise InfraError(f"a benchmark process was asked for {other!r}")

    def _built(self) -> tuple[Simulator, Env, Scene]:
        place = self._place
        if self._simulator is None or self._env is None:
            self._simulator = registry.simulator(place.sim)
            if place.worker:
                self._env = RemoteEnv(place.sim, place.suite, place.task, place.render)
            else:
                self._env = self._simulator.make(place.suite, place.task, place.render)
        task = self._simulator.task(place.suite, place.task)
        return self._simulator, self._env, Scene(task, Init(place.init))
